/* core/recorder against a perf that misbehaves in every way the protocol allows (tests/fakeperf.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib_record.h"

#define SOON 20.0 /* a deadline on a loaded machine, not an expectation */

static void begin(struct record_run *run, const char *modes, const char *version)
{
    char log[128];
    record_setup(run, false);
    snprintf(log, sizeof log, "%s/fake.log", run->dir);
    setenv("FAKEPERF_LOG", log, 1);
    setenv("FAKEPERF", modes, 1);
    char line[96];
    snprintf(line, sizeof line, "perf version %s", version);
    setenv("FAKEPERF_VERSION", line, 1);
}

static void start(struct record_run *run)
{
    struct err err = {0};
    if (record_start(run, &err) < 0)
        print_error("%s\n", err.text);
    assert_non_null(run->recorder);
}

/* How often the fake perf got that command or signal. */
static int received(const struct record_run *run, const char *what)
{
    char path[128], line[128];
    snprintf(path, sizeof path, "%s/fake.log", run->dir);
    FILE *f = fopen(path, "r");
    int n = 0;
    while (f && fgets(line, sizeof line, f))
        n += !strncmp(line, what, strlen(what)) && line[strlen(what)] == '\n';
    if (f)
        fclose(f);
    return n;
}

static struct recorder_status status(const struct record_run *run)
{
    struct recorder_status s;
    recorder_get_status(run->recorder, &s);
    return s;
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void snapshot_and_stop(struct record_run *run)
{
    start(run);
    record_wait_state(run, RECORDER_ENABLED, SOON);
    assert_int_equal(recorder_snapshot(run->recorder, "key", NULL), 0);
    record_wait_snapshots(run, 1, SOON);
    assert_int_equal(recorder_stop(run->recorder, NULL), 0);
    record_wait_end(run, SOON);
}

/* ---- the protocol, well and badly spoken ---- */

static void good_endings(void **state)
{
    (void)state;
    static const char *const modes[] = {"",         "no-nul", "split-ack",     "ack-late=150",
                                        "stop-eof", "loud",   "late-start=200"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct record_run run;
        begin(&run, modes[i], "6.1.0");
        snapshot_and_stop(&run);
        assert_true(run.ok);
        assert_string_equal(run.sentence, "the recording was stopped");
        assert_int_equal(run.n_snapshots, 1);
        assert_int_equal(run.n_end_files, 1);
        assert_int_equal(received(&run, "SIGUSR2"), 1);
        assert_int_equal(received(&run, "stop"), 1);
        assert_int_equal(received(&run, "snapshot"), 0);
        assert_true(record_was_in(&run, RECORDER_PINGED));
        assert_true(record_was_in(&run, RECORDER_SNAPSHOT));
        assert_true(record_was_in(&run, RECORDER_STOPPING));
        assert_int_equal(run.states[run.n_states - 1], RECORDER_ENDED);
        struct recorder_status s = status(&run);
        assert_true(s.acks.count >= 2 && s.acks.min_ns <= s.acks.last_ns);
        assert_true(s.acks.max_ns * s.acks.count >= s.acks.sum_ns);
        record_teardown(&run);
    }
}

static void snapshot_files(void **state)
{
    (void)state;
    struct record_run run;
    char path[256];
    begin(&run, "", "6.1.0");
    start(&run);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    for (int i = 1; i <= 3; i++) {
        snprintf(path, sizeof path, "hit %d", i);
        assert_int_equal(recorder_snapshot(run.recorder, path, NULL), 0);
        record_wait_snapshots(&run, i, SOON);
        assert_int_equal(run.snapshots[i - 1].number, i);
        assert_string_equal(run.snapshots[i - 1].reason, path);
        snprintf(path, sizeof path, "%s/snap-%d/perf.data", run.dir, i);
        assert_string_equal(run.snapshots[i - 1].path, path);
        assert_string_equal(run.snapshots[i - 1].remark, "");
        assert_true(run.snapshots[i - 1].requested_ns <= run.snapshots[i - 1].sent_ns);
        assert_true(run.snapshots[i - 1].sent_ns <= run.snapshots[i - 1].done_ns);
        assert_int_equal(status(&run).snapshots, i);
    }
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, SOON);
    assert_int_equal(run.n_all, 4);
    assert_true(run.snapshots[3].is_end);
    assert_int_equal(run.snapshots[3].number, 0);
    assert_string_equal(run.snapshots[3].reason, "end");
    snprintf(path, sizeof path, "%s/snap-end/perf.data", run.dir);
    assert_string_equal(run.snapshots[3].path, path);
    snprintf(path, sizeof path, "%s/perf.data", run.dir);
    assert_int_equal(access(path, F_OK), -1); /* nothing left behind */
    record_teardown(&run);
}

/* No answer at all: said, signals instead, no hang. */
static void deaf_perf(void **state)
{
    (void)state;
    struct record_run run;
    begin(&run, "no-ack", "6.1.0");
    snapshot_and_stop(&run);
    struct recorder_status s = status(&run);
    assert_false(s.ctlfd);
    assert_non_null(strstr(s.why, "does not answer `ping`"));
    assert_non_null(strstr(s.mechanism, "SIGUSR2"));
    assert_non_null(strstr(run.log, "falling back to signals"));
    assert_int_equal(received(&run, "SIGUSR2"), 1);
    assert_int_equal(received(&run, "stop"), 0);
    assert_true(run.ok); /* SIGINT by our own request */
    assert_int_equal(run.n_snapshots, 1);
    struct err err;
    assert_int_equal(recorder_enable(run.recorder, &err), MTUI_E_GONE);
    record_teardown(&run);
}

/* Slow is not deaf: a perf that is busy, not idle, is waited for. */
static void slow_answer_is_no_fallback(void **state)
{
    (void)state;
    struct record_run run;
    begin(&run, "ack-late=1500", "6.1.0");
    start(&run);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    assert_true(status(&run).ctlfd);
    assert_null(strstr(run.log, "falling back"));
    assert_true(status(&run).acks.late >= 1);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, SOON);
    assert_true(run.ok);
    record_teardown(&run);
}

static void old_versions(void **state)
{
    (void)state;
    static const char *const versions[] = {"5.9.8", "5.4.0-rc1", "5.3.0", "4.19.ga1b2c3"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct record_run run;
        begin(&run, "", versions[i]);
        snapshot_and_stop(&run);
        struct recorder_status s = status(&run);
        assert_null(strstr(s.command, "--control"));
        assert_false(s.ctlfd);
        assert_non_null(strstr(s.why, versions[i]));
        assert_int_equal(run.n_snapshots, 1);
        assert_int_equal(run.n_end_files, 1);
        assert_int_equal(received(&run, "SIGUSR2"), 1);
        assert_true(run.ok); /* ended by our SIGTERM: success */
        record_teardown(&run);
    }
}

/* ---- refused requests ---- */

static void not_before_ready(void **state)
{
    (void)state;
    for (int signals = 0; signals < 2; signals++) {
        struct record_run run;
        struct err err;
        begin(&run, "late-start=300", "6.1.0");
        run.plan.control = signals ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
        start(&run);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_STATE);
        assert_non_null(strstr(err.text, "not armed"));
        record_wait_state(&run, RECORDER_ENABLED, SOON);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), 0);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_BUSY);
        record_wait_snapshots(&run, 1, SOON);
        recorder_stop(run.recorder, NULL);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_STATE);
        record_wait_end(&run, SOON);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_GONE);
        assert_int_equal(recorder_stop(run.recorder, &err), MTUI_E_GONE);
        assert_int_equal(received(&run, "SIGUSR2"), 1);
        assert_int_equal(run.n_snapshots, 1);
        assert_true(run.ok);
        record_teardown(&run);
    }
}

static void pause_and_resume(void **state)
{
    (void)state;
    struct record_run run;
    struct err err;
    begin(&run, "", "6.1.0");
    start(&run);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    assert_int_equal(recorder_disable(run.recorder, NULL), 0);
    record_wait_state(&run, RECORDER_DISABLED, SOON);
    assert_false(status(&run).enabled);
    assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_STATE);
    assert_int_equal(recorder_enable(run.recorder, NULL), 0);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    assert_int_equal(recorder_ping(run.recorder, NULL), 0);
    record_wait_log(&run, "ping      ack", SOON);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, SOON);
    assert_int_equal(received(&run, "disable"), 1);
    assert_int_equal(received(&run, "enable"), 2);
    record_teardown(&run);
}

static void refused_starts(void **state)
{
    (void)state;
    struct record_run run;
    struct err err;
    char path[128];
    begin(&run, "", "6.1.0");
    snprintf(path, sizeof path, "%s/perf.data", run.dir);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(record_start(&run, &err), MTUI_E_STATE);
    assert_non_null(strstr(err.text, path));
    unlink(path);
    run.plan.output_dir = "/nonexistent/dir";
    assert_int_equal(record_start(&run, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "/nonexistent/dir"));
    run.plan.output_dir = run.dir;
    char *fake = strdup(getenv("MTUI_PERF"));
    struct recorder_options options = {.plan = &run.plan, .version = &run.version};
    struct recorder_events none = {0};
    setenv("MTUI_PERF", "/nonexistent/perf", 1);
    assert_int_equal(recorder_new(run.loop, &options, &none, &run.recorder, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "/nonexistent/perf"));
    assert_non_null(strstr(err.text, "MTUI_PERF"));
    assert_null(run.recorder);
    setenv("MTUI_PERF", fake, 1);
    free(fake);
    record_teardown(&run);
}

/* ---- failures ---- */

static void failures(void **state)
{
    (void)state;
    static const struct {
        const char *modes, *says;
        bool at_snapshot;
    } t[] = {
        {"flood", "perf exited with status 1; it said: 0000", false},
        {"refuse", "locked memory", false},
        {"enospc", "the disk is full", true},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct record_run run;
        begin(&run, t[i].modes, "6.1.0");
        start(&run);
        double from = seconds();
        if (t[i].at_snapshot) {
            record_wait_state(&run, RECORDER_ENABLED, SOON);
            assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
        }
        record_wait_end(&run, SOON);
        if (!getenv("ASAN_OPTIONS"))
            assert_true(seconds() - from < 5.0);
        assert_false(run.ok);
        assert_int_equal(status(&run).state, RECORDER_FAILED);
        if (!strstr(run.sentence, t[i].says))
            fail_msg("%s: \"%s\"", t[i].modes, run.sentence);
        assert_string_equal(status(&run).sentence, run.sentence);
        assert_int_equal(run.n_failed, t[i].at_snapshot);
        struct recorder_status s = status(&run);
        if (!strcmp(t[i].modes, "flood")) {
            char last[80];
            snprintf(last, sizeof last, "%063d", 16383);
            assert_int_equal(s.n_tail, RECORDER_TAIL_LINES);
            assert_string_equal(s.tail[s.n_tail - 1], last);
        }
        if (t[i].at_snapshot) {
            assert_string_equal(s.tail[s.n_tail - 1],
                                "failed to write perf data, error: No space left on device x14");
            assert_int_equal(run.n_end_files, 1); /* what was written is kept */
            assert_non_null(strstr(run.snapshots[0].remark, "not finished properly"));
        }
        record_teardown(&run);
    }
}

static void death_in_a_command(void **state)
{
    (void)state;
    struct record_run run;
    begin(&run, "die-on-snapshot", "6.1.0");
    run.plan.recorder = PLAN_PT;
    start(&run);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    record_wait_end(&run, SOON);
    assert_false(run.ok);
    assert_int_equal(run.n_failed, 1);
    assert_int_equal(run.n_snapshots, 0);
    record_teardown(&run);
}

static void unanswered_stop(void **state)
{
    (void)state;
    struct record_run run;
    begin(&run, "no-ack-stop", "5.10.0");
    snapshot_and_stop(&run);
    assert_true(run.ok);
    assert_int_equal(received(&run, "stop"), 1);
    assert_non_null(strstr(run.log, "`stop` is not answered"));
    assert_non_null(strstr(run.log, "SIGINT sent"));
    assert_int_equal(run.n_end_files, 1);
    record_teardown(&run);
}

/* A snapshot that never ends: nothing hangs, it can be given up, no second one is mixed into it,
 * and the second request to stop kills. */
static void hanging_snapshot(void **state)
{
    (void)state;
    struct record_run run;
    struct err err;
    begin(&run, "hang-dump", "6.1.0");
    start(&run);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    assert_int_equal(recorder_give_up(run.recorder, &err), MTUI_E_STATE);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    double from = seconds();
    while (seconds() - from < 0.3)
        loop_run_once(run.loop, 10000000);
    struct recorder_status s = status(&run);
    assert_true(s.snapshot_busy);
    assert_string_equal(s.snapshot_reason, "key");
    assert_true(s.snapshot_elapsed_ns >= 290000000u);
    assert_int_equal(s.state, RECORDER_SNAPSHOT);
    assert_int_equal(recorder_stop(run.recorder, NULL), 0); /* waits for the snapshot */
    assert_int_equal(status(&run).state, RECORDER_SNAPSHOT);
    assert_int_equal(recorder_stop(run.recorder, NULL), 0); /* not any longer */
    assert_int_equal(run.n_failed, 1);
    assert_non_null(strstr(run.failed, "given up after"));
    assert_int_equal(status(&run).state, RECORDER_STOPPING);
    assert_int_equal(recorder_stop(run.recorder, NULL), 0); /* kill */
    record_wait_end(&run, SOON);
    assert_false(run.ok);
    assert_non_null(strstr(run.sentence, "signal 9"));
    assert_int_equal(run.n_failed, 1);
    assert_int_equal(run.n_end_files, 1);
    assert_non_null(strstr(run.snapshots[0].remark, "not finished properly"));
    record_teardown(&run);
}

static void given_up_comes_late(void **state)
{
    (void)state;
    for (int pt = 0; pt < 2; pt++) {
        struct record_run run;
        struct err err;
        begin(&run, pt ? "snap-late=500" : "slow-dump=500", "6.1.0");
        run.plan.recorder = pt ? PLAN_PT : PLAN_SAMPLE;
        start(&run);
        record_wait_state(&run, RECORDER_ENABLED, SOON);
        assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
        assert_int_equal(recorder_give_up(run.recorder, NULL), 0);
        assert_int_equal(run.n_failed, 1);
        assert_int_equal(status(&run).state, RECORDER_ENABLED);
        assert_int_equal(recorder_snapshot(run.recorder, "two", &err), MTUI_E_BUSY);
        assert_non_null(strstr(err.text, "given up"));
        record_wait_snapshots(&run, 1, SOON);
        assert_non_null(strstr(run.snapshots[0].remark, "given up"));
        assert_int_equal(recorder_snapshot(run.recorder, "two", &err), 0);
        record_wait_snapshots(&run, 2, SOON);
        assert_string_equal(run.snapshots[1].remark, "");
        assert_int_equal(run.n_failed, 1);
        recorder_stop(run.recorder, NULL);
        record_wait_end(&run, SOON);
        assert_true(run.ok);
        record_teardown(&run);
    }
}

/* The ack of `snapshot` after seconds: shown as late, waited for, then a good snapshot. */
static void late_snapshot_ack(void **state)
{
    (void)state;
    struct record_run run;
    begin(&run, "snap-late=1600", "6.1.0");
    run.plan.recorder = PLAN_PT;
    start(&run);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    record_wait_log(&run, "no answer for", SOON);
    struct recorder_status s = status(&run);
    assert_true(s.last_overdue && !s.last_acked && s.snapshot_busy);
    assert_string_equal(s.last_command, "snapshot");
    record_wait_snapshots(&run, 1, SOON);
    assert_non_null(strstr(run.log, "(late)"));
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, SOON);
    assert_true(run.ok);
    assert_int_equal(run.n_failed, 0);
    record_teardown(&run);
}

/* ---- pt ---- */

static int dumped(const char *path, const char *what)
{
    char out[64];
    record_shell(out, sizeof out, "perf report -D -i '%s' 2>/dev/null | grep -c '%s' || true", path,
                 what);
    return atoi(out);
}

/* Snapshots cut out of the growing file, judged by perf itself: only their own AUX buffers, all of
 * the sideband so far. The fake perf numbers the first byte of each buffer. */
static void pt_snapshots(void **state)
{
    (void)state;
    for (int signals = 0; signals < 2; signals++) {
        struct record_run run;
        char base[128];
        begin(&run, "", "6.1.0");
        run.plan.recorder = PLAN_PT;
        run.plan.control = signals ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
        start(&run);
        record_wait_state(&run, RECORDER_ENABLED, SOON);
        for (int i = 1; i <= 3; i++) {
            assert_int_equal(recorder_snapshot(run.recorder, "hit", NULL), 0);
            record_wait_snapshots(&run, i, SOON);
            const char *path = run.snapshots[i - 1].path;
            assert_string_equal(run.snapshots[i - 1].remark, "");
            assert_int_equal(run.snapshots[i - 1].number, i);
            assert_int_equal(dumped(path, "PERF_RECORD_AUXTRACE "), 2);
            assert_int_equal(dumped(path, "PERF_RECORD_COMM"), 1 + i);
            /* Header, COMM, AUXTRACE_INFO, two buffers with their records, i COMMs, the feature. */
            uint64_t expected = 256 + 56 + 152 + 2 * (48 + 4096) + (uint64_t)i * 56 + 24;
            assert_int_equal(run.snapshots[i - 1].bytes, expected);
            FILE *f = fopen(path, "rb");
            /* This snapshot's first buffer stands behind the COMMs of the ones before. */
            fseek(f, 256 + 56 + 152 + (i - 1) * 56 + 48, SEEK_SET);
            assert_int_equal(fgetc(f), i);
            fclose(f);
        }
        snprintf(base, sizeof base, "%s/perf.data", run.dir);
        assert_int_equal(access(base, F_OK), 0); /* recording goes on */
        recorder_stop(run.recorder, NULL);
        record_wait_end(&run, SOON);
        assert_true(run.ok);
        assert_int_equal(run.n_all, 3);
        assert_int_equal(access(base, F_OK), -1); /* all of it stands in the snapshots */
        assert_int_equal(received(&run, "snapshot"), signals ? 0 : 3);
        assert_int_equal(received(&run, "SIGUSR2"), signals ? 3 : 0);
        record_teardown(&run);
    }
}

/* The ack is not the snapshot. */
static void pt_without_data(void **state)
{
    (void)state;
    for (int signals = 0; signals < 2; signals++) {
        struct record_run run;
        begin(&run, "no-file", "6.1.0");
        run.plan.recorder = PLAN_PT;
        run.plan.control = signals ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
        start(&run);
        record_wait_state(&run, RECORDER_ENABLED, SOON);
        assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
        record_wait_failed(&run, 1, SOON);
        assert_non_null(strstr(run.failed, "no AUX data"));
        assert_int_equal(status(&run).state, RECORDER_ENABLED);
        assert_int_equal(status(&run).snapshots, 0);
        char path[128];
        snprintf(path, sizeof path, "%s/snap-1", run.dir);
        assert_int_equal(access(path, F_OK), -1);
        recorder_stop(run.recorder, NULL);
        record_wait_end(&run, SOON);
        assert_true(run.ok);
        assert_int_equal(run.n_all, 0);
        record_teardown(&run);
    }
}

static void pt_ring(void **state)
{
    (void)state;
    static const struct {
        const char *version, *snapshot_option;
        int commands, usr2;
    } t[] = {{"6.1.0", "--snapshot=e ", 1, 0},
             {"5.4.0", "--snapshot=e ", 0, 0},
             {"5.3.0", "--snapshot ", 0, 1}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct record_run run;
        struct err err;
        begin(&run, "", t[i].version);
        run.plan.recorder = PLAN_PT;
        run.plan.mode = PLAN_RING;
        start(&run);
        assert_non_null(strstr(status(&run).command, t[i].snapshot_option));
        record_wait_state(&run, RECORDER_ENABLED, SOON);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_NOTSUP);
        recorder_stop(run.recorder, NULL);
        record_wait_end(&run, SOON);
        assert_true(run.ok);
        assert_int_equal(run.n_all, 1);
        assert_true(run.snapshots[0].is_end);
        assert_int_equal(run.snapshots[0].number, 1);
        assert_int_equal(dumped(run.snapshots[0].path, "PERF_RECORD_AUXTRACE "), 2);
        assert_int_equal(received(&run, "stop"), t[i].commands);
        assert_int_equal(received(&run, "SIGUSR2"), t[i].usr2);
        record_teardown(&run);
    }
}

/* --kernel: perf.data is a directory; each snapshot gets one with the same kcore. */
static void pt_kernel(void **state)
{
    (void)state;
    struct record_run run;
    struct stat st;
    char path[256];
    begin(&run, "", "6.1.0");
    run.plan.recorder = PLAN_PT;
    run.plan.kernel = true;
    start(&run);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    record_wait_snapshots(&run, 1, SOON);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, SOON);
    assert_true(run.ok);
    snprintf(path, sizeof path, "%s/snap-1/perf.data/data", run.dir);
    assert_string_equal(run.snapshots[0].path, path);
    assert_int_equal(dumped(path, "PERF_RECORD_AUXTRACE "), 2);
    snprintf(path, sizeof path, "%s/snap-1/perf.data/kcore_dir", run.dir);
    assert_int_equal(stat(path, &st), 0); /* the link leads somewhere */
    assert_true(S_ISDIR(st.st_mode));
    record_teardown(&run);
}

/* ---- who stops it, and how ---- */

enum cause { KEY, TRIGGER, TARGET_EXIT, QUIT };

/* Exactly one snapshot for a request, none without; in ring mode exactly one in any case. */
static void run_cause(enum cause cause, bool attach, bool signals, enum plan_recorder recorder,
                      enum plan_mode mode)
{
    struct record_run run;
    begin(&run, "", "6.1.0");
    if (!attach) {
        kill(run.target, SIGKILL);
        waitpid(run.target, NULL, 0);
        char dir[64];
        strcpy(dir, run.dir);
        loop_free(run.loop);
        record_setup(&run, true);
        rmdir(run.dir);
        strcpy(run.dir, dir);
    }
    run.plan.recorder = recorder;
    run.plan.mode = mode;
    run.plan.control = signals ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
    start(&run);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    bool asks = (cause == KEY || cause == TRIGGER) && mode == PLAN_TRIGGER;
    if (asks) {
        assert_int_equal(recorder_snapshot(run.recorder, cause == KEY ? "key" : "f", NULL), 0);
        record_wait_snapshots(&run, 1, SOON);
    }
    double from = seconds();
    if (cause == TARGET_EXIT)
        kill(run.target, SIGKILL);
    else
        assert_int_equal(recorder_stop(run.recorder, NULL), 0);
    record_wait_end(&run, SOON);
    if (!getenv("ASAN_OPTIONS"))
        assert_true(seconds() - from < 5.0);
    assert_true(run.ok);
    if (cause == TARGET_EXIT)
        assert_non_null(strstr(run.sentence, "the target has ended"));
    assert_int_equal(run.n_snapshots, asks);
    bool end_file = mode != PLAN_TRIGGER || recorder == PLAN_SAMPLE;
    assert_int_equal(run.n_end_files, end_file);
    if (mode != PLAN_TRIGGER)
        assert_int_equal(run.snapshots[0].number, 1);
    if (asks)
        assert_string_equal(run.snapshots[0].reason, cause == KEY ? "key" : "f");
    assert_int_equal(run.n_failed, 0);
    assert_int_equal(received(&run, "SIGUSR2") + received(&run, "snapshot"), asks);
    record_teardown(&run);
}

static void causes(void **state)
{
    (void)state;
    for (int cause = KEY; cause <= QUIT; cause++)
        for (int attach = 0; attach < 2; attach++)
            for (int signals = 0; signals < 2; signals++)
                for (int pt = 0; pt < 2; pt++) {
                    enum plan_recorder r = pt ? PLAN_PT : PLAN_SAMPLE;
                    run_cause((enum cause)cause, attach, signals, r, PLAN_TRIGGER);
                    if (cause == TARGET_EXIT || cause == QUIT)
                        run_cause((enum cause)cause, attach, signals, r, PLAN_RING);
                }
}

static void sigchld_ignored(void **state)
{
    (void)state;
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    struct record_run run;
    begin(&run, "", "6.1.0");
    snapshot_and_stop(&run);
    assert_true(run.ok);
    assert_int_equal(run.n_snapshots, 1);
    record_teardown(&run);
    begin(&run, "flood", "6.1.0");
    start(&run);
    record_wait_end(&run, SOON);
    record_teardown(&run);
    signal(SIGCHLD, old);
}

/* Freed in the middle of things: no child is left, nothing crashes. */
static void freed_early(void **state)
{
    (void)state;
    for (int phase = 0; phase < 4; phase++) {
        struct record_run run;
        begin(&run, phase == 3 ? "slow-dump=300" : "", "6.1.0");
        run.plan.recorder = PLAN_PT;
        start(&run);
        if (phase >= 1)
            record_wait_state(&run, RECORDER_ENABLED, SOON);
        if (phase >= 2)
            assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
        record_teardown(&run);
    }
}

/* ---- the child itself ---- */

static void child_surroundings(void **state)
{
    (void)state;
    struct record_run run;
    char out[4096];
    setenv("DEBUGINFOD_URLS", "https://example.org", 1);
    setenv("PAGER", "less", 1);
    begin(&run, "", "6.1.0");
    start(&run);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    int pid = (int)status(&run).pid;
    assert_int_equal(getpgid(pid), pid); /* Ctrl-C does not reach it */
    record_shell(out, sizeof out, "tr '\\0' '\\n' </proc/%d/environ", pid);
    assert_non_null(strstr(out, "\nPAGER=cat\n"));
    assert_null(strstr(out, "PAGER=less"));
    assert_null(strstr(out, "https"));
    /* Its descriptors: the standard three, the pair, the file; nothing of ours. */
    record_shell(out, sizeof out, "ls -l /proc/%d/fd | grep -vc 'total\\|pidfd'", pid);
    assert_int_equal(atoi(out), 6);
    record_shell(out, sizeof out, "readlink /proc/%d/fd/0", pid);
    assert_string_equal(out, "/dev/null\n");
    record_shell(out, sizeof out, "grep SigIgn /proc/%d/status", pid);
    assert_string_equal(out, "SigIgn:\t0000000000000000\n");
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, SOON);
    record_teardown(&run);
    unsetenv("DEBUGINFOD_URLS");
    unsetenv("PAGER");
}

/* Our own SIGKILL takes the recorder with it, and the target runs on. */
static void dies_with_us(void **state)
{
    (void)state;
    struct record_run run;
    int pipe_fd[2];
    pid_t perf = 0;
    begin(&run, "", "6.1.0");
    assert_int_equal(pipe(pipe_fd), 0);
    pid_t us = fork();
    if (us == 0) {
        start(&run);
        record_wait_state(&run, RECORDER_ENABLED, SOON);
        pid_t pid = status(&run).pid;
        if (write(pipe_fd[1], &pid, sizeof pid) != sizeof pid)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(pipe_fd[0], &perf, sizeof perf), sizeof perf);
    kill(us, SIGKILL);
    waitpid(us, NULL, 0);
    double from = seconds();
    while (!record_is_dead(perf)) {
        assert_true(seconds() - from < SOON);
        loop_run_once(run.loop, 5000000);
    }
    assert_false(record_is_dead(run.target));
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    record_teardown(&run);
}

static void heartbeat(void **state)
{
    (void)state;
    struct record_run run;
    begin(&run, "", "6.1.0");
    start(&run);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    double from = seconds();
    while (status(&run).n_heartbeats < 2) {
        assert_true(seconds() - from < SOON);
        loop_run_once(run.loop, 50000000);
    }
    assert_true(seconds() - from > 1.5); /* one a second */
    struct recorder_status s = status(&run);
    assert_true(s.heartbeats_ns[0] > 0 && s.heartbeats_ns[0] != UINT64_MAX);
    assert_true(s.disk_free > 0 && s.disk_free != UINT64_MAX);
    assert_true(s.bytes_written > 0);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, SOON);
    record_teardown(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_endings),
        cmocka_unit_test(snapshot_files),
        cmocka_unit_test(deaf_perf),
        cmocka_unit_test(slow_answer_is_no_fallback),
        cmocka_unit_test(old_versions),
        cmocka_unit_test(not_before_ready),
        cmocka_unit_test(pause_and_resume),
        cmocka_unit_test(refused_starts),
        cmocka_unit_test(failures),
        cmocka_unit_test(death_in_a_command),
        cmocka_unit_test(unanswered_stop),
        cmocka_unit_test(hanging_snapshot),
        cmocka_unit_test(given_up_comes_late),
        cmocka_unit_test(late_snapshot_ack),
        cmocka_unit_test(pt_snapshots),
        cmocka_unit_test(pt_without_data),
        cmocka_unit_test(pt_ring),
        cmocka_unit_test(pt_kernel),
        cmocka_unit_test(causes),
        cmocka_unit_test(sigchld_ignored),
        cmocka_unit_test(freed_early),
        cmocka_unit_test(child_surroundings),
        cmocka_unit_test(dies_with_us),
        cmocka_unit_test(heartbeat),
    };
    char fake[4096];
    snprintf(fake, sizeof fake, "%s/tests/fakeperf", getenv("MTUI_BUILD"));
    setenv("MTUI_PERF", fake, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* core/record/recorder against a perf that speaks the protocol well, late, or half (tests/fakeperf.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib_record.h"

/* ---- the protocol, well and badly spoken ---- */

static void good_endings(void **state)
{
    (void)state;
    static const char *const modes[] = {"",         "no-nul", "split-ack",     "ack-late=150",
                                        "stop-eof", "loud",   "late-start=200"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct record_run run;
        fake_setup(&run, modes[i], "6.1.0", false);
        fake_snapshot_and_stop(&run);
        assert_true(run.ok);
        assert_string_equal(run.sentence, "the recording was stopped");
        assert_int_equal(run.n_snapshots, 1);
        assert_int_equal(run.n_end_files, 1);
        assert_int_equal(fake_received(&run, "SIGUSR2"), 1);
        assert_int_equal(fake_received(&run, "stop"), 1);
        assert_int_equal(fake_received(&run, "snapshot"), 0);
        assert_true(record_was_in(&run, RECORDER_PINGED));
        assert_true(record_was_in(&run, RECORDER_SNAPSHOT));
        assert_true(record_was_in(&run, RECORDER_STOPPING));
        assert_int_equal(run.states[run.n_states - 1], RECORDER_ENDED);
        struct recorder_status s = record_status(&run);
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
    fake_setup(&run, "", "6.1.0", false);
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    for (int i = 1; i <= 3; i++) {
        snprintf(path, sizeof path, "hit %d", i);
        assert_int_equal(recorder_snapshot(run.recorder, path, NULL), 0);
        record_wait_snapshots(&run, i, FAKE_SOON);
        assert_int_equal(run.snapshots[i - 1].number, i);
        assert_string_equal(run.snapshots[i - 1].reason, path);
        snprintf(path, sizeof path, "%s/snap-%d/perf.data", run.dir, i);
        assert_string_equal(run.snapshots[i - 1].path, path);
        assert_string_equal(run.snapshots[i - 1].remark, "");
        assert_true(run.snapshots[i - 1].requested_ns <= run.snapshots[i - 1].sent_ns);
        assert_true(run.snapshots[i - 1].sent_ns <= run.snapshots[i - 1].done_ns);
        assert_int_equal(record_status(&run).snapshots, i);
    }
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, FAKE_SOON);
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
    fake_setup(&run, "no-ack", "6.1.0", false);
    fake_snapshot_and_stop(&run);
    struct recorder_status s = record_status(&run);
    assert_false(s.ctlfd);
    assert_non_null(strstr(s.why, "does not answer `ping`"));
    assert_non_null(strstr(s.mechanism, "SIGUSR2"));
    assert_non_null(strstr(run.log, "falling back to signals"));
    assert_int_equal(fake_received(&run, "SIGUSR2"), 1);
    assert_int_equal(fake_received(&run, "stop"), 0);
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
    fake_setup(&run, "ack-late=1500", "6.1.0", false);
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    assert_true(record_status(&run).ctlfd);
    assert_null(strstr(run.log, "falling back"));
    assert_true(record_status(&run).acks.late >= 1);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, FAKE_SOON);
    assert_true(run.ok);
    record_teardown(&run);
}

static void old_versions(void **state)
{
    (void)state;
    static const char *const versions[] = {"5.9.8", "5.4.0-rc1", "5.3.0", "4.19.ga1b2c3"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct record_run run;
        fake_setup(&run, "", versions[i], false);
        fake_snapshot_and_stop(&run);
        struct recorder_status s = record_status(&run);
        assert_null(strstr(s.command, "--control"));
        assert_false(s.ctlfd);
        assert_non_null(strstr(s.why, versions[i]));
        assert_int_equal(run.n_snapshots, 1);
        assert_int_equal(run.n_end_files, 1);
        assert_int_equal(fake_received(&run, "SIGUSR2"), 1);
        assert_true(run.ok); /* ended by our SIGTERM: success */
        record_teardown(&run);
    }
}

/* ---- refused requests ---- */

static void field_A2_A16_no_snapshot_and_no_signal_before_perf_is_ready(void **state)
{
    (void)state;
    for (int signals = 0; signals < 2; signals++) {
        struct record_run run;
        struct err err;
        fake_setup(&run, "late-start=300", "6.1.0", false);
        run.plan.control = signals ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
        fake_start(&run);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_STATE);
        assert_non_null(strstr(err.text, "not armed"));
        record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), 0);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_BUSY);
        record_wait_snapshots(&run, 1, FAKE_SOON);
        recorder_stop(run.recorder, NULL);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_STATE);
        record_wait_end(&run, FAKE_SOON);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_GONE);
        assert_int_equal(recorder_stop(run.recorder, &err), MTUI_E_GONE);
        assert_int_equal(fake_received(&run, "SIGUSR2"), 1);
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
    fake_setup(&run, "", "6.1.0", false);
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    assert_int_equal(recorder_disable(run.recorder, NULL), 0);
    record_wait_state(&run, RECORDER_DISABLED, FAKE_SOON);
    assert_false(record_status(&run).enabled);
    assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_STATE);
    assert_int_equal(recorder_enable(run.recorder, NULL), 0);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    assert_int_equal(recorder_ping(run.recorder, NULL), 0);
    record_wait_log(&run, "ping      ack", FAKE_SOON);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, FAKE_SOON);
    assert_int_equal(fake_received(&run, "disable"), 1);
    assert_int_equal(fake_received(&run, "enable"), 2);
    record_teardown(&run);
}

static void field_A9_missing_perf_is_named(void **state)
{
    (void)state;
    struct record_run run;
    struct err err;
    char path[128];
    fake_setup(&run, "", "6.1.0", false);
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

/* ---- the child itself ---- */

static void field_E10_no_downloads_by_children(void **state)
{
    (void)state;
    struct record_run run;
    char out[4096];
    setenv("DEBUGINFOD_URLS", "https://example.org", 1);
    setenv("PAGER", "less", 1);
    fake_setup(&run, "", "6.1.0", false);
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    int pid = (int)record_status(&run).pid;
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
    /* No ignored signal is inherited (1 to 31; those above belong to the C library), but for the one that would end
     * it at the limit on the size of files. */
    record_shell(out, sizeof out, "grep SigIgn /proc/%d/status | cut -f 2", pid);
    assert_int_equal(strtoull(out, NULL, 16) & 0x7fffffff, 1u << (SIGXFSZ - 1));
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, FAKE_SOON);
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
    fake_setup(&run, "", "6.1.0", false);
    assert_int_equal(pipe(pipe_fd), 0);
    pid_t us = fork();
    if (us == 0) {
        fake_start(&run);
        record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
        pid_t pid = record_status(&run).pid;
        if (write(pipe_fd[1], &pid, sizeof pid) != sizeof pid)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(pipe_fd[0], &perf, sizeof perf), sizeof perf);
    kill(us, SIGKILL);
    waitpid(us, NULL, 0);
    double from = record_seconds();
    while (!record_is_dead(perf)) {
        assert_true(record_seconds() - from < FAKE_SOON);
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
    fake_setup(&run, "", "6.1.0", false);
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    double from = record_seconds();
    while (record_status(&run).n_heartbeats < 2) {
        assert_true(record_seconds() - from < FAKE_SOON);
        loop_run_once(run.loop, 50000000);
    }
    assert_true(record_seconds() - from > 1.5); /* one a second */
    struct recorder_status s = record_status(&run);
    assert_true(s.heartbeats_ns[0] > 0 && s.heartbeats_ns[0] != UINT64_MAX);
    assert_true(s.disk_free > 0 && s.disk_free != UINT64_MAX);
    assert_true(s.bytes_written > 0);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, FAKE_SOON);
    record_teardown(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_endings),       cmocka_unit_test(snapshot_files),
        cmocka_unit_test(deaf_perf),          cmocka_unit_test(slow_answer_is_no_fallback),
        cmocka_unit_test(old_versions),
        cmocka_unit_test(field_A2_A16_no_snapshot_and_no_signal_before_perf_is_ready),
        cmocka_unit_test(pause_and_resume),   cmocka_unit_test(field_A9_missing_perf_is_named),
        cmocka_unit_test(field_E10_no_downloads_by_children), cmocka_unit_test(dies_with_us),
        cmocka_unit_test(heartbeat),
    };
    fake_use();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

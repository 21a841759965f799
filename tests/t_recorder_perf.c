/* core/record/recorder with the real perf on a target that burns CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/record/aux_file.h"
#include "tests/lib_record.h"

#define SOON 30.0

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct recorder_status status(const struct record_run *run)
{
    struct recorder_status s;
    recorder_get_status(run->recorder, &s);
    return s;
}

static void start(struct record_run *run)
{
    struct err err = {0};
    if (record_start(run, &err) < 0)
        print_error("%s\n", err.text);
    assert_non_null(run->recorder);
    record_wait_state(run, RECORDER_ENABLED, SOON);
}

/* The target itself says how long it has run: user time in clock ticks. */
static long target_ticks(const struct record_run *run)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)run->target);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    long ticks = 0;
    sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld", &ticks);
    return ticks;
}

static void let_target_run(struct record_run *run)
{
    long from = target_ticks(run);
    double limit = seconds() + SOON;
    while (target_ticks(run) < from + 10) { /* a tenth of a second of its own time */
        assert_true(seconds() < limit);
        loop_run_once(run->loop, 10000000);
    }
}

/* Samples of the target with its call stack, as perf script counts them. */
static int samples_in(const struct record_run *run, const char *path)
{
    char out[64];
    record_shell(out, sizeof out,
                 "perf script -i '%s' --pid %d -F ip,sym 2>/dev/null | grep -c ' inner$' || true",
                 path, (int)run->target);
    return atoi(out);
}

static void three_snapshots(bool signals, bool held)
{
    struct record_run run;
    record_setup(&run, held);
    run.plan.control = signals ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
    start(&run);
    assert_int_equal(status(&run).ctlfd, !signals);
    for (int i = 1; i <= 3; i++) {
        let_target_run(&run);
        assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
        record_wait_snapshots(&run, i, SOON);
        assert_int_equal(run.snapshots[i - 1].number, i);
        assert_string_equal(run.snapshots[i - 1].remark, "");
        /* Readable at once, while recording goes on. */
        assert_true(samples_in(&run, run.snapshots[i - 1].path) >= 5);
    }
    let_target_run(&run);
    assert_int_equal(recorder_stop(run.recorder, NULL), 0);
    record_wait_end(&run, SOON);
    assert_true(run.ok);
    assert_int_equal(run.n_snapshots, 3);
    assert_int_equal(run.n_end_files, 1);
    assert_int_equal(run.n_failed, 0);
    assert_true(samples_in(&run, run.snapshots[3].path) >= 5);
    assert_false(record_is_dead(run.target));
    char out[256];
    record_shell(out, sizeof out, "cd %s && find . -type f | sort | tr '\\n' ' '", run.dir);
    assert_string_equal(out, "./snap-1/perf.data ./snap-2/perf.data ./snap-3/perf.data "
                             "./snap-end/perf.data ");
    record_teardown(&run);
}

static void field_A16_snapshots_are_read_while_recording(void **state)
{
    (void)state;
    three_snapshots(false, false);
}

static void by_signals(void **state)
{
    (void)state;
    three_snapshots(true, false);
}

/* `run`: the target is held until perf records, so its first instructions are there. */
static void held_target(void **state)
{
    (void)state;
    three_snapshots(false, true);
}

static void other_modes(void **state)
{
    (void)state;
    static const enum plan_mode modes[] = {PLAN_RING, PLAN_WHOLE};
    for (int i = 0; i < 4; i++) {
        struct record_run run;
        record_setup(&run, false);
        run.plan.mode = modes[i / 2];
        run.plan.control = i % 2 ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
        start(&run);
        let_target_run(&run);
        recorder_stop(run.recorder, NULL);
        record_wait_end(&run, SOON);
        assert_true(run.ok);
        assert_int_equal(run.n_all, 1);
        assert_int_equal(run.snapshots[0].number, 1);
        assert_string_equal(run.snapshots[0].remark, "");
        assert_true(samples_in(&run, run.snapshots[0].path) >= 5);
        record_teardown(&run);
    }
}

/* Threads by id: one buffer each, --per-thread. */
static void by_thread(void **state)
{
    (void)state;
    struct record_run run;
    record_setup(&run, false);
    run.plan.tids = &run.target;
    run.plan.n_tids = 1;
    start(&run);
    let_target_run(&run);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    record_wait_snapshots(&run, 1, SOON);
    assert_true(samples_in(&run, run.snapshots[0].path) >= 5);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, SOON);
    assert_true(run.ok);
    record_teardown(&run);
}

/* While paused nothing is recorded: the target's samples have a hole that long. */
static void pause_leaves_a_hole(void **state)
{
    (void)state;
    struct record_run run;
    record_setup(&run, false);
    start(&run);
    let_target_run(&run);
    assert_int_equal(recorder_disable(run.recorder, NULL), 0);
    record_wait_state(&run, RECORDER_DISABLED, SOON);
    let_target_run(&run);
    assert_int_equal(recorder_enable(run.recorder, NULL), 0);
    record_wait_state(&run, RECORDER_ENABLED, SOON);
    let_target_run(&run);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    record_wait_snapshots(&run, 1, SOON);
    char out[64];
    record_shell(
        out, sizeof out,
        "perf script -i '%s' --pid %d -G -F time 2>/dev/null | awk '{t = $1 + 0; if (NR > 1 && "
        "t - last > most) most = t - last; last = t} END {print int(most * 1000)}'",
        run.snapshots[0].path, (int)run.target);
    assert_true(atoi(out) >= 90); /* ms; it ran for at least 100 */
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, SOON);
    assert_true(run.ok);
    record_teardown(&run);
}

static void field_A8_perf_killed_leaves_an_unfinished_file(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct record_run run;
        record_setup(&run, false);
        run.plan.mode = i ? PLAN_WHOLE : PLAN_TRIGGER;
        start(&run);
        let_target_run(&run);
        if (!i) {
            assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
            record_wait_snapshots(&run, 1, SOON);
        }
        double from = seconds();
        kill(status(&run).pid, SIGKILL);
        record_wait_end(&run, SOON);
        assert_true(seconds() - from < 5.0);
        assert_false(run.ok);
        assert_non_null(strstr(run.sentence, "killed by signal 9"));
        assert_int_equal(status(&run).state, RECORDER_FAILED);
        assert_false(record_is_dead(run.target));
        if (i) { /* kept, and said what it is */
            assert_int_equal(run.n_end_files, 1);
            assert_non_null(strstr(run.snapshots[0].remark, "not finished properly"));
            assert_int_equal(perf_data_check(run.snapshots[0].path, NULL, NULL),
                             PERF_DATA_UNFINISHED);
        } else {
            assert_true(samples_in(&run, run.snapshots[0].path) >= 5);
        }
        record_teardown(&run);
    }
}

static void field_A6_target_killed_ends_the_wait(void **state)
{
    (void)state;
    double best = 1e9; /* the machine may be busy */
    for (int i = 0; i < 4; i++) {
        struct record_run run;
        record_setup(&run, false);
        run.plan.control = i % 2 ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
        run.plan.mode = i / 2 ? PLAN_RING : PLAN_TRIGGER;
        start(&run);
        let_target_run(&run);
        double from = seconds();
        kill(run.target, SIGKILL);
        record_wait_end(&run, SOON);
        double took = seconds() - from;
        best = took < best ? took : best;
        assert_true(run.ok);
        assert_string_equal(run.sentence, "the target has ended, and the recording with it");
        assert_int_equal(run.n_all, 1);
        assert_int_equal(run.n_end_files, 1);
        assert_int_equal(perf_data_check(run.snapshots[0].path, NULL, NULL), PERF_DATA_OK);
        record_teardown(&run);
    }
    print_message("target killed: recording ended after %.0f ms\n", best * 1e3);
    assert_true(best < 1.5); /* perf itself takes less than half a second */
}

static void field_A7_sigchld_is_ignored(void **state)
{
    (void)state;
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    struct record_run run;
    record_setup(&run, false);
    start(&run);
    let_target_run(&run);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    record_wait_snapshots(&run, 1, SOON);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, SOON);
    assert_true(run.ok);
    assert_true(samples_in(&run, run.snapshots[0].path) >= 5);
    record_teardown(&run);
    signal(SIGCHLD, old);
}

/* perf's own words for what goes wrong, each as one sentence. */
static void refusals(void **state)
{
    (void)state;
    struct record_run run;
    struct err err;
    pid_t nobody = 0x3ffffff; /* beyond pid_max of most systems, and not running in any case */
    record_setup(&run, false);
    run.plan.pids = &nobody;
    assert_int_equal(record_start(&run, &err), 0);
    record_wait_end(&run, SOON);
    assert_false(run.ok);
    assert_non_null(strstr(run.sentence, "the process to record does not exist"));
    record_teardown(&run);

    if (access("/sys/bus/event_source/devices/intel_pt", F_OK) == 0)
        return;
    record_setup(&run, false);
    run.plan.recorder = PLAN_PT;
    assert_int_equal(record_start(&run, &err), 0);
    record_wait_end(&run, SOON);
    assert_false(run.ok);
    if (!strstr(run.sentence, "Intel PT"))
        fail_msg("%s", run.sentence);
    record_teardown(&run);
}

/* A small file system runs full: red, not success, and what was written is kept. */
static void field_A14_full_disk_is_no_success(void **state)
{
    (void)state;
    struct record_run run;
    char out[256], dir[128];
    if (geteuid() != 0)
        skip();
    record_setup(&run, false);
    snprintf(dir, sizeof dir, "%s/small", run.dir);
    char command[512];
    snprintf(command, sizeof command, "mkdir %s && mount -t tmpfs -o size=64k none %s 2>/dev/null",
             dir, dir);
    if (system(command) != 0) {
        record_teardown(&run);
        skip();
    }
    run.plan.output_dir = dir;
    run.plan.mode = PLAN_WHOLE;
    run.plan.freq_hz = 20000;
    struct err err;
    assert_int_equal(record_start(&run, &err), 0);
    record_wait_end(&run, SOON);
    bool ok = run.ok;
    int end_files = run.n_end_files;
    record_shell(out, sizeof out, "umount %s", dir);
    assert_false(ok);
    if (!strstr(run.sentence, "the disk is full"))
        fail_msg("%s", run.sentence);
    assert_int_equal(end_files, 1);
    record_teardown(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_A16_snapshots_are_read_while_recording),
        cmocka_unit_test(by_signals),
        cmocka_unit_test(held_target),     cmocka_unit_test(other_modes),
        cmocka_unit_test(by_thread),       cmocka_unit_test(pause_leaves_a_hole),
        cmocka_unit_test(field_A8_perf_killed_leaves_an_unfinished_file),
        cmocka_unit_test(field_A6_target_killed_ends_the_wait),
        cmocka_unit_test(field_A7_sigchld_is_ignored), cmocka_unit_test(refusals),
        cmocka_unit_test(field_A14_full_disk_is_no_success),
    };
    unsetenv("MTUI_PERF");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

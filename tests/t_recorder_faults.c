/* core/record/recorder against a perf that fails, hangs and dies, and with the target and us dying
 * (tests/fakeperf.c). */
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

/* ---- failures ---- */

static void field_A1_A11_A14_failures_are_told_in_perfs_words(void **state)
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
        fake_setup(&run, t[i].modes, "6.1.0", false);
        fake_start(&run);
        double from = record_seconds();
        if (t[i].at_snapshot) {
            record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
            assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
        }
        record_wait_end(&run, FAKE_SOON);
        if (!getenv("ASAN_OPTIONS"))
            assert_true(record_seconds() - from < 5.0);
        assert_false(run.ok);
        assert_int_equal(record_status(&run).state, RECORDER_FAILED);
        if (!strstr(run.sentence, t[i].says))
            fail_msg("%s: \"%s\"", t[i].modes, run.sentence);
        assert_string_equal(record_status(&run).sentence, run.sentence);
        assert_int_equal(run.n_failed, t[i].at_snapshot);
        struct recorder_status s = record_status(&run);
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

/* From the start of a perf that prints a megabyte and fails to the sentence about it; the best of
 * several, since the machine may be busy. */
static void field_A1_a_failure_is_reported_within_a_second(void **state)
{
    (void)state;
    double best = 1e9;
    for (int i = 0; i < 10 && best >= 1.0; i++) {
        struct record_run run;
        fake_setup(&run, "flood", "6.1.0", false);
        double from = record_seconds();
        fake_start(&run);
        record_wait_end(&run, FAKE_SOON);
        double took = record_seconds() - from;
        best = took < best ? took : best;
        assert_false(run.ok);
        record_teardown(&run);
    }
    assert_true(best < 1.0);
}

static void death_in_a_command(void **state)
{
    (void)state;
    struct record_run run;
    fake_setup(&run, "die-on-snapshot", "6.1.0", false);
    run.plan.recorder = PLAN_PT;
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    record_wait_end(&run, FAKE_SOON);
    assert_false(run.ok);
    assert_int_equal(run.n_failed, 1);
    assert_int_equal(run.n_snapshots, 0);
    record_teardown(&run);
}

static void unanswered_stop(void **state)
{
    (void)state;
    struct record_run run;
    fake_setup(&run, "no-ack-stop", "5.10.0", false);
    fake_snapshot_and_stop(&run);
    assert_true(run.ok);
    assert_int_equal(fake_received(&run, "stop"), 1);
    assert_non_null(strstr(run.log, "`stop` is not answered"));
    assert_non_null(strstr(run.log, "SIGINT sent"));
    assert_int_equal(run.n_end_files, 1);
    record_teardown(&run);
}

/* Asks to stop, again and again, without a pause: a kill is not for those in a hurry. */
static void press_until_end(struct record_run *run)
{
    double from = record_seconds(), killed = 0;
    while (!run->ended && record_seconds() - from < FAKE_SOON) {
        recorder_stop(run->recorder, NULL);
        if (killed <= 0 && strstr(run->log, "killing the recorder"))
            killed = record_seconds();
        loop_run_once(run->loop, 10000000);
    }
    assert_true(run->ended);
    assert_non_null(strstr(run->log, "it still finishes"));
    assert_true(killed - from >= RECORDER_PRESS_NS / 1e9);
}

/* A snapshot that never ends: nothing hangs, it can be given up, no second one is mixed into it,
 * and it can be killed. */
static void field_A4_A8_a_hanging_snapshot_can_be_given_up_and_killed(void **state)
{
    (void)state;
    struct record_run run;
    struct err err;
    fake_setup(&run, "hang-dump", "6.1.0", false);
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    assert_int_equal(recorder_give_up(run.recorder, &err), MTUI_E_STATE);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    double from = record_seconds();
    while (record_seconds() - from < 0.3)
        loop_run_once(run.loop, 10000000);
    struct recorder_status s = record_status(&run);
    assert_true(s.snapshot_busy);
    assert_string_equal(s.snapshot_reason, "key");
    assert_true(s.snapshot_elapsed_ns >= 290000000u);
    assert_int_equal(s.state, RECORDER_SNAPSHOT);
    assert_int_equal(recorder_stop(run.recorder, NULL), 0); /* waits for the snapshot */
    assert_int_equal(record_status(&run).state, RECORDER_SNAPSHOT);
    assert_int_equal(recorder_stop(run.recorder, NULL), 0); /* not any longer */
    assert_int_equal(run.n_failed, 1);
    assert_non_null(strstr(run.failed, "given up after"));
    assert_int_equal(record_status(&run).state, RECORDER_STOPPING);
    assert_true(kill(record_status(&run).pid, 0) == 0);
    press_until_end(&run);
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
        fake_setup(&run, pt ? "snap-late=500" : "slow-dump=500", "6.1.0", false);
        run.plan.recorder = pt ? PLAN_PT : PLAN_SAMPLE;
        fake_start(&run);
        record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
        assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
        assert_int_equal(recorder_give_up(run.recorder, NULL), 0);
        assert_int_equal(run.n_failed, 1);
        assert_int_equal(record_status(&run).state, RECORDER_ENABLED);
        assert_int_equal(recorder_snapshot(run.recorder, "two", &err), MTUI_E_BUSY);
        assert_non_null(strstr(err.text, "given up"));
        record_wait_snapshots(&run, 1, FAKE_SOON);
        assert_non_null(strstr(run.snapshots[0].remark, "given up"));
        assert_int_equal(recorder_snapshot(run.recorder, "two", &err), 0);
        record_wait_snapshots(&run, 2, FAKE_SOON);
        assert_string_equal(run.snapshots[1].remark, "");
        assert_int_equal(run.n_failed, 1);
        recorder_stop(run.recorder, NULL);
        record_wait_end(&run, FAKE_SOON);
        assert_true(run.ok);
        record_teardown(&run);
    }
}

/* The ack of `snapshot` after seconds: shown as late, waited for, then a good snapshot. */
static void field_A4_a_late_ack_of_a_snapshot_is_waited_for(void **state)
{
    (void)state;
    struct record_run run;
    fake_setup(&run, "snap-late=1600", "6.1.0", false);
    run.plan.recorder = PLAN_PT;
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    record_wait_log(&run, "no answer for", FAKE_SOON);
    struct recorder_status s = record_status(&run);
    assert_true(s.last_overdue && !s.last_acked && s.snapshot_busy);
    assert_string_equal(s.last_command, "snapshot");
    record_wait_snapshots(&run, 1, FAKE_SOON);
    assert_non_null(strstr(run.log, "(late)"));
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, FAKE_SOON);
    assert_true(run.ok);
    assert_int_equal(run.n_failed, 0);
    record_teardown(&run);
}

/* ---- who stops it, and how ---- */

enum cause { KEY, TRIGGER, TARGET_EXIT, QUIT };

/* Exactly one snapshot for a request, none without; in ring mode exactly one in any case. */
static void run_cause(enum cause cause, bool attach, bool signals, enum plan_recorder recorder,
                      enum plan_mode mode)
{
    struct record_run run;
    fake_setup(&run, "", "6.1.0", !attach);
    run.plan.recorder = recorder;
    run.plan.mode = mode;
    run.plan.control = signals ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    bool asks = (cause == KEY || cause == TRIGGER) && mode == PLAN_TRIGGER;
    if (asks) {
        assert_int_equal(recorder_snapshot(run.recorder, cause == KEY ? "key" : "f", NULL), 0);
        record_wait_snapshots(&run, 1, FAKE_SOON);
    }
    double from = record_seconds();
    if (cause == TARGET_EXIT)
        kill(run.target, SIGKILL);
    else
        assert_int_equal(recorder_stop(run.recorder, NULL), 0);
    record_wait_end(&run, FAKE_SOON);
    if (!getenv("ASAN_OPTIONS"))
        assert_true(record_seconds() - from < 5.0);
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
    assert_int_equal(fake_received(&run, "SIGUSR2") + fake_received(&run, "snapshot"), asks);
    record_teardown(&run);
}

static void field_A3_exactly_one_snapshot_for_a_request(void **state)
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

static void field_A7_sigchld_is_ignored(void **state)
{
    (void)state;
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    struct record_run run;
    fake_setup(&run, "", "6.1.0", false);
    fake_snapshot_and_stop(&run);
    assert_true(run.ok);
    assert_int_equal(run.n_snapshots, 1);
    record_teardown(&run);
    fake_setup(&run, "flood", "6.1.0", false);
    fake_start(&run);
    record_wait_end(&run, FAKE_SOON);
    record_teardown(&run);
    signal(SIGCHLD, old);
}

/* Freed in the middle of things: no child is left, nothing crashes. */
static void freed_early(void **state)
{
    (void)state;
    for (int phase = 0; phase < 4; phase++) {
        struct record_run run;
        fake_setup(&run, phase == 3 ? "slow-dump=300" : "", "6.1.0", false);
        run.plan.recorder = PLAN_PT;
        fake_start(&run);
        if (phase >= 1)
            record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
        if (phase >= 2)
            assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
        record_teardown(&run);
    }
}

/* ---- every state x every sudden end ---- */

enum fault { PERF_KILLED, TARGET_KILLED, STOP_ASKED };

/* Brings the recording into the state; the fake perf is made to stay there. */
static void bring_into(struct record_run *run, enum recorder_state state)
{
    static const char *const modes[] = {[RECORDER_SPAWNED] = "late-start=60000",
                                        [RECORDER_PINGED] = "ack-late=300",
                                        [RECORDER_ENABLED] = "",
                                        [RECORDER_DISABLED] = "",
                                        [RECORDER_SNAPSHOT] = "slow-dump=300",
                                        [RECORDER_STOPPING] = "ack-late=50"};
    fake_setup(run, modes[state], "6.1.0", false);
    fake_start(run);
    if (state == RECORDER_SPAWNED)
        return;
    record_wait_state(run, state == RECORDER_PINGED ? RECORDER_PINGED : RECORDER_ENABLED,
                      FAKE_SOON);
    if (state == RECORDER_DISABLED)
        assert_int_equal(recorder_disable(run->recorder, NULL), 0);
    if (state == RECORDER_SNAPSHOT)
        assert_int_equal(recorder_snapshot(run->recorder, "key", NULL), 0);
    if (state == RECORDER_STOPPING)
        assert_int_equal(recorder_stop(run->recorder, NULL), 0);
    record_wait_state(run, state, FAKE_SOON);
}

static void field_A6_A8_sudden_ends_in_every_state(void **unused)
{
    (void)unused;
    for (int s = RECORDER_SPAWNED; s <= RECORDER_STOPPING; s++) {
        for (int fault = PERF_KILLED; fault <= STOP_ASKED; fault++) {
            struct record_run run;
            if (s == RECORDER_SPAWNED && fault == TARGET_KILLED)
                continue; /* nobody looks at it yet */
            bring_into(&run, (enum recorder_state)s);
            if (fault == PERF_KILLED)
                kill(record_status(&run).pid, SIGKILL);
            else if (fault == TARGET_KILLED)
                kill(run.target, SIGKILL);
            else
                recorder_stop(run.recorder, NULL);
            record_wait_end(&run, FAKE_SOON);
            /* A second request while stopping loses nothing. */
            bool killed = fault == PERF_KILLED;
            if (run.ok == killed)
                fail_msg("state %s, fault %d: \"%s\"", recorder_state_name((enum recorder_state)s),
                         fault, run.sentence);
            assert_true(run.sentence[0]);
            assert_true(run.n_all + run.n_failed <= 2);
            assert_int_equal(run.n_snapshots + run.n_failed, s == RECORDER_SNAPSHOT);
            record_teardown(&run);
        }
    }
}

/* A SIGUSR2 that someone else sends to perf: its file is kept like the others and says so, and is
 * not taken for the snapshot that is asked for next. */
static void signal_from_outside(void **state)
{
    (void)state;
    struct record_run run;
    fake_setup(&run, "", "6.1.0", false);
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    kill(record_status(&run).pid, SIGUSR2);
    record_wait_log(&run, "Dump", FAKE_SOON);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, FAKE_SOON);
    assert_true(run.ok);
    assert_int_equal(run.n_snapshots, 1);
    assert_int_equal(run.n_end_files, 1);
    assert_non_null(strstr(run.snapshots[0].remark, "from outside"));
    record_teardown(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_A1_A11_A14_failures_are_told_in_perfs_words),
        cmocka_unit_test(field_A1_a_failure_is_reported_within_a_second),
        cmocka_unit_test(death_in_a_command),
        cmocka_unit_test(unanswered_stop),
        cmocka_unit_test(field_A4_A8_a_hanging_snapshot_can_be_given_up_and_killed),
        cmocka_unit_test(given_up_comes_late),
        cmocka_unit_test(field_A4_a_late_ack_of_a_snapshot_is_waited_for),
        cmocka_unit_test(field_A3_exactly_one_snapshot_for_a_request),
        cmocka_unit_test(field_A7_sigchld_is_ignored),
        cmocka_unit_test(freed_early),
        cmocka_unit_test(field_A6_A8_sudden_ends_in_every_state),
        cmocka_unit_test(signal_from_outside),
    };
    fake_use();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

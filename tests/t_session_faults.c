/* However perf, the target or the user end a recording, in whatever state it is: it ends once, says
 * why, keeps what was written, and leaves nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/proc_stat.h"
#include "decode/open/open.h"
#include "tests/lib_session.h"

static void test_perf_is_killed(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "");
    bench_start_armed(&b);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(bench_has_snapshot, &b, SOON));
    kill(bench_status(&b).rec.pid, SIGKILL);
    bench_wait_end(&b);
    struct session_status st = bench_status(&b);
    assert_int_equal(st.state, SESSION_FAILED);
    assert_true(st.sentence[0] != '\0');
    assert_int_equal(access(session_snapshot_at(b.session, 0)->data, R_OK), 0);
    bench_tear_down(&b, true);
}

static void test_perf_is_killed_with_nothing_written(void **state)
{
    (void)state;
    struct bench b;
    bench_set_up(&b, "");
    bench_start_armed(&b);
    kill(bench_status(&b).rec.pid, SIGKILL);
    bench_wait_end(&b);
    assert_int_equal(bench_status(&b).state, SESSION_FAILED);
    bench_tear_down(&b, true);
}

static void test_perf_refuses(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "refuse");
    assert_int_equal(bench_start(&b, &err), 0);
    bench_wait_end(&b);
    assert_int_equal(bench_status(&b).state, SESSION_FAILED);
    assert_non_null(strstr(bench_status(&b).sentence, "perf_event_mlock_kb"));
    bench_tear_down(&b, true);
}

static void test_target_dies(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "");
    bench_start_armed(&b);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(bench_has_snapshot, &b, SOON));
    kill(b.target.pid, SIGKILL);
    waitpid(b.target.pid, NULL, 0);
    bench_wait_end(&b);
    struct session_status st = bench_status(&b);
    assert_int_equal(st.state, SESSION_ENDED);
    assert_non_null(strstr(st.sentence, "program"));
    assert_int_equal(access(session_snapshot_at(b.session, 0)->data, R_OK), 0);
    bench_tear_down(&b, false);
}

static bool presses(void *arg)
{
    struct bench *b = arg;
    session_stop(b->session, NULL);
    return bench_has_ended(b);
}

/* A perf that hangs in a dump is waited for as long as the user likes: he asks again and again. */
static void press_until_end(struct bench *b)
{
    assert_true(run_until(presses, b, SOON));
}

/* A snapshot that never comes: it is shown as running, and can be given up; the recording goes on.
 */
static void field_A4_a_snapshot_that_never_comes_is_given_up(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    size_t n;
    bench_set_up(&b, "hang-dump");
    bench_start_armed(&b);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(bench_is_busy, &b, SOON));
    assert_int_equal(session_snapshot(b.session, &err), 0); /* would be next: given up with the first */
    assert_int_equal(session_give_up(b.session, &err), 0);
    assert_true(run_until(bench_is_idle, &b, SOON));
    assert_int_equal(bench_status(&b).state, SESSION_ARMED);
    struct snapshot_hit *hits = bench_read_hits(&b, &n);
    assert_int_equal(n, 1);
    assert_int_equal(hits[0].snapshot, 0);
    snapshot_dir_free_hits(hits, n);
    press_until_end(&b);
    bench_wait_end(&b);
    bench_tear_down(&b, true);
}

/* ---- Every state × every fault ---- */

enum fault {
    PERF_KILLED,
    PERF_LEAVES,
    PERF_FAILS,
    PERF_FAILS_WITH_A_WORD, /* the last by which perf ends */
    TARGET_KILLED,
    TARGET_HANGS, /* and then it is stopped, as the next */
    PERF_HANGS,
    STOPPED,
    STOPPED_THRICE,
    PERF_HANGS_FREED,
    FREED,
    FAULTS
};

static const char *const fault_names[] = {
    "perf killed",   "perf ends with status 0", "perf ends with status 3", "perf ends with status 3 and a word",
    "target killed", "target hangs",            "perf hangs",              "stopped",
    "stopped thrice", "perf hangs, freed",      "freed"};

/* From the fault to the end; one that hangs in a dump can be killed after RECORDER_PRESS_NS. */
#define BOUND_S 10.0

struct state_case {
    const char *name, *modes;
    bool (*reached)(void *arg);
    bool armed; /* to be reached on the way */
};

static bool is_preparing(void *arg)
{
    struct bench *b = arg;
    bench_turn(b);
    return bench_status(b).rec.pid > 0;
}

static bool is_armed_now(void *arg)
{
    return bench_is_armed(arg);
}

static const struct state_case states[] = {
    {"preparing", "ack-late=3000", is_preparing, false},
    {"armed", "", is_armed_now, true},
    {"armed, loud perf", "loud", is_armed_now, true},
    {"snapshot", "slow-dump=300", bench_is_busy, true},
    {"snapshot that never ends", "hang-dump", bench_is_busy, true},
    {"stopping", "no-ack-stop", NULL, true},
};

static bool perf_catches(void *arg)
{
    struct bench *b = arg;
    char mask[32];
    bench_turn(b);
    return proc_status_value("/proc", bench_status(b).rec.pid, "SigCgt", mask, sizeof mask) &&
           strtoull(mask, NULL, 16) >> (SIGTERM - 1) & 1;
}

static void apply(struct bench *b, enum fault fault)
{
    static const int signals[] = {SIGKILL, SIGHUP, SIGUSR1, SIGALRM};
    pid_t perf = bench_status(b).rec.pid;
    if (fault <= PERF_FAILS_WITH_A_WORD) {
        assert_true(run_until(perf_catches, b, SOON));
        kill(perf, signals[fault]);
    } else if (fault == PERF_HANGS || fault == PERF_HANGS_FREED) {
        assert_true(run_until(perf_catches, b, SOON));
        bench_hang(perf);
    } else if (fault == TARGET_HANGS) {
        bench_hang(b->target.pid);
        b->target_hangs = true;
        if (bench_is_idle(b) && session_snapshot(b->session, NULL) == 0) { /* armed: what it did before */
            assert_true(run_until(bench_has_snapshot, b, SOON));
            assert_int_equal(b->snapshots, 1);
        }
    } else if (fault == TARGET_KILLED) {
        kill(b->target.pid, SIGKILL);
        waitpid(b->target.pid, NULL, 0);
    }
    if (fault >= TARGET_HANGS && fault <= STOPPED_THRICE)
        for (int i = 0; i < (fault == STOPPED_THRICE ? 3 : 1); i++) {
            session_stop(b->session, NULL);
            bench_turn(b);
        }
}

static void reach(struct bench *b, const struct state_case *state)
{
    struct err err;
    bench_set_up(b, state->modes);
    if (state->armed)
        bench_start_armed(b);
    else
        assert_int_equal(bench_start(b, &err), 0);
    if (state->armed && !state->modes)
        bench_let_work(b, 0.02);
    if (state->reached == bench_is_busy)
        assert_int_equal(session_snapshot(b->session, &err), 0);
    if (!state->reached)
        session_stop(b->session, &err);
    else
        assert_true(run_until(state->reached, b, SOON));
}

static bool never_dumps(const struct state_case *state)
{
    return state->modes && strcmp(state->modes, "hang-dump") == 0;
}

static void wait_ended(struct bench *b, const struct state_case *state)
{
    struct err err;
    if (never_dumps(state))
        press_until_end(b);
    bench_wait_end(b);
    struct session_status st = bench_status(b);
    assert_true(st.state == SESSION_ENDED || st.state == SESSION_FAILED);
    assert_true(st.sentence && st.sentence[0]);
    assert_true(session_snapshot(b->session, &err) < 0);
    for (size_t i = 0; i < session_snapshot_count(b->session); i++)
        assert_int_equal(access(session_snapshot_at(b->session, i)->data, R_OK), 0);
}

/* What is said of it, and what is kept. */
static void check_outcome(struct bench *b, const struct state_case *state, enum session_state before, enum fault fault)
{
    struct session_status st = bench_status(b);
    bool failed = fault <= PERF_FAILS_WITH_A_WORD && fault != PERF_LEAVES;
    const char *said[FAULTS] = {[PERF_KILLED] = "signal 9", [PERF_LEAVES] = "perf has ended by itself",
                                [PERF_FAILS] = "status 3", [PERF_FAILS_WITH_A_WORD] = "fake perf is tired"};
    if (before == SESSION_STOPPING)
        said[PERF_LEAVES] = "stopped, as asked for";
    if (before == SESSION_PREPARING && fault == PERF_LEAVES) {
        failed = true;
        said[PERF_LEAVES] = "before it recorded anything";
    }
    if (fault >= TARGET_HANGS)
        said[fault] = "stopped, as asked for";
    if (fault >= TARGET_KILLED && never_dumps(state)) /* it had to be killed */
        return;
    if (fault == TARGET_KILLED && before == SESSION_PREPARING) /* before perf has found it, or after that */
        return;
    assert_int_equal(st.state, failed ? SESSION_FAILED : SESSION_ENDED);
    if (said[fault] && !strstr(st.sentence, said[fault]))
        fail_msg("\"%s\", not \"%s\"", st.sentence, said[fault]);
    if (fault == PERF_HANGS)
        assert_true(bench_log_has(b, "perf did not answer"));
    if (before != SESSION_PREPARING)
        assert_true(session_snapshot_count(b->session) > 0);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void try(const struct state_case *state, enum fault fault)
{
    struct bench b;
    reach(&b, state);
    enum session_state before = bench_status(&b).state;
    double from = seconds();
    apply(&b, fault);
    if (fault <= TARGET_KILLED && !(fault == TARGET_KILLED && never_dumps(state)))
        assert_true(run_until(bench_has_ended, &b, SOON)); /* by itself */
    if (fault < PERF_HANGS_FREED) {
        wait_ended(&b, state);
        check_outcome(&b, state, before, fault);
    }
    bench_tear_down(&b, fault != TARGET_KILLED);
    if (!getenv("ASAN_OPTIONS"))
        assert_true(seconds() - from < BOUND_S);
}

/* ---- Every state × what the target may become ---- */

static bool says_exec(void *arg)
{
    bench_turn(arg);
    return bench_log_has(arg, "now runs sleep");
}

/* A target that executes another program or forks is still recorded, until it is stopped. The end of the target is
 * the end of the recording, whatever has its pid or comes from it. */
static void try_change(const struct state_case *state, enum bench_change change)
{
    struct bench b;
    pid_t other;
    bool goes_on = change == BENCH_EXEC || change == BENCH_FORK;
    reach(&b, state);
    enum session_state before = bench_status(&b).state;
    bool permitted = bench_change(&b, change, &other);
    if (goes_on && before != SESSION_STOPPING) {
        if (change == BENCH_EXEC && geteuid() == 0) /* reading what other processes do is a privilege */
            assert_true(run_until(says_exec, &b, SOON));
        for (int i = 0; i < 5; i++)
            bench_turn(&b);
        assert_true(bench_status(&b).state == before || bench_status(&b).state == SESSION_ARMED);
        session_stop(b.session, NULL);
    }
    wait_ended(&b, state);
    if (before == SESSION_ARMED && !never_dumps(state))
        assert_non_null(strstr(bench_status(&b).sentence, goes_on ? "stopped" : "the traced program"));
    if (permitted)
        bench_end_other(other, change == BENCH_REPLACED);
    bench_tear_down(&b, goes_on);
}

/* ---- The same with the real perf ---- */

static const struct state_case real_states[] = {
    {"preparing", NULL, is_preparing, false},
    {"armed", NULL, is_armed_now, true},
    {"snapshot", NULL, bench_is_busy, true},
    {"stopping", NULL, NULL, true},
};

/* Whether a file of the recording shows the target computing, by name: whatever it has become since. */
static bool shows_work(struct bench *b)
{
    struct open_options options = {.snapshot = OPEN_ALL};
    struct recording *r = NULL;
    struct err err;
    bool found = false;
    if (open_recording(&r, snapshot_dir_path(session_dir(b->session)), &options, &err) < 0)
        fail_msg("%s", err.text);
    if (trace_check(r->trace, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < trace_thread_count(r->trace) && !found; i++)
        for (size_t d = 0; d < trace_thread(r->trace, i)->depths && !found; d++) {
            size_t n;
            const struct span *row = trace_row(r->trace, i, d, &n);
            for (size_t k = 0; k < n && !found; k++)
                found = !strcmp(functions_get(trace_functions(r->trace), row[k].fn)->raw, "inner");
        }
    recording_free(r);
    return found;
}

static bool snapshot_is_over(void *arg)
{
    struct bench *b = arg;
    return bench_is_idle(b) || b->ends > 0;
}

/* A target that lives on is recorded on, and what it did before still has its names; so has what a target did that
 * has ended, when a snapshot was written before. */
static void try_real_change(const struct state_case *state, enum bench_change change)
{
    struct bench b;
    struct err err;
    pid_t other;
    bool goes_on = change == BENCH_EXEC || change == BENCH_FORK;
    reach(&b, state);
    if (state->reached == is_armed_now) {
        assert_int_equal(session_snapshot(b.session, &err), 0);
        assert_true(run_until(bench_has_snapshot, &b, SOON));
    }
    enum session_state before = bench_status(&b).state;
    bool permitted = bench_change(&b, change, &other);
    if (goes_on && before != SESSION_STOPPING) {
        assert_true(run_until(bench_is_armed, &b, SOON));
        assert_true(run_until(snapshot_is_over, &b, SOON));
        size_t had = session_snapshot_count(b.session);
        assert_int_equal(bench_status(&b).state, SESSION_ARMED);
        assert_int_equal(session_snapshot(b.session, &err), 0);
        assert_true(run_until(snapshot_is_over, &b, SOON));
        assert_int_equal(session_snapshot_count(b.session), had + 1);
        session_stop(b.session, NULL);
    }
    wait_ended(&b, state);
    if (before == SESSION_ARMED) {
        assert_non_null(strstr(bench_status(&b).sentence, goes_on ? "stopped" : "the traced program"));
        assert_true(shows_work(&b));
    }
    if (permitted)
        bench_end_other(other, change == BENCH_REPLACED);
    bench_tear_down(&b, goes_on);
}

static void field_A6_F16_H8_changes_of_the_target_with_the_real_perf(void **state)
{
    (void)state;
    if (!run_perf_records())
        skip();
    for (size_t i = 0; i < sizeof real_states / sizeof *real_states; i++)
        for (int c = 0; c < BENCH_CHANGES; c++) {
            print_message("    %s: %s\n", real_states[i].name, bench_change_names[c]);
            try_real_change(&real_states[i], (enum bench_change)c);
        }
}

/* What hangs is not ours to choose: perf is continued, the target stays as it is. */
static void field_A8_hangs_with_the_real_perf(void **state)
{
    static const enum fault faults[] = {PERF_HANGS, TARGET_HANGS};
    (void)state;
    if (!run_perf_records())
        skip();
    for (size_t i = 0; i < sizeof real_states / sizeof *real_states; i++)
        for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
            print_message("    %s: %s\n", real_states[i].name, fault_names[faults[f]]);
            try(&real_states[i], faults[f]);
        }
}

static void field_A6_F16_H8_every_state_and_change_of_the_target(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        for (int c = 0; c < BENCH_CHANGES; c++) {
            print_message("    %s: %s\n", states[i].name, bench_change_names[c]);
            try_change(&states[i], (enum bench_change)c);
        }
}

static void field_A6_A8_every_state_and_fault(void **state)
{
    (void)state;
    for (size_t i = getenv("FROM") ? (size_t)atoi(getenv("FROM")) : 0; i < sizeof states / sizeof *states; i++)
        for (size_t f = 0; f < FAULTS; f++) {
            print_message("    %s: %s\n", states[i].name, fault_names[f]);
            try(&states[i], (enum fault)f);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_perf_is_killed),
        cmocka_unit_test(test_perf_is_killed_with_nothing_written),
        cmocka_unit_test(test_perf_refuses),
        cmocka_unit_test(test_target_dies),
        cmocka_unit_test(field_A4_a_snapshot_that_never_comes_is_given_up),
        cmocka_unit_test(field_A6_A8_every_state_and_fault),
        cmocka_unit_test(field_A6_F16_H8_every_state_and_change_of_the_target),
        cmocka_unit_test(field_A6_F16_H8_changes_of_the_target_with_the_real_perf),
        cmocka_unit_test(field_A8_hangs_with_the_real_perf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

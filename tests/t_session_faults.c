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
#include <unistd.h>

#include "core/base/alloc.h"
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
    session_stop(b.session, &err);
    session_stop(b.session, &err);
    session_stop(b.session, &err);
    bench_wait_end(&b);
    bench_tear_down(&b, true);
}

/* ---- Every state × every fault ---- */

enum fault { PERF_KILLED, TARGET_KILLED, STOPPED, STOPPED_THRICE, FREED, FAULTS };

static const char *const fault_names[] = {"perf killed", "target killed", "stopped",
                                          "stopped thrice", "freed"};

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

static void apply(struct bench *b, enum fault fault)
{
    pid_t perf = bench_status(b).rec.pid;
    if (fault == PERF_KILLED) {
        kill(perf, SIGKILL);
    } else if (fault == TARGET_KILLED) {
        kill(b->target.pid, SIGKILL);
        waitpid(b->target.pid, NULL, 0);
    } else if (fault == STOPPED || fault == STOPPED_THRICE) {
        for (int i = 0; i < (fault == STOPPED ? 1 : 3); i++) {
            session_stop(b->session, NULL);
            bench_turn(b);
        }
    }
}

static void try(const struct state_case *state, enum fault fault)
{
    struct bench b;
    struct err err;
    bench_set_up(&b, state->modes);
    if (state->armed)
        bench_start_armed(&b);
    else
        assert_int_equal(bench_start(&b, &err), 0);
    if (state->reached == bench_is_busy)
        assert_int_equal(session_snapshot(b.session, &err), 0);
    if (!state->reached)
        session_stop(b.session, &err);
    else
        assert_true(run_until(state->reached, &b, SOON));
    apply(&b, fault);
    /* A perf that hangs in a dump is waited for as long as the user likes: he presses again. */
    for (int k = 0; k < 3 && fault != FREED && strcmp(state->modes, "hang-dump") == 0; k++) {
        bench_turn(&b);
        session_stop(b.session, &err);
    }
    if (fault != FREED) {
        bench_wait_end(&b);
        struct session_status st = bench_status(&b);
        assert_true(st.state == SESSION_ENDED || st.state == SESSION_FAILED);
        assert_true(st.sentence && st.sentence[0]);
        assert_true(session_snapshot(b.session, &err) < 0);
        for (size_t i = 0; i < session_snapshot_count(b.session); i++)
            assert_int_equal(access(session_snapshot_at(b.session, i)->data, R_OK), 0);
    }
    bench_tear_down(&b, fault != TARGET_KILLED);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Slow calls: caught at their return, or while they hang; calls left in other ways are not. Real
 * programs, whose calls have known durations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/trigger/call_histogram.h"
#include "tests/lib_trigger.h"

#define MS 1000000u

static const struct trigger_conditions slower = {.slower_than_ns = 20 * MS};

/* Three quarters of it: calls are caught when they have been open for 150 ms. */
static void arm(struct seen *s, const struct victim *v, const char *spec)
{
    seen_arm(s, v, spec, &slower);
    trigger_set_lookback(s->set, 200 * MS);
}

/* Caught while it runs, once; its return only tells how long it took in the end. */
static void hang(const char *spec, const char *command, uint64_t address)
{
    struct victim v = victim_start("victim");
    struct seen s;
    arm(&s, &v, spec);
    victim_send(&v, command);
    assert_true(loop_until(s.loop, &s.fired, 1));
    assert_int_equal(s.running, 1);
    assert_true(s.first.still_running);
    assert_true(s.first.duration_ns >= 150 * MS);
    assert_int_equal(s.first.probe.arg[address ? 1 : 0], 900000);
    victim_wait(&v, s.loop);
    seen_settle(&s);
    assert_int_equal(s.fired, 1);
    assert_int_equal(s.running, 1);
    assert_int_equal(s.known, 1);
    assert_true(s.last.duration_ns >= 900 * MS);
    assert_int_equal(trigger_set_counts(s.set, 0)->hits, 1);
    assert_int_equal(trigger_set_counts(s.set, 0)->known, 1);
    seen_close(&s);
    victim_kill(&v);
}

static void waiting_is_caught(void **state)
{
    (void)state;
    hang("sleeper", "sleep 1 900000", 1);
}

static void computing_is_caught(void **state)
{
    (void)state;
    hang("spinner", "spin 900000", 0);
}

static void short_of_the_limit_it_is_its_return(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    /* A loaded machine makes one millisecond many. */
    seen_arm(&s, &v, "sleeper", &(struct trigger_conditions){.slower_than_ns = 250 * MS});
    trigger_set_lookback(s.set, 0); /* not known: the plain bound of ten seconds */
    victim_do(&v, s.loop, "sleep 1 1000");
    victim_do(&v, s.loop, "sleep 1 300000");
    victim_do(&v, s.loop, "sleep 1 1000");
    seen_settle(&s);
    assert_int_equal(s.fired, 1);
    assert_int_equal(s.running, 0);
    assert_true(s.first.duration_ns >= 300 * MS && s.first.duration_ns < 5000u * MS);
    struct trigger_calls calls = {0};
    const struct call_histogram *h = &calls.durations;
    trigger_set_add_calls(s.set, 0, &calls);
    assert_int_equal(calls.begun, 3);
    assert_int_equal(calls.left, 0);
    assert_int_equal(h->count, 3);
    assert_true(h->max_ns >= 300 * MS && h->min_ns >= MS && h->min_ns < 250 * MS);
    assert_int_equal(call_histogram_bucket(h->max_ns), call_histogram_quantile(h, 1000));
    seen_close(&s);
    victim_kill(&v);
}

/* All levels are slow; the hang is one, that of the outermost. At their returns the inner ones are slow
 * calls of their own. */
static void recursion_hangs_once(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    arm(&s, &v, "sleeper");
    victim_send(&v, "sleep 5 600000");
    assert_true(loop_until(s.loop, &s.fired, 1));
    assert_int_equal(s.first.probe.arg[0], 5);
    assert_true(s.first.still_running);
    victim_wait(&v, s.loop);
    seen_settle(&s);
    assert_int_equal(s.running, 1);
    assert_int_equal(s.known, 1);
    assert_int_equal(s.hits, 6); /* the hang, four inner returns, its own */
    assert_int_equal(s.last.probe.arg[0], 5);
    seen_close(&s);
    victim_kill(&v);
}

/* Nothing is reported of a call that was left without a return, although no other call shows that. */
static void left(const char *program, const char *spec, const char *command)
{
    struct victim v = victim_start(program);
    struct seen s;
    arm(&s, &v, spec);
    victim_do(&v, s.loop, command);
    seen_settle(&s);
    if (s.hits != 0)
        fail_msg("%s: %d hits, the last after %d ms", command, (int)s.hits,
                 (int)(s.last.duration_ns / MS));
    seen_close(&s);
    victim_kill(&v);
}

static void left_by_longjmp(void **state)
{
    (void)state;
    left("victim", "jumper", "leave 700000");
    left("victim", "jumper", "leave-spin 700000");
}

static void left_by_exception(void **state)
{
    (void)state;
    left("victim_throw", "thrower", "leave 700000");
}

static void left_by_the_end_of_the_thread(void **state)
{
    (void)state;
    left("victim", "sleeper", "thread-exit 700000");
}

static void left_by_exec(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    arm(&s, &v, "sleeper");
    victim_send(&v, "exec-inside");
    victim_wait(&v, s.loop); /* "ready" of the new program */
    victim_do(&v, s.loop, "rate 1 700000");
    seen_settle(&s);
    assert_int_equal(s.hits, 0);
    victim_do(&v, s.loop, "sleep 1 60000");
    seen_settle(&s);
    assert_int_equal(s.fired, 1);
    assert_false(s.first.still_running);
    seen_close(&s);
    victim_kill(&v);
}

/* A snapshot is outstanding when it becomes due: it waits for it. When exactly the call has begun is not known. */
static void busy_is_waited_for(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    arm(&s, &v, "sleeper");
    trigger_set_snapshot_begin(s.set);
    victim_send(&v, "sleep 1 1500000");
    uint64_t until = loop_now_ns(s.loop) + 400 * MS;
    while (loop_now_ns(s.loop) < until)
        loop_run_once(s.loop, 10 * MS);
    assert_int_equal(s.hits, 0);
    trigger_set_snapshot_done(s.set);
    assert_true(loop_until(s.loop, &s.fired, 1));
    assert_true(s.first.still_running);
    assert_true(s.first.duration_ns >= 150 * MS);
    victim_wait(&v, s.loop);
    seen_close(&s);
    victim_kill(&v);
}

/* ---- Conditions on registers ---- */

static void registers_are_compared(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        uint64_t hits;
    } cases[] = {
        {"traced if arg1 >= 40", 10}, /* arguments 0 … 49 and 50 */
        {"traced if arg1 & 0x1 and arg1 < 10", 5},
        {"traced if arg2 != 50", 0},
        {"traced@return if ret == 51", 1},
        {"traced@return if ret > 60 and arg1 <= 20", 10},
        {"/^traced$/@return if arg1 == 49", 1},
    };
    struct victim v = victim_start("victim");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen s;
        seen_arm(&s, &v, cases[i].spec, NULL);
        victim_do(&v, s.loop, "call 50");
        seen_settle(&s);
        if (s.hits != cases[i].hits)
            fail_msg("%s: %d hits", cases[i].spec, (int)s.hits);
        assert_int_equal(trigger_set_counts(s.set, 0)->unmet, 50 - cases[i].hits);
        seen_close(&s);
    }
    struct seen s;
    arm(&s, &v, "sleeper if arg2 == 900000");
    victim_do(&v, s.loop, "sleep 1 600000");
    seen_settle(&s);
    assert_int_equal(s.hits, 0);
    victim_do(&v, s.loop, "sleep 1 900000");
    seen_settle(&s);
    assert_int_equal(s.fired, 1);
    assert_true(s.first.still_running);
    seen_close(&s);
    victim_kill(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_is_caught),
        cmocka_unit_test(computing_is_caught),
        cmocka_unit_test(short_of_the_limit_it_is_its_return),
        cmocka_unit_test(recursion_hangs_once),
        cmocka_unit_test(left_by_longjmp),
        cmocka_unit_test(left_by_exception),
        cmocka_unit_test(left_by_the_end_of_the_thread),
        cmocka_unit_test(left_by_exec),
        cmocka_unit_test(busy_is_waited_for),
        cmocka_unit_test(registers_are_compared),
    };
    return cmocka_run_group_tests(tests, seen_need_uprobes, NULL);
}

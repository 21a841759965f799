/* Probes of a trigger set taken out of a program, and put back. The program's memory tells: a uprobe is an int3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/types.h>

#include "tests/lib_trigger.h"

static bool is_out(void *arg)
{
    struct victim *v = arg;
    return victim_byte(v->pid, v->traced) != 0xcc;
}

static void put_back(struct seen *s)
{
    struct err err = {0};
    if (trigger_set_put_back(s->set, &err) != 0)
        fail_msg("%s", err.text);
}

static void out_and_back(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    int byte = victim_byte(v.pid, v.traced);
    assert_int_not_equal(byte, 0xcc);
    seen_arm(&s, &v, "traced", NULL);
    for (uint64_t round = 1; round <= 3; round++) {
        assert_int_equal(victim_byte(v.pid, v.traced), 0xcc);
        (void)victim_do(&v, s.loop, "call 5");
        trigger_set_take_out(s.set); /* what has happened by then counts */
        assert_int_equal(s.hits, 5 * round);
        (void)victim_do(&v, s.loop, "call 7"); /* also while the probe is on its way out */
        assert_true(loop_until_true(s.loop, is_out, &v));
        assert_int_equal(victim_byte(v.pid, v.traced), byte);
        (void)victim_do(&v, s.loop, "threads 3 7");
        seen_settle(&s);
        assert_int_equal(s.hits, 5 * round);
        put_back(&s);
    }
    (void)victim_do(&v, s.loop, "threads 3 7");
    seen_settle(&s);
    assert_int_equal(s.hits, 15 + 21);
    assert_string_equal(s.message, "");
    seen_close(&s);
    victim_kill(&v);
}

static bool call_has_begun(void *arg)
{
    const struct seen *s = arg;
    struct trigger_calls calls = {0};
    trigger_set_add_calls(s->set, 0, &calls);
    return calls.begun > 0;
}

/* A slow call that is open then is a hit, as at the end of a recording, and is not taken for one that lasts until its
 * return is seen again. */
static void open_calls_are_hits_and_forgotten(void **state)
{
    (void)state;
    static const struct trigger_conditions when = {.slower_than_ns = 1};
    struct victim v = victim_start("victim");
    struct seen s;
    seen_arm(&s, &v, "sleeper", &when);
    victim_send(&v, "sleep 1 2000000");
    assert_true(loop_until_true(s.loop, call_has_begun, &s));
    trigger_set_take_out(s.set);
    assert_int_equal(s.fired, 1);
    assert_true(s.first.still_running);
    trigger_set_snapshot_done(s.set);
    put_back(&s);
    (void)victim_wait(&v, s.loop);
    seen_settle(&s);
    assert_int_equal(s.fired, 1);
    (void)victim_do(&v, s.loop, "sleep 1 2000");
    seen_settle(&s);
    assert_int_equal(s.fired, 2);
    seen_close(&s);
    victim_kill(&v);
}

static bool child_is_armed(void *arg)
{
    struct seen *s = arg;
    return strstr(s->message, "found") != NULL;
}

/* One that was forked meanwhile is armed with the others. */
static void children_too(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s = {0};
    struct err err = {0};
    struct trigger_set_options options = {.probe = {.children = true}};
    seen_open(&s, &options, "traced", NULL);
    assert_int_equal(trigger_set_arm(s.set, v.pid, &err), 0);
    trigger_set_take_out(s.set);
    (void)victim_do(&v, s.loop, "hand-on");
    (void)victim_do(&v, s.loop, "call 3");
    seen_settle(&s);
    assert_int_equal(s.hits, 0);
    assert_int_equal(trigger_set_processes(s.set), 2);
    put_back(&s);
    assert_true(loop_until_true(s.loop, child_is_armed, &s));
    (void)victim_do(&v, s.loop, "call 4");
    seen_settle(&s);
    assert_int_equal(s.hits, 4);
    assert_int_not_equal(s.last.probe.pid, v.pid);
    seen_close(&s);
    victim_kill(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_and_back),
        cmocka_unit_test(open_calls_are_hits_and_forgotten),
        cmocka_unit_test(children_too),
    };
    return cmocka_run_group_tests(tests, seen_need_uprobes, NULL);
}

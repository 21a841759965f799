/* core/trigger/trigger, trigger_policy, call_match, call_rate: what is written, decided and measured. The
 * armed set on real programs is tested in t_trigger_set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/trigger/call_histogram.h"
#include "core/trigger/call_match.h"
#include "core/trigger/call_rate.h"
#include "core/trigger/trigger.h"
#include "core/trigger/trigger_policy.h"

static void specifications(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        enum trigger_kind kind;
        bool at_return;
        const char *module, *name;
        uint32_t line;
        uint64_t addr;
    } good[] = {
        {"malloc", TRIGGER_SYMBOL, false, NULL, "malloc", 0, 0},
        {"malloc@return", TRIGGER_SYMBOL, true, NULL, "malloc", 0, 0},
        {"libc.so.6:malloc", TRIGGER_SYMBOL, false, "libc.so.6", "malloc", 0, 0},
        {"/usr/lib/libc.so.6:malloc@return", TRIGGER_SYMBOL, true, "/usr/lib/libc.so.6", "malloc",
         0, 0},
        {"ns::Server::handle", TRIGGER_SYMBOL, false, NULL, "ns::Server::handle", 0, 0},
        {"srv:ns::Server::handle(int)", TRIGGER_SYMBOL, false, "srv", "ns::Server::handle(int)", 0,
         0},
        {"server.c:120", TRIGGER_LINE, false, NULL, "server.c", 120, 0},
        {"/src/a b/server.c:7", TRIGGER_LINE, false, NULL, "/src/a b/server.c", 7, 0},
        {"0x4011a0", TRIGGER_ADDRESS, false, NULL, NULL, 0, 0x4011a0},
        {"0XFFFF", TRIGGER_ADDRESS, false, NULL, NULL, 0, 0xffff},
        {"srv:0x1234", TRIGGER_ADDRESS, false, "srv", NULL, 0, 0x1234},
        {"/^do_/", TRIGGER_REGEX, false, NULL, "^do_", 0, 0},
        {"/a:12/", TRIGGER_REGEX, false, NULL, "a:12", 0, 0},
        {"/^do_/@return", TRIGGER_REGEX, true, NULL, "^do_", 0, 0},
        {"srv:/^do_/", TRIGGER_REGEX, false, "srv", "^do_", 0, 0},
        {"memcpy@@GLIBC_2.14", TRIGGER_SYMBOL, false, NULL, "memcpy@@GLIBC_2.14", 0, 0},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct trigger t;
        struct err err = {0};
        if (trigger_parse(&t, good[i].spec, NULL, &err) != 0)
            fail_msg("%s: %s", good[i].spec, err.text);
        assert_string_equal(t.text, good[i].spec);
        assert_int_equal(t.kind, good[i].kind);
        assert_int_equal(t.at_return, good[i].at_return);
        assert_int_equal(t.line, good[i].line);
        assert_int_equal(t.addr, good[i].addr);
        assert_string_equal(t.module ? t.module : "-", good[i].module ? good[i].module : "-");
        assert_string_equal(t.name ? t.name : "-", good[i].name ? good[i].name : "-");
        trigger_fini(&t);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        uint64_t slower_than_ns;
        const char *why;
    } bad[] = {
        {"", 0, "needs a function"},
        {"@return", 0, "needs a function"},
        {"libc:", 0, "no function"},
        {":malloc", 0, "no module"},
        {"0x", 0, "not a hexadecimal"},
        {"0x12g", 0, "not a hexadecimal"},
        {"a.c:0", 0, "no line 0"},
        {"/(/", 0, "trigger /(/"},
        {"0x1234@return", 0, "only a function"},
        {"a.c:3@return", 0, "only a function"},
        {"a.c:3", 5, "slower-than"},
        {"0x11111111111111111", 0, "not a hexadecimal"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct trigger t;
        struct err err = {0};
        struct trigger_conditions when = {.slower_than_ns = bad[i].slower_than_ns};
        memset(&t, 0xee, sizeof t);
        struct trigger before = t;
        assert_int_equal(trigger_parse(&t, bad[i].spec, &when, &err), MTUI_E_INVAL);
        assert_memory_equal(&t, &before, sizeof t);
        if (!strstr(err.text, bad[i].why))
            fail_msg("%s: %s", bad[i].spec, err.text);
    }
}

#define MS 1000000u

static void field_B4_nth_hit_hold_off_not_before(void **state)
{
    (void)state;
    struct trigger_policy p;
    struct trigger_conditions every = {0};
    trigger_policy_init(&p, &every, 1000);
    assert_int_equal(trigger_policy_hit(&p, 900, false, 0, false), TRIGGER_FIRE);
    assert_int_equal(trigger_policy_hit(&p, 1001, false, 0, true), TRIGGER_BUSY);
    assert_int_equal(trigger_policy_hit(&p, 1002, false, 0, false), TRIGGER_FIRE);
    assert_int_equal(p.counts.hits, 3);
    assert_int_equal(p.counts.fired, 2);
    assert_int_equal(p.counts.busy, 1);
    assert_int_equal(p.counts.last_hit_ns, 1002);
    assert_false(trigger_policy_exhausted(&p));

    /* Every third; early ones do not count towards it. */
    struct trigger_conditions third = {.hits = 3, .not_before_ns = 10 * MS, .max_snapshots = 2};
    trigger_policy_init(&p, &third, 0);
    static const enum trigger_verdict wanted[] = {
        TRIGGER_EARLY,   TRIGGER_NOT_NTH, TRIGGER_NOT_NTH, TRIGGER_FIRE,    TRIGGER_NOT_NTH,
        TRIGGER_NOT_NTH, TRIGGER_FIRE,    TRIGGER_NOT_NTH, TRIGGER_NOT_NTH, TRIGGER_SPENT};
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(trigger_policy_hit(&p, i ? 10 * MS + i : 10 * MS - 1, false, 0, false),
                         wanted[i]);
    assert_true(trigger_policy_exhausted(&p));
    assert_int_equal(p.counts.hits, 10);
    assert_int_equal(p.counts.early + p.counts.not_nth + p.counts.fired + p.counts.spent, 10);

    struct trigger_conditions hold = {.hold_off_ns = 5 * MS};
    trigger_policy_init(&p, &hold, 0);
    assert_int_equal(trigger_policy_hit(&p, 1 * MS, false, 0, false), TRIGGER_FIRE);
    assert_int_equal(trigger_policy_hit(&p, 6 * MS - 1, false, 0, false), TRIGGER_HELD_OFF);
    assert_int_equal(trigger_policy_hit(&p, 6 * MS, false, 0, false), TRIGGER_FIRE);

    struct trigger_conditions slow = {.slower_than_ns = 2 * MS, .hits = 2};
    trigger_policy_init(&p, &slow, 0);
    assert_int_equal(trigger_policy_hit(&p, 1, true, 2 * MS, false), TRIGGER_FAST);
    assert_int_equal(trigger_policy_hit(&p, 2, false, 0, false), TRIGGER_FAST);
    assert_int_equal(trigger_policy_hit(&p, 3, true, 2 * MS + 1, false), TRIGGER_NOT_NTH);
    assert_int_equal(trigger_policy_hit(&p, 4, true, 3 * MS, false), TRIGGER_FIRE);
    assert_int_equal(p.counts.hits, 2);
    assert_int_equal(p.counts.fast, 2);
}

static void enter(struct call_match *m, pid_t tid, uint64_t sp, uint64_t time_ns)
{
    struct call_open c = {.sp = sp, .time_ns = time_ns, .arg = {time_ns * 2}};
    call_match_enter(m, tid, 0, &c);
}

/* What the end may report: per thread the outermost, of which somebody has seen that it was not left. */
static void open_calls_are_looked_at(void **state)
{
    (void)state;
    struct call_match *m = call_match_new();
    struct call_open c;
    pid_t tid;
    enter(m, 1, 0x9000, 1);
    enter(m, 1, 0x8f00, 2);
    enter(m, 2, 0x8f00, 3);
    assert_true(call_match_oldest_unlooked(m, 0, &tid, &c));
    assert_int_equal(c.time_ns, 1);
    call_match_see(m, tid, 0, &c);
    assert_true(call_match_oldest_unlooked(m, 0, &tid, &c)); /* not 2: it is a part of 1 */
    assert_int_equal(c.time_ns, 3);
    assert_false(c.seen);
    call_match_see(m, tid, 0, &c);
    assert_false(call_match_oldest_unlooked(m, 0, &tid, &c));
    assert_true(call_match_oldest(m, 0, &tid, &c));
    assert_int_equal(c.time_ns, 1);
    assert_true(c.seen);
    call_match_look_again(m);
    assert_true(call_match_oldest_unlooked(m, 0, &tid, &c));
    assert_int_equal(c.time_ns, 1);
    assert_true(c.seen); /* at an earlier look */
    assert_true(call_match_oldest_of(m, 2, 0, &c));
    assert_int_equal(c.time_ns, 3);
    call_match_tell(m, 2, 0, &c);
    assert_false(call_match_oldest_of(m, 2, 0, &c));
    assert_false(call_match_oldest_of(m, 3, 0, &c));
    call_match_free(m);
}

static void calls_nest(void **state)
{
    (void)state;
    struct call_match *m = call_match_new();
    struct call_open c;
    pid_t tid;
    /* Recursion: three deep, back again; another thread in between at the same addresses. */
    enter(m, 1, 0x9000, 1);
    enter(m, 1, 0x8f00, 2);
    enter(m, 2, 0x8f00, 3);
    enter(m, 1, 0x8e00, 4);
    assert_true(call_match_oldest(m, 0, &tid, &c));
    assert_int_equal(tid, 1);
    assert_int_equal(c.time_ns, 1);
    assert_true(call_match_leave(m, 1, 0, 0x8e00, &c));
    assert_int_equal(c.time_ns, 4);
    assert_int_equal(c.arg[0], 8);
    assert_true(call_match_leave(m, 1, 0, 0x8f00, &c));
    assert_int_equal(c.time_ns, 2);
    assert_true(call_match_leave(m, 2, 0, 0x8f00, &c));
    assert_int_equal(c.time_ns, 3);
    assert_true(call_match_leave(m, 1, 0, 0x9000, &c));
    assert_int_equal(c.time_ns, 1);
    assert_false(call_match_leave(m, 1, 0, 0x9000, &c));
    assert_false(call_match_leave(m, 3, 0, 0x9000, &c));
    assert_int_equal(call_match_left(m, 0), 0);

    /* longjmp over two calls: the return of the outermost closes them all, and only itself counts.
     */
    enter(m, 1, 0x9000, 10);
    enter(m, 1, 0x8f00, 11);
    enter(m, 1, 0x8e00, 12);
    assert_true(call_match_leave(m, 1, 0, 0x9000, &c));
    assert_int_equal(c.time_ns, 10);
    assert_int_equal(call_match_left(m, 0), 2);
    /* An exception leaves a call; the next call from the same place has its stack pointer. */
    enter(m, 1, 0x9000, 20);
    enter(m, 1, 0x9000, 21);
    assert_true(call_match_leave(m, 1, 0, 0x9000, &c));
    assert_int_equal(c.time_ns, 21);
    assert_false(call_match_leave(m, 1, 0, 0x9000, &c));
    assert_int_equal(call_match_left(m, 0), 3);

    /* Two stacks: a coroutine far below does not end the caller, nor the other way round. */
    enter(m, 1, 0x7fff00009000, 30);
    enter(m, 1, 0x7f0000008000, 31);
    enter(m, 1, 0x7fff00008f00, 32);
    assert_true(call_match_leave(m, 1, 0, 0x7f0000008000, &c));
    assert_int_equal(c.time_ns, 31);
    assert_true(call_match_leave(m, 1, 0, 0x7fff00008f00, &c));
    assert_true(call_match_leave(m, 1, 0, 0x7fff00009000, &c));
    assert_int_equal(c.time_ns, 30);
    assert_int_equal(call_match_left(m, 0), 3);

    enter(m, 1, 0x9000, 40);
    enter(m, 2, 0x9000, 41);
    call_match_forget(m, 1);
    assert_false(call_match_leave(m, 1, 0, 0x9000, &c));
    assert_true(call_match_leave(m, 2, 0, 0x9000, &c));
    call_match_free(m);
}

static void durations_are_told(void **state)
{
    (void)state;
    struct call_histogram h = {0}, other = {0};
    char text[128];
    assert_string_equal(call_histogram_text(&h, text, sizeof text), "");
    for (int i = 0; i < 99; i++)
        call_histogram_add(&h, 100); /* between 2^6 and 2^7 */
    call_histogram_add(&h, 5000000); /* between 2^22 and 2^23 */
    assert_string_equal(call_histogram_text(&h, text, sizeof text), "half < 128 ns, 99 % < 128 ns, max 5.00 ms");
    for (int i = 0; i < 101; i++)
        call_histogram_add(&other, 7);
    call_histogram_merge(&h, &other);
    assert_int_equal(h.count, 201);
    assert_int_equal(h.sum_ns, 99 * 100 + 5000000 + 101 * 7);
    assert_int_equal(h.min_ns, 7);
    assert_string_equal(call_histogram_text(&h, text, sizeof text), "half < 8 ns, 99 % < 128 ns, max 5.00 ms");
    call_histogram_add(&h, UINT64_MAX);
    assert_int_equal(call_histogram_below_ns(&h, 1000), UINT64_MAX);
}

static void ring_is_waited_for(void **state)
{
    (void)state;
    const struct trigger_conditions when = {.not_before_full = true};
    struct trigger_policy p;
    trigger_policy_init(&p, &when, 100);
    assert_int_equal(trigger_policy_hit(&p, 5000, false, 0, false), TRIGGER_EARLY);
    assert_false(trigger_policy_ready(&p, 5000, false));
    p.ring_full = true;
    assert_true(trigger_policy_ready(&p, 5000, false));
    assert_false(trigger_policy_ready(&p, 5000, true));
    assert_int_equal(trigger_policy_hit(&p, 5001, false, 0, false), TRIGGER_FIRE);
}

static void conditions_on_registers(void **state)
{
    (void)state;
    const uint64_t big = 0xffffffffffffffff;
    static const struct {
        const char *text;
        uint64_t value;
        bool holds;
    } cases[] = {
        {"arg1 > 4096", 4097, true},
        {"arg1 > 4096", 4096, false},
        {"arg1>4096", 4097, true},
        {"arg1 < 0", (uint64_t)-1, true}, /* decimal: signed */
        {"arg1 > 0x1000", (uint64_t)-1, true}, /* hexadecimal: unsigned */
        {"arg1 == -1", (uint64_t)-1, true},
        {"arg1 < 0", 0x00000000ffffffff, false},
        {"(int)arg1 < 0", 0x00000000ffffffff, true},
        {"(int)arg1 == -1", 0x12345678ffffffff, true},
        {"(unsigned)arg1 == 4294967295", 0x12345678ffffffff, true},
        {"(ulong) arg1 > 5", (uint64_t)-1, true},
        {"(long)arg1 < 0x1000", (uint64_t)-1, true},
        {"arg1 == 18446744073709551615", (uint64_t)-1, true},
        {"arg1 & 0x80", 0x180, true},
        {"arg1 & 6", 9, false},
        {"arg1 >= 5 and arg1 <= 7", 7, true},
        {"arg1 >= 5 and arg1 <= 7", 8, false},
        {"arg1 != 3 and arg2 == 0", 4, true},
    };
    struct err err;
    struct trigger_if c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t arg[TRIGGER_IF_ARGS] = {cases[i].value};
        if (trigger_if_parse(cases[i].text, &c, &err) < 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        if (trigger_if_holds(&c, arg, NULL) != cases[i].holds)
            fail_msg("%s with %llx", cases[i].text, (unsigned long long)cases[i].value);
    }
    uint64_t arg[TRIGGER_IF_ARGS] = {0};
    assert_int_equal(trigger_if_parse("ret == -1", &c, &err), 0);
    assert_true(trigger_if_needs_ret(&c));
    assert_true(trigger_if_holds(&c, arg, &big));
    assert_false(trigger_if_holds(&c, arg, NULL));
    static const char *const wrong[] = {"",         "arg7 > 1", "arg1",         "arg1 ~ 3",
                                        "arg1 > x", "arg1 > ",  "arg1 > 3 or 4", "arg1 > 0x",
                                        "arg1 > 3 and", "arg1 > 99999999999999999999",
                                        "(int)arg1 == 0x1ffffffff", "(char)arg1 > 3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (trigger_if_parse(wrong[i], &c, &err) >= 0)
            fail_msg("\"%s\" is taken", wrong[i]);
    struct trigger t;
    const struct trigger_conditions always = {0}, slow = {.slower_than_ns = 1};
    assert_int_equal(trigger_parse(&t, "f if ret == 1", &slow, &err), 0);
    trigger_fini(&t);
    assert_int_equal(trigger_parse(&t, "f if ret == 1", NULL, &err), 0);
    trigger_fini(&t);
    static const char *const words[] = {"f", "if", "arg1", ">", "3", "and", "arg2==1", "g", "if"};
    size_t taken = 0;
    char *joined = trigger_join(words, 9, &taken);
    assert_string_equal(joined, "f if arg1 > 3 and arg2==1");
    assert_int_equal(taken, 7);
    free(joined);
    joined = trigger_join(words + 7, 2, &taken);
    assert_string_equal(joined, "g");
    assert_int_equal(taken, 1);
    free(joined);
    assert_int_equal(trigger_parse(&t, "m:f@return if ret < 0 and arg6 > 1", NULL, &err), 0);
    assert_true(t.at_return);
    assert_string_equal(t.name, "f");
    assert_string_equal(t.module, "m");
    assert_int_equal(t.condition.n, 2);
    trigger_fini(&t);
    assert_int_equal(trigger_parse(&t, "/a if b/ if arg1 == 1", NULL, &err), 0);
    assert_string_equal(t.name, "a if b");
    trigger_fini(&t);
    assert_int_equal(trigger_parse(&t, "a.c:12 if arg1 == 1", NULL, &err), 0);
    assert_int_equal(t.line, 12);
    trigger_fini(&t);
    assert_int_equal(trigger_parse(&t, "f if ret == 1", &always, &err), MTUI_E_INVAL);
    assert_non_null(strstr(err.text, "@return"));
}

static struct call_rate_result judge(uint64_t hits, uint64_t duration_ms, uint64_t ran_ms, uint64_t waited_ms,
                                     uint64_t hit_ns)
{
    struct call_rate_seen seen = {.hits = hits, .duration_ns = duration_ms * MS, .ran_ns = ran_ms * MS,
                                  .waited_ns = waited_ms * MS};
    struct call_rate_result r;
    call_rate_judge(&seen, hit_ns, &r);
    return r;
}

static void rates(void **state)
{
    (void)state;
    struct call_rate_result r;
    char text[160];
    const uint64_t cost = 10000;
    /* 12,000 hits in a second at 10 us: 12 % of one thread's time. */
    r = judge(12000, 1000, 0, 0, cost);
    assert_int_equal(r.permille, 120);
    assert_true(r.costly);
    assert_false(call_rate_returns_cost(&r));
    assert_string_equal(call_rate_text(&r, text, sizeof text),
                        "hit 12.0k times a second; at about 10.0 us a hit that takes 12.0 % of the "
                        "program's time");
    r = judge(12000, 1000, 0, 0, 0);
    assert_int_equal(r.permille, 120);
    assert_string_equal(call_rate_text(&r, text, sizeof text),
                        "hit 12.0k times a second; at an assumed 10.0 us a hit that takes 12.0 % of the "
                        "program's time");
    /* Spread over four busy threads, 3 %. */
    r = judge(12000, 1000, 4000, 0, cost);
    assert_int_equal(r.permille, 30);
    assert_false(r.costly);
    /* One thread that had to share its CPU with others: what it ran is all the time it had. */
    r = judge(24000, 1000, 250, 750, cost);
    assert_int_equal(r.permille, 960);
    r = judge(12000, 1000, 4000, 8000, cost); /* four of them, on fewer CPUs */
    assert_int_equal(r.permille, 30);
    assert_int_equal(judge(10, 1000, 0, 1000, cost).permille, 0); /* nothing known: the wall time */
    assert_int_equal(judge(1000000, 1000, 0, 0, cost).permille, 1000);
    assert_false(judge(0, 0, 0, 0, cost).costly);
    r = judge(5000, 500, 0, 0, cost); /* a tenth exactly is not more than a tenth */
    assert_int_equal(r.permille, 100);
    assert_false(r.costly);
}

/* Calls and hits are told apart, and which of them are too many. */
static void rates_of_calls(void **state)
{
    (void)state;
    struct call_rate_seen seen = {.hits = 36000, .duration_ns = 2000 * (uint64_t)MS, .calls = 1464, .watches_calls = true};
    struct call_rate_result r;
    char text[160];
    call_rate_judge(&seen, 10000, &r);
    assert_true(call_rate_returns_cost(&r));
    assert_string_equal(call_rate_text(&r, text, sizeof text),
                        "hit 18.0k times a second (732 calls); at about 10.0 us a hit that takes 18.0 % of the "
                        "program's time");
    seen.calls = 20400;
    call_rate_judge(&seen, 10000, &r);
    assert_false(call_rate_returns_cost(&r)); /* 10,200 a second at 10 us alone are 10.2 % */
    seen.calls = 0;
    call_rate_judge(&seen, 10000, &r);
    assert_non_null(strstr(call_rate_text(&r, text, sizeof text), "(0 calls)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(specifications),
        cmocka_unit_test(refusals),
        cmocka_unit_test(field_B4_nth_hit_hold_off_not_before),
        cmocka_unit_test(calls_nest),
        cmocka_unit_test(open_calls_are_looked_at),
        cmocka_unit_test(durations_are_told),
        cmocka_unit_test(ring_is_waited_for),
        cmocka_unit_test(conditions_on_registers),
        cmocka_unit_test(rates),
        cmocka_unit_test(rates_of_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

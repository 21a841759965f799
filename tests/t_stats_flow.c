/* decode/trace/stats_flow: random threads of calls, wraps, cuts, pauses and splits in two builders; one keeps its
 * spans for a trace, of the other they are taken as they come. The statistics are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "decode/trace/stats_flow.h"
#include "tests/lib_gentrace.h"
#include "tests/lib_statistics.h"

#define FNS 20

static uint64_t rnd(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

/* A builder, what has become of it, and where its doubtful part begins. */
struct side {
    struct trace_builder *b;
    struct stats_flow *flow; /* NULL: spans are kept */
    struct trace_pause pause[2];
};

struct thread_state {
    size_t depth;
    bool doubt; /* what came since the pause may be split off: the frame at doubt_depth and what it called */
    size_t doubt_depth;
    uint64_t now;
};

#define THREADS 2

static fn_id any_fn(uint64_t *r)
{
    return (fn_id)(rnd(r) % 3 ? rnd(r) % 4 : rnd(r) % FNS); /* many of few, for recursion */
}

enum action { NOTHING, ENTER, LEAVE, WRAP, CUT, PAUSE, BEGIN_DOUBT, SPLIT, END_DOUBT };

static enum action choose(const struct thread_state *t, uint64_t *r, size_t most)
{
    uint64_t what = rnd(r) % 1000;
    if (what < 500)
        return t->depth < most ? ENTER : NOTHING;
    if (what < 980 && t->depth > (t->doubt ? t->doubt_depth + 1 : 0))
        return LEAVE;
    if (what < 980)
        return t->depth ? NOTHING : WRAP;
    if (what < 983)
        return t->doubt ? NOTHING : CUT;
    if (what < 990)
        return t->doubt || t->depth == 0 || t->depth == most ? PAUSE : BEGIN_DOUBT;
    return !t->doubt ? PAUSE : what < 995 ? END_DOUBT : SPLIT;
}

static void apply(struct side *s, size_t th, const struct thread_state *t, enum action action, fn_id fn)
{
    switch (action) {
    case ENTER:
        trace_builder_enter(s->b, th, t->now, fn, 0);
        break;
    case LEAVE:
        trace_builder_leave(s->b, th, t->now, 0);
        break;
    case WRAP:
        trace_builder_wrap(s->b, th, t->now, fn);
        break;
    case CUT:
        trace_builder_cut(s->b, th, t->now, SPAN_GAP_END);
        break;
    case PAUSE:
        trace_builder_pause(s->b, th, t->now, t->now + 3, fn, &(struct trace_pause){0});
        break;
    case BEGIN_DOUBT:
        trace_builder_pause(s->b, th, t->now, t->now + 5, fn, &s->pause[th]);
        trace_builder_enter(s->b, th, t->now + 7, fn, 0);
        break;
    case SPLIT:
        trace_builder_split(s->b, th, &s->pause[th], t->doubt_depth);
        break;
    case NOTHING:
    case END_DOUBT:
        break;
    }
}

/* One event in a thread of both builders. */
static void step(struct side *sides, size_t th, struct thread_state *t, uint64_t *r, size_t most)
{
    enum action action = choose(t, r, most);
    fn_id fn = any_fn(r);
    t->now += rnd(r) % 4;
    for (int i = 0; i < 2; i++)
        apply(&sides[i], th, t, action, fn);
    if (action == BEGIN_DOUBT) {
        t->doubt_depth = t->depth;
        t->now += 7;
    }
    t->depth += action == ENTER || action == WRAP || action == BEGIN_DOUBT;
    t->depth -= action == LEAVE;
    if (action == CUT)
        t->depth = 0;
    if (action == SPLIT)
        t->depth -= t->doubt_depth;
    t->doubt = action == BEGIN_DOUBT || (t->doubt && action != SPLIT && action != END_DOUBT);
}

static void finish(struct side *s, struct trace **t, struct stats **stats)
{
    struct err err = {0};
    struct stats_options all = {.thread = -1};
    if (s->flow)
        assert_int_equal(stats_flow_end(s->flow), 0);
    assert_int_equal(trace_builder_finish(s->b, t, &err), 0);
    if (trace_check(*t, &err) < 0)
        fail_msg("%s", err.text);
    if (s->flow ? stats_flow_finish(s->flow, *t, stats, &err) < 0 : stats_new(stats, *t, &all, &err) < 0)
        fail_msg("%s", err.text);
    stats_flow_free(s->flow);
    trace_builder_free(s->b);
}

static void run(uint64_t seed, size_t events, size_t most)
{
    uint64_t r = seed * 0x2545f4914f6cdd1du;
    struct side sides[2] = {{.b = gentrace_builder(FNS)}, {.b = gentrace_builder(FNS)}};
    struct thread_state state[THREADS] = {{.now = 100}, {.now = 100}};
    sides[1].flow = stats_flow_new(sides[1].b);
    for (int i = 0; i < 2; i++)
        for (size_t th = 0; th < THREADS; th++)
            trace_builder_thread(sides[i].b, 1, (pid_t)th + 1);
    for (size_t i = 0; i < events; i++) {
        size_t th = rnd(&r) % 5000 ? i / 7000 % THREADS : rnd(&r) % THREADS;
        step(sides, th, &state[th], &r, most);
        if (rnd(&r) % 600 == 0)
            assert_int_equal(stats_flow_take(sides[1].flow, th, state[th].doubt ? &sides[1].pause[th] : NULL), 0);
    }
    struct trace *whole = NULL, *empty = NULL;
    struct stats *want = NULL, *got = NULL;
    char what[60];
    finish(&sides[0], &whole, &want);
    finish(&sides[1], &empty, &got);
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
    statistics_assert_equal(got, trace_functions(empty), want, trace_functions(whole), what);
    for (size_t i = 0; i < THREADS; i++) {
        assert_true(trace_thread(whole, i)->spans > events / 8);
        assert_int_equal(trace_thread(empty, i)->spans, 0);
    }
    assert_int_equal(trace_info(whole)->last_ns, trace_info(empty)->last_ns);
    stats_free(want);
    stats_free(got);
    trace_free(whole);
    trace_free(empty);
}

static void the_same_as_of_a_trace(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        run(seed, 60000, seed % 3 ? 12 : 300);
}

/* By hand: f0 [0,10] is called by f1, which is found around it and is called by another f0: [0,20] { [0,15] { [0,10] } }.
 * f0's time is counted once. */
static void frames_found_around_others(void **state)
{
    (void)state;
    struct trace_builder *b = gentrace_builder(FNS);
    struct stats_flow *flow = stats_flow_new(b);
    size_t th = trace_builder_thread(b, 1, 1);
    struct trace *t = NULL;
    struct stats *s = NULL;
    struct err err = {0};
    trace_builder_enter(b, th, 0, 0, 0);
    trace_builder_leave(b, th, 10, 0);
    trace_builder_wrap(b, th, 10, 1);
    trace_builder_leave(b, th, 15, 0);
    trace_builder_wrap(b, th, 15, 0);
    trace_builder_leave(b, th, 20, 0);
    assert_int_equal(stats_flow_end(flow), 0);
    assert_int_equal(trace_builder_finish(b, &t, &err), 0);
    assert_int_equal(stats_flow_finish(flow, t, &s, &err), 0);
    const struct function_stats *f0 = stats_find(s, 0), *f1 = stats_find(s, 1);
    assert_int_equal(f0->calls, 2);
    assert_int_equal(f0->total_ns, 20);
    assert_int_equal(f0->self_ns, 10 + 5);
    assert_int_equal(f1->calls, 1);
    assert_int_equal(f1->total_ns, 15);
    assert_int_equal(f1->self_ns, 5);
    stats_free(s);
    trace_free(t);
    stats_flow_free(flow);
    trace_builder_free(b);
}

/* A gap between calls is counted, one within a call cannot be. */
static void gaps(void **state)
{
    (void)state;
    for (int within = 0; within < 2; within++) {
        struct trace_builder *b = gentrace_builder(FNS);
        struct stats_flow *flow = stats_flow_new(b);
        size_t th = trace_builder_thread(b, 1, 1);
        struct trace *t = NULL;
        struct stats *s = NULL;
        struct err err = {0};
        trace_builder_enter(b, th, 0, 0, 0);
        trace_builder_cut(b, th, 10, SPAN_GAP_END);
        trace_builder_enter(b, th, 30, 0, 0);
        trace_builder_leave(b, th, 40, 0);
        trace_builder_gap(b, &(struct gap){.tid = 1, .start_ns = within ? 35 : 10, .end_ns = within ? 36 : 30});
        assert_int_equal(stats_flow_end(flow), 0);
        assert_int_equal(trace_builder_finish(b, &t, &err), 0);
        if (within) {
            assert_int_equal(stats_flow_finish(flow, t, &s, &err), MTUI_E_NOTSUP);
        } else {
            assert_int_equal(stats_flow_finish(flow, t, &s, &err), 0);
            assert_int_equal(stats_gap_ns(s), 20);
            assert_int_equal(stats_gap_count(s), 1);
            assert_int_equal(stats_find(s, 0)->total_ns, 20);
        }
        stats_free(s);
        trace_free(t);
        stats_flow_free(flow);
        trace_builder_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_as_of_a_trace),
        cmocka_unit_test(frames_found_around_others),
        cmocka_unit_test(gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

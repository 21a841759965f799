/* decode/sample/samples, sample_log, period: sampled stacks to spans, by hand-made streams worked out on paper,
 * and by properties over random ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fmt.h"
#include "decode/sample/period.h"
#include "decode/sample/sample_log.h"
#include "decode/sample/samples.h"

enum { MAIN, WORK, READ, PARSE, NFN };
static const char *const fn_names[NFN] = {"main", "work", "read", "parse"};

struct stream {
    struct functions *f;
    struct trace_builder *b;
    struct samples *s;
};

/* Period 10; the recording lasts from `first` to `last`. */
static struct stream start(uint64_t first, uint64_t last)
{
    struct stream x = {.f = functions_new()};
    for (int i = 0; i < NFN; i++)
        functions_intern(x.f, "m", fn_names[i], fn_names[i], 0, FN_USER);
    x.b = trace_builder_new(x.f);
    struct samples_limits limits = {first, last, 10};
    x.s = samples_new(x.b, x.f, &limits);
    return x;
}

/* A sample of thread 7: letters m w r p, outermost first. */
static void stack(struct stream *x, uint64_t time, const char *letters)
{
    fn_id fns[16];
    size_t n = 0;
    for (const char *c = letters; *c; c++)
        fns[n++] = *c == 'm' ? MAIN : *c == 'w' ? WORK : *c == 'r' ? READ : PARSE;
    assert_int_equal(samples_stack(x->s, 7, 7, 0, time, fns, n), 0);
}

static void out(struct stream *x, uint64_t time)
{
    assert_int_equal(samples_switch(x->s, 7, 7, time, true, false), 0);
}

static void in(struct stream *x, uint64_t time)
{
    assert_int_equal(samples_switch(x->s, 7, 7, time, false, false), 0);
}

static const char *flag_letters(unsigned flags)
{
    static char text[8];
    char *p = text;
    for (unsigned i = 0; i < 6; i++)
        if (flags >> i & 1)
            *p++ = "setgpo"[i];
    *p = '\0';
    return text;
}

/* Ends the stream and compares spans, row by row, and gaps: "0 main 10-50 p; 1 work …; gap 20-30". */
static void expect(struct stream *x, const char *want)
{
    struct trace *t = NULL;
    struct err err = {0};
    char got[2000] = "";
    size_t len = 0, n = 0;
    assert_int_equal(samples_finish(x->s), 0);
    samples_free(x->s);
    assert_int_equal(trace_builder_finish(x->b, &t, &err), 0);
    trace_builder_free(x->b);
    if (trace_check(t, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t th = 0; th < trace_thread_count(t); th++)
        for (size_t d = 0; d < trace_thread(t, th)->depths; d++) {
            const struct span *row = trace_row(t, th, d, &n);
            for (size_t i = 0; i < n; i++)
                len += (size_t)snprintf(got + len, sizeof got - len, "%s%zu %s %d-%d %s",
                                        len ? "; " : "", d,
                                        functions_get(trace_functions(t), row[i].fn)->name,
                                        (int)row[i].start_ns, (int)row[i].end_ns,
                                        flag_letters(row[i].flags));
        }
    const struct gap *g = trace_gaps(t, &n);
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(got + len, sizeof got - len, "; %s %d-%d",
                                gap_cause_name(g[i].cause), (int)g[i].start_ns, (int)g[i].end_ns);
    assert_string_equal(got, want);
    trace_free(t);
}

static void common_prefix_goes_on(void **state)
{
    (void)state;
    struct stream x = start(100, 150);
    stack(&x, 100, "mwr");
    stack(&x, 110, "mwr"); /* the same call */
    stack(&x, 120, "mwp");
    stack(&x, 130, "m");
    stack(&x, 140, "mr");
    expect(&x, "0 main 100-150 sep; 1 work 100-130 sp; 1 read 140-150 ep; 2 read 100-120 sp; "
               "2 parse 120-130 p");
}

static void recursion_is_depth(void **state)
{
    (void)state;
    struct stream x = start(0, 40);
    stack(&x, 10, "mww");
    stack(&x, 20, "mwww");
    stack(&x, 30, "mw");
    expect(&x, "0 main 10-40 sep; 1 work 10-40 sep; 2 work 10-30 sp; 3 work 20-30 p");
}

static void nothing_bridges_missing_samples(void **state)
{
    (void)state;
    struct stream x = start(100, 210);
    stack(&x, 100, "mw");
    stack(&x, 140, "mw"); /* 4 periods: just bridged */
    stack(&x, 190, "mw"); /* 5: not */
    stack(&x, 200, "m");
    expect(&x, "0 main 100-150 sgp; 0 main 190-210 sep; 1 work 100-150 sgp; 1 work 190-200 sp; "
               "no-sample 150-190");
}

static void field_C16_gaps_at_the_ends_show(void **state)
{
    (void)state;
    struct stream x = start(0, 500);
    stack(&x, 100, "m");
    stack(&x, 110, "m");
    expect(&x, "0 main 100-120 sgp; no-sample 0-100; no-sample 120-500");
}

/* The blocked call goes on across its wait: it is on the stack before and after. */
static void waits_nest_where_both_stacks_agree(void **state)
{
    (void)state;
    struct stream x = start(100, 1030);
    stack(&x, 100, "mwr");
    out(&x, 105);
    in(&x, 1000);
    stack(&x, 1005, "mwr");
    stack(&x, 1015, "mwp");
    out(&x, 1020);
    in(&x, 1022);
    stack(&x, 1025, "mr");
    expect(&x, "0 main 100-1030 sep; 1 work 100-1020 sp; 1 [off cpu] 1020-1022 po; 1 read 1022-1030 ep; "
               "2 read 100-1015 sp; 2 parse 1015-1020 p; 3 [off cpu] 105-1000 po");
}

static void preemption_has_its_name(void **state)
{
    (void)state;
    struct stream x = start(100, 130);
    stack(&x, 100, "m");
    assert_int_equal(samples_switch(x.s, 7, 7, 105, true, true), 0);
    in(&x, 107);
    stack(&x, 112, "m");
    expect(&x, "0 main 100-130 sep; 1 [preempted] 105-107 po");
}

/* Waits take no samples, so they do not count as missing; CPU time between them does. */
static void missing_samples_count_cpu_time(void **state)
{
    (void)state;
    struct stream x = start(100, 2000);
    stack(&x, 100, "mw");
    out(&x, 110);
    in(&x, 500);
    out(&x, 510);
    in(&x, 900);
    stack(&x, 915, "mr"); /* ran 10 + 10 + 15 = 35 ≤ 40 */
    out(&x, 920);
    in(&x, 1000);
    out(&x, 1030); /* 5 + 30 + 20 = 55 > 40 */
    in(&x, 1900);
    stack(&x, 1920, "mr");
    out(&x, 1925);
    in(&x, 1990);
    expect(&x,
           "0 main 100-920 sgp; 0 [off cpu] 920-1000 po; 0 [off cpu] 1030-1900 po; "
           "0 main 1900-1925 sep; 0 [off cpu] 1925-1990 po; 1 work 100-110 sp; 1 [off cpu] 110-500 po; "
           "1 [off cpu] 510-900 po; 1 read 900-920 gp; 1 read 1900-1925 sep; no-sample 1000-1030");
}

static void a_hang_nests_in_the_last_stack(void **state)
{
    (void)state;
    struct stream x = start(100, 9000);
    stack(&x, 100, "mwr");
    out(&x, 104);
    expect(&x, "0 main 100-9000 sep; 1 work 100-9000 sep; 2 read 100-9000 sep; 3 [off cpu] 104-9000 epo");
}

/* It ran again without being seen: where it waits now is not known. */
static void a_later_wait_is_outermost(void **state)
{
    (void)state;
    struct stream x = start(100, 9000);
    stack(&x, 100, "mw");
    out(&x, 104);
    in(&x, 200);
    out(&x, 203);
    expect(&x, "0 main 100-104 sep; 0 [off cpu] 104-200 po; 0 [off cpu] 203-9000 epo; 1 work 100-104 sep");
}

static void idle_threads_wait_from_the_start(void **state)
{
    (void)state;
    struct stream x = start(100, 900);
    in(&x, 300); /* the first that is seen of it */
    out(&x, 303);
    in(&x, 600);
    stack(&x, 605, "mw");
    expect(&x, "0 [off cpu] 100-300 spo; 0 [off cpu] 303-600 po; 0 main 600-615 sgp; 1 work 600-615 sgp; "
               "no-sample 615-900");
    x = start(100, 900);
    out(&x, 110); /* never runs again, never sampled */
    expect(&x, "0 [off cpu] 110-900 epo");
}

static void born_and_ended_inside(void **state)
{
    (void)state;
    struct stream x = start(100, 900);
    samples_fork(x.s, 7, 7, 200);
    in(&x, 205);
    stack(&x, 215, "mw");
    stack(&x, 225, "mw");
    assert_int_equal(samples_exit(x.s, 7, 7, 231), 0);
    out(&x, 232); /* the last switch of a thread comes after its exit */
    expect(&x, "0 [off cpu] 200-205 po; 0 main 205-231 p; 1 work 205-231 p");
}

static void field_H8_exec_ends_the_stack(void **state)
{
    (void)state;
    struct stream x = start(100, 140);
    stack(&x, 100, "mw");
    assert_int_equal(samples_exec(x.s, 7, 7, 112), 0);
    stack(&x, 120, "mp");
    stack(&x, 130, "mp");
    expect(&x, "0 main 100-112 sp; 0 main 120-140 ep; 1 work 100-112 sp; 1 parse 120-140 ep");
}

/* A switch out that ends the recording leaves no wait: no time has passed. */
static void a_wait_takes_time(void **state)
{
    (void)state;
    struct stream x = start(100, 120);
    stack(&x, 100, "mw");
    out(&x, 110);
    in(&x, 110);
    out(&x, 120);
    expect(&x, "0 main 100-120 sep; 1 work 100-120 sep");
}

static void lost_switches_are_repaired(void **state)
{
    (void)state;
    struct stream x = start(100, 310);
    stack(&x, 100, "m");
    out(&x, 105);
    stack(&x, 200, "m"); /* no switch in before it */
    in(&x, 290);         /* no switch out before it */
    stack(&x, 300, "m");
    expect(&x, "0 main 100-310 sep; 1 [off cpu] 105-190 epo; 1 [off cpu] 200-290 spo");
    /* A sample inside of the switch itself, right after the record of it. */
    x = start(100, 410);
    stack(&x, 100, "m");
    out(&x, 105);
    stack(&x, 106, "m");
    in(&x, 400);
    stack(&x, 405, "m");
    expect(&x, "0 main 100-410 sep; 1 [off cpu] 106-400 spo");
}

static void migrations_are_marks(void **state)
{
    (void)state;
    struct stream x = start(0, 100);
    fn_id fn = MAIN;
    samples_stack(x.s, 7, 8, 1, 10, &fn, 1);
    samples_stack(x.s, 7, 8, 1, 20, &fn, 1);
    samples_stack(x.s, 7, 8, 3, 30, &fn, 1);
    samples_stack(x.s, 7, 8, -1, 40, &fn, 1);
    samples_finish(x.s);
    samples_free(x.s);
    struct trace *t = NULL;
    size_t n = 0;
    assert_int_equal(trace_builder_finish(x.b, &t, NULL), 0);
    trace_builder_free(x.b);
    const struct mark *m = trace_marks(t, &n);
    assert_int_equal(n, 1);
    assert_int_equal(m->time_ns, 30);
    assert_int_equal(m->kind, MARK_MIGRATION);
    assert_string_equal(m->detail, "from CPU 1 to CPU 3");
    assert_int_equal(trace_thread(t, 0)->last_cpu, 3);
    assert_int_equal(trace_thread(t, 0)->samples, 4);
    trace_free(t);
}

static void the_period_is_the_median_of_cpu_time(void **state)
{
    (void)state;
    struct period_meter *m = period_meter_new();
    assert_int_equal(period_meter_median(m), 0);
    period_meter_sample(m, 3, 100);
    assert_int_equal(period_meter_median(m), 0);
    period_meter_sample(m, 0, 105);
    period_meter_sample(m, 3, 110); /* 10 */
    period_meter_switch(m, 3, 113, true);
    period_meter_switch(m, 3, 1000, false);
    period_meter_sample(m, 3, 1006); /* 3 + 6 = 9 */
    period_meter_sample(m, 3, 1506); /* 500 */
    period_meter_switch(m, 3, 1510, false); /* its out is lost: no distance over it */
    period_meter_sample(m, 3, 1512);
    assert_int_equal(period_meter_median(m), 10);
    period_meter_free(m);
    m = period_meter_new();
    uint64_t t = 0;
    for (int i = 0; i < 300000; i++) /* more than are kept: two of three are 7 apart */
        period_meter_sample(m, 1, t += i % 3 ? 7 : 900);
    assert_int_equal(period_meter_median(m), 7);
    period_meter_free(m);
}

/* ---- The log ---- */

static struct sample_event sample(uint32_t thread, uint64_t time, stack_id s)
{
    return (struct sample_event){time, 1, s, thread, -1, 0, SAMPLE_STACK};
}

static void the_log_sorts_and_separates_files(void **state)
{
    (void)state;
    struct functions *f = functions_new();
    fn_id fn[2] = {functions_intern(f, "m", "a", "a", 0, FN_USER),
                   functions_intern(f, "m", "b", "b", 0, FN_USER)};
    struct sample_log *l = sample_log_new();
    assert_int_equal(sample_log_add_event(l, "cpu-clock", true, 0), 0);
    assert_int_equal(sample_log_add_event(l, "page-faults", false, 0), 1);
    assert_int_equal(sample_log_add_event(l, "cpu-clock", true, 0), 0);
    uint32_t th = sample_log_thread(l, 4, 5), idle = sample_log_thread(l, 0, 0);
    sample_log_thread(l, 4, 99); /* nothing happens there: no track */
    assert_int_equal(sample_log_comm(l, th, "w"), 0);
    stack_id a, ab, again;
    assert_int_equal(sample_log_stack(l, fn, 1, &a), 0);
    assert_int_equal(sample_log_stack(l, fn, 2, &ab), 0);
    assert_int_equal(sample_log_stack(l, fn, 2, &again), 0);
    assert_int_equal(ab, again);
    assert_int_equal(stack_tree_node(sample_log_stacks(l), ab).caller, a);
    assert_int_equal(stack_tree_count(sample_log_stacks(l)), 2);
    const struct sample_event e[] = {
        sample(th, 120, ab), /* out of order */
        sample(th, 100, a),
        sample(th, SAMPLE_NO_TIME, a),
        sample(th, 110, ab),
        sample(idle, 111, a),
        {.kind = SAMPLE_BORDER, .time_ns = 0, .thread = SAMPLE_NO_THREAD, .cpu = -1},
        sample(th, 120, ab), /* in the first file already */
        sample(th, 130, ab),
        sample(th, 140, ab),
        {130, 17, STACK_EMPTY, SAMPLE_NO_THREAD, 2, 0, SAMPLE_LOST},
    };
    for (size_t i = 0; i < sizeof e / sizeof *e; i++)
        assert_int_equal(sample_log_add(l, &e[i]), 0);
    struct trace_builder *b = trace_builder_new(f);
    struct sample_log_account acc;
    assert_int_equal(sample_log_build(l, b, f, &acc, NULL), 0);
    assert_int_equal(acc.samples, 8);
    assert_int_equal(acc.without_time, 1);
    assert_int_equal(acc.idle, 1);
    assert_int_equal(acc.repeated, 1);
    assert_int_equal(acc.lost, 17);
    assert_int_equal(acc.period_ns, 10);
    assert_int_equal(acc.first_ns, 100);
    assert_int_equal(acc.last_ns, 140);
    struct trace *t = NULL;
    size_t n = 0;
    assert_int_equal(trace_builder_finish(b, &t, NULL), 0);
    trace_builder_free(b);
    assert_int_equal(trace_check(t, NULL), 0);
    assert_int_equal(trace_thread_count(t), 1);
    assert_string_equal(trace_thread(t, 0)->comm, "w");
    const struct span *row = trace_row(t, 0, 0, &n); /* nothing crosses the border */
    assert_int_equal(n, 2);
    assert_int_equal(row[0].start_ns, 100);
    assert_int_equal(row[0].end_ns, 120);
    assert_int_equal(row[1].start_ns, 130);
    assert_int_equal(row[1].end_ns, 140);
    const struct gap *g = trace_gaps(t, &n);
    assert_int_equal(n, 2);
    assert_int_equal(g[0].start_ns, 120);
    assert_int_equal(g[0].end_ns, 130);
    assert_int_equal(g[1].cause, GAP_LOST);
    trace_free(t);
    sample_log_free(l);
}

/* ---- Properties over random streams ---- */

static uint64_t rnd(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

struct seen {
    uint64_t time;
    fn_id fns[8];
    size_t n;
};

/* At the time of each sample the rows hold exactly its stack; waits are there as they were; between two
 * samples further apart in CPU time than the limit no call goes on. */
static void random_streams(void **state)
{
    (void)state;
    enum { N = 4000 };
    struct seen *seen = calloc(N, sizeof *seen);
    uint64_t (*waits)[2] = calloc(N, sizeof *waits), *cpu_ns = calloc(N, sizeof *cpu_ns);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t r = seed * 0x9e3779b97f4a7c15u, t = 1000, cpu = 0;
        size_t nseen = 0, nwaits = 0, events = 0;
        struct stream x = start(1000, 1000);
        fn_id fns[8] = {0};
        size_t n = 0;
        for (; events < N; events++) {
            uint64_t step = rnd(&r) % 100 < 3 ? 1 + rnd(&r) % 200 : 1 + rnd(&r) % 12;
            t += step;
            cpu += step;
            if (rnd(&r) % 4 == 0 && nseen) {
                out(&x, t);
                waits[nwaits][0] = t;
                t += 1 + rnd(&r) % 500;
                waits[nwaits++][1] = t;
                in(&x, t);
                continue;
            }
            size_t keep = n ? rnd(&r) % (n + 1) : 0;
            n = keep + rnd(&r) % 3;
            if (n > 8)
                n = 8;
            for (size_t d = keep; d < n; d++)
                fns[d] = (fn_id)(rnd(&r) % NFN);
            assert_int_equal(samples_stack(x.s, 7, 7, -1, t, fns, n), 0);
            seen[nseen].time = t;
            seen[nseen].n = n;
            memcpy(seen[nseen].fns, fns, sizeof fns);
            cpu_ns[nseen++] = cpu;
        }
        struct samples_limits end = {1000, t, 10};
        samples_set_limits(x.s, &end);
        assert_int_equal(samples_finish(x.s), 0);
        samples_free(x.s);
        struct trace *tr = NULL;
        assert_int_equal(trace_builder_finish(x.b, &tr, NULL), 0);
        trace_builder_free(x.b);
        assert_int_equal(trace_check(tr, NULL), 0);
        size_t off = 0, m = 0;
        for (size_t i = 0; i < nseen; i++)
            for (size_t d = 0; d < 9; d++) {
                const struct span *s = trace_row_at(tr, 0, d, seen[i].time);
                bool open = s && (s->end_ns > seen[i].time || s->start_ns == seen[i].time);
                if (i + 1 == nseen && s && s->end_ns == seen[i].time)
                    continue; /* the very end of the recording */
                assert_int_equal(open, d < seen[i].n);
                if (open)
                    assert_int_equal(s->fn, seen[i].fns[d]);
            }
        for (size_t d = 0; d < trace_thread(tr, 0)->depths; d++) {
            const struct span *row = trace_row(tr, 0, d, &m);
            for (size_t k = 0; k < m; k++) {
                off += (row[k].flags & SPAN_OFF_CPU) != 0;
                for (size_t i = 0; i + 1 < nseen && !(row[k].flags & SPAN_OFF_CPU); i++)
                    if (cpu_ns[i + 1] - cpu_ns[i] > 49) /* 4 periods, and the rounding of one */
                        assert_false(row[k].start_ns <= seen[i].time &&
                                     row[k].end_ns > seen[i + 1].time);
            }
        }
        for (size_t i = 0; i < nwaits; i++) {
            bool found = false;
            for (size_t d = 0; d < 9 && !found; d++) {
                const struct span *s = trace_row_at(tr, 0, d, waits[i][0]);
                found = s && s->flags & SPAN_OFF_CPU && s->start_ns == waits[i][0] &&
                        s->end_ns == waits[i][1];
            }
            assert_true(found);
        }
        assert_int_equal(off, nwaits);
        trace_free(tr);
    }
    free(seen);
    free(waits);
    free(cpu_ns);
}

/* A chain through code without frame pointers: unknown frames by the dozen are one on the timeline;
 * recursion of a known function stays, and so do unknown frames apart from each other. */
static void unknown_frames_are_one(void **state)
{
    (void)state;
    struct functions *f = functions_new();
    fn_id u = functions_intern(f, "m", "[unknown]", "[unknown]", 0, FN_UNKNOWN);
    fn_id a = functions_intern(f, "m", "a", "a", 0, FN_USER);
    const fn_id chain[] = {u, u, u, a, a, u, u};
    struct sample_log *l = sample_log_new();
    sample_log_add_event(l, "cpu-clock", true, 0);
    uint32_t th = sample_log_thread(l, 4, 5);
    stack_id id;
    assert_int_equal(sample_log_stack(l, chain, 7, &id), 0);
    assert_int_equal(stack_tree_count(sample_log_stacks(l)), 7); /* kept as they were recorded */
    for (uint64_t t = 100; t < 150; t += 10) {
        struct sample_event e = sample(th, t, id);
        assert_int_equal(sample_log_add(l, &e), 0);
    }
    struct trace_builder *b = trace_builder_new(f);
    struct sample_log_account acc;
    struct trace *t = NULL;
    assert_int_equal(sample_log_build(l, b, f, &acc, NULL), 0);
    assert_int_equal(trace_builder_finish(b, &t, NULL), 0);
    trace_builder_free(b);
    const fn_id want[] = {u, a, a, u};
    assert_int_equal(trace_thread(t, 0)->depths, 4);
    for (size_t d = 0; d < 4; d++) {
        size_t n;
        assert_int_equal(trace_row(t, 0, d, &n)->fn, want[d]);
    }
    trace_free(t);
    sample_log_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(common_prefix_goes_on),
        cmocka_unit_test(recursion_is_depth),
        cmocka_unit_test(nothing_bridges_missing_samples),
        cmocka_unit_test(field_C16_gaps_at_the_ends_show),
        cmocka_unit_test(waits_nest_where_both_stacks_agree),
        cmocka_unit_test(preemption_has_its_name),
        cmocka_unit_test(missing_samples_count_cpu_time),
        cmocka_unit_test(a_hang_nests_in_the_last_stack),
        cmocka_unit_test(a_later_wait_is_outermost),
        cmocka_unit_test(idle_threads_wait_from_the_start),
        cmocka_unit_test(born_and_ended_inside),
        cmocka_unit_test(field_H8_exec_ends_the_stack),
        cmocka_unit_test(a_wait_takes_time),
        cmocka_unit_test(lost_switches_are_repaired),
        cmocka_unit_test(migrations_are_marks),
        cmocka_unit_test(the_period_is_the_median_of_cpu_time),
        cmocka_unit_test(the_log_sorts_and_separates_files),
        cmocka_unit_test(unknown_frames_are_one),
        cmocka_unit_test(random_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

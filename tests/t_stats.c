/* decode/trace/stats, walk, quiet, select: figures worked out by hand, and random traces against a plain
 * computation that looks at every pair of spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/trace/select.h"
#include "decode/trace/stats.h"
#include "tests/lib_gentrace.h"
#include "decode/trace/walk.h"

static uint64_t rnd(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

/* f0 [0,1000] { f1 [100,500] { f1 [200,400] { f2 [250,300] } }  f3 off CPU [600,700]  f1 [800,900] }
 * and gaps: of the thread [420,450] and at 850, of the whole recording [440,460], of a thread without calls. */
static struct trace *small_tree(void)
{
    struct trace_builder *b = gentrace_builder(4);
    size_t th = trace_builder_thread(b, 1, 1);
    trace_builder_enter(b, th, 0, 0, 0);
    trace_builder_enter(b, th, 100, 1, 0);
    trace_builder_enter(b, th, 200, 1, 0);
    trace_builder_enter(b, th, 250, 2, 0);
    trace_builder_leave(b, th, 300, 0);
    trace_builder_leave(b, th, 400, 0);
    trace_builder_leave(b, th, 500, 0);
    trace_builder_enter(b, th, 600, 3, SPAN_OFF_CPU);
    trace_builder_leave(b, th, 700, 0);
    trace_builder_enter(b, th, 800, 1, 0);
    trace_builder_leave(b, th, 900, 0);
    trace_builder_leave(b, th, 1000, 0);
    trace_builder_gap(b, &(struct gap){1, 420, 450, 0, GAP_UNTRACED, "kernel", 0});
    trace_builder_gap(b, &(struct gap){0, 440, 460, 0, GAP_LOST, "lost", 0});
    trace_builder_gap(b, &(struct gap){2, 0, 1000, 0, GAP_LOST, "of another thread", 0});
    trace_builder_gap(b, &(struct gap){1, 850, 850, 0, GAP_OVERFLOW, "an instant", 0});
    return gentrace_finish(b);
}

static void assert_fn(const struct stats *s, fn_id fn, const uint64_t want[8])
{
    const struct function_stats *f = stats_find(s, fn);
    assert_non_null(f);
    const uint64_t got[8] = {f->calls,  f->total_ns, f->self_ns, f->min_ns,
                             f->p50_ns, f->p99_ns,   f->max_ns,  function_stats_mean_ns(f)};
    for (size_t i = 0; i < 8; i++)
        if (got[i] != want[i])
            fail_msg("f%u figure %zu: %llu, not %llu", fn, i, (unsigned long long)got[i],
                     (unsigned long long)want[i]);
}

static void by_hand(void **state)
{
    (void)state;
    struct trace *t = small_tree();
    struct stats_options all = {.thread = -1};
    struct stats *s = NULL;
    size_t n = 0;
    assert_int_equal(stats_new(&s, t, &all, NULL), 0);
    const struct function_stats *list = stats_functions(s, &n);
    assert_int_equal(n, 4);
    assert_int_equal(list[0].fn, 0);
    assert_int_equal(list[1].fn, 1);
    assert_int_equal(list[2].fn, 3);
    assert_int_equal(list[3].fn, 2);
    /*                             calls total self min p50 p99 max mean */
    assert_fn(s, 0, (uint64_t[8]){1, 1000, 400, 1000, 1000, 1000, 1000, 1000});
    assert_fn(s, 1, (uint64_t[8]){3, 500, 200 + 150 - 40 + 100, 100, 200, 400, 400, 233});
    assert_fn(s, 2, (uint64_t[8]){1, 50, 50, 50, 50, 50, 50, 50});
    assert_fn(s, 3, (uint64_t[8]){1, 100, 100, 100, 100, 100, 100, 100});
    const struct function_stats *f1 = stats_find(s, 1);
    assert_int_equal(f1->histogram[6], 1); /* 100 */
    assert_int_equal(f1->histogram[7], 1); /* 200 */
    assert_int_equal(f1->histogram[8], 1); /* 400 */
    assert_int_equal(stats_gap_ns(s), 40);
    assert_int_equal(stats_gap_count(s), 4); /* whether they overlap, last or not */
    assert_false(stats_estimated(s));
    assert_null(stats_find(s, 77));
    stats_free(s);

    struct stats_options range = {.from_ns = 280, .to_ns = 850, .thread = 0, .workers = 3};
    assert_int_equal(stats_new(&s, t, &range, NULL), 0);
    assert_fn(s, 0, (uint64_t[8]){1, 570, 200, 1000, 1000, 1000, 1000, 1000});
    assert_fn(s, 1, (uint64_t[8]){3, 220 + 50, 100 + 100 - 40 + 50, 100, 200, 400, 400, 233});
    assert_fn(s, 2, (uint64_t[8]){1, 20, 20, 50, 50, 50, 50, 50});
    assert_int_equal(stats_gap_ns(s), 40);
    assert_int_equal(stats_gap_count(s), 2); /* not the instant at its end */
    stats_free(s);

    range = (struct stats_options){.from_ns = 450, .to_ns = 851, .thread = 0};
    assert_int_equal(stats_new(&s, t, &range, NULL), 0);
    assert_int_equal(stats_gap_ns(s), 10);
    assert_int_equal(stats_gap_count(s), 2);
    stats_free(s);
    trace_free(t);
}

static void callers_callees_longest(void **state)
{
    (void)state;
    struct trace *t = small_tree();
    struct stats_options all = {.thread = -1};
    struct stats_edge *up = NULL, *down = NULL;
    size_t nup = 0, ndown = 0;
    assert_int_equal(stats_edges(t, 1, &all, &up, &nup, &down, &ndown, NULL), 0);
    assert_int_equal(nup, 2); /* f0 twice, f1 once */
    assert_int_equal(up[0].fn, 0);
    assert_int_equal(up[0].calls, 2);
    assert_int_equal(up[0].total_ns, 500);
    assert_int_equal(up[1].fn, 1);
    assert_int_equal(up[1].total_ns, 200);
    assert_int_equal(ndown, 2);
    assert_int_equal(down[0].fn, 1);
    assert_int_equal(down[1].fn, 2);
    assert_int_equal(down[1].total_ns, 50);
    free(up);
    free(down);
    assert_int_equal(stats_edges(t, 0, &all, &up, &nup, &down, &ndown, NULL), 0);
    assert_int_equal(nup, 1);
    assert_int_equal(up[0].fn, FN_NONE);
    free(up);
    free(down);
    struct stats_call calls[8];
    assert_int_equal(stats_longest(t, 1, &all, calls, 2), 2);
    assert_int_equal(calls[0].duration_ns, 400);
    assert_int_equal(calls[1].duration_ns, 200);
    assert_int_equal(calls[1].depth, 2);
    assert_int_equal(stats_longest(t, 1, &all, calls, 8), 3);
    assert_int_equal(calls[2].start_ns, 800);
    assert_int_equal(calls[2].index, 2); /* after f3 */
    assert_int_equal(stats_longest(t, 2, &all, calls, 0), 0);
    trace_free(t);
}

static void field_D9_nothing_to_count(void **state)
{
    (void)state;
    struct trace *t = gentrace_finish(gentrace_builder(3));
    struct stats_options all = {.thread = -1};
    struct stats *s = NULL;
    size_t n = 1;
    assert_int_equal(stats_new(&s, t, &all, NULL), 0);
    stats_functions(s, &n);
    assert_int_equal(n, 0);
    assert_null(stats_find(s, 1));
    stats_free(s);
    atomic_bool cancel = true;
    all.cancel = &cancel;
    trace_free(t);
    t = small_tree();
    struct err err = {0};
    s = NULL;
    assert_int_equal(stats_new(&s, t, &all, &err), MTUI_E_CANCEL);
    assert_null(s);
    trace_free(t);
}

static void selection_equals_sorting(void **state)
{
    (void)state;
    uint64_t r = 7;
    for (int round = 0; round < 300; round++) {
        size_t n = 1 + (size_t)(rnd(&r) % 200), k = (size_t)(rnd(&r) % n);
        uint32_t v[200], range = (uint32_t[]){1, 3, 1000, UINT32_MAX}[round % 4];
        size_t below = 0, equal = 0;
        for (size_t i = 0; i < n; i++)
            v[i] = round % 5 == 0 ? (uint32_t)i : (uint32_t)(rnd(&r) % range);
        uint32_t got = select_u32(v, n, k);
        for (size_t i = 0; i < n; i++) {
            below += v[i] < got;
            equal += v[i] == got;
        }
        assert_true(below <= k && k < below + equal);
    }
}

/* Durations that do not fit into 32 bits rank exactly too. */
static void long_calls(void **state)
{
    (void)state;
    struct trace_builder *b = gentrace_builder(1);
    size_t th = trace_builder_thread(b, 1, 1);
    uint64_t t = 0;
    for (uint64_t i = 0; i < 200; i++) {
        trace_builder_enter(b, th, t, 0, 0);
        t += i < 90 ? 10 : 5000000000 + i;
        trace_builder_leave(b, th, t, 0);
    }
    struct trace *tr = gentrace_finish(b);
    struct stats_options all = {.thread = -1};
    struct stats *s = NULL;
    assert_int_equal(stats_new(&s, tr, &all, NULL), 0);
    assert_int_equal(stats_find(s, 0)->p50_ns, 5000000099); /* the 100th of 200 */
    assert_int_equal(stats_find(s, 0)->p99_ns, 5000000197); /* the 198th */
    stats_free(s);
    trace_free(tr);
}

/* Many calls, short, long and very long ones, by one worker and by four: the ranks of the sorted list. */
static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void many_calls(void **state)
{
    (void)state;
    enum { CALLS = 300000 };
    uint64_t *d = malloc(CALLS * sizeof *d);
    for (unsigned kind = 0; kind < 4; kind++) {
        struct trace_builder *b = gentrace_builder(2);
        size_t th = trace_builder_thread(b, 1, 1);
        uint64_t r = 5 + kind, t = 0, sum = 0, buckets[STATS_BUCKETS] = {0};
        trace_builder_enter(b, th, 0, 1, 0);
        for (size_t i = 0; i < CALLS; i++) {
            const uint64_t most[] = {100, 5000, (uint64_t)20 << (rnd(&r) % 14), (uint64_t)3 << (rnd(&r) % 34)};
            d[i] = rnd(&r) % most[kind];
            sum += d[i];
            buckets[d[i] < 2 ? 0 : 63 - __builtin_clzll(d[i])]++;
            trace_builder_enter(b, th, t, 0, 0);
            trace_builder_leave(b, th, t += d[i], 0);
        }
        trace_builder_leave(b, th, t, 0);
        qsort(d, CALLS, sizeof *d, by_size);
        struct trace *tr = gentrace_finish(b);
        for (unsigned workers = 0; workers <= 4; workers += 4) {
            struct stats_options all = {.thread = -1, .workers = workers};
            struct stats *s = NULL;
            assert_int_equal(stats_new(&s, tr, &all, NULL), 0);
            assert_fn(s, 0, (uint64_t[8]){CALLS, sum, sum, d[0], d[CALLS / 2 - 1], d[CALLS / 100 * 99 - 1],
                                          d[CALLS - 1], (2 * sum + CALLS) / (2 * CALLS)});
            assert_fn(s, 1, (uint64_t[8]){1, t, 0, t, t, t, t, t});
            assert_memory_equal(stats_find(s, 0)->histogram, buckets, sizeof buckets);
            stats_free(s);
        }
        trace_free(tr);
    }
    free(d);
}

/* ---- Random traces against a plain computation ---- */

enum { FNS = 6, MOST = 6000 };

struct plain {
    uint64_t start, end;
    size_t depth;
    fn_id fn;
    int parent;
};

static int by_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t clip(uint64_t a, uint64_t b, uint64_t from, uint64_t to)
{
    a = a > from ? a : from;
    b = b < to ? b : to;
    return b > a ? b - a : 0;
}

static void plain_fn(const struct plain *p, size_t n, fn_id fn, uint64_t from, uint64_t to,
                     struct function_stats *f)
{
    uint64_t *d = malloc((n + 1) * sizeof *d), sum = 0;
    memset(f, 0, sizeof *f);
    for (size_t i = 0; i < n; i++) {
        if (p[i].fn != fn || p[i].start >= to || !(p[i].end > from || p[i].start >= from))
            continue;
        bool nested = false;
        for (int a = p[i].parent; a >= 0 && !nested; a = p[a].parent)
            nested = p[a].fn == fn;
        if (!nested)
            f->total_ns += clip(p[i].start, p[i].end, from, to);
        f->self_ns += clip(p[i].start, p[i].end, from, to);
        for (size_t c = i + 1; c < n; c++)
            if (p[c].parent == (int)i)
                f->self_ns -= clip(p[c].start, p[c].end, from, to);
        d[f->calls++] = p[i].end - p[i].start;
        sum += p[i].end - p[i].start;
    }
    if (f->calls) {
        qsort(d, f->calls, sizeof *d, by_u64);
        f->min_ns = d[0];
        f->max_ns = d[f->calls - 1];
        f->p50_ns = d[(f->calls * 50 + 99) / 100 - 1];
        f->p99_ns = d[(f->calls * 99 + 99) / 100 - 1];
        f->sum_ns = sum;
    }
    free(d);
}

static void field_D10_sums_equal_brute_force(void **state)
{
    (void)state;
    struct plain *p = malloc(MOST * sizeof *p);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        uint64_t r = seed * 0x2545f4914f6cdd1du, now = 1000;
        struct trace_builder *b = gentrace_builder(FNS);
        size_t th = trace_builder_thread(b, 1, 1), n = 0;
        int stack[20], depth = 0;
        while (n < MOST / 4 * seed / 2) {
            now += 1 + rnd(&r) % 9; /* no instants: the plain tree is then the only reading */
            if (depth < 20 && rnd(&r) % 2) {
                fn_id fn = (fn_id)(rnd(&r) % FNS);
                p[n] = (struct plain){now, 0, (size_t)depth, fn, depth ? stack[depth - 1] : -1};
                stack[depth++] = (int)n++;
                trace_builder_enter(b, th, now, fn, 0);
            } else if (depth) {
                p[stack[--depth]].end = now;
                trace_builder_leave(b, th, now, 0);
            }
        }
        while (depth)
            p[stack[--depth]].end = now;
        struct trace *t = gentrace_finish(b);
        for (int i = 0; i < 12; i++) {
            struct stats_options o = {.thread = -1, .workers = 2};
            uint64_t from = 0, to = UINT64_MAX;
            if (i) {
                from = o.from_ns = 1000 + rnd(&r) % (now - 1000);
                to = o.to_ns = from + rnd(&r) % (now - 1000);
            }
            struct stats *s = NULL;
            assert_int_equal(stats_new(&s, t, &o, NULL), 0);
            for (fn_id fn = 0; fn < FNS; fn++) {
                struct function_stats want;
                plain_fn(p, n, fn, from, to, &want);
                if (want.calls == 0)
                    assert_null(stats_find(s, fn));
                else
                    assert_fn(s, fn,
                              (uint64_t[8]){want.calls, want.total_ns, want.self_ns, want.min_ns,
                                            want.p50_ns, want.p99_ns, want.max_ns,
                                            (2 * want.sum_ns + want.calls) / (2 * want.calls)});
            }
            stats_free(s);
        }
        trace_free(t);
    }
    free(p);
}

/* The walk gives back the very calls that were made, instants included. */
static void walk_in_call_order(void **state)
{
    (void)state;
    uint64_t r = 99, now = 0;
    struct trace_builder *b = gentrace_builder(FNS);
    size_t th = trace_builder_thread(b, 1, 1), depth = 0;
    for (int i = 0; i < 5000; i++) {
        now += rnd(&r) % 3;
        if (rnd(&r) % 2 && depth < 12) {
            trace_builder_enter(b, th, now, (fn_id)(rnd(&r) % FNS), 0);
            depth++;
        } else if (depth) {
            trace_builder_leave(b, th, now, 0);
            depth--;
        }
    }
    struct trace *t = gentrace_finish(b);
    for (int i = 0; i < 40; i++) {
        uint64_t from = i ? rnd(&r) % now : 0, to = i ? from + rnd(&r) % now : UINT64_MAX, at = 0;
        size_t want = 0, got = 0;
        for (size_t d = 0; d < trace_thread(t, 0)->depths; d++) {
            size_t n = 0;
            const struct span *row = trace_row(t, 0, d, &n);
            for (size_t k = 0; k < n; k++) /* an instant at the very edge may lack its caller */
                want += row[k].start_ns < to && (row[k].end_ns > from || row[k].start_ns > from);
        }
        struct walk w;
        struct walk_event ev;
        assert_int_equal(walk_init(&w, t, 0, from, to), 0);
        while (walk_next(&w, &ev)) {
            uint64_t time = ev.enter ? ev.span->start_ns : ev.span->end_ns;
            assert_true(time >= at);
            at = time;
            assert_int_equal(ev.span->depth, ev.depth);
            if (!ev.enter)
                continue;
            got += ev.span->end_ns > from || ev.span->start_ns > from;
            if (ev.depth) {
                assert_true(w.stack[ev.depth - 1]->start_ns <= ev.span->start_ns);
                assert_true(w.stack[ev.depth - 1]->end_ns >= ev.span->end_ns);
            }
        }
        assert_int_equal(w.depth, 0);
        assert_int_equal(got, want);
        walk_free(&w);
    }
    trace_free(t);
}

/* No sum is larger than the time that there was: self times of a thread, its outermost calls, a call's own
 * children. */
static void field_D10_sums_stay_within_the_thread(void **state)
{
    (void)state;
    struct trace *t = gentrace_random(&(struct gentrace){.spans = 30000, .threads = 3, .depth = 12, .functions = 40,
                                                         .gaps = 30, .base_ns = 5000, .step_ns = 50, .seed = 77});
    for (size_t th = 0; th < trace_thread_count(t); th++) {
        const struct trace_thread *k = trace_thread(t, th);
        uint64_t span = k->last_ns - k->first_ns, self = 0, top = 0;
        struct stats_options o = {.thread = (ssize_t)th};
        struct stats *s = NULL;
        size_t n = 0;
        assert_int_equal(stats_new(&s, t, &o, NULL), 0);
        const struct function_stats *f = stats_functions(s, &n);
        for (size_t i = 0; i < n; i++) {
            self += f[i].self_ns;
            assert_true(f[i].self_ns <= f[i].total_ns && f[i].total_ns <= span);
            assert_true(f[i].min_ns <= f[i].p50_ns && f[i].p50_ns <= f[i].p99_ns && f[i].p99_ns <= f[i].max_ns);
        }
        assert_true(n > 0 && self <= span);
        stats_free(s);
        const struct span *row = trace_row(t, th, 0, &n);
        for (size_t i = 0; i < n; i++)
            top += row[i].end_ns - row[i].start_ns;
        assert_true(top <= span);
        for (size_t d = 1; d < k->depths; d++) {
            size_t parents = 0, at = 0;
            const struct span *parent = trace_row(t, th, d - 1, &parents);
            row = trace_row(t, th, d, &n);
            uint64_t sum = 0;
            for (size_t i = 0; i < n; i++) {
                while (at + 1 < parents && parent[at].end_ns < row[i].end_ns) {
                    at++;
                    sum = 0;
                }
                sum += row[i].end_ns - row[i].start_ns;
                assert_true(sum <= parent[at].end_ns - parent[at].start_ns);
            }
        }
    }
    trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_D10_sums_stay_within_the_thread),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(callers_callees_longest),
        cmocka_unit_test(field_D9_nothing_to_count),
        cmocka_unit_test(selection_equals_sorting),
        cmocka_unit_test(long_calls),
        cmocka_unit_test(many_calls),
        cmocka_unit_test(field_D10_sums_equal_brute_force),
        cmocka_unit_test(walk_in_call_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* decode/trace/compare, merged, call_tree, the walk of one call, the median call: figures worked out by hand,
 * and random traces against plain computations and against the folded export. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/trace/compare.h"
#include "decode/export/export.h"
#include "decode/trace/merged.h"
#include "decode/trace/walk.h"
#include "tests/lib_gentrace.h"

static fn_id fn_named(const struct trace *t, const char *name)
{
    const struct functions *f = trace_functions(t);
    for (size_t i = 0; i < functions_count(f); i++)
        if (strcmp(functions_get(f, (fn_id)i)->name, name) == 0)
            return (fn_id)i;
    fail_msg("no function %s", name);
    return 0;
}

static struct stats_call call_of(const struct trace *t, size_t thread, size_t depth, size_t index)
{
    size_t n;
    const struct span *row = trace_row(t, thread, depth, &n);
    assert_true(index < n);
    return (struct stats_call){thread, depth, index, row[index].end_ns - row[index].start_ns,
                               row[index].start_ns};
}

static void assert_side(const struct compare_row *r, int side, uint64_t calls, uint64_t total, uint64_t self,
                        uint64_t longest_at)
{
    assert_int_equal(r->side[side].calls, calls);
    assert_int_equal(r->side[side].total_ns, total);
    assert_int_equal(r->side[side].self_ns, self);
    if (calls)
        assert_int_equal(r->side[side].longest.start_ns, longest_at);
}

static void compared_by_hand(void **state)
{
    (void)state;
    struct trace *t = gentrace_parse(GENTRACE_THREE_CALLS);
    const struct stats_options all = {.thread = -1};
    struct stats_call slow = call_of(t, 0, 1, 1), median;
    struct comparison c;
    uint64_t calls;
    assert_int_equal(stats_median(t, fn_named(t, "f"), &all, &median, &calls, NULL), 0);
    assert_int_equal(calls, 3);
    assert_int_equal(median.start_ns, 700);
    assert_int_equal(median.duration_ns, 140);
    assert_int_equal(compare_calls(&c, t, &slow, &median, NULL, NULL), 0);
    assert_int_equal(c.n, 4);
    /* g: 100 + 50 of 300, against 30; k: 90 less 20 of a gap, against nothing; f itself: 60 against 100;
     * h: nothing against 10. */
    assert_int_equal(c.rows[0].fn, fn_named(t, "g"));
    assert_side(&c.rows[0], 0, 3, 150, 150, 310);
    assert_side(&c.rows[0], 1, 1, 30, 30, 710);
    assert_int_equal(c.rows[1].fn, fn_named(t, "k"));
    assert_side(&c.rows[1], 0, 1, 90, 70, 500);
    assert_side(&c.rows[1], 1, 0, 0, 0, 0);
    assert_int_equal(c.rows[2].fn, fn_named(t, "f"));
    assert_side(&c.rows[2], 0, 1, 300, 60, 300);
    assert_side(&c.rows[2], 1, 1, 140, 100, 700);
    assert_int_equal(c.rows[3].fn, fn_named(t, "h"));
    assert_side(&c.rows[3], 1, 1, 10, 10, 740);
    comparison_free(&c);
    assert_int_equal(compare_calls(&c, t, &slow, &slow, NULL, NULL), 0);
    for (size_t i = 0; i < c.n; i++)
        assert_memory_equal(&c.rows[i].side[0], &c.rows[i].side[1], sizeof c.rows[i].side[0]);
    comparison_free(&c);
    atomic_bool cancel = true;
    const struct stats_options stopped = {.thread = -1, .cancel = &cancel};
    struct err err;
    assert_int_equal(stats_median(t, fn_named(t, "f"), &stopped, &median, &calls, &err), MTUI_E_CANCEL);
    trace_free(t);
}

/* Calls of no length at the edges belong to the last call that starts no later. */
static void edges_of_a_call(void **state)
{
    (void)state;
    struct trace *t = gentrace_parse("thread 1000 main\n"
                                     "+ 0 main\n + 100 f\n + 100 a\n - 100\n + 150 b\n - 150\n - 200\n"
                                     "+ 200 f\n + 200 c\n - 200\n - 300\n - 400\n");
    struct stats_call first = call_of(t, 0, 1, 0), second = call_of(t, 0, 1, 1);
    struct comparison c;
    assert_int_equal(compare_calls(&c, t, &first, &second, NULL, NULL), 0);
    assert_int_equal(c.n, 4);
    for (size_t i = 0; i < c.n; i++) {
        bool later = c.rows[i].fn == fn_named(t, "c"), both = c.rows[i].fn == fn_named(t, "f");
        assert_int_equal(c.rows[i].side[0].calls, both || !later);
        assert_int_equal(c.rows[i].side[1].calls, both || later);
    }
    comparison_free(&c);
    trace_free(t);
}

/* ---- Against plain computations ---- */

static struct trace *random_trace(uint64_t seed, uint64_t spans, unsigned gaps)
{
    const struct gentrace g = {.spans = spans, .threads = 3, .depth = 9, .functions = 13, .gaps = gaps,
                               .base_ns = 5000, .step_ns = seed % 3 ? 20 : 1, .seed = seed};
    return gentrace_random(&g);
}

static bool in_gap(const struct trace *t, size_t thread, uint64_t ns)
{
    size_t n;
    const struct gap *g = trace_gaps(t, &n);
    for (size_t i = 0; i < n; i++)
        if ((g[i].tid == 0 || g[i].tid == trace_thread(t, thread)->tid) && g[i].start_ns <= ns &&
            ns < g[i].end_ns)
            return true;
    return false;
}

/* The function innermost at each nanosecond of a call, by looking at every row. */
static void self_by_looking(const struct trace *t, const struct stats_call *c, uint64_t *self)
{
    for (uint64_t ns = c->start_ns; ns < c->start_ns + c->duration_ns; ns++) {
        const struct span *inner = NULL;
        for (size_t d = c->depth; d < trace_thread(t, c->thread)->depths; d++) {
            const struct span *s = trace_row_at(t, c->thread, d, ns);
            if (!s || s->end_ns <= ns)
                break;
            inner = s;
        }
        assert_non_null(inner);
        self[inner->fn] += !in_gap(t, c->thread, ns);
    }
}

static void compared_by_looking(void **state)
{
    (void)state;
    const struct stats_options all = {.thread = -1};
    for (uint64_t seed = 1; seed < 12; seed++) {
        struct trace *t = random_trace(seed, 600, 6);
        size_t n;
        trace_row(t, 1, 1, &n);
        struct stats_call a = call_of(t, 1, 1, seed % n), median;
        const fn_id fn = trace_row(t, 1, 1, &n)[a.index].fn;
        uint64_t calls, self[2][13] = {0}, sum[2] = {0};
        assert_int_equal(stats_median(t, fn, &all, &median, &calls, NULL), 0);
        struct stats *stats;
        assert_int_equal(stats_new(&stats, t, &all, NULL), 0);
        assert_int_equal(stats_find(stats, fn)->p50_ns, median.duration_ns);
        assert_int_equal(stats_find(stats, fn)->calls, calls);
        stats_free(stats);
        struct comparison c;
        assert_int_equal(compare_calls(&c, t, &a, &median, NULL, NULL), 0);
        self_by_looking(t, &a, self[0]);
        self_by_looking(t, &median, self[1]);
        for (size_t i = 0; i < c.n; i++)
            for (int k = 0; k < 2; k++) {
                const struct compare_side *s = &c.rows[i].side[k];
                assert_int_equal(s->self_ns, self[k][c.rows[i].fn]);
                sum[k] += s->self_ns;
                if (!s->calls)
                    continue;
                const struct stats_call *l = &s->longest;
                const struct span *at = &trace_row(t, l->thread, l->depth, &n)[l->index];
                assert_int_equal(at->fn, c.rows[i].fn);
                assert_int_equal(at->start_ns, l->start_ns);
                assert_int_equal(at->end_ns - at->start_ns, l->duration_ns);
                assert_true(s->total_ns >= l->duration_ns);
            }
        for (size_t i = 0; i < 13; i++)
            for (int k = 0; k < 2; k++)
                sum[k] -= self[k][i];
        assert_int_equal(sum[0], 0);
        assert_int_equal(sum[1], 0);
        for (size_t i = 1; i < c.n; i++) {
            const struct compare_side *p = c.rows[i - 1].side, *q = c.rows[i].side;
            assert_true(llabs((long long)(p[0].self_ns - p[1].self_ns)) >=
                        llabs((long long)(q[0].self_ns - q[1].self_ns)));
        }
        comparison_free(&c);
        trace_free(t);
    }
}

/* ---- The merged flame graph ---- */

static void assert_node(const struct merged *m, size_t depth, size_t index, const char *name,
                        uint64_t start, uint64_t calls, uint64_t total, uint64_t self)
{
    size_t n;
    const struct trace *t = merged_trace(m);
    const struct span *row = trace_row(t, 0, depth, &n);
    assert_true(index < n);
    const struct merged_node node = merged_node(m, depth, index);
    assert_string_equal(functions_get(trace_functions(t), row[index].fn)->name, name);
    assert_int_equal(row[index].start_ns, start);
    assert_int_equal(row[index].end_ns, start + total);
    assert_int_equal(node.calls, calls);
    assert_int_equal(node.total_ns, total);
    assert_int_equal(node.self_ns, self);
    assert_int_equal(node.longest->fn, row[index].fn);
}

static void merged_by_hand(void **state)
{
    (void)state;
    struct trace *t = gentrace_parse(GENTRACE_THREE_CALLS);
    struct merged *m;
    struct call_tree_options o = {.thread = -1};
    assert_int_equal(merged_new(&m, t, &o, NULL), 0);
    assert_int_equal(trace_check(merged_trace(m), NULL), 0);
    /* main 1000 less 20 of the gap; f 540 less that; in f: g 200 of which 10 in g, k 70, h 20. */
    assert_node(m, 0, 0, "main", 0, 1, 980, 460);
    assert_node(m, 1, 0, "f", 0, 3, 520, 230);
    assert_node(m, 2, 0, "g", 0, 4, 200, 190);
    assert_node(m, 2, 1, "k", 200, 1, 70, 70);
    assert_node(m, 2, 2, "h", 270, 2, 20, 20);
    assert_node(m, 3, 0, "g", 0, 1, 10, 10);
    assert_int_equal(merged_node(m, 1, 0).longest->start_ns, 300);
    assert_int_equal(trace_thread(merged_trace(m), 0)->spans, 6);
    merged_free(m);
    o.fold = true;
    assert_int_equal(merged_new(&m, t, &o, NULL), 0);
    assert_node(m, 2, 0, "g", 0, 4, 200, 200);
    assert_int_equal(trace_thread(merged_trace(m), 0)->depths, 3);
    merged_free(m);
    o = (struct call_tree_options){.from_ns = 500, .to_ns = 720, .thread = 0};
    assert_int_equal(merged_new(&m, t, &o, NULL), 0);
    assert_node(m, 0, 0, "main", 0, 1, 200, 100);
    assert_node(m, 1, 0, "f", 0, 2, 100, 20);
    assert_node(m, 2, 0, "k", 0, 1, 70, 70);
    assert_node(m, 2, 1, "g", 70, 1, 10, 10);
    merged_free(m);
    o = (struct call_tree_options){.from_ns = 5000, .to_ns = 6000, .thread = -1};
    assert_int_equal(merged_new(&m, t, &o, NULL), 0);
    assert_int_equal(trace_thread_count(merged_trace(m)), 0);
    merged_free(m);
    trace_free(t);
}

/* One line of the folded export: what the picture has for it must be the same time. */
static uint64_t self_of_stack(const struct merged *m, char *stack)
{
    const struct trace *t = merged_trace(m);
    uint64_t from = 0, to = UINT64_MAX, self = 0;
    size_t depth = 0;
    for (char *save = NULL, *name = strtok_r(stack, ";", &save); name;
         name = strtok_r(NULL, ";", &save), depth++) {
        size_t n, i = 0;
        const struct span *row = trace_row(t, 0, depth, &n);
        while (i < n && (row[i].start_ns < from || row[i].end_ns > to || row[i].end_ns == row[i].start_ns ||
                         strcmp(functions_get(trace_functions(t), row[i].fn)->name, name) != 0))
            i++;
        assert_true(i < n);
        from = row[i].start_ns;
        to = row[i].end_ns;
        self = merged_node(m, depth, i).self_ns;
    }
    return self;
}

static void merged_is_folded(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 9; seed++) {
        struct trace *t = random_trace(seed, 900, 5);
        const uint64_t first = trace_info(t)->first_ns, last = trace_info(t)->last_ns;
        const bool part = seed % 2;
        const ssize_t thread = seed % 4 == 3 ? 2 : -1;
        struct call_tree_options o = {.thread = thread};
        struct export_options x = {.format = EXPORT_FOLDED, .tid = thread < 0 ? 0 : 1002};
        if (part) {
            o.from_ns = first + (last - first) / 4;
            o.to_ns = first + (last - first) / 2;
            x.from = (struct export_time){.given = true, .ns = o.from_ns};
            x.to = (struct export_time){.given = true, .ns = o.to_ns};
        }
        struct merged *m;
        assert_int_equal(merged_new(&m, t, &o, NULL), 0);
        assert_int_equal(trace_check(merged_trace(m), NULL), 0);
        char *text = NULL, *save = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        assert_int_equal(export_write(f, t, NULL, &x, NULL), 0);
        fclose(f);
        uint64_t sum = 0;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
            char *weight = strrchr(line, ' ');
            *weight++ = '\0';
            uint64_t ns = strtoull(weight, NULL, 10);
            sum += ns;
            assert_int_equal(self_of_stack(m, line), ns);
        }
        size_t n;
        const struct span *row = trace_row(merged_trace(m), 0, 0, &n);
        assert_true(n > 0);
        assert_int_equal(row[n - 1].end_ns, sum);
        for (size_t i = 1; i < n; i++)
            assert_true(row[i].end_ns - row[i].start_ns <= row[i - 1].end_ns - row[i - 1].start_ns);
        free(text);
        merged_free(m);
        trace_free(t);
    }
}

static void merging_can_be_stopped(void **state)
{
    (void)state;
    struct trace *t = random_trace(3, 60000, 0);
    atomic_bool cancel = true;
    atomic_uint_fast64_t done = 0;
    struct call_tree_options o = {.thread = -1, .cancel = &cancel, .done = &done};
    struct merged *m = NULL;
    struct err err;
    assert_int_equal(merged_new(&m, t, &o, &err), MTUI_E_CANCEL);
    assert_null(m);
    cancel = false;
    assert_int_equal(merged_new(&m, t, &o, &err), 0);
    assert_true(done > 20000 && done < 70000);
    merged_free(m);
    trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compared_by_hand),  cmocka_unit_test(edges_of_a_call),
        cmocka_unit_test(compared_by_looking), cmocka_unit_test(merged_by_hand),
        cmocka_unit_test(merged_is_folded),  cmocka_unit_test(merging_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

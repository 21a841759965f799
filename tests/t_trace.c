/* decode/trace/trace, trace_builder: rows, invariants, order, clamps; against a plain model for random calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/trace/trace.h"
#include "decode/trace/trace_priv.h"
#include "tests/lib_gentrace.h"

static void assert_span(const struct span *s, uint64_t start, uint64_t end, fn_id fn, unsigned flags)
{
    assert_non_null(s);
    assert_int_equal(s->start_ns, start);
    assert_int_equal(s->end_ns, end);
    assert_int_equal(s->fn, fn);
    assert_int_equal(s->flags, flags);
}

static bool nested(const struct trace *t, size_t thread, size_t depth, size_t i)
{
    size_t first;
    const uint64_t *bits = trace_row_nested(t, thread, depth, &first);
    assert_non_null(bits);
    return bits[(first + i) / 64] >> (first + i) % 64 & 1;
}

static void field_D4_a_small_tree_with_a_time_that_goes_back(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct span), 24);
    struct trace_builder *b = gentrace_builder(4);
    size_t th = trace_builder_thread(b, 10, 11);
    assert_int_equal(trace_builder_thread(b, 10, 11), th);
    trace_builder_comm(b, th, "old");
    trace_builder_comm(b, th, "worker");
    trace_builder_count_sample(b, th, 3);
    trace_builder_count_sample(b, th, -1);
    /* f0 [100,200] { f1 [110,150] { f2 [120,130] f2 [130,140] } f3 [160,...] */
    trace_builder_enter(b, th, 100, 0, SPAN_INFERRED_START);
    trace_builder_enter(b, th, 110, 1, 0);
    assert_int_equal(trace_builder_depth(b, th), 2);
    assert_int_equal(trace_builder_open_fn(b, th, 1), 1);
    assert_int_equal(trace_builder_open_fn(b, th, 2), FN_NONE);
    trace_builder_enter(b, th, 120, 2, 0);
    trace_builder_leave(b, th, 130, 0);
    trace_builder_enter(b, th, 130, 2, SPAN_TAIL_CALL);
    trace_builder_leave(b, th, 140, 0);
    trace_builder_leave(b, th, 150, SPAN_GAP_END);
    trace_builder_enter(b, th, 160, 3, 0);
    trace_builder_leave(b, th, 155, 0); /* backwards: raised to 160 */
    trace_builder_enter(b, th, 200, 3, 0);
    assert_int_equal(trace_builder_clamped(b), 1);
    struct trace *t = gentrace_finish(b);

    const struct trace_thread *k = trace_thread(t, 0);
    assert_int_equal(trace_thread_count(t), 1);
    assert_string_equal(k->comm, "worker");
    assert_int_equal(k->samples, 2);
    assert_int_equal(k->last_cpu, 3);
    assert_int_equal(k->depths, 3);
    assert_int_equal(k->spans, 6);
    assert_int_equal(k->first_ns, 100);
    assert_int_equal(k->last_ns, 200);
    size_t n = 0;
    const struct span *r = trace_row(t, 0, 0, &n);
    assert_int_equal(n, 1);
    assert_span(&r[0], 100, 200, 0, SPAN_INFERRED_START | SPAN_INFERRED_END);
    r = trace_row(t, 0, 1, &n);
    assert_int_equal(n, 3);
    assert_span(&r[0], 110, 150, 1, SPAN_GAP_END);
    assert_span(&r[1], 160, 160, 3, 0);
    assert_span(&r[2], 200, 200, 3, SPAN_INFERRED_END);
    r = trace_row(t, 0, 2, &n);
    assert_int_equal(n, 2);
    assert_span(&r[1], 130, 140, 2, SPAN_TAIL_CALL);
    assert_null(trace_row(t, 0, 3, &n));
    assert_int_equal(n, 0);
    assert_null(trace_row(t, 1, 0, &n));

    assert_null(trace_row_at(t, 0, 2, 119));
    assert_span(trace_row_at(t, 0, 2, 120), 120, 130, 2, 0);
    assert_span(trace_row_at(t, 0, 2, 130), 130, 140, 2, SPAN_TAIL_CALL);
    assert_span(trace_row_at(t, 0, 1, 155), 110, 150, 1, SPAN_GAP_END);
    assert_null(trace_row_at(t, 0, 9, 155));
    trace_free(t);
}

static void nothing_at_all(void **state)
{
    (void)state;
    struct trace *t = gentrace_finish(gentrace_builder(0));
    size_t n = 1;
    assert_int_equal(trace_thread_count(t), 0);
    assert_int_equal(trace_find_thread(t, 1), -1);
    trace_gaps(t, &n);
    assert_int_equal(n, 0);
    trace_marks(t, &n);
    assert_int_equal(n, 0);
    assert_int_equal(trace_info(t)->last_ns, 0);
    assert_string_equal(trace_info(t)->recorder, "perf");
    trace_free(t);

    /* Leaving with nothing open, and a thread that did nothing. */
    struct trace_builder *b = gentrace_builder(1);
    size_t quiet = trace_builder_thread(b, 1, 1), th = trace_builder_thread(b, 1, 2);
    trace_builder_leave(b, th, 50, 0);
    trace_builder_enter(b, th, 60, 0, 0);
    assert_int_equal(trace_builder_depth(b, quiet), 0);
    t = gentrace_finish(b);
    assert_int_equal(trace_thread(t, 0)->first_ns, 50);
    assert_int_equal(trace_thread(t, 0)->depths, 0);
    assert_string_equal(trace_thread(t, 0)->comm, "");
    trace_free(t);
}

static void threads_gaps_and_marks_are_sorted(void **state)
{
    (void)state;
    struct trace_builder *b = gentrace_builder(1);
    const pid_t ids[][2] = {{20, 25}, {20, 20}, {5, 99}, {20, 21}, {5, 5}, {7, 25}};
    for (size_t i = 0; i < 6; i++) {
        size_t th = trace_builder_thread(b, ids[i][0], ids[i][1]);
        trace_builder_enter(b, th, 1000 + i, 0, 0);
    }
    trace_builder_gap(b, &(struct gap){20, 3000, 2500, 8, GAP_LOST, NULL, 0}); /* ends before it starts */
    trace_builder_gap(b, &(struct gap){5, 900, 950, 0, GAP_ERROR, "bad packet", 0});
    trace_builder_gap(b, &(struct gap){0, 900, 910, 0, GAP_OVERFLOW, "bad packet", 0});
    trace_builder_mark(b, &(struct mark){2000, 99, MARK_TRIGGER, "f entry"});
    trace_builder_mark(b, &(struct mark){800, 5, MARK_NOTE, NULL});
    trace_builder_mark(b, &(struct mark){2000, 5, MARK_SNAPSHOT, "two"});
    struct trace_info info = {.first_ns = 850, .last_ns = 900, .sampled = true, .recorder = "sample",
                              .partial = "cut"};
    trace_builder_set_info(b, &info);
    struct trace *t = gentrace_finish(b);

    const pid_t want[][2] = {{5, 5}, {5, 99}, {7, 25}, {20, 20}, {20, 21}, {20, 25}};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(trace_thread(t, i)->pid, want[i][0]);
        assert_int_equal(trace_thread(t, i)->tid, want[i][1]);
    }
    assert_int_equal(trace_find_thread(t, 99), 1);
    assert_int_equal(trace_find_thread(t, 20), 3);
    assert_int_equal(trace_find_thread(t, 25), 2); /* the lower pid */
    assert_int_equal(trace_find_thread(t, 24), -1);
    size_t n = 0;
    const struct gap *g = trace_gaps(t, &n);
    assert_int_equal(n, 3);
    assert_int_equal(g[0].tid, 0);
    assert_int_equal(g[1].tid, 5);
    assert_string_equal(g[1].detail, "bad packet");
    assert_int_equal(g[2].start_ns, 3000);
    assert_int_equal(g[2].end_ns, 3000);
    assert_string_equal(g[2].detail, "");
    const struct mark *m = trace_marks(t, &n);
    assert_int_equal(n, 3);
    assert_int_equal(m[0].time_ns, 800);
    assert_int_equal(m[1].tid, 5);
    assert_string_equal(m[2].detail, "f entry");
    assert_int_equal(trace_info(t)->first_ns, 800);
    assert_int_equal(trace_info(t)->last_ns, 3000);
    assert_int_equal(trace_thread(t, 0)->first_ns, 900); /* its gap */
    assert_int_equal(trace_thread(t, 3)->last_ns, 3000);
    assert_true(trace_info(t)->sampled);
    assert_string_equal(trace_info(t)->partial, "cut");
    trace_free(t);
    assert_string_equal(gap_cause_name(GAP_NO_SAMPLE), "no-sample");
    assert_string_equal(gap_cause_name(GAP_OFF_CPU), "off-cpu");
    assert_string_equal(mark_kind_name(MARK_NOTE), "note");
    assert_string_equal(mark_kind_name((enum mark_kind)77), "unknown");
}

/* Frames past the limit of depth are followed without being stored. */
static void deeper_than_the_limit(void **state)
{
    (void)state;
    struct trace_builder *b = gentrace_builder(2);
    size_t th = trace_builder_thread(b, 1, 1);
    for (size_t i = 0; i < TRACE_MAX_DEPTH + 10; i++)
        assert_int_equal(trace_builder_enter(b, th, i, i & 1, 0), 0);
    assert_int_equal(trace_builder_depth(b, th), TRACE_MAX_DEPTH + 10);
    assert_int_equal(trace_builder_open_fn(b, th, TRACE_MAX_DEPTH + 8), 1);
    assert_int_equal(trace_builder_too_deep(b), 10);
    for (size_t i = 0; i < 10; i++)
        trace_builder_leave(b, th, 70000, 0);
    trace_builder_leave(b, th, 80000, 0);
    struct trace *t = gentrace_finish(b);
    size_t n = 0;
    assert_int_equal(trace_thread(t, 0)->depths, TRACE_MAX_DEPTH);
    assert_span(trace_row(t, 0, TRACE_MAX_DEPTH - 1, &n), TRACE_MAX_DEPTH - 1, 80000, 0, 0);
    assert_true(nested(t, 0, TRACE_MAX_DEPTH - 1, 0));
    assert_false(nested(t, 0, 1, 0));
    trace_free(t);
}

/* ---- Random calls against a model ---- */

struct model_span {
    uint64_t start, end;
    size_t thread, depth;
    fn_id fn;
    bool open, nested;
};

static uint64_t rnd(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static void field_D9_open_frames_end_with_a_marker(void **state)
{
    (void)state;
    enum { THREADS = 5, EVENTS = 40000, DEPTH = 30 };
    for (uint64_t seed = 1; seed <= 6; seed++) {
        uint64_t r = seed * 0x123456789abcdefu;
        struct trace_builder *b = gentrace_builder(9);
        struct model_span *m = calloc(EVENTS, sizeof *m);
        size_t nm = 0, stack[THREADS][DEPTH], depth[THREADS] = {0}, rows[THREADS] = {0};
        uint64_t now[THREADS] = {0};
        for (int i = 0; i < EVENTS; i++) {
            size_t th = (size_t)(rnd(&r) % THREADS);
            assert_int_equal(trace_builder_thread(b, 1, (pid_t)th + 1), trace_builder_thread(b, 1, (pid_t)th + 1));
            size_t at = trace_builder_thread(b, 1, (pid_t)th + 1);
            now[th] += rnd(&r) % 3; /* often the same instant */
            if (rnd(&r) % 100 < 51 && depth[th] < DEPTH) {
                fn_id fn = (fn_id)(rnd(&r) % 9);
                assert_int_equal(trace_builder_enter(b, at, now[th], fn, 0), 0);
                m[nm] = (struct model_span){now[th], 0, th, depth[th], fn, true, false};
                for (size_t k = 0; k < depth[th]; k++)
                    m[nm].nested |= m[stack[th][k]].fn == fn;
                stack[th][depth[th]++] = nm++;
                if (depth[th] > rows[th])
                    rows[th] = depth[th];
            } else if (depth[th]) {
                trace_builder_leave(b, at, now[th], 0);
                m[stack[th][--depth[th]]].end = now[th];
                m[stack[th][depth[th]]].open = false;
            }
        }
        for (size_t i = 0; i < nm; i++)
            if (m[i].open)
                m[i].end = now[m[i].thread];
        struct trace *t = gentrace_finish(b);
        size_t seen = 0;
        for (size_t th = 0; th < trace_thread_count(t); th++) {
            size_t mth = (size_t)trace_thread(t, th)->tid - 1;
            assert_int_equal(trace_thread(t, th)->depths, rows[mth]);
            for (size_t d = 0; d < rows[mth]; d++) {
                size_t n = 0, j = 0;
                const struct span *row = trace_row(t, th, d, &n);
                for (size_t i = 0; i < nm; i++) { /* the model's order is the order of calls */
                    if (m[i].thread != mth || m[i].depth != d)
                        continue;
                    assert_true(j < n);
                    assert_span(&row[j++], m[i].start, m[i].end, m[i].fn,
                                m[i].open ? SPAN_INFERRED_END : 0);
                    assert_int_equal(nested(t, th, d, j - 1), m[i].nested);
                }
                assert_int_equal(j, n);
                seen += n;
                uint64_t when = rnd(&r) % (now[mth] + 2);
                const struct span *at = trace_row_at(t, th, d, when), *naive = NULL;
                for (size_t i = 0; i < n && row[i].start_ns <= when; i++)
                    naive = &row[i];
                assert_ptr_equal(at, naive);
            }
        }
        assert_int_equal(seen, nm);
        trace_free(t);
        free(m);
    }
}

/* A frame found around others makes calls of its function among them nested, also when it was found after
 * one that is over by then; what comes behind it, or after a cut, does not lie in it. */
static void nested_in_frames_found_later(void **state)
{
    (void)state;
    struct trace_builder *b = gentrace_builder(4);
    size_t th = trace_builder_thread(b, 1, 1), n;
    trace_builder_enter(b, th, 10, 1, 0);
    trace_builder_enter(b, th, 11, 2, 0);
    trace_builder_leave(b, th, 12, 0);
    trace_builder_leave(b, th, 20, 0);
    trace_builder_wrap(b, th, 20, 0); /* f0 { f1 { f2 } */
    trace_builder_enter(b, th, 25, 1, 0);
    trace_builder_leave(b, th, 30, 0);
    trace_builder_leave(b, th, 40, 0);
    trace_builder_wrap(b, th, 40, 1); /* f1 { f0 { f1 { f2 } f1 } */
    trace_builder_enter(b, th, 45, 0, 0);
    trace_builder_enter(b, th, 46, 0, 0);
    trace_builder_cut(b, th, 50, 0);
    trace_builder_enter(b, th, 60, 1, 0);
    trace_builder_leave(b, th, 61, 0);
    trace_builder_wrap(b, th, 62, 3);
    struct trace *t = gentrace_finish(b);
    const struct span *r = trace_row(t, 0, 0, &n);
    assert_int_equal(n, 2);
    assert_span(&r[0], 10, 50, 1, SPAN_INFERRED_START);
    assert_span(&r[1], 60, 62, 3, SPAN_INFERRED_START | SPAN_INFERRED_END);
    r = trace_row(t, 0, 1, &n);
    assert_int_equal(n, 3);
    assert_span(&r[0], 10, 40, 0, SPAN_INFERRED_START);
    assert_span(&r[1], 45, 50, 0, 0);
    assert_span(&r[2], 60, 61, 1, 0);
    r = trace_row(t, 0, 2, &n);
    assert_int_equal(n, 3);
    assert_span(&r[0], 10, 20, 1, 0);
    assert_span(&r[1], 25, 30, 1, 0);
    assert_span(&r[2], 46, 50, 0, 0);
    assert_span(trace_row(t, 0, 3, &n), 11, 12, 2, 0);
    static const bool want[4][3] = {{false, false}, {false, false, false}, {true, true, true}, {false}};
    for (size_t d = 0; d < 4; d++) {
        trace_row(t, 0, d, &n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(nested(t, 0, d, i), want[d][i]);
    }
    assert_null(trace_row_nested(t, 0, 4, &n));
    trace_free(t);
}

/* Each broken invariant is found: trace_check must not be a rubber stamp. */
static void field_D4_check_finds_faults(void **state)
{
    (void)state;
    struct trace_builder *b = gentrace_builder(3);
    size_t th = trace_builder_thread(b, 1, 1);
    trace_builder_enter(b, th, 10, 0, 0);
    trace_builder_enter(b, th, 12, 1, 0);
    trace_builder_leave(b, th, 14, 0);
    trace_builder_enter(b, th, 16, 1, 0);
    trace_builder_leave(b, th, 18, 0);
    trace_builder_leave(b, th, 20, 0);
    struct trace *t = gentrace_finish(b);
    struct span *s = t->tracks[0].spans, keep[3];
    memcpy(keep, s, sizeof keep);
    const struct {
        struct span span;
        const char *says;
    } wrong[] = {
        {{14, 12, 1, 1, 0}, "span 0 (14 to 12 ns): ends before it starts"},
        {{12, 17, 1, 1, 0}, "span 1 (16 to 18 ns): overlaps the span before it"},
        {{12, 14, 1, 2, 0}, "span 0 (12 to 14 ns): stands in the wrong row"},
        {{12, 14, 99, 1, 0}, "names no function"},
        {{5, 14, 1, 1, 0}, "outside its thread's time"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err err = {0};
        s[1] = wrong[i].span;
        assert_int_equal(trace_check(t, &err), MTUI_E_FORMAT);
        if (!strstr(err.text, wrong[i].says))
            fail_msg("\"%s\" lacks \"%s\"", err.text, wrong[i].says);
        memcpy(s, keep, sizeof keep);
    }
    s[0].end_ns = 17; /* the second child sticks out of its parent */
    assert_int_equal(trace_check(t, NULL), MTUI_E_FORMAT);
    s[0].end_ns = 20;
    assert_int_equal(trace_check(t, NULL), 0);
    t->info.last_ns = 19;
    assert_int_equal(trace_check(t, NULL), MTUI_E_FORMAT);
    trace_free(t);
}

/* Workers that fill different threads of one builder. */
struct job {
    struct trace_builder *b;
    size_t thread;
};

static void *fill(void *arg)
{
    struct job *j = arg;
    for (uint64_t i = 0; i < 300000; i++) {
        trace_builder_enter(j->b, j->thread, i * 10, 0, 0);
        trace_builder_enter(j->b, j->thread, i * 10 + 2, 1, 0);
        trace_builder_leave(j->b, j->thread, i * 10 + 5, 0);
        trace_builder_leave(j->b, j->thread, i * 10 + 9, 0);
    }
    return NULL;
}

static void threads_fill_in_parallel(void **state)
{
    (void)state;
    struct trace_builder *b = gentrace_builder(2);
    struct job jobs[4];
    pthread_t workers[4];
    for (size_t i = 0; i < 4; i++)
        jobs[i] = (struct job){b, trace_builder_thread(b, 1, (pid_t)i + 1)};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, fill, &jobs[i]), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(workers[i], NULL);
    struct trace *t = gentrace_finish(b);
    for (size_t i = 0; i < 4; i++) {
        size_t n = 0;
        const struct span *row = trace_row(t, i, 1, &n);
        assert_int_equal(n, 300000);
        assert_span(&row[299999], 2999992, 2999995, 1, 0);
        assert_int_equal(trace_row_at(t, i, 0, 1234567)->start_ns, 1234560);
    }
    trace_free(t);
}

static void functions_are_interned(void **state)
{
    (void)state;
    struct functions *f = functions_new();
    char long_name[20000];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    fn_id a = functions_intern(f, "libc.so", "_Z1fv", "f()", 0x10, FN_USER);
    fn_id b = functions_intern(f, "libm.so", "_Z1fv", "f()", 0x20, FN_PLT);
    fn_id c = functions_intern(f, "libm.so", long_name, long_name, 0x30, FN_KERNEL);
    assert_int_equal(functions_intern(f, "libc.so", "_Z1fv", "other", 0x99, FN_VDSO), a);
    assert_int_not_equal(a, b);
    char name[32];
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "fn_%u", i);
        assert_int_equal(functions_intern(f, i & 1 ? "a" : "b", name, name, i, FN_USER), i + 3);
    }
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "fn_%u", i);
        assert_int_equal(functions_intern(f, i & 1 ? "a" : "b", name, name, i, FN_USER), i + 3);
        assert_int_equal(functions_get(f, i + 3)->addr, i);
    }
    assert_int_equal(functions_count(f), 20003);
    assert_string_equal(functions_get(f, a)->name, "f()");
    assert_string_equal(functions_get(f, a)->raw, "_Z1fv");
    assert_string_equal(functions_get(f, b)->module, "libm.so");
    assert_string_equal(functions_get(f, c)->name, long_name);
    assert_int_equal(functions_get(f, b)->kind, FN_PLT);
    functions_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_D4_a_small_tree_with_a_time_that_goes_back),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(threads_gaps_and_marks_are_sorted),
        cmocka_unit_test(deeper_than_the_limit),
        cmocka_unit_test(field_D9_open_frames_end_with_a_marker),
        cmocka_unit_test(nested_in_frames_found_later),
        cmocka_unit_test(field_D4_check_finds_faults),
        cmocka_unit_test(threads_fill_in_parallel),
        cmocka_unit_test(functions_are_interned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

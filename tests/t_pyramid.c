/* decode/trace/pyramid against brute force over the row, for many shapes of rows and windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/trace/pyramid.h"

static uint64_t rnd(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

enum shape { DENSE, SPARSE, INSTANTS, BURSTS, SHAPES };

/* One thread, row 0 with n spans of the shape, starting near base. */
static struct trace *make_row(size_t n, enum shape shape, uint64_t base, uint64_t seed)
{
    struct functions *f = functions_new();
    for (unsigned i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        functions_intern(f, "m", name, name, i, FN_USER);
    }
    struct trace_builder *b = trace_builder_new(f);
    size_t th = trace_builder_thread(b, 1, 1);
    uint64_t t = base, r = seed;
    for (size_t i = 0; i < n; i++) {
        uint64_t hole = 0, len = 1;
        switch (shape) {
        case DENSE:
            len = rnd(&r) % 50;
            hole = rnd(&r) % 3;
            break;
        case SPARSE:
            len = rnd(&r) % 5;
            hole = rnd(&r) % 5000;
            break;
        case INSTANTS: /* many spans of no length at one time */
            len = rnd(&r) % 40 == 0 ? rnd(&r) % 20 : 0;
            hole = 0;
            break;
        case BURSTS:
            len = rnd(&r) % 3;
            hole = rnd(&r) % 300 == 0 ? 1000000 : 0;
            break;
        case SHAPES:
            break;
        }
        t += hole;
        trace_builder_enter(b, th, t, (fn_id)(rnd(&r) % 7), SPAN_TAIL_CALL);
        t += len;
        trace_builder_leave(b, th, t, 0);
    }
    struct trace *trace = NULL;
    assert_int_equal(trace_builder_finish(b, &trace, NULL), 0);
    trace_builder_free(b);
    assert_int_equal(trace_check(trace, NULL), 0);
    return trace;
}

static bool intersects(const struct span *s, uint64_t from, uint64_t to)
{
    return s->start_ns < to && (s->end_ns > from || s->start_ns >= from);
}

static uint64_t dur(const struct span *s)
{
    return s->end_ns - s->start_ns;
}

static void check_item(const struct span *row, size_t n, const struct pyramid_item *it,
                       uint64_t resolution)
{
    assert_true(it->count >= 1 && it->first + it->count <= n);
    uint64_t busy = 0;
    size_t longest = it->first;
    bool has_fn = false;
    for (size_t i = it->first; i < it->first + it->count; i++) {
        busy += dur(&row[i]);
        if (dur(&row[i]) > dur(&row[longest]))
            longest = i;
        has_fn |= row[i].fn == it->fn;
    }
    assert_int_equal(it->start_ns, row[it->first].start_ns);
    assert_int_equal(it->end_ns, row[it->first + it->count - 1].end_ns);
    assert_int_equal(it->busy_ns, busy);
    assert_int_equal(it->longest, longest);
    assert_true(has_fn);
    if (it->count == 1) {
        assert_int_equal(it->fn, row[it->first].fn);
        assert_int_equal(it->flags, row[it->first].flags);
    } else {
        assert_true(it->end_ns - it->start_ns < resolution);
        assert_int_equal(it->flags, 0);
    }
}

static void check_window(const struct pyramid *p, const struct span *row, size_t n, uint64_t from,
                         uint64_t to, uint64_t resolution)
{
    size_t first = 0, last = 0; /* spans in the window: first … last − 1 */
    while (first < n && !intersects(&row[first], from, to))
        first++;
    last = first;
    while (last < n && intersects(&row[last], from, to))
        last++;
    struct pyramid_iter it;
    struct pyramid_item item, before = {0};
    size_t at = first, items = 0;
    pyramid_iter_init(&it, p, 0, 0, from, to, resolution);
    while (pyramid_iter_next(&it, &item)) {
        assert_true(at < last);
        assert_int_equal(item.first, at); /* nothing left out, nothing twice */
        check_item(row, n, &item, resolution);
        if (items++)
            assert_true(item.end_ns - before.start_ns >= resolution);
        before = item;
        at += item.count;
    }
    if (first == last)
        assert_int_equal(items, 0);
    else if (at > last) /* an aggregate that reaches out of the window */
        assert_true(before.start_ns < to && before.count > 1);
    else
        assert_int_equal(at, last);
    if (resolution)
        assert_true(items <= 2 * ((to - from) / resolution + 2) + 1);
    else
        assert_int_equal(items, last - first);

    struct pyramid_sum sum = pyramid_range(p, 0, 0, from, to);
    uint64_t busy = 0;
    size_t longest = first;
    for (size_t i = first; i < last; i++) {
        uint64_t s = row[i].start_ns > from ? row[i].start_ns : from;
        uint64_t e = row[i].end_ns < to ? row[i].end_ns : to;
        busy += e - s;
        if (dur(&row[i]) > dur(&row[longest]))
            longest = i;
    }
    assert_int_equal(sum.count, last - first);
    assert_int_equal(sum.busy_ns, busy);
    if (sum.count)
        assert_int_equal(sum.longest, longest);
}

static void windows_equal_brute_force(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 2, 15, 16, 17, 127, 128, 129, 1024, 1025, 9000, 33333};
    const uint64_t bases[] = {0, 5000, UINT64_C(1) << 62};
    uint64_t r = 88172645463325252u;
    for (enum shape shape = DENSE; shape < SHAPES; shape++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            size_t n = 0;
            struct trace *t = make_row(sizes[k], shape, bases[k % 3], rnd(&r));
            struct pyramid *p = NULL;
            assert_int_equal(pyramid_new(&p, t, NULL, NULL), 0);
            const struct span *row = trace_row(t, 0, 0, &n);
            uint64_t t0 = trace_info(t)->first_ns, len = trace_info(t)->last_ns - t0;
            check_window(p, row, n, t0, t0 + len + 1, len / 800 + 1);
            check_window(p, row, n, 0, UINT64_MAX, UINT64_MAX);
            check_window(p, row, n, t0, t0 + len + 1, 0);
            for (int i = 0; i < 60; i++) {
                uint64_t from = t0 + rnd(&r) % (len + 2), w = rnd(&r) % (len + 2);
                w >>= rnd(&r) % 20;
                check_window(p, row, n, from, from + w, w / (1 + rnd(&r) % 400));
            }
            pyramid_free(p);
            trace_free(t);
        }
    }
}

/* A function that has nearly all of the time is the dominant one at every level. */
static void the_dominant_function(void **state)
{
    (void)state;
    struct functions *f = functions_new();
    functions_intern(f, "m", "rare", "rare", 0, FN_USER);
    functions_intern(f, "m", "busy", "busy", 0, FN_USER);
    struct trace_builder *b = trace_builder_new(f);
    size_t th = trace_builder_thread(b, 1, 1);
    for (uint64_t i = 0; i < 50000; i++) {
        bool busy = i % 16 == 7; /* one long among fifteen short ones */
        trace_builder_enter(b, th, i * 100, busy, 0);
        trace_builder_leave(b, th, i * 100 + (busy ? 90 : 1), 0);
    }
    struct trace *t = NULL;
    struct pyramid *p = NULL;
    assert_int_equal(trace_builder_finish(b, &t, NULL), 0);
    trace_builder_free(b);
    assert_int_equal(pyramid_new(&p, t, NULL, NULL), 0);
    for (uint64_t resolution = 2000; resolution < 10000000; resolution *= 3) {
        struct pyramid_iter it;
        struct pyramid_item item;
        pyramid_iter_init(&it, p, 0, 0, 0, UINT64_MAX, resolution);
        while (pyramid_iter_next(&it, &item))
            if (item.count >= 32)
                assert_int_equal(item.fn, 1);
    }
    pyramid_free(p);
    trace_free(t);
}

static void rows_that_do_not_exist(void **state)
{
    (void)state;
    struct trace *t = make_row(100, DENSE, 0, 7);
    struct pyramid *p = NULL;
    struct pyramid_iter it;
    struct pyramid_item item;
    assert_int_equal(pyramid_new(&p, t, NULL, NULL), 0);
    pyramid_iter_init(&it, p, 0, 1, 0, UINT64_MAX, 1);
    assert_false(pyramid_iter_next(&it, &item));
    pyramid_iter_init(&it, p, 1, 0, 0, UINT64_MAX, 1);
    assert_false(pyramid_iter_next(&it, &item));
    assert_int_equal(pyramid_range(p, 3, 0, 0, UINT64_MAX).count, 0);
    assert_int_equal(pyramid_range(p, 0, 0, 100, 50).count, 0);
    pyramid_free(p);
    p = NULL;
    atomic_bool cancel = true;
    struct err err = {0};
    assert_int_equal(pyramid_new(&p, t, &cancel, &err), MTUI_E_CANCEL);
    assert_null(p);
    trace_free(t);
}

/* Spans and pyramid together stay far below 32 bytes a span, and a frame's walk looks at few of them. */
static void memory_is_bounded(void **state)
{
    (void)state;
    enum { N = 1000000 };
    struct trace *t = make_row(N, DENSE, 0, 99);
    struct pyramid *p = NULL;
    assert_int_equal(pyramid_new(&p, t, NULL, NULL), 0);
    assert_true(pyramid_bytes(p) + N * sizeof(struct span) <= N * 27);
    pyramid_free(p);
    trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_equal_brute_force),
        cmocka_unit_test(the_dominant_function),
        cmocka_unit_test(rows_that_do_not_exist),
        cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

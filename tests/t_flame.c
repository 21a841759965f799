/* tui/timeline/flame: the cells of a row against an answer computed eighth by eighth, and the properties that
 * make a picture trustworthy: nothing lost, nothing invented, edges shared, pan without shimmer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib_flame.h"
#include "tests/lib_gentrace.h"
#include "tui/timeline/flame.h"
#include "tui/timeline/flame_source.h"
#include "tui/timeline/viewport.h"

/* x(t) by its definition. */
static int reference_x(struct flame_window w, uint64_t t_ns)
{
    flame_i128 num = (((flame_i128)t_ns << FLAME_FRACTION_BITS) - w.start_fp) * (8 * w.cols);
    flame_i128 den = (flame_i128)w.length_fp, q = num / den;
    if (num % den != 0 && num < 0)
        q--;
    return q < -1 ? -1 : q > 8 * w.cols ? 8 * w.cols : (int)q;
}

static uint64_t clipped(const struct span *s, uint64_t from, uint64_t to)
{
    uint64_t a = s->start_ns > from ? s->start_ns : from, b = s->end_ns < to ? s->end_ns : to;
    return b > a ? b - a : 0;
}

/* Checks every cell against the definition. */
static void check_picture(const struct picture *p, const struct span *s, size_t n)
{
    static uint32_t owners[8 * PICTURE_COLS], count[PICTURE_COLS];
    static const struct span *single[8 * PICTURE_COLS];
    memset(owners, 0, sizeof owners);
    memset(count, 0, sizeof count);
    int limit = 8 * p->window.cols;
    for (size_t i = 0; i < n; i++) {
        int a = reference_x(p->window, s[i].start_ns), b = reference_x(p->window, s[i].end_ns);
        if (b <= a)
            b = a + 1;
        if (a >= limit || b <= 0)
            continue;
        a = a < 0 ? 0 : a;
        b = b > limit ? limit : b;
        for (int e = a; e < b; e++) {
            owners[e]++;
            single[e] = &s[i];
        }
        for (int c = a / 8; c <= (b - 1) / 8; c++)
            count[c]++;
    }
    for (int c = 0; c < p->window.cols; c++) {
        const struct flame_cell *cell = &p->cells[c];
        const uint32_t *o = owners + 8 * c;
        const struct span **one = single + 8 * c;
        uint8_t owned = 0;
        for (int e = 0; e < 8; e++)
            owned |= (uint8_t)((o[e] != 0) << e);
        assert_int_equal(cell->owned, owned);
        assert_int_equal(cell->count, count[c]);
        assert_int_equal(cell->shape == FLAME_EMPTY, owned == 0);
        int k = cell->eighths;
        switch ((enum flame_shape)cell->shape) {
        case FLAME_EMPTY:
            assert_null(cell->ink);
            break;
        case FLAME_FULL:
            for (int e = 0; e < 8; e++)
                assert_true(o[e] == 1 && one[e] == cell->ink);
            break;
        case FLAME_LEFT:
            for (int e = 0; e < 8; e++)
                assert_true(e < k ? o[e] == 1 && one[e] == cell->ink : o[e] == 0);
            break;
        case FLAME_RIGHT:
            for (int e = 0; e < 8; e++)
                assert_true(e >= k ? o[e] == 1 && one[e] == cell->ink : o[e] == 0);
            break;
        case FLAME_SPLIT:
            for (int e = 0; e < 8; e++)
                assert_true(o[e] == 1 && one[e] == (e < k ? cell->ink : cell->paper));
            assert_int_equal(!!(cell->flags & FLAME_REPEAT), cell->ink->fn == cell->paper->fn);
            break;
        case FLAME_LINE:
            assert_int_equal(count[c], 1);
            assert_in_range(__builtin_popcount(owned), 1, 2);
            /* The third of the cell that holds its middle. */
            double middle = (double)(__builtin_ctz(owned) + 32 - __builtin_clz(owned)) / 2;
            assert_int_equal(k, middle < 8 / 3.0 ? 0 : middle <= 16 / 3.0 ? 1 : 2);
            break;
        case FLAME_DENSITY:
        case FLAME_OFF: {
            assert_int_equal(k, __builtin_popcount(owned));
            assert_int_equal(!!(cell->flags & FLAME_AGGREGATE), count[c] > 1);
            bool off = false;
            const struct span *best = NULL;
            uint64_t from = p->axis.edges[8 * c], to = p->axis.edges[8 * c + 8];
            for (size_t i = 0; i < n; i++) {
                int a = reference_x(p->window, s[i].start_ns), b = reference_x(p->window, s[i].end_ns);
                if (b <= a)
                    b = a + 1;
                if (a >= 8 * c + 8 || b <= 8 * c)
                    continue;
                off |= (s[i].flags & SPAN_OFF_CPU) != 0;
                if (!best || clipped(&s[i], from, to) > clipped(best, from, to))
                    best = &s[i];
            }
            assert_int_equal(cell->shape == FLAME_OFF, off);
            if (!off)
                assert_ptr_equal(cell->ink, best);
            break;
        }
        case FLAME_GAP:
        case FLAME_TEXT:
        case FLAME_HALVES:
            fail();
        }
    }
}

static void cells_by_definition(void **state)
{
    (void)state;
    static struct span s[3000];
    static struct picture p;
    uint64_t seed = 1;
    static const uint64_t units[] = {1, 3, 50, 1000};
    for (int round = 0; round < 240; round++) {
        uint64_t base = picture_bases[round % 4], unit = units[round / 4 % 4];
        size_t n = picture_random_row(s, 1 + gen_random(&seed) % 400, base, unit, &seed);
        struct flame_row row = flame_row_of_spans(s, n);
        uint64_t end = s[n - 1].end_ns + unit, length = end - base;
        struct viewport v;
        viewport_init(&v, base, end, 1 + (int)(gen_random(&seed) % 200));
        for (int zoom = 0; zoom < 12; zoom++) {
            picture_render(&p, viewport_window(&v), &row);
            check_picture(&p, s, n);
            picture_free(&p);
            viewport_zoom_in(&v, (int)(gen_random(&seed) % (unsigned)v.cols));
            viewport_pan(&v, (int)(gen_random(&seed) % 9) - 4);
        }
        viewport_free(&v);
        uint64_t a = base + gen_random(&seed) % length;
        picture_render(&p, flame_window_ns(a, a + 1 + gen_random(&seed) % length, 97), &row);
        check_picture(&p, s, n);
        picture_free(&p);
    }
}

static void axis_positions(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 400; round++) {
        uint64_t base = picture_bases[round % 4], length = 1 + gen_random(&seed) % (round < 200 ? 40 : 1 << 30);
        struct flame_axis ax;
        struct flame_window w = flame_window_ns(base, base + length, 1 + (int)(gen_random(&seed) % 120));
        flame_axis_init(&ax, w);
        for (int i = 0; i < 50; i++) {
            uint64_t t = base - (base ? 10 : 0) + gen_random(&seed) % (length + 20);
            assert_int_equal(flame_axis_x_eighths(&ax, t), reference_x(w, t));
        }
        flame_axis_free(&ax);
    }
}

/* 20,000 spans of 1 ns in a second: each is seen. */
static void slivers_are_visible(void **state)
{
    (void)state;
    static struct span s[20000];
    static struct picture p;
    uint64_t seed = 99, at = UINT64_C(1) << 62;
    const uint64_t base = at;
    for (size_t i = 0; i < 20000; i++) {
        at += 1 + gen_random(&seed) % 99000;
        s[i] = (struct span){.start_ns = at, .end_ns = at + 1};
    }
    struct flame_row row = flame_row_of_spans(s, 20000);
    picture_render(&p, flame_window_ns(base, base + 1000000000, 200), &row);
    uint64_t seen = 0;
    for (int c = 0; c < 200; c++)
        seen += p.cells[c].count;
    assert_int_equal(seen, 20000);
    for (size_t i = 0; i < 20000; i++) {
        int x = reference_x(p.window, s[i].start_ns);
        assert_true(p.cells[x / 8].owned >> x % 8 & 1);
    }
    picture_free(&p);
}

static bool same_cell(const struct flame_cell *a, const struct flame_cell *b)
{
    return a->ink == b->ink && a->paper == b->paper && a->shape == b->shape &&
           a->eighths == b->eighths && a->owned == b->owned && a->count == b->count &&
           a->flags == b->flags;
}

static void pan_shifts_cells(void **state)
{
    (void)state;
    static struct span s[2000];
    static struct picture p, q;
    uint64_t seed = 31337;
    for (int round = 0; round < 100; round++) {
        size_t n = picture_random_row(s, 2000, picture_bases[round % 4], 30, &seed);
        struct flame_row row = flame_row_of_spans(s, n);
        struct viewport v;
        viewport_init(&v, s[0].start_ns, s[n - 1].end_ns, 100);
        for (int i = (int)(gen_random(&seed) % 14); i >= 0; i--)
            viewport_zoom_in(&v, (int)(gen_random(&seed) % 100));
        picture_render(&p, viewport_window(&v), &row);
        int k = 1 + (int)(gen_random(&seed) % 40);
        flame_i128 before = v.place.start_fp;
        viewport_pan(&v, k);
        flame_i128 moved = v.place.start_fp - before;
        if (moved == (flame_i128)v.place.col_fp * k) {
            picture_render(&q, viewport_window(&v), &row);
            /* The first column knows nothing of what joins it from outside. */
            for (int c = 1; c < 100 - k; c++)
                assert_true(same_cell(&p.cells[c + k], &q.cells[c]));
            picture_free(&q);
        }
        picture_free(&p);
        viewport_free(&v);
    }
}

/* Zooming in keeps the order of all edges and refines them: an eighth becomes two. */
static void zoom_refines_edges(void **state)
{
    (void)state;
    uint64_t seed = 77;
    struct viewport v;
    viewport_init(&v, UINT64_C(1) << 62, (UINT64_C(1) << 62) + 100000000, 128);
    uint64_t t[200];
    for (int zoom = 0; zoom < 20; zoom++) {
        struct flame_axis far, near;
        flame_axis_init(&far, viewport_window(&v));
        flame_i128 start = v.place.start_fp;
        if (!viewport_zoom_in(&v, 0)) {
            flame_axis_free(&far);
            break;
        }
        assert_true(start == v.place.start_fp);
        flame_axis_init(&near, viewport_window(&v));
        for (int i = 0; i < 200; i++)
            t[i] = viewport_time_at(&v, 0) + gen_random(&seed) % (viewport_length_ns(&v) + 1);
        for (int i = 0; i < 200; i++) {
            int xf = flame_axis_x_eighths(&far, t[i]), xn = flame_axis_x_eighths(&near, t[i]);
            if (xn < 8 * 128)
                assert_int_equal(xn / 2, xf);
            for (int j = 0; j < 200; j++)
                if (t[i] <= t[j])
                    assert_true(xn <= flame_axis_x_eighths(&near, t[j]));
        }
        flame_axis_free(&far);
        flame_axis_free(&near);
    }
    viewport_free(&v);
}

static void repeats_are_countable(void **state)
{
    (void)state;
    /* Four calls of one function side by side, 2 columns each, then one of another function. */
    struct span s[] = {{.start_ns = 0, .end_ns = 16, .fn = 1},  {.start_ns = 16, .end_ns = 32, .fn = 1},
                       {.start_ns = 32, .end_ns = 48, .fn = 1}, {.start_ns = 48, .end_ns = 64, .fn = 1},
                       {.start_ns = 64, .end_ns = 80, .fn = 2}};
    struct flame_row row = flame_row_of_spans(s, 5);
    static struct picture p;
    picture_render(&p, flame_window_ns(0, 80, 10), &row);
    for (int c = 0; c < 10; c++) {
        bool begins = c % 2 == 0 && c > 0;
        assert_int_equal(p.cells[c].shape, FLAME_FULL);
        assert_int_equal(!!(p.cells[c].flags & FLAME_JOINED), begins);
        assert_int_equal(!!(p.cells[c].flags & FLAME_REPEAT), begins && c < 8);
        assert_int_equal(!!(p.cells[c].flags & FLAME_ALTERNATE), c < 8 && c / 2 % 2 == 1);
    }
    picture_free(&p);
    /* Half a column later the boundaries lie inside cells. */
    picture_render(&p, flame_window_ns(4, 84, 10), &row);
    assert_int_equal(p.cells[1].shape, FLAME_SPLIT);
    assert_true(p.cells[1].flags & FLAME_REPEAT);
    assert_int_equal(p.cells[1].eighths, 4);
    assert_false(p.cells[7].flags & FLAME_REPEAT);
    picture_free(&p);
}

static void gaps_are_never_aggregated(void **state)
{
    (void)state;
    static struct span s[3000];
    static struct gap g[200];
    static struct picture p;
    uint64_t seed = 11;
    for (int round = 0; round < 60; round++) {
        size_t n = picture_random_row(s, 3000, picture_bases[round % 4], 40, &seed);
        uint64_t base = s[0].start_ns, length = s[n - 1].end_ns - base, at = base;
        size_t ngaps = 1 + gen_random(&seed) % 200;
        for (size_t i = 0; i < ngaps; i++) {
            at += gen_random(&seed) % (length / 200 + 1);
            g[i] = (struct gap){.tid = (pid_t)(gen_random(&seed) % 3),
                                .start_ns = at,
                                .end_ns = at + gen_random(&seed) % (gen_random(&seed) % 20 ? 4 : length / 9),
                                .cause = (enum gap_cause)(gen_random(&seed) % GAP_CAUSES)};
        }
        struct flame_row row = flame_row_of_spans(s, n);
        struct flame_gaps hard = {0}, soft = {0};
        for (size_t i = 0; i < ngaps; i++)
            if (g[i].tid != 2)
                flame_gaps_add(flame_gap_is_hard(g[i].cause) ? &hard : &soft, &g[i]);
        struct viewport v;
        viewport_init(&v, base, base + length, 120);
        for (int i = (int)(gen_random(&seed) % 10); i > 0; i--)
            viewport_zoom_in(&v, (int)(gen_random(&seed) % 120));
        picture_render(&p, viewport_window(&v), &row);
        flame_render_gaps(&p.axis, &row, NULL, &soft, false, p.cells);
        flame_render_gaps(&p.axis, &row, NULL, &hard, true, p.cells);
        for (size_t i = 0; i < ngaps; i++) {
            if (g[i].tid == 2)
                continue;
            int a = reference_x(p.window, g[i].start_ns), b = reference_x(p.window, g[i].end_ns);
            b = b <= a ? a + 1 : b;
            bool covered = false; /* by one span, as a call covers what it waits for */
            for (size_t k = 0; k < n; k++)
                covered |= s[k].start_ns <= g[i].start_ns && s[k].end_ns >= g[i].end_ns &&
                           s[k].end_ns > g[i].start_ns;
            if (covered && !flame_gap_is_hard(g[i].cause))
                continue;
            for (int e = a < 0 ? 0 : a; e < b && e < 8 * 120; e++)
                if (flame_gap_is_hard(g[i].cause))
                    assert_int_equal(p.cells[e / 8].shape, FLAME_GAP);
                else /* an inner part may be under a call that fills the cell */
                    assert_true(p.cells[e / 8].shape == FLAME_GAP ||
                                p.cells[e / 8].shape == FLAME_FULL);
        }
        picture_free(&p);
        viewport_free(&v);
        flame_gaps_free(&hard);
        flame_gaps_free(&soft);
    }
}

static void halves_keep_both_rows(void **state)
{
    (void)state;
    static struct span s[2][500];
    static struct picture p, q;
    static struct flame_cell out[PICTURE_COLS];
    uint64_t seed = 21;
    int splits = 0;
    picture_random_row(s[0], 500, 0, 100, &seed);
    picture_random_row(s[1], 500, 0, 100, &seed);
    struct flame_row up = flame_row_of_spans(s[0], 500), low = flame_row_of_spans(s[1], 500);
    picture_render(&p, flame_window_ns(0, 20000, 200), &up);
    picture_render(&q, flame_window_ns(0, 20000, 200), &low);
    flame_render_halves(200, p.cells, q.cells, out);
    for (int c = 0; c < 200; c++) {
        assert_int_equal(out[c].ink != NULL, p.cells[c].owned != 0);
        assert_int_equal(out[c].paper != NULL, q.cells[c].owned != 0);
        assert_int_equal(out[c].count, p.cells[c].count + q.cells[c].count);
        /* Of two in a column, the one that has more of it. */
        if (p.cells[c].shape == FLAME_SPLIT) {
            assert_ptr_equal(out[c].ink, p.cells[c].eighths >= 4 ? p.cells[c].ink : p.cells[c].paper);
            splits++;
        }
    }
    flame_render_halves(200, p.cells, NULL, out);
    assert_true(splits > 0);
    for (int c = 0; c < 200; c++)
        assert_null(out[c].paper);
    picture_free(&p);
    picture_free(&q);
}

/* The pyramid answers as a scan does: same cells, every row, every zoom. */
static void pyramid_gives_the_same_cells(void **state)
{
    (void)state;
    static struct picture p, q;
    uint64_t seed = 8;
    for (unsigned round = 0; round < 4; round++) {
        struct trace *t = gentrace_random(&(struct gentrace){.spans = 60000,
                                                             .threads = 1 + round,
                                                             .depth = 5 + 4 * round,
                                                             .functions = 30,
                                                             .base_ns = picture_bases[round],
                                                             .step_ns = round == 1 ? 2 : 400,
                                                             .seed = 17 + round});
        struct pyramid *pyramid = NULL;
        struct err err;
        assert_int_equal(trace_check(t, &err), 0);
        assert_int_equal(pyramid_new(&pyramid, t, NULL, &err), 0);
        struct flame_source *fast = flame_source_new(t, pyramid), *slow = flame_source_new(t, NULL);
        const struct trace_info *info = trace_info(t);
        struct viewport v;
        viewport_init(&v, info->first_ns, info->last_ns, 180);
        for (int zoom = 0; zoom < 25; zoom++) {
            size_t thread = gen_random(&seed) % trace_thread_count(t);
            for (size_t d = 0; d <= trace_thread(t, thread)->depths; d++) {
                size_t n = 0;
                const struct span *spans = trace_row(t, thread, d, &n);
                struct flame_row a = flame_source_row(fast, thread, d),
                                 b = flame_source_row(slow, thread, d),
                                 c = flame_row_of_spans(spans, n);
                picture_render(&p, viewport_window(&v), &a);
                picture_render(&q, viewport_window(&v), &c);
                for (int col = 0; col < 180; col++)
                    assert_true(same_cell(&p.cells[col], &q.cells[col]));
                picture_free(&q);
                picture_render(&q, viewport_window(&v), &b);
                for (int col = 0; col < 180; col++)
                    assert_true(same_cell(&p.cells[col], &q.cells[col]));
                picture_free(&p);
                picture_free(&q);
                if (n == 0)
                    continue;
                size_t i = gen_random(&seed) % n, j = i + 1 + gen_random(&seed) % (n - i);
                assert_int_equal(a.longest(&a, i, j), c.longest(&c, i, j));
                uint64_t at = spans[j - 1].start_ns + gen_random(&seed) % 3 - 1;
                assert_int_equal(a.seek(&a, i, at), c.seek(&c, i, at));
                assert_int_equal(a.seek(&a, 0, at), c.seek(&c, 0, at));
            }
            if (!viewport_zoom_in(&v, (int)(gen_random(&seed) % 180)))
                viewport_whole(&v);
        }
        viewport_free(&v);
        flame_source_free(fast);
        flame_source_free(slow);
        pyramid_free(pyramid);
        trace_free(t);
    }
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axis_positions),
        cmocka_unit_test(cells_by_definition),
        cmocka_unit_test(slivers_are_visible),
        cmocka_unit_test(pan_shifts_cells),
        cmocka_unit_test(zoom_refines_edges),
        cmocka_unit_test(repeats_are_countable),
        cmocka_unit_test(gaps_are_never_aggregated),
        cmocka_unit_test(pyramid_gives_the_same_cells),
        cmocka_unit_test(halves_keep_both_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

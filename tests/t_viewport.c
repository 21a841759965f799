/* tui/timeline/viewport: zoom, pan, fit, history; that nothing drifts and the cursor's time keeps its column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "tui/timeline/viewport.h"

static uint64_t random_u64(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static const uint64_t bases[] = {0, 1000, UINT64_C(1) << 40, UINT64_C(1) << 62,
                                 (UINT64_C(1) << 63) - 5};
static const uint64_t lengths[] = {0, 1, 40, 9120000, UINT64_C(3600000000000)};
static const int widths[] = {1, 7, 80, 100, 237, 500};

#define EACH_CASE(...)                                                                            \
    for (size_t b_ = 0; b_ < sizeof bases / sizeof *bases; b_++)                                   \
        for (size_t l_ = 0; l_ < sizeof lengths / sizeof *lengths; l_++)                           \
            for (size_t w_ = 0; w_ < sizeof widths / sizeof *widths; w_++) {                       \
                struct viewport v;                                                                 \
                viewport_init(&v, bases[b_], bases[b_] + lengths[l_], widths[w_]);                 \
                __VA_ARGS__;                                                                            \
                viewport_free(&v);                                                                 \
            }

static void whole_shows_all(void **state)
{
    (void)state;
    EACH_CASE({
        assert_true(viewport_is_whole(&v));
        assert_true(viewport_time_at(&v, 0) == v.first_ns);
        assert_true(viewport_time_at(&v, v.cols) >= v.last_ns);
        /* Not more than the rounding to 12 bits too long. */
        uint64_t spare = viewport_length_ns(&v) - lengths[l_];
        assert_true(spare <= lengths[l_] / 2048 + (unsigned)v.cols);
        assert_int_equal(viewport_zoom_level(&v), 0);
        assert_false(viewport_zoom_out(&v, 0));
        assert_false(viewport_pan(&v, 3));
    });
}

static void zoom_keeps_the_cursor(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    EACH_CASE({
        for (int i = 0; i < 50; i++) {
            int col = (int)(random_u64(&seed) % (unsigned)v.cols);
            flame_i128 before = v.place.start_fp + (flame_i128)v.place.col_fp * col;
            bool in = random_u64(&seed) % 3 != 0;
            bool moved = in ? viewport_zoom_in(&v, col) : viewport_zoom_out(&v, col);
            if (!moved || viewport_is_whole(&v))
                continue;
            flame_i128 after = v.place.start_fp + (flame_i128)v.place.col_fp * col;
            assert_true(before == after);
        }
        for (int i = 0; i < 200; i++)
            viewport_zoom_in(&v, 0);
        assert_true(v.place.col_fp >= VIEWPORT_MIN_COL_FP);
        assert_true(v.place.col_fp < 2 * VIEWPORT_MIN_COL_FP);
        assert_false(viewport_zoom_in(&v, 0));
    });
}

static void one_nanosecond_on_eight_columns(void **state)
{
    (void)state;
    struct viewport v;
    viewport_init(&v, 1000, 1010, 80); /* ten nanoseconds on eighty columns are the limit */
    assert_true(v.place.col_fp == VIEWPORT_MIN_COL_FP);
    for (int ns = 0; ns < 10; ns++) {
        assert_int_equal(viewport_col_of(&v, 1000 + (uint64_t)ns), ns * 8);
        assert_int_equal(viewport_time_at(&v, ns * 8), 1000 + ns);
        assert_int_equal(viewport_time_at(&v, ns * 8 + 1), 1001 + ns);
    }
    viewport_free(&v);
}

/* A thousand random pairs of a step and its opposite, nested and one after the other. */
static void nothing_drifts(void **state)
{
    (void)state;
    uint64_t seed = 424242;
    EACH_CASE({
        if (lengths[l_] < 1000)
            continue;
        viewport_zoom_in(&v, v.cols / 2);
        viewport_zoom_in(&v, v.cols / 3);
        struct viewport_place start = v.place;
        for (int i = 0; i < 1000; i++) {
            int steps[12], cols[12], n = 1 + (int)(random_u64(&seed) % 6);
            struct viewport_place here = v.place;
            int done = 0;
            for (; done < n; done++) {
                cols[done] = (int)(random_u64(&seed) % (unsigned)v.cols);
                steps[done] = (int)(random_u64(&seed) % 2);
                if (steps[done] ? !viewport_zoom_in(&v, cols[done])
                                : !viewport_pan(&v, cols[done] - v.cols / 2))
                    break;
            }
            for (int k = done - 1; k >= 0; k--)
                if (steps[k])
                    viewport_zoom_out(&v, cols[k]);
                else
                    viewport_pan(&v, v.cols / 2 - cols[k]);
            /* Pans that met the end of the trace are no pairs; all others end where they began. */
            if (v.place.start_fp != here.start_fp)
                v.place = here;
            assert_true(v.place.col_fp == here.col_fp);
        }
        assert_true(v.place.col_fp == start.col_fp && v.place.start_fp == start.start_fp);
    });
}

static void pan_moves_by_columns(void **state)
{
    (void)state;
    struct viewport v;
    viewport_init(&v, 5000, 5000 + 1000000, 100);
    viewport_zoom_in(&v, 50);
    viewport_zoom_in(&v, 50);
    uint64_t at10 = viewport_time_at(&v, 10);
    assert_true(viewport_pan(&v, 7));
    assert_true(viewport_time_at(&v, 3) == at10);
    assert_true(viewport_pan(&v, -7));
    assert_true(viewport_time_at(&v, 10) == at10);
    /* At either end half of the window still shows the trace. */
    for (int i = 0; i < 100; i++)
        viewport_pan(&v, 100);
    assert_int_equal(viewport_col_of(&v, v.last_ns), 50);
    assert_false(viewport_pan(&v, 1));
    for (int i = 0; i < 100; i++)
        viewport_pan(&v, -100);
    assert_int_equal(viewport_col_of(&v, v.first_ns), 50);
    viewport_free(&v);
}

static void fit_and_show(void **state)
{
    (void)state;
    struct viewport v;
    viewport_init(&v, 0, 1000000000, 100);
    viewport_fit(&v, 5000000, 6000000, 1);
    assert_true(viewport_time_at(&v, 0) <= 5000000 && viewport_time_at(&v, 100) >= 6000000);
    assert_true(viewport_length_ns(&v) <= 1000000 + 1000000 / 2048 + 1);
    viewport_fit(&v, 5000000, 6000000, 3);
    int width = viewport_col_of(&v, 6000000) - viewport_col_of(&v, 5000000);
    assert_in_range(width, 32, 34);
    assert_in_range(viewport_col_of(&v, 5500000), 49, 50);
    assert_false(viewport_show(&v, 5100000, 5200000));
    assert_true(viewport_show(&v, 9100000, 9100001));
    assert_in_range(viewport_col_of(&v, 9100000), 24, 25);
    /* A span that covers the whole window is on screen. */
    assert_false(viewport_show(&v, 0, 1000000000));
    viewport_fit(&v, 7, 7, 1);
    assert_true(v.place.col_fp == VIEWPORT_MIN_COL_FP);
    viewport_fit(&v, 0, 1000000000, 3);
    assert_true(viewport_is_whole(&v));
    viewport_free(&v);
}

static void history(void **state)
{
    (void)state;
    struct viewport v;
    viewport_init(&v, 0, 1000000000, 100);
    struct viewport_place whole = v.place;
    assert_false(viewport_back(&v));
    viewport_fit(&v, 1000, 200000, 1);
    struct viewport_place fitted = v.place;
    viewport_zoom_in(&v, 3);
    viewport_zoom_in(&v, 3);
    viewport_pan(&v, 10);
    struct viewport_place stepped = v.place;
    viewport_whole(&v);
    assert_int_equal(v.back.len, 3); /* whole, fitted, and the three steps as one */
    assert_true(viewport_back(&v) && v.place.start_fp == stepped.start_fp);
    assert_true(viewport_back(&v) && v.place.start_fp == fitted.start_fp);
    assert_true(viewport_back(&v) && v.place.col_fp == whole.col_fp);
    assert_false(viewport_back(&v));
    assert_true(viewport_forward(&v) && v.place.start_fp == fitted.start_fp);
    viewport_fit(&v, 1, 2, 1);
    assert_false(viewport_forward(&v)); /* a new branch */
    for (unsigned i = 0; i < 1000; i++)
        viewport_fit(&v, 10 * i, 10 * i + 5000, 1);
    assert_true(v.back.len <= 200);
    viewport_free(&v);
}

static void resize_and_back(void **state)
{
    (void)state;
    uint64_t seed = 7;
    EACH_CASE({
        bool zoomed = viewport_zoom_in(&v, v.cols / 2);
        struct viewport_place before = v.place;
        for (int i = 0; i < 50; i++)
            viewport_set_cols(&v, widths[w_] + (int)(random_u64(&seed) % 500));
        viewport_set_cols(&v, widths[w_]);
        /* Unless it became the whole trace on the way, it is as it was. */
        if (zoomed && !viewport_is_whole(&v))
            assert_true(before.col_fp == v.place.col_fp && before.start_fp == v.place.start_fp);
        if (!zoomed)
            assert_true(viewport_is_whole(&v));
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_shows_all),
        cmocka_unit_test(zoom_keeps_the_cursor),
        cmocka_unit_test(one_nanosecond_on_eight_columns),
        cmocka_unit_test(nothing_drifts),
        cmocka_unit_test(pan_moves_by_columns),
        cmocka_unit_test(fit_and_show),
        cmocka_unit_test(history),
        cmocka_unit_test(resize_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

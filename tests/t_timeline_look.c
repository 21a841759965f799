/* How the Timeline screen looks: golden screens, sizes, tiers of glyphs and colours, every span to be seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib_gentrace.h"
#include "tests/lib_golden.h"
#include "tests/lib_timeline.h"
#include "tui/term/glyph.h"
#include "tui/timeline/v_timeline.h"

static void looks_like(const char *name, enum glyph_tier glyphs, enum color_tier color, int rows,
                       int cols)
{
    struct rig r;
    char header[100];
    rig_open(&r, gentrace_parse(timeline_server), glyphs, color, rows, cols);
    act(&r, ACT_ZOOM_ALL);
    act_with(&r, ACT_GOTO, "240us");
    act(&r, ACT_ZOOM_IN);
    act_with(&r, ACT_MARK_SET, "a");
    r.m->say[0] = '\0';
    draw(&r);
    snprintf(header, sizeof header, "%dx%d %s %s, server trace, zoomed once at 240 us", cols, rows,
             r.m->glyphs->name, color_tier_name(color));
    golden_check(r.s, name, header);
    rig_close(&r);
}

static void screens(void **state)
{
    (void)state;
    looks_like("timeline_100x30_unicode_256", GLYPHS_UNICODE, COLOR_256, 30, 100);
    looks_like("timeline_100x30_unicode_mono", GLYPHS_UNICODE, COLOR_MONO, 30, 100);
    looks_like("timeline_100x30_ascii_mono", GLYPHS_ASCII, COLOR_MONO, 30, 100);
    looks_like("timeline_80x24_ascii_16", GLYPHS_ASCII, COLOR_16, 24, 80);
    looks_like("timeline_80x24_vga_16", GLYPHS_VGA, COLOR_16, 24, 80);
    looks_like("timeline_80x24_unicode_256", GLYPHS_UNICODE, COLOR_256, 24, 80);
    looks_like("timeline_200x60_unicode_256", GLYPHS_UNICODE, COLOR_256, 60, 200);
    looks_like("timeline_60x16_unicode_256", GLYPHS_UNICODE, COLOR_256, 16, 60);
    looks_like("timeline_tiny_ascii_mono", GLYPHS_ASCII, COLOR_MONO, 8, 20);
}

static void colours(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    const struct functions *f = trace_functions(r.t);
    uint16_t by_function[20];
    for (fn_id i = 0; i < functions_count(f); i++)
        by_function[i] = tl_role(r.tl, i);
    act(&r, ACT_COLOR_BY);
    assert_string_equal(r.m->say, "colour by module");
    for (fn_id i = 0; i < functions_count(f); i++)
        for (fn_id j = 0; j < functions_count(f); j++)
            if (strcmp(functions_get(f, i)->module, functions_get(f, j)->module) == 0)
                assert_int_equal(tl_role(r.tl, i), tl_role(r.tl, j));
    act_with(&r, ACT_COLOR_BY, "kernel");
    for (fn_id i = 0; i < functions_count(f); i++)
        assert_int_equal(tl_role(r.tl, i), functions_get(f, i)->kind == FN_KERNEL ? ROLE_KERNEL : ROLE_FN0);
    act_with(&r, ACT_COLOR_BY, "mood");
    assert_true(r.m->say_severity == SAY_ERROR);
    act(&r, ACT_COLOR_BY);
    for (fn_id i = 0; i < functions_count(f); i++)
        assert_int_equal(tl_role(r.tl, i), by_function[i]);
    rig_close(&r);
}

static void any_size(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    for (int rows = 1; rows < 60; rows += 3)
        for (int cols = 1; cols < 220; cols += 13) {
            surface_resize(r.s, rows, cols);
            draw(&r);
        }
    rig_close(&r);
    opened(&r, "thread 5 a\n");
    draw(&r);
    act(&r, ACT_ZOOM_IN);
    act(&r, ACT_CALLEE);
    rig_close(&r);
}

/* A range with one gap and two waits in it, in a trace with long numbers. FIRST: how its first call began. */
static void open_long_range(struct rig *r, const char *first, int cols)
{
    char text[1000];
    snprintf(text, sizeof text,
             "sampled 1000000\nthread 4012345 worker\n"
             "+ 5000000000 main%s\n"
             "+ 5200000000 poll\n+ 5250000000 [off-cpu] /bin/demo o\n- 5350000000\n- 5400000000\n"
             "gap 5500000000 5600000000 no-sample\n"
             "+ 5700000000 poll\n+ 5750000000 [off-cpu] /bin/demo o\n- 5950000000\n- 6000000000\n"
             "- 17000000000\n",
             first);
    rig_open(r, gentrace_parse(text), GLYPHS_UNICODE, COLOR_256, 24, cols);
    act(r, ACT_ZOOM_ALL);
    act_with(r, ACT_GOTO, "5ms");
    act_with(r, ACT_RANGE, "100ms 1100ms");
    draw(r);
}

/* 1 s: main all of it, two polls, two waits of 0.3 s together, and 0.1 s that nobody saw. */
static void range_totals(void **state)
{
    (void)state;
    struct rig r;
    for (int cols = 80; cols <= 160; cols += 20) {
        open_long_range(&r, "", cols);
        assert_true(golden_find(r.s, "A 100.000000 ms"));
        assert_true(golden_find(r.s, "B 1.100000000 s"));
        assert_true(golden_find(r.s, "delta 1.00 s"));
        assert_true(golden_find(r.s, "thread 4012345: 5 spans"));
        assert_true(golden_find(r.s, "busy 60.0 %  switches 2  gaps 1"));
        rig_close(&r);
    }
    for (int cols = 60; cols <= 110; cols++) { /* what is inferred takes the line above */
        open_long_range(&r, " /bin/demo s", cols);
        assert_true(golden_find(r.s, "start inferred"));
        assert_true(golden_find(r.s, "A-B  "));
        assert_true(golden_find(r.s, "delta 1.00 s"));
        assert_true(golden_find(r.s, "gaps 1"));
        rig_close(&r);
    }
}

/* Whatever the zoom: what is selected and the ends of a range are told to the nanosecond, at every width. */
static void times_are_exact(void **state)
{
    (void)state;
    struct rig r;
    const char *text = "sampled 1000000\nthread 24752 spinner\n+ 5000000000 main\n"
                       "+ 5000106829 f\n- 5000212345\n+ 5353123456 g\n- 5353223456\n- 7000000000\n";
    for (int cols = 60; cols <= 200; cols += 20) {
        rig_open(&r, gentrace_parse(text), GLYPHS_UNICODE, COLOR_256, 24, cols);
        act(&r, ACT_ZOOM_ALL);
        act_with(&r, ACT_GOTO, "150us");
        act(&r, ACT_CALLEE);
        draw(&r);
        assert_string_equal(selected_name(&r), "f");
        assert_true(golden_find(r.s, "start 106.829 us "));
        act(&r, ACT_SPAN_NEXT);
        draw(&r);
        assert_string_equal(selected_name(&r), "g");
        assert_true(golden_find(r.s, "start 353.123456 ms "));
        act_with(&r, ACT_GOTO, "500.123456ms");
        act(&r, ACT_RANGE);
        act_with(&r, ACT_GOTO, "500200us");
        draw(&r);
        assert_true(golden_find(r.s, "A 500.123456 ms  B 500.200000 ms  delta 76.5 us"));
        assert_true(golden_find(r.s, "gaps 0"));
        assert_true(golden_find(r.s, "thread 24752: 1 span  busy 100.0 %"));
        act(&r, ACT_CANCEL);
        act_with(&r, ACT_MARK_SET, "q");
        draw(&r);
        assert_true(golden_find(r.s, "mark q  500.200000 ms"));
        rig_close(&r);
    }
}

/* A header loses whole facts; what hides calls is among the last. */
static void headers_lose_whole_facts(void **state)
{
    (void)state;
    static const char *const facts[] = {"24752 spinner", "16 spans", "sampled \u00b11.00 ms", "depth 0-1 of 2",
                                        "15 no-sample"};
    const size_t n = sizeof facts / sizeof *facts;
    char text[2000];
    size_t len = (size_t)snprintf(text, sizeof text, "sampled 1000000\nthread 24752 spinner\n+ 0 main\n");
    for (int i = 0; i < 15; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "+ %d00000000 f\n- %d50000000\n", i, i);
    len += (size_t)snprintf(text + len, sizeof text - len, "- 2000000000\n");
    for (int i = 0; i < 15; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "gap %d60000000 %d70000000 no-sample\n", i, i);
    size_t shown = 0;
    for (int cols = 20; cols <= 100; cols++) {
        struct rig r;
        rig_open(&r, gentrace_parse(text), GLYPHS_UNICODE, COLOR_256, 30, cols);
        draw(&r);
        char *row = golden_row(r.s, r.tl->at.rows.row), *save = NULL;
        char *first = strstr(row, "24752 spinner");
        assert_non_null(first);
        size_t here = 0;
        for (char *fact = first; fact; fact = save) {
            size_t i = 0;
            if ((save = strstr(fact, "   "))) {
                *save = '\0';
                save += 3;
            }
            while (i < n && strcmp(facts[i], fact) != 0)
                i++;
            if (i == n)
                fail_msg("%d columns: \"%s\"", cols, fact);
            here++;
            if (i == n - 1)
                break;
        }
        assert_true(here >= shown);
        assert_true(cols < 31 || golden_find(r.s, "   15 no-sample"));
        shown = here;
        free(row);
        rig_close(&r);
    }
    assert_int_equal(shown, n);
}

/* Whether a cell of the surface shows anything. */
static bool is_drawn(const struct cell *c)
{
    return c->cp != ' ' || c->paper != ROLE_DEFAULT || (c->attr & CELL_REVERSE);
}

/* What one row shows: something in every column where a span has a part, nothing where there is none. */
static void check_row(struct rig *r, const struct tl_line *line, int row, const struct flame_axis *ax)
{
    size_t n;
    bool owned[400] = {false};
    const struct span *s = trace_row(r->t, line->thread, line->depth, &n);
    int cursor = viewport_col_of(&r->tl->view, r->tl->cursor_ns);
    for (size_t i = 0; i < n; i++) {
        int a = flame_axis_x_eighths(ax, s[i].start_ns), b = flame_axis_x_eighths(ax, s[i].end_ns);
        b = b <= a ? a + 1 : b;
        for (int e = a < 0 ? 0 : a; e < b && e < 8 * ax->cols; e++)
            owned[e / 8] = true;
    }
    for (int col = 0; col < ax->cols; col++)
        if (owned[col] != is_drawn(surface_at(r->s, row, col)) && (owned[col] || col != cursor))
            fail_msg("column %d of depth %zu: %s", col, line->depth,
                     owned[col] ? "a span is not to be seen" : "there is nothing to be seen");
}

/* Every span at every zoom, in every tier of glyphs and colours, on the surface itself. */
static void every_span_shows(void **state)
{
    (void)state;
    static const enum color_tier colors[] = {COLOR_MONO, COLOR_16, COLOR_256};
    for (int i = 0; i < 9; i++) {
        struct rig r;
        uint64_t seed = 77;
        struct gentrace g = {.spans = 3000, .threads = 3, .depth = 12, .functions = 40,
                             .base_ns = UINT64_C(1) << 62, .step_ns = 5, .seed = 99};
        rig_open(&r, gentrace_random(&g), (enum glyph_tier)(i / 3), colors[i % 3], 40, 120);
        do {
            struct flame_axis ax;
            draw(&r);
            flame_axis_init(&ax, viewport_window(&r.tl->view));
            for (int row = 0; row < r.tl->at.rows.rows; row++) {
                const struct tl_line *line = tl_line_at(r.tl, row);
                if (line && line->kind == TL_ROW)
                    check_row(&r, line, r.tl->at.rows.row + row, &ax);
            }
            flame_axis_free(&ax);
            tl_scroll(r.tl, (int)(gen_random(&seed) % 20) - 10);
        } while (viewport_zoom_in(&r.tl->view, (int)(gen_random(&seed) % 120)));
        rig_close(&r);
    }
}

static void compact(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    act(&r, ACT_COMPACT);
    r.m->say[0] = '\0';
    draw(&r);
    golden_check(r.s, "timeline_compact", "100x30 unicode 256, compact rows");
    rig_close(&r);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(screens),
        cmocka_unit_test(colours),
        cmocka_unit_test(any_size),
        cmocka_unit_test(range_totals),
        cmocka_unit_test(times_are_exact),
        cmocka_unit_test(headers_lose_whole_facts),
        cmocka_unit_test(every_span_shows),
        cmocka_unit_test(compact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

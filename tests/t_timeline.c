/* The Timeline screen driven by actions, keys of the mouse and traces, read from the surface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/trace/fold_recursion.h"
#include "tests/lib_gentrace.h"
#include "tests/lib_golden.h"
#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"
#include "tui/term/theme.h"
#include "tui/timeline/timeline.h"
#include "tui/timeline/v_timeline.h"

static const char server[] =
    "thread 4713 worker-0\n"
    "+ 1000000 worker_main /usr/bin/demo-server s\n"
    "+ 1205000 handle_request\n"
    "+ 1206000 parse_headers\n + 1209000 scan_line\n - 1212000\n + 1213000 scan_line\n - 1217000\n"
    "- 1226000\n"
    "+ 1228680 route\n + 1229840 trie_get\n - 1233320\n - 1236800\n"
    "+ 1237960 render_template\n"
    "+ 1240280 eval_block\n + 1241440 str_append\n - 1241480\n + 1243000 str_append\n - 1246000\n - 1250000\n"
    "+ 1250000 eval_block\n + 1251000 str_append\n - 1260000\n + 1262000 str_append\n - 1280000\n - 1285000\n"
    "- 1292480\n"
    "+ 1295000 write_reply /usr/bin/demo-server\n + 1296000 std::vector<char,Alloc>::push_back(char) /lib/libstdc++.so.6\n"
    "- 1299000\n - 1310000\n"
    "- 1320000\n"
    "+ 1330000 epoll_wait /lib/libc.so.6\n - 1340000\n"
    "+ 1345000 handle_request\n + 1346000 parse_headers\n - 1350000\n"
    "gap 1352000 1356000 overflow\n"
    "+ 1360000 render_template\n + 1362000 eval_block\n - 1380000\n - 1390000\n - 1400000\n"
    "mark 1345000 trigger handle_request entry\n"
    "thread 4714 worker-1\n"
    "+ 1000000 worker_main /usr/bin/demo-server s\n"
    "+ 1010000 fib\n + 1020000 fib\n + 1030000 fib\n + 1040000 leaf\n - 1050000\n - 1060000\n + 1070000 leaf\n"
    "- 1080000\n - 1090000\n + 1100000 leaf\n - 1110000\n - 1150000\n"
    "+ 1200000 vfs_read [kernel]\n - 1260000\n"
    "- 1400000\n";

struct rig {
    struct model *m;
    struct trace *t;
    struct theme *theme;
    struct timeline *tl;
    struct surface *s;
};

static void rig_open(struct rig *r, struct trace *t, enum glyph_tier glyphs, enum color_tier color,
                     int rows, int cols)
{
    memset(r, 0, sizeof *r);
    r->m = model_new(NULL, NULL);
    r->theme = theme_new(color);
    r->m->theme = r->theme;
    r->m->glyphs = glyphs_of(glyphs);
    r->s = surface_new(rows, cols);
    surface_set_replacement(r->s, glyph(r->m->glyphs, GLYPH_REPLACEMENT), glyphs != GLYPHS_ASCII);
    r->tl = view_timeline.create(r->m);
    r->t = t;
    model_set_trace(r->m, t, "snap 1", NULL, NULL);
    view_timeline.changed(r->tl, MODEL_TRACE);
}

/* The app's rows: tabs above, status and keys below. */
static void draw(struct rig *r)
{
    char line[300] = "";
    int rows = surface_rows(r->s), cols = surface_cols(r->s);
    surface_clear(r->s);
    if (rows > 3)
        view_timeline.draw(r->tl, r->s, (struct rect){1, 0, rows - 3, cols});
    view_timeline.state(r->tl, line, sizeof line);
    surface_text(r->s, 0, 0, cols, line, SIZE_MAX, (struct style){0});
    if (rows > 2) {
        line[0] = '\0';
        view_timeline.status(r->tl, line, sizeof line);
        surface_text(r->s, rows - 2, 0, cols, r->m->say[0] ? r->m->say : line, SIZE_MAX,
                     (struct style){0});
    }
}

static void rig_close(struct rig *r)
{
    view_timeline.destroy(r->tl);
    model_free(r->m);
    theme_free(r->theme);
    surface_free(r->s);
    trace_free(r->t);
}

static void act(struct rig *r, enum action a)
{
    r->m->say[0] = '\0';
    assert_true(view_timeline.action(r->tl, a, NULL));
}

static void act_with(struct rig *r, enum action a, const char *arg)
{
    r->m->say[0] = '\0';
    assert_true(view_timeline.action(r->tl, a, arg));
}

static const struct span *selected(struct rig *r)
{
    const struct span *s = selection_span(r->tl->src, &r->tl->sel);
    assert_non_null(s);
    return s;
}

static const char *selected_name(struct rig *r)
{
    return functions_get(trace_functions(r->tl->trace), selected(r)->fn)->name;
}

static void opens_at_the_trigger(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse(server), GLYPHS_UNICODE, COLOR_256, 30, 100);
    draw(&r);
    assert_string_equal(selected_name(&r), "handle_request");
    assert_int_equal(selected(&r)->start_ns, 1345000);
    assert_int_equal(r.m->cursor_ns, 1345000);
    assert_int_equal(r.m->cursor_tid, 4713);
    assert_true(viewport_col_of(&r.tl->view, 1345000) >= 0);
    assert_true(viewport_col_of(&r.tl->view, 1400000) <= 100);
    golden_check(r.s, "timeline_trigger", "100x30 unicode 256, server trace, opened at its trigger");
    rig_close(&r);
}

static void looks_like(const char *name, enum glyph_tier glyphs, enum color_tier color, int rows,
                       int cols)
{
    struct rig r;
    char header[100];
    rig_open(&r, gentrace_parse(server), glyphs, color, rows, cols);
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

static void opened(struct rig *r, const char *text)
{
    rig_open(r, gentrace_parse(text), GLYPHS_UNICODE, COLOR_256, 30, 100);
    act(r, ACT_ZOOM_ALL);
    draw(r);
}

/* The selected span can be seen: some cell of the rows wears the selection. */
static bool selection_on_screen(struct rig *r)
{
    draw(r);
    for (int row = r->tl->at.rows.row; row < r->tl->at.rows.row + r->tl->at.rows.rows; row++)
        for (int col = 0; col < surface_cols(r->s); col++) {
            const struct cell *c = surface_at(r->s, row, col);
            if (c->attr & CELL_UNDERLINE)
                return true;
        }
    return false;
}

static void family(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    act_with(&r, ACT_GOTO, "239us");
    assert_string_equal(selected_name(&r), "render_template");
    act(&r, ACT_CALLER);
    assert_string_equal(selected_name(&r), "handle_request");
    assert_int_equal(selected(&r)->start_ns, 1205000);
    act(&r, ACT_CALLEE);
    assert_string_equal(selected_name(&r), "render_template");
    act(&r, ACT_SPAN_PREV);
    assert_string_equal(selected_name(&r), "route");
    act(&r, ACT_SPAN_PREV);
    assert_string_equal(selected_name(&r), "parse_headers");
    act(&r, ACT_SPAN_PREV);
    assert_string_equal(r.m->say, "first span on this depth");
    act(&r, ACT_CALLER);
    act(&r, ACT_LONGEST_CHILD);
    assert_string_equal(selected_name(&r), "render_template");
    act(&r, ACT_LONGEST_CHILD);
    assert_int_equal(selected(&r)->start_ns, 1250000);
    act(&r, ACT_LONGEST_CHILD);
    assert_int_equal(selected(&r)->start_ns, 1262000);
    act(&r, ACT_CALLEE);
    assert_string_equal(r.m->say, "no calls below");
    act(&r, ACT_SHALLOWEST);
    assert_string_equal(selected_name(&r), "worker_main");
    act(&r, ACT_CALLER);
    assert_string_equal(r.m->say, "outermost call: no caller");
    act(&r, ACT_DEEPEST);
    assert_string_equal(selected_name(&r), "str_append");
    assert_true(selection_on_screen(&r));
    rig_close(&r);
}

static void same_function(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    act_with(&r, ACT_GOTO, "241460ns");
    assert_string_equal(selected_name(&r), "str_append");
    act(&r, ACT_CALL_NEXT);
    assert_int_equal(selected(&r)->start_ns, 1243000);
    act(&r, ACT_CALL_NEXT);
    assert_int_equal(selected(&r)->start_ns, 1251000);
    act(&r, ACT_LONGEST_CALL);
    assert_int_equal(selected(&r)->start_ns, 1262000);
    assert_string_equal(r.m->say, "longest of 4 calls: 18.0 us");
    act(&r, ACT_CALL_NEXT);
    assert_string_equal(r.m->say, "no further call of str_append in this thread");
    act(&r, ACT_CALL_PREV);
    act(&r, ACT_CALL_PREV);
    act(&r, ACT_CALL_PREV);
    assert_int_equal(selected(&r)->start_ns, 1241440);
    /* worker_main runs in both threads from the same instant. */
    act(&r, ACT_SHALLOWEST);
    act(&r, ACT_CALL_NEXT_ANY);
    assert_int_equal(r.m->cursor_tid, 4714);
    act(&r, ACT_CALL_PREV_ANY);
    assert_int_equal(r.m->cursor_tid, 4713);
    rig_close(&r);
}

static void searching(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    act_with(&r, ACT_SEARCH, "append");
    draw(&r);
    assert_string_equal(selected_name(&r), "str_append");
    assert_true(golden_find(r.s, "Search /append/"));
    assert_true(golden_find(r.s, "of 4"));
    act_with(&r, ACT_GOTO, "0us");
    draw(&r);
    assert_true(golden_find(r.s, "4 matches"));
    act(&r, ACT_SEARCH_NEXT);
    draw(&r);
    assert_true(golden_find(r.s, "match 1 of 4"));
    act(&r, ACT_SEARCH_NEXT);
    draw(&r);
    assert_true(golden_find(r.s, "match 2 of 4"));
    act(&r, ACT_SEARCH_PREV);
    assert_int_equal(selected(&r)->start_ns, 1241440);
    act_with(&r, ACT_SEARCH, "no such name");
    assert_string_equal(r.m->say, "no function matches \"no such name\"");
    act(&r, ACT_SEARCH_FUNCTION);
    draw(&r);
    assert_true(golden_find(r.s, "match 1 of 4"));
    act(&r, ACT_CANCEL);
    draw(&r);
    assert_false(golden_find(r.s, "Search /"));
    rig_close(&r);
}

static void window_moves(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    struct viewport_place whole = r.tl->view.place;
    act_with(&r, ACT_GOTO, "241460ns");
    act(&r, ACT_ZOOM_FIT);
    int from = viewport_col_of(&r.tl->view, 1241440), to = viewport_col_of(&r.tl->view, 1241480);
    assert_true(from >= 0 && to <= 100 && to - from > 95);
    act(&r, ACT_VIEW_BACK);
    assert_true(r.tl->view.place.start_fp == whole.start_fp && r.tl->view.place.col_fp == whole.col_fp);
    act(&r, ACT_VIEW_FORWARD);
    int col = viewport_col_of(&r.tl->view, r.tl->cursor_ns);
    act(&r, ACT_ZOOM_OUT);
    act(&r, ACT_ZOOM_OUT);
    assert_int_equal(viewport_col_of(&r.tl->view, r.tl->cursor_ns), col);
    act(&r, ACT_PAN_RIGHT);
    act(&r, ACT_PAN_LEFT);
    assert_int_equal(viewport_col_of(&r.tl->view, r.tl->cursor_ns), col);
    act(&r, ACT_PAN_RIGHT_PAGE);
    act(&r, ACT_PAN_LEFT_PAGE);
    assert_int_equal(viewport_col_of(&r.tl->view, r.tl->cursor_ns), col);
    act(&r, ACT_TRACE_END);
    assert_true(viewport_col_of(&r.tl->view, r.tl->view.last_ns) <= 100);
    act(&r, ACT_TRACE_START);
    assert_int_equal(r.m->cursor_ns, r.tl->view.first_ns);
    rig_close(&r);
}

/* At the whole of a long trace slivers share a column: Enter goes to the longest of them. */
static void aggregates(void **state)
{
    (void)state;
    char text[4000] = "thread 7 a\n+ 0 main\n", line[100];
    for (unsigned i = 0; i < 30; i++) {
        snprintf(line, sizeof line, "+ %u f%u\n- %u\n", 1000 + 20 * i, i % 3, 1000 + 20 * i + (i == 17 ? 15 : 5));
        strcat(text, line);
    }
    strcat(text, "- 1000000\n");
    struct rig r;
    opened(&r, text);
    act(&r, ACT_LONGEST_CHILD);
    act(&r, ACT_SPAN_PREV);
    draw(&r);
    assert_true(golden_find(r.s, "in this column: 30 calls"));
    assert_true(golden_find(r.s, "longest f2 15 ns"));
    assert_true(selection_on_screen(&r));
    act(&r, ACT_ZOOM_FIT);
    assert_int_equal(selected(&r)->start_ns, 1000 + 20 * 17);
    int width = viewport_col_of(&r.tl->view, selected(&r)->end_ns) -
                viewport_col_of(&r.tl->view, selected(&r)->start_ns);
    assert_in_range(width, 30, 36);
    rig_close(&r);
}

static void ranges_and_marks(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    act_with(&r, ACT_RANGE, "200us 325us");
    assert_int_equal(r.m->range_start_ns, 1200000);
    assert_int_equal(r.m->range_end_ns, 1325000);
    draw(&r);
    /* worker_main, handle_request and the fourteen calls below it. */
    assert_true(golden_find(r.s, "delta 125 us"));
    assert_true(golden_find(r.s, "thread 4713: 16 spans"));
    assert_true(golden_find(r.s, "gaps 0"));
    act(&r, ACT_ZOOM_RANGE);
    assert_in_range(viewport_col_of(&r.tl->view, 1200000), 0, 1);
    assert_in_range(viewport_col_of(&r.tl->view, 1325000), 99, 100);
    act(&r, ACT_CANCEL);
    assert_int_equal(r.m->range_end_ns, 0);
    act(&r, ACT_ZOOM_ALL);
    act_with(&r, ACT_GOTO, "100us");
    act(&r, ACT_RANGE);
    act_with(&r, ACT_GOTO, "50us");
    draw(&r);
    assert_true(golden_find(r.s, "delta 50.0 us"));
    act(&r, ACT_RANGE);
    assert_int_equal(r.m->range_start_ns, 1050000);
    assert_int_equal(r.m->range_end_ns, 1100000);
    act(&r, ACT_CANCEL);
    act_with(&r, ACT_MARK_SET, "q");
    act_with(&r, ACT_GOTO, "350us");
    draw(&r);
    assert_true(golden_find(r.s, "mark q"));
    assert_true(golden_find(r.s, "cursor +300 us"));
    act_with(&r, ACT_MARK_GOTO, "q");
    assert_int_equal(r.m->cursor_ns, 1050000);
    act_with(&r, ACT_MARK_GOTO, "x");
    assert_string_equal(r.m->say, "mark x is not set");
    act_with(&r, ACT_GOTO, "q");
    assert_int_equal(r.m->cursor_ns, 1050000);
    act_with(&r, ACT_GOTO, "5s");
    assert_string_equal(r.m->say, "5s lies outside of the trace, which is 400 us long");
    act_with(&r, ACT_GOTO, "soon");
    assert_true(r.m->say_severity == SAY_ERROR);
    act_with(&r, ACT_GOTO, "1345000");
    assert_int_equal(r.m->cursor_ns, 1345000);
    rig_close(&r);
}

static void field_C1_C16_gaps_have_their_cause(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    act(&r, ACT_TRACE_START);
    act(&r, ACT_GAP_NEXT);
    assert_int_equal(r.m->cursor_ns, 1352000);
    assert_string_equal(r.m->say, "overflow, 4.00 us: the ring wrapped");
    act(&r, ACT_GAP_NEXT);
    assert_string_equal(r.m->say, "no further gap in this thread");
    act(&r, ACT_TRACE_END);
    act(&r, ACT_GAP_PREV);
    assert_int_equal(r.m->cursor_ns, 1352000);
    draw(&r);
    assert_true(golden_find(r.s, "! 1 overflow"));
    rig_close(&r);
    /* Losses at the very start and end, without any call around. */
    opened(&r, "thread 5 a\ngap 0 1000 lost\n+ 1000 f\n- 9000\ngap 9000 10000 overflow\n");
    const struct cell *first = surface_at(r.s, r.tl->at.rows.row + 1, 0);
    const struct cell *last = surface_at(r.s, r.tl->at.rows.row + 1, 98);
    assert_int_equal(first->cp, glyph(r.m->glyphs, GLYPH_HATCH));
    assert_int_equal(last->cp, glyph(r.m->glyphs, GLYPH_HATCH));
    rig_close(&r);
}

static void threads(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    act(&r, ACT_THREAD_NEXT);
    assert_int_equal(r.m->cursor_tid, 4714);
    act(&r, ACT_COLLAPSE);
    draw(&r);
    assert_true(golden_find(r.s, "(collapsed)"));
    act(&r, ACT_CALLEE); /* moving inside opens it */
    draw(&r);
    assert_false(golden_find(r.s, "(collapsed)"));
    act(&r, ACT_PIN);
    draw(&r);
    char *row = golden_row(r.s, r.tl->at.rows.row);
    assert_non_null(strstr(row, "4714 worker-1"));
    assert_non_null(strstr(row, "pinned"));
    free(row);
    act(&r, ACT_HIDE);
    assert_int_equal(r.m->cursor_tid, 4713);
    draw(&r);
    assert_false(golden_find(r.s, "worker-1"));
    act(&r, ACT_HIDE);
    assert_string_equal(r.m->say, "the last thread stays");
    act(&r, ACT_UNHIDE);
    draw(&r);
    assert_true(golden_find(r.s, "worker-1"));
    act_with(&r, ACT_FILTER, "worker-1");
    draw(&r);
    assert_false(golden_find(r.s, "worker-0"));
    assert_int_equal(r.m->cursor_tid, 4714);
    act_with(&r, ACT_FILTER, "");
    draw(&r);
    assert_true(golden_find(r.s, "worker-0"));
    rig_close(&r);
}

/* The row that a text stands in, from the top of the threads; −1: it is not shown. */
static int row_with(struct rig *r, const char *text)
{
    int found = -1;
    draw(r);
    for (int row = r->tl->at.rows.rows; row-- > 0;) {
        char *line = golden_row(r->s, r->tl->at.rows.row + row);
        if (strstr(line, text))
            found = row;
        free(line);
    }
    return found;
}

static const char two_processes[] =
    "thread 4000 server\n+ 1000 main\n - 9000\n"
    "thread 4001 zeta\n+ 1000 work\n + 1500 more\n - 1600\n - 3000\n"
    "thread 4002 alpha\n+ 1000 work\n - 2000\n"
    "thread 5001 helper\n+ 1000 work\n - 9000\n"
    "mark 4000 migration from CPU 2 to CPU 5\n";

/* Each process has a rule above its threads, which says how many they are, and folds them away. */
static void threads_of_several_processes(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, two_processes);
    assert_int_equal(row_with(&r, "process 4000 server"), 0);
    assert_int_equal(row_with(&r, "3 threads  4 spans"), 0);
    assert_int_equal(row_with(&r, "4000 server   "), 1);
    int second = row_with(&r, "process 5000 helper");
    assert_int_equal(second + 1, row_with(&r, "5001 helper"));
    assert_int_equal(row_with(&r, "of 5000"), -1);
    act_with(&r, ACT_COLLAPSE, "process");
    assert_int_equal(row_with(&r, "(collapsed)"), 0);
    assert_int_equal(row_with(&r, "process 5000"), 1);
    assert_int_equal(row_with(&r, "4001 zeta"), -1);
    /* Going along the threads leaves it folded; moving inside opens it. */
    act(&r, ACT_THREAD_NEXT);
    assert_int_equal(r.m->cursor_tid, 4001);
    assert_int_equal(row_with(&r, "4001 zeta"), -1);
    act(&r, ACT_CALLEE);
    assert_true(row_with(&r, "4001 zeta") > 0);
    /* Pinned ones stand apart and name their process. */
    act(&r, ACT_PIN);
    assert_int_equal(row_with(&r, "4001 zeta   of 4000 server"), 0);
    act(&r, ACT_PIN);
    act_with(&r, ACT_COLLAPSE, "all");
    assert_int_equal(row_with(&r, "4001 zeta"), 2);
    assert_int_equal(row_with(&r, "4002 alpha"), 3);
    struct mouse m = {MOUSE_DOWN, r.tl->at.rows.row, 5, 1, 0};
    assert_true(view_timeline.mouse(r.tl, &m, (struct rect){1, 0, 27, 100}));
    assert_int_equal(row_with(&r, "process 5000"), 1);
    rig_close(&r);
}

static void order_of_threads(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, two_processes);
    act_with(&r, ACT_COLLAPSE, "all");
    static const struct {
        const char *by, *rows[3];
    } orders[] = {{"name", {"4002 alpha", "4000 server   ", "4001 zeta"}},
                  {"spans", {"4001 zeta", "4000 server   ", "4002 alpha"}},
                  {"busy", {"4000 server   ", "4001 zeta", "4002 alpha"}},
                  {"tid", {"4000 server   ", "4001 zeta", "4002 alpha"}}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        act_with(&r, ACT_SORT, orders[i].by);
        for (int k = 0; k < 3; k++)
            assert_int_equal(row_with(&r, orders[i].rows[k]), 1 + k);
    }
    act_with(&r, ACT_SORT, "spans");
    act_with(&r, ACT_GOTO, "0us");
    assert_int_equal(r.m->cursor_tid, 4000);
    act(&r, ACT_THREAD_PREV); /* as they stand */
    assert_int_equal(r.m->cursor_tid, 4001);
    act_with(&r, ACT_SORT, "colour");
    assert_int_equal(r.m->say_severity, SAY_ERROR);
    rig_close(&r);
}

/* The mark belongs to the last thread named, which moves from CPU 2 to 5 at 4000. */
static void cpus(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, two_processes);
    assert_int_equal(trace_cpu_at(r.t, 3, 1000), 2);
    assert_int_equal(trace_cpu_at(r.t, 3, 3999), 2);
    assert_int_equal(trace_cpu_at(r.t, 3, 4000), 5);
    assert_int_equal(trace_cpu_at(r.t, 3, 9000), 5);
    assert_int_equal(trace_cpu_at(r.t, 0, 5000), -1);
    act(&r, ACT_THREAD_PREV);
    assert_int_equal(r.m->cursor_tid, 5001);
    draw(&r);
    assert_true(golden_find(r.s, "cpu 2   depth 0"));
    rig_close(&r);
}

/* A thread that is gone to shows from its top, not as the tail of the screen. */
static void whole_threads_come_into_view(void **state)
{
    (void)state;
    struct rig r;
    char text[2000] = "", *at = text;
    for (int thread = 1; thread <= 3; thread++) {
        at += sprintf(at, "thread 400%d t%d\n", thread, thread);
        for (int d = 0; d < 14; d++)
            at += sprintf(at, "+ %d f%d\n", 1000 + d, d);
        for (int d = 0; d < 14; d++)
            at += sprintf(at, " - %d\n", 9000 + d);
    }
    opened(&r, text);
    draw(&r);
    for (int d = 0; d < 16; d++)
        act(&r, ACT_CALLER);
    act(&r, ACT_THREAD_NEXT);
    draw(&r);
    char *row = golden_row(r.s, r.tl->at.rows.row);
    assert_non_null(strstr(row, "4002 t2"));
    free(row);
    rig_close(&r);
}

static void recursion(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    act(&r, ACT_THREAD_NEXT);
    act_with(&r, ACT_GOTO, "45us");
    assert_string_equal(selected_name(&r), "leaf");
    assert_int_equal(r.tl->sel.depth, 4);
    act(&r, ACT_RECURSION);
    assert_string_equal(selected_name(&r), "leaf");
    assert_int_equal(r.tl->sel.depth, 2);
    assert_int_equal(r.m->cursor_ns, 1045000);
    act(&r, ACT_CALLER);
    assert_string_equal(selected_name(&r), "fib");
    act(&r, ACT_CALLER);
    assert_string_equal(selected_name(&r), "worker_main");
    act(&r, ACT_RECURSION);
    assert_int_equal(trace_thread(r.tl->trace, 1)->depths, 5);
    assert_true(selection_on_screen(&r));
    rig_close(&r);
}

static void colours(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
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

static bool send(struct rig *r, enum mouse_kind kind, int row, int col, uint32_t mods)
{
    struct mouse m = {.kind = kind, .row = row, .col = col, .button = 1, .mods = mods};
    bool used = view_timeline.mouse(r->tl, &m, (struct rect){0});
    draw(r);
    return used;
}

static void mouse(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    int row = r.tl->at.rows.row;
    int col = viewport_col_of(&r.tl->view, 1240000);
    assert_true(send(&r, MOUSE_DOWN, row + 3, col, 0));
    assert_string_equal(selected_name(&r), "render_template");
    assert_true(send(&r, MOUSE_DOUBLE, row + 3, col, 0));
    assert_in_range(viewport_col_of(&r.tl->view, 1237960), 0, 2);
    act(&r, ACT_ZOOM_ALL);
    draw(&r);
    /* Drag on the ruler: a range. */
    int ruler = r.tl->at.ruler.row;
    send(&r, MOUSE_DOWN, ruler, 20, 0);
    send(&r, MOUSE_DRAG, ruler, 30, 0);
    send(&r, MOUSE_DRAG, ruler, 40, 0);
    send(&r, MOUSE_UP, ruler, 40, 0);
    assert_int_equal(viewport_col_of(&r.tl->view, r.m->range_start_ns), 20);
    assert_int_equal(viewport_col_of(&r.tl->view, r.m->range_end_ns), 40);
    /* Wheel over the ruler, or with Ctrl, zooms at the pointer. */
    uint64_t under = viewport_time_at(&r.tl->view, 33);
    send(&r, MOUSE_WHEEL_UP, ruler, 33, 0);
    send(&r, MOUSE_WHEEL_UP, row + 2, 33, K_CTRL);
    assert_int_equal(viewport_col_of(&r.tl->view, under), 33);
    assert_int_equal(viewport_zoom_level(&r.tl->view), 2);
    /* Drag in rows pans, Shift-wheel too. */
    send(&r, MOUSE_DOWN, row + 8, 33, 0);
    send(&r, MOUSE_DRAG, row + 8, 43, 0);
    send(&r, MOUSE_UP, row + 8, 43, 0);
    assert_int_equal(viewport_col_of(&r.tl->view, under), 43);
    send(&r, MOUSE_WHEEL_DOWN, row + 2, 33, K_SHIFT);
    assert_int_equal(viewport_col_of(&r.tl->view, under), 30);
    /* The minimap jumps. */
    struct rect map = r.tl->at.minimap;
    send(&r, MOUSE_DOWN, map.row, map.col + map.cols / 2, 0);
    assert_in_range(viewport_col_of(&r.tl->view, 1200000), 45, 55);
    send(&r, MOUSE_UP, map.row, map.col, 0);
    /* A header folds its thread. */
    send(&r, MOUSE_DOWN, row, 4, 0);
    assert_true(golden_find(r.s, "(collapsed)"));
    assert_false(send(&r, MOUSE_DOWN, 28, 4, 0));
    rig_close(&r);
}

static void selection_always_on_screen(void **state)
{
    (void)state;
    static const enum action moves[] = {
        ACT_SPAN_PREV,  ACT_SPAN_NEXT, ACT_CALLER,        ACT_CALLEE,        ACT_LONGEST_CHILD,
        ACT_CALL_NEXT,  ACT_CALL_PREV, ACT_CALL_NEXT_ANY, ACT_CALL_PREV_ANY, ACT_THREAD_NEXT,
        ACT_SHALLOWEST, ACT_DEEPEST,   ACT_LONGEST_CALL,  ACT_ZOOM_FIT};
    static const enum action others[] = {ACT_ZOOM_IN,  ACT_ZOOM_OUT, ACT_COMPACT, ACT_COLOR_BY,
                                         ACT_PAN_LEFT, ACT_PIN,      ACT_DETAILS, ACT_RECURSION};
    uint64_t seed = 12;
    for (unsigned round = 0; round < 4; round++) {
        struct rig r;
        rig_open(&r, gentrace_random(&(struct gentrace){.spans = 4000,
                                                         .threads = 5,
                                                         .depth = 14,
                                                         .functions = 60,
                                                         .gaps = 10,
                                                         .base_ns = UINT64_C(1) << (20 + 14 * round),
                                                         .step_ns = 400,
                                                         .seed = round + 1}),
                 round % 2 ? GLYPHS_ASCII : GLYPHS_UNICODE, COLOR_256, 24 + (int)round * 5, 80);
        draw(&r);
        for (int i = 0; i < 400; i++) {
            if (gen_random(&seed) % 3 == 0)
                view_timeline.action(r.tl, others[gen_random(&seed) % 8], NULL);
            draw(&r);
            enum action move = moves[gen_random(&seed) % 14];
            view_timeline.action(r.tl, move, NULL);
            if (!selection_on_screen(&r)) {
                char *dump = golden_dump(r.s, action_info(move)->command);
                fail_msg("%s\nspan %llu-%llu depth %zu thread %zu", dump, (unsigned long long)selected(&r)->start_ns,
                         (unsigned long long)selected(&r)->end_ns, r.tl->sel.depth, r.tl->sel.thread);
            }
        }
        rig_close(&r);
    }
}

static void any_size(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
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

static void field_H1_sampled_never_looks_exact(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse("sampled 1000000\nthread 5 worker\n"
                                "+ 0 main /bin/x p\n+ 1000000 load /bin/x p\n- 7300000\n+ 7300000 parse /bin/x p\n"
                                "+ 8000000 [off] [kernel] op\n- 15500000\n- 21000000\n"
                                "gap 24000000 31000000 no-sample\n+ 31000000 store /bin/x p\n- 39000000\n- 40000000\n"),
             GLYPHS_UNICODE, COLOR_256, 24, 80);
    draw(&r);
    char state_text[100];
    view_timeline.state(r.tl, state_text, sizeof state_text);
    assert_non_null(strstr(state_text, "SAMPLED"));
    assert_true(golden_find(r.s, "sampled \u00b11.00 ms"));
    assert_true(golden_find(r.s, "sampled: edges are known to about 1.00 ms"));
    golden_check(r.s, "timeline_sampled", "80x24 unicode 256, sampled trace");
    /* No sharp fragment anywhere: edges are shades. */
    for (int row = r.tl->at.rows.row; row < r.tl->at.rows.row + r.tl->at.rows.rows; row++)
        for (int col = 0; col < 80; col++) {
            uint32_t cp = surface_at(r.s, row, col)->cp;
            assert_false(cp >= glyph(r.m->glyphs, GLYPH_LEFT7) && cp <= glyph(r.m->glyphs, GLYPH_LEFT1));
        }
    rig_close(&r);
}

static void compact(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    act(&r, ACT_COMPACT);
    r.m->say[0] = '\0';
    draw(&r);
    golden_check(r.s, "timeline_compact", "100x30 unicode 256, compact rows");
    rig_close(&r);
}

static int cancelled;

static void cancel_loading(void *arg)
{
    (void)arg;
    cancelled++;
}

static void without_a_trace(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    model_set_trace(r.m, NULL, NULL, NULL, NULL);
    view_timeline.changed(r.tl, MODEL_TRACE);
    draw(&r);
    assert_true(golden_find(r.s, "No trace is open."));
    assert_true(golden_find(r.s, ":open PATH"));
    assert_false(view_timeline.action(r.tl, ACT_ZOOM_IN, NULL));
    struct model_loading l = {.active = true, .percent = 62, .what = "snap 3", .cancel = cancel_loading};
    model_set_loading(r.m, &l);
    draw(&r);
    assert_true(golden_find(r.s, "decoding snap 3  62 %"));
    assert_true(view_timeline.action(r.tl, ACT_INTERRUPT, NULL));
    assert_int_equal(cancelled, 1);
    l = (struct model_loading){.failed = "snap 3: no sync point in 200 bytes"};
    model_set_loading(r.m, &l);
    draw(&r);
    assert_true(golden_find(r.s, "no sync point in 200 bytes"));
    rig_close(&r);
}

/* An index that comes with the trace is used, and left alone. */
static void an_index_that_is_there(void **state)
{
    (void)state;
    struct rig r;
    struct pyramid *p;
    opened(&r, server);
    assert_int_equal(pyramid_new(&p, r.t, NULL, NULL), 0);
    model_set_indexed_trace(r.m, r.t, p, "snap 1", NULL, NULL);
    view_timeline.changed(r.tl, MODEL_TRACE);
    assert_ptr_equal(r.tl->pyramid, p);
    assert_null(r.tl->made);
    act(&r, ACT_RECURSION);
    assert_ptr_not_equal(r.tl->pyramid, p);
    act(&r, ACT_RECURSION);
    assert_ptr_equal(r.tl->pyramid, p);
    assert_true(selection_on_screen(&r));
    rig_close(&r);
    pyramid_free(p);
}

static void field_F14_follows_other_screens(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, server);
    model_set_cursor_call(r.m, 4714, 1100000, 2);
    view_timeline.changed(r.tl, MODEL_CURSOR);
    assert_string_equal(selected_name(&r), "leaf");
    assert_int_equal(selected(&r)->start_ns, 1100000);
    /* A call too small to be seen comes to a third of the width. */
    model_set_cursor_call(r.m, 4713, 1241440, 4);
    view_timeline.changed(r.tl, MODEL_CURSOR);
    assert_int_equal(selected(&r)->start_ns, 1241440);
    int width = viewport_col_of(&r.tl->view, 1241480) - viewport_col_of(&r.tl->view, 1241440);
    assert_in_range(width, 30, 36);
    rig_close(&r);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_at_the_trigger),
        cmocka_unit_test(screens),
        cmocka_unit_test(family),
        cmocka_unit_test(same_function),
        cmocka_unit_test(searching),
        cmocka_unit_test(window_moves),
        cmocka_unit_test(aggregates),
        cmocka_unit_test(ranges_and_marks),
        cmocka_unit_test(field_C1_C16_gaps_have_their_cause),
        cmocka_unit_test(threads),
        cmocka_unit_test(threads_of_several_processes),
        cmocka_unit_test(order_of_threads), cmocka_unit_test(cpus),
        cmocka_unit_test(whole_threads_come_into_view),
        cmocka_unit_test(recursion),
        cmocka_unit_test(colours),
        cmocka_unit_test(mouse),
        cmocka_unit_test(selection_always_on_screen),
        cmocka_unit_test(any_size),
        cmocka_unit_test(every_span_shows),
        cmocka_unit_test(field_H1_sampled_never_looks_exact),
        cmocka_unit_test(compact),
        cmocka_unit_test(without_a_trace),
        cmocka_unit_test(an_index_that_is_there),
        cmocka_unit_test(field_F14_follows_other_screens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

#include "decode/fold_recursion.h"
#include "tests/lib_gentrace.h"
#include "tests/lib_golden.h"
#include "tui/glyph.h"
#include "tui/model.h"
#include "tui/settings.h"
#include "tui/theme.h"
#include "tui/timeline.h"
#include "tui/v_timeline.h"

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

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_at_the_trigger),
        cmocka_unit_test(screens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

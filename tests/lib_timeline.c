#include "tests/lib_timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib_gentrace.h"
#include "tests/lib_golden.h"
#include "tui/term/glyph.h"
#include "tui/timeline/v_timeline.h"

const char timeline_server[] =
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

static void open_on(struct rig *r, const struct view_ops *ops, struct loop *loop, struct trace *t, enum glyph_tier glyphs,
                    enum color_tier color, int rows, int cols)
{
    *r = (struct rig){.loop = loop, .m = model_new(loop, NULL), .t = t, .theme = theme_new(color), .ops = ops};
    r->m->theme = r->theme;
    r->m->glyphs = glyphs_of(glyphs);
    r->s = surface_new(rows, cols);
    surface_set_replacement(r->s, glyph(r->m->glyphs, GLYPH_REPLACEMENT), glyphs != GLYPHS_ASCII);
    r->view = ops->create(r->m);
    r->tl = ops == &view_timeline ? r->view : NULL;
    model_set_trace(r->m, t, "snap 1", NULL, NULL);
    ops->changed(r->view, MODEL_TRACE);
    if (ops->show)
        ops->show(r->view);
}

void rig_open_on(struct rig *r, struct loop *loop, struct trace *t, enum glyph_tier glyphs, enum color_tier color,
                 int rows, int cols)
{
    open_on(r, &view_timeline, loop, t, glyphs, color, rows, cols);
}

void rig_open_view(struct rig *r, const struct view_ops *ops, const char *text, int rows, int cols)
{
    open_on(r, ops, NULL, gentrace_parse(text), GLYPHS_UNICODE, COLOR_256, rows, cols);
}

void rig_open(struct rig *r, struct trace *t, enum glyph_tier glyphs, enum color_tier color, int rows, int cols)
{
    rig_open_on(r, NULL, t, glyphs, color, rows, cols);
}

void draw(struct rig *r)
{
    char line[300] = "";
    int rows = surface_rows(r->s), cols = surface_cols(r->s);
    surface_clear(r->s);
    if (rows > 3)
        r->ops->draw(r->view, r->s, (struct rect){1, 0, rows - 3, cols});
    r->ops->state(r->view, line, sizeof line);
    surface_text(r->s, 0, 0, cols, line, SIZE_MAX, (struct style){0});
    if (rows > 2) {
        line[0] = '\0';
        r->ops->status(r->view, line, sizeof line);
        surface_text(r->s, rows - 2, 0, cols, r->m->say[0] ? r->m->say : line, SIZE_MAX,
                     (struct style){0});
    }
}

void rig_close(struct rig *r)
{
    r->ops->destroy(r->view);
    model_free(r->m);
    theme_free(r->theme);
    surface_free(r->s);
    trace_free(r->t);
    loop_free(r->loop);
}

void act(struct rig *r, enum action a)
{
    act_with(r, a, NULL);
}

void act_with(struct rig *r, enum action a, const char *arg)
{
    r->m->say[0] = '\0';
    assert_true(r->ops->action(r->view, a, arg));
}

void act_drawn(struct rig *r, enum action a, const char *arg)
{
    act_with(r, a, arg);
    draw(r);
}

const struct span *selected(struct rig *r)
{
    const struct span *s = selection_span(r->tl->src, &r->tl->sel);
    assert_non_null(s);
    return s;
}

const char *selected_name(struct rig *r)
{
    return functions_get(trace_functions(r->tl->trace), selected(r)->fn)->name;
}

void opened(struct rig *r, const char *text)
{
    rig_open(r, gentrace_parse(text), GLYPHS_UNICODE, COLOR_256, 30, 100);
    act(r, ACT_ZOOM_ALL);
    draw(r);
}

bool selection_on_screen(struct rig *r)
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

/* The mouse: see the table in tui/ui/actions.c (mouse_help_table). */
#include <stdlib.h>

#include "core/base/alloc.h"
#include "tui/timeline/timeline.h"

static bool inside(struct rect r, const struct mouse *m)
{
    return m->row >= r.row && m->row < r.row + r.rows && m->col >= r.col && m->col < r.col + r.cols;
}

/* The depth under the pointer on a line: the same rows that the picture was made of. */
static bool span_under(struct timeline *tl, const struct tl_line *line, int col,
                       struct selection *sel)
{
    struct flame_axis ax;
    struct flame_cell *cells = xcalloc((size_t)tl->view.cols, sizeof *cells);
    bool found = false;
    flame_axis_init(&ax, viewport_window(&tl->view));
    size_t last = line->depth + (line->kind == TL_PAIR ? 1 : 0);
    for (size_t d = line->depth; d <= last && !found; d++) {
        struct flame_row row = flame_source_row(tl->src, line->thread, d);
        flame_render_row(&ax, &row, cells);
        const struct span *s = cells[col].ink ? cells[col].ink : cells[col].paper;
        if (s) {
            *sel = (struct selection){true, line->thread, d, (size_t)(s - row.spans)};
            found = true;
        }
    }
    flame_axis_free(&ax);
    free(cells);
    return found;
}

static void click_header(struct timeline *tl, const struct tl_line *line)
{
    struct tl_thread *th = &tl->threads[line->thread];
    bool *collapsed = line->kind == TL_PROCESS ? &tl->processes[th->process].collapsed : &th->collapsed;
    *collapsed = !*collapsed;
    tl_layout(tl);
}

static bool click_rows(struct timeline *tl, const struct mouse *m)
{
    int col = m->col - tl->at.rows.col;
    const struct tl_line *line = tl_line_at(tl, m->row - tl->at.rows.row);
    struct selection sel;
    if (!line || col >= tl->view.cols)
        return true;
    if (line->kind == TL_HEADER || line->kind == TL_PROCESS) {
        click_header(tl, line);
        return true;
    }
    uint64_t at = viewport_time_at(&tl->view, col);
    if (span_under(tl, line, col, &sel)) {
        tl_select(tl, sel);
        const struct span *s = selection_span(tl->src, &sel);
        at = at < s->start_ns ? s->start_ns : at;
    }
    tl_set_cursor(tl, at);
    return true;
}

static uint64_t time_under(const struct timeline *tl, const struct mouse *m)
{
    return viewport_time_at(&tl->view, m->col - tl->at.rows.col);
}

static bool press(struct timeline *tl, const struct mouse *m)
{
    tl->pressed = *m;
    tl->dragging = false;
    if (inside(tl->at.minimap, m)) {
        uint64_t at = minimap_time_at(&tl->map, tl->trace, m->col - tl->at.minimap.col);
        viewport_center(&tl->view, at);
        tl_set_cursor(tl, at);
        return true;
    }
    if (inside(tl->at.ruler, m)) {
        tl_set_cursor(tl, time_under(tl, m));
        return true;
    }
    return inside(tl->at.rows, m) ? click_rows(tl, m) : false;
}

static bool drag(struct timeline *tl, const struct mouse *m)
{
    if (inside(tl->at.minimap, &tl->pressed)) {
        viewport_center(&tl->view, minimap_time_at(&tl->map, tl->trace, m->col - tl->at.minimap.col));
        return true;
    }
    if (inside(tl->at.ruler, &tl->pressed)) {
        if (!tl->dragging) {
            tl->range_from_ns = time_under(tl, &tl->pressed);
            tl->ranging = tl->dragging = true;
        }
        tl_set_cursor(tl, time_under(tl, m));
        return true;
    }
    if (!inside(tl->at.rows, &tl->pressed))
        return false;
    tl->dragging = true;
    viewport_pan(&tl->view, tl->pressed.col - m->col);
    tl_scroll(tl, tl->pressed.row - m->row);
    tl->pressed = *m;
    return true;
}

static bool release(struct timeline *tl)
{
    if (tl->ranging && tl->dragging)
        tl_set_range(tl, tl->range_from_ns, tl->cursor_ns);
    tl->dragging = false;
    return true;
}

static bool wheel(struct timeline *tl, const struct mouse *m)
{
    bool up = m->kind == MOUSE_WHEEL_UP;
    if ((m->mods & K_CTRL) || inside(tl->at.ruler, m)) {
        int col = m->col - tl->at.rows.col;
        if (up)
            viewport_zoom_in(&tl->view, col);
        else
            viewport_zoom_out(&tl->view, col);
        return true;
    }
    if (m->mods & K_SHIFT) {
        int step = tl->view.cols / 8 + 1;
        viewport_pan(&tl->view, up ? -step : step);
        return true;
    }
    tl_scroll(tl, up ? -3 : 3);
    return true;
}

bool tl_mouse(struct timeline *tl, const struct mouse *m)
{
    if (!tl->trace)
        return false;
    switch (m->kind) {
    case MOUSE_DOWN:
        return press(tl, m);
    case MOUSE_DOUBLE:
        if (!inside(tl->at.rows, m) || !click_rows(tl, m))
            return false;
        return tl_action(tl, ACT_ZOOM_FIT, NULL);
    case MOUSE_DRAG:
        return drag(tl, m);
    case MOUSE_UP:
        return release(tl);
    case MOUSE_WHEEL_UP:
    case MOUSE_WHEEL_DOWN:
        return wheel(tl, m);
    }
    return false;
}

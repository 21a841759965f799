/* Everything above the details pane: overview, minimap, ruler, marks; thread headers and rows. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "tui/ui/bar.h"
#include "tui/ui/line.h"
#include "tui/term/glyph.h"
#include "tui/timeline/ruler.h"
#include "tui/timeline/timeline.h"

#define MAP_LABEL_COLS 9

/* ---- The head ---- */

/* Overview axis, minimap, ruler, marks; on low screens the ruler alone. */
int tl_head_rows(struct rect r)
{
    return r.rows >= 12 ? 4 : r.rows >= 5 ? 2 : r.rows >= 2 ? 1 : 0;
}

static void draw_overview(struct timeline *tl, struct surface *s, struct rect r)
{
    int cols = r.cols - MAP_LABEL_COLS;
    if (cols < 8)
        return;
    const struct glyphs *g = tl->m->glyphs;
    if (tl->map.cols != cols) {
        minimap_free(&tl->map);
        minimap_init(&tl->map, tl->trace, cols);
        tl_job_start(tl);
    }
    struct viewport whole;
    viewport_init(&whole, tl->view.first_ns, tl->view.last_ns, cols);
    ruler_draw(s, r.row, r.col + MAP_LABEL_COLS, &whole, tl_instructions(tl), g);
    viewport_free(&whole);
    surface_text(s, r.row, r.col + 1, MAP_LABEL_COLS - 1, "trace", SIZE_MAX,
                 (struct style){.ink = ROLE_DIM});
    surface_text(s, r.row + 1, r.col + 1, MAP_LABEL_COLS - 1, tl->map.done ? "depth" : "depth...",
                 SIZE_MAX, (struct style){.ink = ROLE_DIM});
    tl->at.minimap = (struct rect){r.row + 1, r.col + MAP_LABEL_COLS, 1, cols};
    minimap_draw(&tl->map, s, r.row + 1, r.col + MAP_LABEL_COLS, tl->trace, &tl->view, g);
}

static void put_flag(struct timeline *tl, struct surface *s, int row, uint64_t t_ns, uint32_t cp,
                     enum role role)
{
    int col = viewport_col_of(&tl->view, t_ns);
    if (col == tl->view.cols && t_ns == tl->view.last_ns)
        col--; /* the end of the trace is the end of its last column */
    if (col >= 0 && col < tl->view.cols)
        surface_put(s, row, tl->at.rows.col + col, cp,
                    (struct style){.ink = (uint16_t)role, .paper = (uint16_t)role, .attr = CELL_BOLD});
}

static void range_now(const struct timeline *tl, uint64_t *from, uint64_t *to)
{
    *from = tl->m->range_start_ns;
    *to = tl->m->range_end_ns;
    if (tl->ranging) {
        *from = tl->range_from_ns < tl->cursor_ns ? tl->range_from_ns : tl->cursor_ns;
        *to = tl->range_from_ns < tl->cursor_ns ? tl->cursor_ns : tl->range_from_ns;
    }
}

/* The first of n marks (of those listed in `which`, when given) at or behind a time. */
static size_t first_mark(const struct mark *marks, const size_t *which, size_t n, uint64_t t_ns)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (marks[which ? which[mid] : mid].time_ns < t_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* One sign a column, however many marks stand in it: migrations come by the thousand. */
static void draw_each(struct timeline *tl, struct surface *s, int row, const size_t *which, size_t n,
                      uint32_t cp, enum role role)
{
    size_t all;
    const struct mark *marks = trace_marks(tl->trace, &all);
    for (int col = 0; col < tl->view.cols; col++) {
        size_t i = first_mark(marks, which, n, viewport_time_at(&tl->view, col));
        if (i == n)
            return;
        uint64_t at = marks[which ? which[i] : i].time_ns;
        col = viewport_col_of(&tl->view, at);
        put_flag(tl, s, row, at, cp, role);
    }
}

static void draw_marks(struct timeline *tl, struct surface *s, int row)
{
    size_t n;
    trace_marks(tl->trace, &n);
    draw_each(tl, s, row, NULL, n, '.', ROLE_DIM);
    draw_each(tl, s, row, tl->triggers.data, tl->triggers.len, '!', ROLE_MARK);
}

/* Marks, the range with its length, the cursor. */
static void draw_flags(struct timeline *tl, struct surface *s, int row)
{
    uint64_t from, to;
    range_now(tl, &from, &to);
    int cols = tl->view.cols, left = tl->at.rows.col;
    if (to > from || tl->ranging) {
        int a = viewport_col_of(&tl->view, from), b = viewport_col_of(&tl->view, to);
        int a0 = a < 0 ? 0 : a, b0 = b >= cols ? cols - 1 : b;
        char text[FMT_MAX + 8], d[FMT_MAX];
        if (b0 >= a0)
            surface_fill(s, (struct rect){row, left + a0, 1, b0 - a0 + 1}, ' ',
                         (struct style){.ink = ROLE_RANGE, .paper = ROLE_RANGE});
        snprintf(text, sizeof text, "%s", tl_duration(tl, d, to - from));
        int len = (int)strlen(text);
        if (b0 - a0 - 1 >= len)
            surface_text(s, row, left + a0 + (b0 - a0 + 1 - len) / 2, len, text, SIZE_MAX,
                         (struct style){.ink = ROLE_RANGE, .paper = ROLE_RANGE});
        put_flag(tl, s, row, from, 'A', ROLE_RANGE);
        put_flag(tl, s, row, to, 'B', ROLE_RANGE);
    }
    draw_marks(tl, s, row);
    for (int i = 0; i < 26; i++)
        if (tl->marks_set >> i & 1)
            put_flag(tl, s, row, tl->marks[i], (uint32_t)('a' + i), ROLE_MARK);
}

void tl_draw_head(struct timeline *tl, struct surface *s, struct rect r)
{
    int rows = tl_head_rows(r), row = r.row;
    if (rows == 4) {
        draw_overview(tl, s, r);
        row += 2;
    }
    if (rows == 0)
        return;
    tl->at.ruler = (struct rect){row, r.col, 1, r.cols};
    ruler_draw(s, row, r.col, &tl->view, tl_instructions(tl), tl->m->glyphs);
    int col = viewport_col_of(&tl->view, tl->cursor_ns);
    if (col >= 0 && col < r.cols)
        surface_restyle(s, (struct rect){row, r.col + col, 1, 1},
                        (struct style){.ink = ROLE_CURSOR, .paper = ROLE_CURSOR, .attr = CELL_BOLD});
    if (rows >= 2) {
        tl->at.ruler.rows = 2;
        draw_flags(tl, s, row + 1);
    }
}

/* ---- Threads ---- */

/* What a header says of a thread. */
#define HEADER_FACTS (8 + GAP_CAUSES)
struct header_facts {
    struct line_fact facts[HEADER_FACTS];
    char texts[HEADER_FACTS][FMT_MAX + 80];
    size_t n;
};

/* rank: as in tui/ui/line.h. */
__attribute__((format(printf, 3, 4)))
static void add_fact(struct header_facts *h, int rank, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(h->texts[h->n], sizeof h->texts[h->n], fmt, ap);
    va_end(ap);
    h->facts[h->n] = (struct line_fact){h->texts[h->n], rank};
    h->n++;
}

/* What was lost, by cause: "! 2 overflow   1 no-sample". Calls may be missing where it is: among the last to go. */
static void add_gaps(struct header_facts *h, const struct tl_thread *th)
{
    int rank = 1;
    for (int hard = 1; hard >= 0; hard--)
        for (int c = 0; c < GAP_CAUSES; c++) {
            if (th->gaps[c] == 0 || flame_gap_is_hard((enum gap_cause)c) != hard)
                continue;
            char n[FMT_MAX];
            add_fact(h, rank++, "%s%s %s", hard ? "! " : "", fmt_count(n, th->gaps[c]),
                     gap_cause_name((enum gap_cause)c));
        }
}

/* The depths of a thread that are on the screen. */
static bool visible_depths(struct timeline *tl, size_t thread, size_t *from, size_t *to)
{
    bool any = false;
    for (int row = 0; row < tl->at.visible; row++) {
        const struct tl_line *line = tl_line_at(tl, row);
        if (!line || line->thread != thread || line->kind == TL_HEADER || line->kind == TL_PROCESS)
            continue;
        size_t last = line->kind == TL_PAIR ? line->depth + 1 : line->depth;
        if (!any || line->depth < *from)
            *from = line->depth;
        if (!any || last > *to)
            *to = last;
        any = true;
    }
    return any;
}

/* A rule above the threads of a process, where there are several. */
static void draw_process(struct timeline *tl, struct surface *s, int row, size_t thread)
{
    const struct tl_process *p = &tl->processes[tl->threads[thread].process];
    const struct rect r = tl->at.rows;
    char title[160], right[120], n[FMT_MAX];
    snprintf(title, sizeof title, "process %d %.80s", (int)p->pid, p->comm);
    snprintf(right, sizeof right, "%zu thread%s  %s span%s%s", p->threads, p->threads == 1 ? "" : "s",
             fmt_count(n, p->spans), p->spans == 1 ? "" : "s", p->collapsed ? "  (collapsed)" : "");
    bar_draw_rule(s, row, r.col, r.cols, title, right, tl->m->glyphs);
}

static void add_facts(struct timeline *tl, struct header_facts *h, int row, size_t i)
{
    const struct trace_thread *t = trace_thread(tl->trace, i);
    const struct tl_thread *th = &tl->threads[i];
    const struct trace_info *info = trace_info(tl->trace);
    enum { OF_PROCESS = GAP_CAUSES + 1, COLLAPSED, SPANS, PINNED, DEPTH, SAMPLED, CPU };
    char n[FMT_MAX];
    size_t from = 0, to = 0;
    add_fact(h, 0, "%d %s", (int)t->tid, t->comm);
    /* Where the rule of its process is not to be seen above it. */
    if (tl->nprocesses > 1 && (th->pinned || row == tl->at.rows.row))
        add_fact(h, OF_PROCESS, "of %d %.40s", (int)t->pid, tl->processes[th->process].comm);
    if (t->last_cpu >= 0)
        add_fact(h, CPU, "cpu %d", t->last_cpu);
    add_fact(h, SPANS, "%s span%s", fmt_count(n, t->spans), t->spans == 1 ? "" : "s");
    if (info->sampled)
        add_fact(h, SAMPLED, "sampled %s%s", tl->m->glyphs->tier == GLYPHS_ASCII ? "+-" : "\u00b1",
                 tl_duration(tl, n, info->period_ns));
    if (th->pinned)
        add_fact(h, PINNED, "pinned");
    if (th->collapsed)
        add_fact(h, COLLAPSED, "(collapsed)");
    else if (visible_depths(tl, i, &from, &to))
        add_fact(h, DEPTH, "depth %zu-%zu of %zu", from, to < t->depths ? to : t->depths - 1, t->depths);
    add_gaps(h, th);
}

static void draw_header(struct timeline *tl, struct surface *s, int row, size_t i)
{
    const struct rect r = tl->at.rows;
    const int room = r.cols - 2;
    const bool selected = tl->sel.valid && tl->sel.thread == i;
    const struct style style = {.ink = ROLE_HEADER, .paper = ROLE_HEADER, .attr = selected ? CELL_BOLD : 0};
    char text[1024];
    surface_fill(s, (struct rect){row, r.col, 1, r.cols}, ' ', style);
    surface_put(s, row, r.col, glyph(tl->m->glyphs, tl->threads[i].collapsed ? GLYPH_FOLDED : GLYPH_UNFOLDED), style);
    if (tl->inside) {
        tl_merged_header(tl, text, sizeof text, room);
    } else {
        struct header_facts h = {.n = 0};
        add_facts(tl, &h, row, i);
        line_join(text, sizeof text, room, "   ", h.facts, h.n);
    }
    line_cut(s, row, r.col + 2, room, text, style, tl->m->glyphs);
}

static void function_name(const void *arg, fn_id fn, char *out, size_t size, int cols)
{
    const struct timeline *tl = arg;
    if (fn < functions_count(trace_functions(tl->trace)))
        function_names_fit_in_module(tl->m->names, fn, out, size, cols, tl->m->glyphs);
    else
        snprintf(out, size, "?");
}

static void render(struct timeline *tl, const struct flame_axis *ax, size_t thread, size_t depth,
                   struct flame_cell *cells)
{
    struct flame_row row = flame_source_row(tl->src, thread, depth);
    struct flame_row above = flame_source_row(tl->src, thread, depth ? depth - 1 : 0);
    const struct tl_thread *th = &tl->threads[thread];
    flame_render_row(ax, &row, cells);
    flame_render_gaps(ax, &row, depth ? &above : NULL, &th->soft, false, cells);
    flame_render_gaps(ax, &row, depth ? &above : NULL, &th->hard, true, cells);
}

/* A line down the empty cells of all rows at a time: the cursor, the ends of the range. */
static void draw_line_down(struct timeline *tl, struct surface *s, uint64_t t_ns, enum role role)
{
    int col = viewport_col_of(&tl->view, t_ns);
    if (col < 0 || col >= tl->view.cols)
        return;
    for (int row = 0; row < tl->at.rows.rows; row++) {
        const struct tl_line *line = tl_line_at(tl, row);
        const struct cell *c = surface_at(s, tl->at.rows.row + row, tl->at.rows.col + col);
        if (line && line->kind != TL_HEADER && line->kind != TL_PROCESS && c && c->cp == ' ' && c->paper == ROLE_DEFAULT &&
            !(c->attr & CELL_REVERSE))
            surface_put(s, tl->at.rows.row + row, tl->at.rows.col + col,
                        glyph(tl->m->glyphs, GLYPH_RULE_V),
                        (struct style){.ink = (uint16_t)role, .attr = CELL_DIM});
    }
}

/* What a hatch as wide as the screen means, in words on the thread's first row. */
static void name_not_decoded(struct timeline *tl, struct surface *s, int row, size_t thread)
{
    const struct gap *gap = tl->threads[thread].not_decoded;
    if (!gap)
        return;
    int from = viewport_col_of(&tl->view, gap->start_ns), to = viewport_col_of(&tl->view, gap->end_ns);
    int len = (int)strlen(gap->detail);
    from = from < 0 ? 0 : from;
    to = to > tl->view.cols ? tl->view.cols : to;
    if (to - from >= len + 4)
        surface_printf(s, row, tl->at.rows.col + from + (to - from - len - 2) / 2, len + 2,
                       (struct style){.ink = ROLE_UNTRACED, .paper = ROLE_UNTRACED}, " %s ", gap->detail);
}

void tl_draw_rows(struct timeline *tl, struct surface *s, struct rect r)
{
    const struct glyphs *g = tl->m->glyphs;
    bool ascii = g->tier == GLYPHS_ASCII;
    const struct flame_label_style labels = {.brackets = ascii,
                                             .open = glyph(g, GLYPH_SPAN_OPEN),
                                             .close = glyph(g, GLYPH_SPAN_CLOSE),
                                             .fill = glyph(g, GLYPH_SPAN_FILL),
                                             .lone = glyph(g, GLYPH_SPAN_SHORT),
                                             .left = glyph(g, GLYPH_CUT_LEFT),
                                             .right = glyph(g, GLYPH_CUT_RIGHT),
                                             .replacement = glyph(g, GLYPH_REPLACEMENT),
                                             .unicode = !ascii};
    size_t cols = (size_t)tl->view.cols;
    struct flame_cell *cells = xcalloc(3 * cols, sizeof *cells);
    struct flame_axis ax;
    flame_axis_init(&ax, viewport_window(&tl->view));
    ax.whole_cols = tl->compact;
    for (int row = 0; row < r.rows; row++) {
        const struct tl_line *line = tl_line_at(tl, row);
        if (!line)
            break;
        if (line->kind == TL_PROCESS) {
            draw_process(tl, s, r.row + row, line->thread);
            continue;
        }
        if (line->kind == TL_HEADER) {
            draw_header(tl, s, r.row + row, line->thread);
            continue;
        }
        render(tl, &ax, line->thread, line->depth, cells);
        if (line->kind == TL_PAIR) {
            bool odd = line->depth + 1 >= trace_thread(tl->trace, line->thread)->depths;
            if (!odd)
                render(tl, &ax, line->thread, line->depth + 1, cells + cols);
            flame_render_halves((int)cols, cells, odd ? NULL : cells + cols, cells + 2 * cols);
            tl_put_cells(tl, s, r.row + row, r.col, &ax, cells + 2 * cols, line->thread, line->depth);
        } else {
            flame_render_labels(&ax, &labels, function_name, tl, cells);
            tl_put_cells(tl, s, r.row + row, r.col, &ax, cells, line->thread, line->depth);
        }
        if (line[-1].kind == TL_HEADER)
            name_not_decoded(tl, s, r.row + row, line->thread);
    }
    flame_axis_free(&ax);
    free(cells);
    uint64_t from, to;
    range_now(tl, &from, &to);
    if (to > from) {
        draw_line_down(tl, s, from, ROLE_RANGE);
        draw_line_down(tl, s, to, ROLE_RANGE);
    }
    draw_line_down(tl, s, tl->cursor_ns, ROLE_CURSOR);
}

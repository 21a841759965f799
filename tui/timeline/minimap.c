#include "tui/timeline/minimap.h"

#include <stdlib.h>

#include "core/base/alloc.h"

/* Columns divide the trace evenly; its last nanosecond belongs to the last column. */
static flame_u128 trace_length(const struct trace *t)
{
    const struct trace_info *i = trace_info(t);
    return (flame_u128)(i->last_ns - i->first_ns) + 1;
}

int minimap_col_of(const struct minimap *m, const struct trace *t, uint64_t time_ns)
{
    const struct trace_info *i = trace_info(t);
    if (time_ns <= i->first_ns)
        return 0;
    if (time_ns >= i->last_ns)
        return m->cols - 1;
    return (int)((flame_u128)(time_ns - i->first_ns) * (unsigned)m->cols / trace_length(t));
}

uint64_t minimap_time_at(const struct minimap *m, const struct trace *t, int col)
{
    if (col < 0)
        col = 0;
    flame_u128 cols = (unsigned)m->cols;
    flame_u128 offset = (trace_length(t) * (unsigned)col + cols - 1) / cols;
    return trace_info(t)->first_ns + (uint64_t)offset;
}

static void find_notes(struct minimap *m, const struct trace *t)
{
    size_t n;
    const struct gap *gaps = trace_gaps(t, &n);
    for (size_t i = 0; i < n; i++)
        if (flame_gap_is_hard(gaps[i].cause)) {
            int last = minimap_col_of(m, t, gaps[i].end_ns);
            for (int c = minimap_col_of(m, t, gaps[i].start_ns); c <= last; c++)
                m->notes[c] |= MINIMAP_LOSS;
        }
    const struct mark *marks = trace_marks(t, &n);
    for (size_t i = 0; i < n; i++)
        if (marks[i].kind == MARK_TRIGGER)
            m->notes[minimap_col_of(m, t, marks[i].time_ns)] |= MINIMAP_TRIGGER;
}

void minimap_init(struct minimap *m, const struct trace *t, int cols)
{
    *m = (struct minimap){.cols = cols};
    m->busy_ns = xcalloc((size_t)cols, sizeof *m->busy_ns);
    m->notes = xcalloc((size_t)cols, sizeof *m->notes);
    find_notes(m, t);
}

void minimap_free(struct minimap *m)
{
    free(m->busy_ns);
    free(m->notes);
    *m = (struct minimap){0};
}

static void add_row(struct minimap *m, const struct trace *t, const struct pyramid *p,
                    struct flame_source *src)
{
    struct flame_row row = flame_source_row(src, m->thread, m->depth);
    if (row.n == 0)
        return;
    int last = minimap_col_of(m, t, row.spans[row.n - 1].end_ns);
    for (int c = minimap_col_of(m, t, row.spans[0].start_ns); c <= last; c++) {
        uint64_t from = minimap_time_at(m, t, c), to = minimap_time_at(m, t, c + 1);
        if (from == to)
            from--; /* narrower than a nanosecond: the one that it lies in */
        uint64_t busy = pyramid_range(p, m->thread, m->depth, from, to).busy_ns;
        uint64_t waits = 0, off = flame_row_off_ns(&row, from, to, &waits);
        m->busy_ns[c] += busy > off ? busy - off : 0;
    }
}

bool minimap_step(struct minimap *m, const struct trace *t, const struct pyramid *p,
                  struct flame_source *src, size_t max_rows)
{
    while (!m->done && max_rows > 0) {
        if (m->thread >= trace_thread_count(t)) {
            m->done = true;
        } else if (m->depth >= trace_thread(t, m->thread)->depths) {
            m->thread++;
            m->depth = 0;
        } else {
            add_row(m, t, p, src);
            m->depth++;
            max_rows--;
        }
    }
    return m->done;
}

unsigned minimap_level(const struct minimap *m, int col)
{
    uint64_t most = 0;
    for (int c = 0; c < m->cols; c++)
        most = m->busy_ns[c] > most ? m->busy_ns[c] : most;
    if (m->busy_ns[col] == 0)
        return 0;
    return (unsigned)(((flame_u128)m->busy_ns[col] * 8 + most - 1) / most);
}

static void draw_window(const struct minimap *m, struct surface *s, int row, int col,
                        const struct trace *t, const struct viewport *v, const struct glyphs *g)
{
    if (viewport_is_whole(v))
        return;
    int from = minimap_col_of(m, t, viewport_time_at(v, 0));
    int to = minimap_col_of(m, t, viewport_time_at(v, v->cols) - 1);
    const struct style style = {.ink = ROLE_CURSOR, .paper = ROLE_CURSOR, .attr = CELL_BOLD};
    surface_restyle(s, (struct rect){row, col + from, 1, to - from + 1}, style);
    if (to - from >= 2) {
        surface_put(s, row, col + from, glyph(g, GLYPH_SPAN_OPEN), style);
        surface_put(s, row, col + to, glyph(g, GLYPH_SPAN_CLOSE), style);
    } else if (from == to && surface_at(s, row, col + from)->cp == ' ') {
        surface_put(s, row, col + from, glyph(g, GLYPH_TICK), style);
    }
}

void minimap_draw(const struct minimap *m, struct surface *s, int row, int col, const struct trace *t,
                  const struct viewport *v, const struct glyphs *g)
{
    const struct style style = {.ink = ROLE_MINIMAP, .paper = ROLE_MINIMAP};
    surface_fill(s, (struct rect){row, col, 1, m->cols}, ' ', style);
    for (int c = 0; c < m->cols; c++) {
        unsigned level = minimap_level(m, c);
        if (m->notes[c] & MINIMAP_TRIGGER)
            surface_put(s, row, col + c, '!', (struct style){.ink = ROLE_MARK, .paper = ROLE_MARK});
        else if (m->notes[c] & MINIMAP_LOSS)
            surface_put(s, row, col + c, glyph(g, GLYPH_HATCH),
                        (struct style){.ink = ROLE_GAP, .paper = ROLE_MINIMAP});
        else if (level > 0)
            surface_put(s, row, col + c, glyph(g, GLYPH_BAR1 + level - 1), style);
    }
    draw_window(m, s, row, col, t, v, g);
}

/* Gaps over rendered cells: see tui/timeline/flame.h. */
#include <stdlib.h>

#include "core/base/alloc.h"
#include "tui/timeline/flame.h"

bool flame_gap_is_hard(enum gap_cause cause)
{
    return cause == GAP_LOST || cause == GAP_OVERFLOW || cause == GAP_ERROR ||
           cause == GAP_NO_IMAGE || cause == GAP_NOT_DECODED;
}

void flame_gaps_add(struct flame_gaps *g, const struct gap *gap)
{
    size_t k = g->n++;
    if (g->n > g->cap) {
        g->cap = g->cap ? 2 * g->cap : 8;
        g->gaps = xrealloc(g->gaps, g->cap * sizeof *g->gaps);
        g->reach = xrealloc(g->reach, g->cap * sizeof *g->reach);
    }
    size_t before = k > 0 ? g->reach[k - 1] : 0;
    g->gaps[k] = gap;
    g->reach[k] = k > 0 && g->gaps[before]->end_ns > gap->end_ns ? before : k;
}

void flame_gaps_free(struct flame_gaps *g)
{
    free(g->gaps);
    free(g->reach);
    *g = (struct flame_gaps){0};
}

/* The first gap at or behind `from` that starts at or after t. */
static size_t seek_gap(const struct flame_gaps *g, size_t from, uint64_t t_ns)
{
    if (from < g->n && g->gaps[from]->start_ns >= t_ns)
        return from;
    size_t lo = from, hi = g->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (g->gaps[mid]->start_ns < t_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const struct gap *flame_gaps_at(const struct flame_gaps *g, uint64_t t_ns)
{
    size_t behind = t_ns == UINT64_MAX ? g->n : seek_gap(g, 0, t_ns + 1);
    if (behind == 0)
        return NULL;
    if (g->gaps[behind - 1]->start_ns == t_ns)
        return g->gaps[behind - 1];
    const struct gap *longest = g->gaps[g->reach[behind - 1]];
    return longest->end_ns > t_ns ? longest : NULL;
}

const struct gap *flame_gaps_before(const struct flame_gaps *g, uint64_t t_ns)
{
    size_t behind = t_ns == UINT64_MAX ? g->n : seek_gap(g, 0, t_ns + 1);
    return behind ? g->gaps[g->reach[behind - 1]] : NULL;
}

static bool row_covers(const struct flame_row *row, const struct gap *gap)
{
    /* The last span that starts no later than the gap. */
    size_t k = gap->start_ns == UINT64_MAX ? row->n : row->seek(row, 0, gap->start_ns + 1);
    return k > 0 && row->spans[k - 1].end_ns >= gap->end_ns &&
           row->spans[k - 1].end_ns > gap->start_ns;
}

static bool shows_here(const struct flame_row *row, const struct flame_row *above,
                       const struct gap *gap, bool hard)
{
    return hard || (!row_covers(row, gap) && (!above || row_covers(above, gap)));
}

static void draw_gap(struct flame_cell *c, const struct gap *gap)
{
    c->paper = c->shape == FLAME_OFF || c->shape == FLAME_GAP ? c->paper : c->ink;
    c->ink = NULL;
    c->gap = gap;
    c->shape = FLAME_GAP;
    c->flags &= (uint8_t)~(FLAME_JOINED | FLAME_REPEAT | FLAME_ALTERNATE);
}

/* The gap to show in one cell, or NULL: the one that reaches into it from the left, or the first that
 * begins in one of its eighths. More than one a eighth need not be asked. */
static const struct gap *gap_in_cell(const struct flame_gaps *g, size_t begin, size_t end,
                                     const uint64_t *edge, const struct flame_row *row,
                                     const struct flame_row *above, bool hard)
{
    if (begin > 0) {
        const struct gap *left = g->gaps[g->reach[begin - 1]];
        if (left->end_ns >= edge[1] && shows_here(row, above, left, hard))
            return left;
    }
    for (size_t k = begin; k < end;) {
        if (shows_here(row, above, g->gaps[k], hard))
            return g->gaps[k];
        unsigned e = 1;
        while (e < 8 && edge[e] <= g->gaps[k]->start_ns)
            e++;
        k = seek_gap(g, k + 1, edge[e]);
    }
    return NULL;
}

void flame_render_gaps(const struct flame_axis *ax, const struct flame_row *row,
                       const struct flame_row *above, const struct flame_gaps *gaps, bool hard,
                       struct flame_cell *cells)
{
    if (gaps->n == 0)
        return;
    size_t next = seek_gap(gaps, 0, ax->edges[0]);
    for (int col = 0; col < ax->cols; col++) {
        const uint64_t *edge = ax->edges + 8 * col;
        size_t begin = next;
        next = seek_gap(gaps, next, edge[8]);
        /* A call that fills the cell covers any gap that keeps the stack. */
        if (!hard && cells[col].shape == FLAME_FULL)
            continue;
        const struct gap *gap = gap_in_cell(gaps, begin, next, edge, row, above, hard);
        if (gap)
            draw_gap(&cells[col], gap);
    }
}

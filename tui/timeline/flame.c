#include "tui/timeline/flame.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

struct flame_window flame_window_ns(uint64_t t0_ns, uint64_t t1_ns, int cols)
{
    return (struct flame_window){
        .start_fp = (flame_i128)t0_ns << FLAME_FRACTION_BITS,
        .length_fp = (flame_u128)(t1_ns - t0_ns) << FLAME_FRACTION_BITS,
        .cols = cols,
    };
}

/* ceil(start + e · length / (8 · cols)) in whole nanoseconds: the first t with x(t) ≥ e. */
static uint64_t edge_ns(struct flame_window w, unsigned e)
{
    const flame_u128 eighths = 8u * (unsigned)w.cols;
    const flame_i128 one = (flame_i128)1 << FLAME_FRACTION_BITS;
    flame_i128 at = w.start_fp + (flame_i128)((w.length_fp * e + eighths - 1) / eighths);
    if (at <= 0)
        return 0;
    at = (at + one - 1) >> FLAME_FRACTION_BITS;
    return at > (flame_i128)UINT64_MAX ? UINT64_MAX : (uint64_t)at;
}

void flame_axis_init(struct flame_axis *ax, struct flame_window window)
{
    unsigned n = 8u * (unsigned)window.cols;
    *ax = (struct flame_axis){.window = window, .cols = window.cols};
    ax->edges = xcalloc(n + 1, sizeof *ax->edges);
    for (unsigned e = 0; e <= n; e++)
        ax->edges[e] = edge_ns(window, e);
}

void flame_axis_free(struct flame_axis *ax)
{
    free(ax->edges);
    ax->edges = NULL;
}

int flame_axis_x_eighths(const struct flame_axis *ax, uint64_t t_ns)
{
    int lo = -1, hi = 8 * ax->cols; /* edges[lo] ≤ t (−1 stands for "before all"), hi is the answer's
                                       upper limit */
    while (lo < hi) {
        int mid = lo + (hi - lo + 1) / 2;
        if (ax->edges[mid] <= t_ns)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static size_t seek_spans(const struct flame_row *row, size_t from, uint64_t t_ns)
{
    size_t lo = from, step = 1;
    while (lo + step < row->n && row->spans[lo + step].start_ns < t_ns) {
        lo += step;
        step *= 2;
    }
    size_t hi = lo + step < row->n ? lo + step : row->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (row->spans[mid].start_ns < t_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static size_t longest_of_spans(const struct flame_row *row, size_t i, size_t j)
{
    size_t best = i;
    for (size_t k = i + 1; k < j; k++)
        if (row->spans[k].end_ns - row->spans[k].start_ns >
            row->spans[best].end_ns - row->spans[best].start_ns)
            best = k;
    return best;
}

static size_t off_cpu_of_spans(const struct flame_row *row, size_t i, size_t j)
{
    while (i < j && !(row->spans[i].flags & SPAN_OFF_CPU))
        i++;
    return i;
}

struct flame_row flame_row_of_spans(const struct span *spans, size_t n)
{
    return (struct flame_row){.spans = spans,
                              .n = n,
                              .seek = seek_spans,
                              .longest = longest_of_spans,
                              .off_cpu = off_cpu_of_spans};
}

/* Position in a cell whose nine edges are given: the last e with edge[e] ≤ t, for edge[0] ≤ t. */
static unsigned x_in_cell(const uint64_t *edge, uint64_t t_ns)
{
    unsigned x = 0;
    while (x < 8 && edge[x + 1] <= t_ns)
        x++;
    return x;
}

/* The eighths of a cell that a span owns: [a, b). */
static void owned_eighths(const uint64_t *edge, const struct span *s, unsigned *a, unsigned *b)
{
    if (s->start_ns < edge[0]) {
        *a = 0;
        *b = x_in_cell(edge, s->end_ns);
        return;
    }
    *a = x_in_cell(edge, s->start_ns);
    *b = x_in_cell(edge, s->end_ns);
    if (*b <= *a)
        *b = *a + 1;
}

static uint8_t mask(unsigned a, unsigned b)
{
    return (uint8_t)((0xffu << a) & (0xffu >> (8 - b)));
}

static unsigned count_bits(uint8_t m)
{
    return (unsigned)__builtin_popcount(m);
}

/* The spans of a row that own part of one cell: `first`, which may begin left of it, to `end`; those
 * from `begin` on start inside. */
struct cell_spans {
    const struct flame_row *row;
    const uint64_t *edge; /* nine of them */
    size_t first, begin, end;
};

static void compose_one(struct flame_cell *c, const struct span *s, unsigned a, unsigned b)
{
    c->ink = s;
    c->owned = mask(a, b);
    if (a == 0 && b == 8) {
        c->shape = FLAME_FULL;
        c->eighths = 8;
    } else if (a == 0) {
        c->shape = FLAME_LEFT;
        c->eighths = (uint8_t)b;
    } else if (b == 8) {
        c->shape = FLAME_RIGHT;
        c->eighths = (uint8_t)a;
    } else if (b - a <= 2) {
        /* By twice the middle of the line: thirds of 16. */
        unsigned middle = a + b;
        c->shape = FLAME_LINE;
        c->eighths = middle * 3 < 16 ? 0 : middle * 3 <= 32 ? 1 : 2;
    } else {
        c->shape = FLAME_DENSITY;
        c->eighths = (uint8_t)(b - a);
    }
}

/* Which eighths the spans of a crowded cell own, in at most eight steps. */
static uint8_t owned_mask(const struct cell_spans *cs)
{
    const struct flame_row *row = cs->row;
    uint8_t m = row->starts && cs->end - cs->begin >= 64
                    ? row->starts(row, cs->begin, cs->end, cs->edge)
                    : 0;
    size_t k = cs->first;
    while (k < cs->end && m != 0xff) {
        unsigned a, b;
        owned_eighths(cs->edge, &row->spans[k], &a, &b);
        m |= mask(a, b);
        if (b == 8)
            break;
        k++;
        /* All that start left of b change nothing, except that the last of them may reach further. */
        if (k < cs->end && row->spans[k].start_ns < cs->edge[b]) {
            k = row->seek(row, k, cs->edge[b]);
            if (k > cs->end)
                k = cs->end;
            if (row->spans[k - 1].end_ns >= cs->edge[b + 1])
                k--;
        }
    }
    return m;
}

static uint64_t time_in_cell(const struct cell_spans *cs, size_t k)
{
    const struct span *s = &cs->row->spans[k];
    uint64_t from = s->start_ns > cs->edge[0] ? s->start_ns : cs->edge[0];
    uint64_t to = s->end_ns < cs->edge[8] ? s->end_ns : cs->edge[8];
    return to > from ? to - from : 0;
}

/* The span with most time in the cell, the first among equals. Only the first and the last one can
 * reach over the cell's edges. */
static size_t dominant(const struct cell_spans *cs)
{
    size_t best = cs->first;
    if (cs->end - cs->first > 2) {
        size_t inner = cs->row->longest(cs->row, cs->first + 1, cs->end - 1);
        if (time_in_cell(cs, inner) > time_in_cell(cs, best))
            best = inner;
    }
    if (time_in_cell(cs, cs->end - 1) > time_in_cell(cs, best))
        best = cs->end - 1;
    return best;
}

static void compose_many(struct flame_cell *c, const struct cell_spans *cs, bool whole_cols)
{
    const struct span *main = &cs->row->spans[dominant(cs)];
    c->owned = whole_cols ? 0xff : owned_mask(cs);
    c->eighths = (uint8_t)count_bits(c->owned);
    c->flags |= FLAME_AGGREGATE;
    size_t off = cs->row->off_cpu(cs->row, cs->first, cs->end);
    if (off < cs->end) {
        c->shape = FLAME_OFF;
        c->ink = &cs->row->spans[off];
        c->paper = main->flags & SPAN_OFF_CPU ? NULL : main;
    } else {
        c->shape = FLAME_DENSITY;
        c->ink = main;
    }
}

/* True when the pair shares one boundary that lies inside the cell. */
static bool compose_two(struct flame_cell *c, const struct cell_spans *cs)
{
    const struct span *s = &cs->row->spans[cs->first];
    unsigned a[2], b[2];
    for (int k = 0; k < 2; k++)
        owned_eighths(cs->edge, &s[k], &a[k], &b[k]);
    if (a[0] != 0 || b[0] != a[1] || b[1] != 8)
        return false;
    c->shape = FLAME_SPLIT;
    c->ink = &s[0];
    c->paper = &s[1];
    c->eighths = (uint8_t)b[0];
    c->owned = 0xff;
    if (s[0].fn == s[1].fn)
        c->flags |= FLAME_REPEAT;
    return true;
}

/* Calls of one function side by side take turns in shade. Which one has which depends on its place in
 * the row alone, so that it stays when the picture moves. */
static bool is_alternate(const struct flame_row *row, size_t k)
{
    const struct span *s = &row->spans[k];
    if (k % 2 == 0)
        return false;
    return (s[-1].fn == s->fn && s[-1].end_ns == s->start_ns) ||
           (k + 1 < row->n && s[1].fn == s->fn && s[1].start_ns == s->end_ns);
}

/* Does span k begin exactly at the cell's left edge, where its neighbour ends? */
static void note_left_edge(struct flame_cell *c, const struct cell_spans *cs,
                           const struct flame_axis *ax)
{
    size_t k = cs->first;
    if (k < cs->begin || k == 0 || !(c->owned & 1) || c->shape == FLAME_SPLIT)
        return;
    const struct span *s = &cs->row->spans[k];
    if (s->start_ns >= cs->edge[1] || cs->edge == ax->edges)
        return;
    /* The neighbour owns the eighth left of the edge: it ends here, or is a sliver in that eighth. */
    if (s[-1].end_ns >= cs->edge[0] || s[-1].start_ns >= cs->edge[-1]) {
        c->flags |= FLAME_JOINED;
        if (s[-1].fn == s->fn)
            c->flags |= FLAME_REPEAT;
    }
}

static void compose(struct flame_cell *c, const struct cell_spans *cs, const struct flame_axis *ax)
{
    size_t count = cs->end - cs->first;
    *c = (struct flame_cell){.count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX};
    if (count == 0)
        return;
    const struct span *s = &cs->row->spans[cs->first];
    if (count == 1) {
        unsigned a, b;
        owned_eighths(cs->edge, s, &a, &b);
        compose_one(c, s, a, b);
        if ((s->flags & SPAN_OFF_CPU) && (c->shape == FLAME_FULL || c->shape == FLAME_DENSITY))
            c->shape = FLAME_OFF;
    } else if (count > 2 || !compose_two(c, cs)) {
        compose_many(c, cs, ax->whole_cols);
        return;
    }
    if (is_alternate(cs->row, cs->first))
        c->flags |= FLAME_ALTERNATE;
    note_left_edge(c, cs, ax);
}

void flame_render_row(const struct flame_axis *ax, const struct flame_row *row,
                      struct flame_cell *cells)
{
    const struct span *spans = row->spans;
    size_t next = row->seek(row, 0, ax->edges[0]);
    for (int col = 0; col < ax->cols; col++) {
        struct cell_spans cs = {.row = row, .edge = ax->edges + 8 * col, .begin = next, .end = next};
        cs.first = next > 0 && spans[next - 1].end_ns >= cs.edge[1] ? next - 1 : next;
        while (cs.end < row->n && spans[cs.end].start_ns < cs.edge[8]) {
            if (cs.end - next == 8) {
                cs.end = row->seek(row, cs.end, cs.edge[8]);
                break;
            }
            cs.end++;
        }
        compose(&cells[col], &cs, ax);
        next = cs.end;
    }
}

/* The span that stands for a cell at whole-column precision. */
static const struct span *column_span(const struct flame_cell *c)
{
    if (c->shape == FLAME_SPLIT)
        return c->eighths < 4 ? c->paper : c->ink;
    return c->ink ? c->ink : c->paper;
}

void flame_render_halves(int cols, const struct flame_cell *upper, const struct flame_cell *lower,
                         struct flame_cell *cells)
{
    static const struct flame_cell nothing = {.shape = FLAME_EMPTY};
    for (int col = 0; col < cols; col++) {
        const struct flame_cell *up = &upper[col], *low = lower ? &lower[col] : &nothing;
        const struct flame_cell *gap = up->shape == FLAME_GAP    ? up
                                       : low->shape == FLAME_GAP ? low
                                                                 : NULL;
        struct flame_cell c = {.ink = column_span(up),
                               .paper = column_span(low),
                               .count = up->count + low->count,
                               .owned = up->owned | low->owned,
                               .flags = (up->flags | low->flags) & FLAME_AGGREGATE};
        c.shape = c.ink || c.paper ? FLAME_HALVES : FLAME_EMPTY;
        if (gap) {
            c.shape = FLAME_GAP;
            c.gap = gap->gap;
            c.paper = c.ink ? c.ink : c.paper;
            c.ink = NULL;
        }
        cells[col] = c;
    }
}

#include "decode/walk.h"

#include <stdlib.h>

static size_t first_in(const struct span *row, size_t n, uint64_t from_ns)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (row[mid].end_ns > from_ns || row[mid].start_ns >= from_ns)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

int walk_init(struct walk *w, const struct trace *t, size_t thread, uint64_t from_ns, uint64_t to_ns)
{
    size_t depths = trace_thread(t, thread)->depths;
    *w = (struct walk){.depths = depths, .to_ns = to_ns};
    w->rows = malloc((depths + 1) * sizeof *w->rows);
    w->stack = malloc((depths + 1) * sizeof *w->stack);
    if (!w->rows || !w->stack) {
        walk_free(w);
        return MTUI_E_NOMEM;
    }
    for (size_t d = 0; d < depths; d++) {
        w->rows[d].spans = trace_row(t, thread, d, &w->rows[d].n);
        w->rows[d].at = first_in(w->rows[d].spans, w->rows[d].n, from_ns);
    }
    return 0;
}

void walk_free(struct walk *w)
{
    free(w->rows);
    free(w->stack);
    w->rows = NULL;
    w->stack = NULL;
}

/* The next span of the row below the open one, if the open one is its caller. */
static const struct span *next_child(struct walk *w)
{
    if (w->depth >= w->depths)
        return NULL;
    struct walk_row *row = &w->rows[w->depth];
    if (w->depth == 0)
        return row->at < row->n ? &row->spans[row->at] : NULL;
    const struct span *parent = w->stack[w->depth - 1];
    const struct walk_row *up = &w->rows[w->depth - 1];
    /* At the edge of a window an instant's caller may lie outside of it. */
    while (row->at < row->n && row->spans[row->at].start_ns < parent->start_ns)
        row->at++;
    if (row->at >= row->n)
        return NULL;
    const struct span *s = &row->spans[row->at];
    bool next_parent = up->at < up->n && up->spans[up->at].start_ns <= s->start_ns;
    return s->end_ns <= parent->end_ns && !next_parent ? s : NULL;
}

bool walk_next(struct walk *w, struct walk_event *ev)
{
    const struct span *s = next_child(w);
    if (s && s->start_ns < w->to_ns) {
        *ev = (struct walk_event){s, w->depth, true};
        w->rows[w->depth].at++;
        w->stack[w->depth++] = s;
        return true;
    }
    if (w->depth == 0)
        return false;
    w->depth--;
    *ev = (struct walk_event){w->stack[w->depth], w->depth, false};
    return true;
}

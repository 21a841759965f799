#include "decode/trace/walk.h"

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

/* The first span that starts at or after start_ns. */
static size_t first_from(const struct span *row, size_t n, uint64_t start_ns)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (row[mid].start_ns >= start_ns)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

int walk_init_call(struct walk *w, const struct trace *t, size_t thread, size_t depth, size_t index)
{
    size_t depths = trace_thread(t, thread)->depths - depth;
    *w = (struct walk){.depths = depths, .to_ns = UINT64_MAX};
    w->rows = malloc((depths + 1) * sizeof *w->rows);
    w->stack = malloc((depths + 1) * sizeof *w->stack);
    if (!w->rows || !w->stack) {
        walk_free(w);
        return MTUI_E_NOMEM;
    }
    w->rows[0].spans = trace_row(t, thread, depth, &w->rows[0].n);
    w->rows[0].at = index;
    for (size_t d = 1; d < depths; d++) {
        w->rows[d].spans = trace_row(t, thread, depth + d, &w->rows[d].n);
        w->rows[d].at = first_from(w->rows[d].spans, w->rows[d].n, w->rows[0].spans[index].start_ns);
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

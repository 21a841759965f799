#include "decode/trace/stats_rows.h"

#include <stdlib.h>

#define PIECE_SPANS ((size_t)1 << 16)

/* The first span of a row that starts at or after a time. */
static size_t first_from(const struct span *row, size_t n, uint64_t ns)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (row[mid].start_ns < ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The first one that ends after a time, or starts at it or later. */
static size_t first_in(const struct span *row, size_t n, uint64_t ns)
{
    size_t i = first_from(row, n, ns);
    return i && row[i - 1].end_ns > ns ? i - 1 : i;
}

static int add_row(struct stats_rows *r, const struct stats_piece *row, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += PIECE_SPANS) {
        struct stats_piece p = *row;
        p.from = at;
        p.to = to - at > PIECE_SPANS ? at + PIECE_SPANS : to;
        if (!vec_try_push(&r->pieces, p))
            return MTUI_E_NOMEM;
    }
    return 0;
}

static int add_thread(struct stats_rows *r, const struct trace *t, size_t thread)
{
    struct quiet *q = &r->quiet[thread];
    size_t depths = trace_thread(t, thread)->depths, up_from = 0;
    if (quiet_init(q, t, thread) < 0)
        return MTUI_E_NOMEM;
    r->gap_ns += quiet_total(q, r->from_ns, r->to_ns);
    struct stats_piece row = {.quiet = q};
    for (size_t d = 0; d < depths; d++) {
        size_t n;
        row.up = d ? row.row : NULL;
        row.row = trace_row(t, thread, d, &n);
        row.nested = trace_row_nested(t, thread, d, &row.first_nested);
        size_t from = first_in(row.row, n, r->from_ns), to = first_from(row.row, n, r->to_ns);
        /* At the edge of the range an instant's caller may lie outside of it. */
        while (row.up && from < to &&
               (up_from == row.n_up || row.row[from].start_ns < row.up[up_from].start_ns))
            from++;
        if (add_row(r, &row, from, to) < 0)
            return MTUI_E_NOMEM;
        up_from = from;
        row.n_up = n;
    }
    return 0;
}

int stats_rows_init(struct stats_rows *r, const struct trace *t, const struct stats_options *o)
{
    *r = (struct stats_rows){.threads = trace_thread_count(t), .from_ns = o->from_ns, .to_ns = o->to_ns};
    if (o->from_ns == 0 && o->to_ns == 0)
        r->to_ns = UINT64_MAX;
    r->quiet = calloc(r->threads + 1, sizeof *r->quiet);
    int rc = r->quiet ? 0 : MTUI_E_NOMEM;
    for (size_t i = 0; i < r->threads && rc == 0; i++)
        if (o->thread < 0 || (size_t)o->thread == i)
            rc = add_thread(r, t, i);
    if (rc < 0)
        stats_rows_free(r);
    else
        r->gap_count = trace_gap_count(t, o->thread < 0 ? 0 : trace_thread(t, (size_t)o->thread)->tid, r->from_ns, r->to_ns);
    return rc;
}

size_t stats_piece_caller(const struct stats_piece *p, size_t i)
{
    size_t after = first_from(p->up, p->n_up, p->row[i].start_ns);
    while (after < p->n_up && p->up[after].start_ns == p->row[i].start_ns)
        after++;
    return after ? after - 1 : 0;
}

void stats_rows_free(struct stats_rows *r)
{
    for (size_t i = 0; r->quiet && i < r->threads; i++)
        quiet_free(&r->quiet[i]);
    free(r->quiet);
    vec_free(&r->pieces);
    *r = (struct stats_rows){0};
}

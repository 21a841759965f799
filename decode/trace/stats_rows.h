/* The rows of a trace, or of a range of it, cut into pieces of work that any thread may take: what lies in
 * the range, where its callers are, and the sum over each call of its time outside of gaps. */
#ifndef MTUI_DECODE_STATS_ROWS_H
#define MTUI_DECODE_STATS_ROWS_H

#include "core/base/vec.h"
#include "decode/trace/quiet.h"
#include "decode/trace/stats.h"

/* Some spans of one row. */
struct stats_piece {
    const struct span *row, *up; /* the row, and the one above; up is NULL for the outermost */
    size_t from, to;             /* of row */
    size_t n_up;
    const uint64_t *nested; /* a bit each, from first_nested on */
    size_t first_nested;
    const struct quiet *quiet;   /* gaps of the thread */
};

struct stats_rows {
    VEC(struct stats_piece) pieces;
    struct quiet *quiet; /* a thread each */
    size_t threads;
    uint64_t from_ns, to_ns;
    uint64_t gap_ns; /* in the range */
    size_t gap_count; /* that touch it */
};

/* MTUI_E_NOMEM. */
int stats_rows_init(struct stats_rows *r, const struct trace *t, const struct stats_options *o);
void stats_rows_free(struct stats_rows *r);

static inline bool stats_piece_nested(const struct stats_piece *p, size_t i)
{
    return p->nested[(p->first_nested + i) / 64] >> (p->first_nested + i) % 64 & 1;
}

/* The place in `up` of the caller of a span: the last one that starts no later. */
size_t stats_piece_caller(const struct stats_piece *p, size_t i);

/* Time within a piece, asked for forward: the part of [from_ns, to_ns) that lies in the range and in no gap. */
struct stats_clock {
    const struct quiet *quiet;
    size_t at;         /* the first gap that is not over */
    uint64_t quiet_ns; /* of the gaps before it */
    uint64_t from_ns, to_ns;
};

static inline struct stats_clock stats_clock_start(const struct stats_rows *r, const struct stats_piece *p)
{
    return (struct stats_clock){.quiet = p->quiet, .from_ns = r->from_ns, .to_ns = r->to_ns};
}

/* Gap time before a time. */
static inline uint64_t stats_clock_quiet(struct stats_clock *c, uint64_t ns)
{
    const struct quiet *q = c->quiet;
    while (c->at < q->n && q->parts[c->at].to_ns <= ns) {
        c->quiet_ns += q->parts[c->at].to_ns - q->parts[c->at].from_ns;
        c->at++;
    }
    return c->quiet_ns + (c->at < q->n && q->parts[c->at].from_ns < ns ? ns - q->parts[c->at].from_ns : 0);
}

/* *inside gets what lies in the range, gaps included. */
static inline uint64_t stats_clock_net(struct stats_clock *c, const struct span *s, uint64_t *inside)
{
    uint64_t from = s->start_ns > c->from_ns ? s->start_ns : c->from_ns;
    uint64_t to = s->end_ns < c->to_ns ? s->end_ns : c->to_ns;
    *inside = to > from ? to - from : 0;
    if (!*inside || !c->quiet->n)
        return *inside;
    uint64_t before = stats_clock_quiet(c, from);
    return *inside - (stats_clock_quiet(c, to) - before);
}

#endif

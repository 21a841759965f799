/* A thread's calls in the order in which they happened: enter and leave events, rebuilt from the rows of
 * a trace. The caller of a span is the last span of the row above that starts no later. */
#ifndef MTUI_DECODE_WALK_H
#define MTUI_DECODE_WALK_H

#include "decode/trace/trace.h"

struct walk_row {
    const struct span *spans;
    size_t n, at; /* at: the next one to enter */
};

struct walk {
    struct walk_row *rows;     /* one a depth */
    const struct span **stack; /* what is open */
    size_t depths, depth;
    uint64_t to_ns;
};

struct walk_event {
    const struct span *span;
    size_t depth; /* of the span */
    bool enter;   /* else leave */
};

/* The spans that intersect [from_ns, to_ns): those with start < to_ns that end after from_ns or start at
 * or after it. 0 and UINT64_MAX walk all but what begins at UINT64_MAX. MTUI_E_NOMEM. */
int walk_init(struct walk *w, const struct trace *t, size_t thread, uint64_t from_ns, uint64_t to_ns);
/* One call and all it called: row `depth` of the trace is depth 0 of the walk. It ends with the leave of
 * depth 0; there is nothing to be asked for behind that. MTUI_E_NOMEM. */
int walk_init_call(struct walk *w, const struct trace *t, size_t thread, size_t depth, size_t index);
void walk_free(struct walk *w);

/* The next span of the row below the open one, if the open one is its caller. */
static inline const struct span *walk_next_child_(struct walk *w)
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

/* The next event; false at the end. Every enter has its leave; times never go backwards. */
static inline bool walk_next(struct walk *w, struct walk_event *ev)
{
    const struct span *s = walk_next_child_(w);
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

#endif

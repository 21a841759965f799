/* A thread's calls in the order in which they happened: enter and leave events, rebuilt from the rows of
 * a trace. The caller of a span is the last span of the row above that starts no later. */
#ifndef MTUI_DECODE_WALK_H
#define MTUI_DECODE_WALK_H

#include "decode/trace.h"

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
void walk_free(struct walk *w);

/* The next event; false at the end. Every enter has its leave; times never go backwards. */
bool walk_next(struct walk *w, struct walk_event *ev);

#endif

/* The spans that a builder holds of a thread, in the order of calls, run by run. Between trace_builder.c, which
 * adds them, and those who take them: trace_finish.c and stats_flow.c. */
#ifndef MTUI_DECODE_SPAN_RUNS_H
#define MTUI_DECODE_SPAN_RUNS_H

#include "decode/trace/trace_builder_priv.h"

/* Spans that lie one behind the other in a chunk and belong to one stretch. */
struct span_run {
    const struct span *spans;
    size_t n;
    uint16_t floor;
    bool begins; /* it is the first one since its stretch began, or since another ended */
};

struct span_runs {
    const struct thread_builder *t;
    const struct span_chunk *chunk;
    size_t at;      /* in the chunk */
    const struct span_chunk *end_chunk; /* up to `end` in it; NULL: all */
    size_t end;
    size_t stretch; /* the next one */
    uint64_t left;  /* of the present one */
    uint16_t floor;
};

/* Those before a pause; NULL: all. */
struct span_runs span_runs_start(const struct thread_builder *t, const struct trace_pause *until);
/* False at the end. A run never goes over the end of a chunk. */
bool span_runs_next(struct span_runs *r, struct span_run *out);

/* The next frame that is still open, as a span: they lie in the chunks in the order of the stack. NULL: none.
 * *at begins at 0. */
const struct span *span_runs_open(const struct thread_builder *t, size_t *at);

#endif

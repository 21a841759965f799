/* What a trace is made from: shared by trace_builder.c (adding) and those who take it from there, trace_finish.c
 * and stats_flow.c. */
#ifndef MTUI_DECODE_TRACE_BUILDER_PRIV_H
#define MTUI_DECODE_TRACE_BUILDER_PRIV_H

#include "core/base/large_ahead.h"
#include "core/base/vec.h"
#include "decode/trace/trace_priv.h"

struct span_chunk {
    struct span_chunk *next;
    size_t used, cap;
    struct span spans[];
};
_Static_assert(sizeof(struct span_chunk) == sizeof(struct span), "chunks are counted in spans");

struct open_span {
    struct span *span; /* NULL: deeper than TRACE_MAX_DEPTH, not stored */
    fn_id fn;
};

/* A stretch between two cuts. Spans carry their depth relative to where the stretch began, modulo 2^16;
 * frames found around it later lie above that, so its floor may be negative. */
struct stretch {
    uint64_t spans; /* in it */
    uint64_t gone;  /* of those, taken already */
    uint64_t first_ns;
    size_t rows;    /* that it takes */
    uint16_t floor; /* subtracted from the stored depths at the end, modulo 2^16 */
};

struct thread_builder {
    const struct trace_builder *owner;
    struct trace_thread info;
    char *comm;
    bool has_time;
    uint64_t now_ns, clamped, too_deep;
    struct span_chunk *first, *last;
    struct span_chunk *spare; /* empty: the next one, where spans are taken (stats_flow.h) */
    size_t taken;             /* of the first chunk */
    bool borrowed; /* the chunks are another builder's */
    VEC(struct open_span) stack;
    VEC(struct stretch) stretches; /* all but the present one */
    VEC(fn_id) wraps;              /* frames found around others, in the order of finding */
    struct stretch now;
    size_t rows; /* that any of the stretches takes */
    uint64_t gone; /* spans that were taken; info.spans is without them */
};

struct trace_builder {
    struct trace_info info;
    struct functions *functions;
    VEC(struct thread_builder *) threads; /* each on its own: workers fill different ones at once */
    size_t *slots;                        /* open addressing: index into threads + 1, 0 is free */
    size_t nslots;
    VEC(struct gap) gaps;
    VEC(struct mark) marks;
    struct text_chunk *texts;
    struct large_ahead *ahead; /* NULL: memory is fetched when it is needed */
    bool no_memory;
    const atomic_bool *cancel; /* of trace_builder_finish, or NULL */
};

/* Takes t, whose pid and tid no other one has. */
void trace_builder_add_thread(struct trace_builder *b, struct thread_builder *t);
/* trace_builder_enter and trace_builder_leave. */
int thread_builder_enter_any(struct thread_builder *t, uint64_t time_ns, fn_id fn, unsigned flags);
void thread_builder_leave_any(struct thread_builder *t, uint64_t time_ns, unsigned flags);
/* Spans that nobody needs any more: the chunks before that one. */
void trace_builder_drop(struct thread_builder *t, const struct span_chunk *until);

#endif

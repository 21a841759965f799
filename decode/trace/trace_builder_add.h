/* Entering and leaving frames of one of a builder's threads, as trace_builder_enter and trace_builder_leave do, for
 * those who do it tens of millions of times a second. */
#ifndef MTUI_DECODE_TRACE_BUILDER_ADD_H
#define MTUI_DECODE_TRACE_BUILDER_ADD_H

#include "decode/trace/trace_builder_priv.h"

/* It stays where it is as long as the builder lives. */
static inline struct thread_builder *thread_builder_of(const struct trace_builder *b, size_t thread)
{
    return b->threads.data[thread];
}

/* It is that time now, or later: returns which. */
static inline uint64_t thread_builder_pass(struct thread_builder *t, uint64_t time_ns)
{
    if (__builtin_expect(!t->has_time, 0)) {
        t->has_time = true;
        t->now_ns = t->info.first_ns = t->info.last_ns = time_ns;
    } else if (__builtin_expect(time_ns < t->now_ns, 0)) {
        t->clamped++;
    } else {
        t->now_ns = time_ns;
    }
    return t->now_ns;
}

/* Opens a span at a stored depth. */
static inline int thread_builder_open(struct thread_builder *t, uint64_t start_ns, uint64_t now_ns, uint16_t depth,
                                      fn_id fn, unsigned flags)
{
    struct span_chunk *c = t->last;
    if (__builtin_expect(!c || c->used == c->cap, 0) && !(c = trace_builder_add_chunk(t)))
        return MTUI_E_NOMEM;
    struct span *s = &c->spans[c->used];
    if (!vec_try_push(&t->stack, ((struct open_span){.span = s, .fn = fn})))
        return MTUI_E_NOMEM;
    c->used++;
    *s = (struct span){start_ns, now_ns, fn, depth, (uint16_t)flags};
    if (!t->now.spans++)
        t->now.first_ns = start_ns;
    t->info.spans++;
    return 0;
}

static inline int thread_builder_enter(struct thread_builder *t, uint64_t time_ns, fn_id fn, unsigned flags)
{
    uint64_t now = thread_builder_pass(t, time_ns);
    size_t depth = t->stack.len;
    if (__builtin_expect(depth >= TRACE_MAX_DEPTH, 0)) {
        t->too_deep++;
        return vec_try_push(&t->stack, ((struct open_span){.fn = fn})) ? 0 : MTUI_E_NOMEM;
    }
    if (depth >= t->now.rows)
        t->now.rows = depth + 1;
    return thread_builder_open(t, now, now, (uint16_t)(depth + t->now.floor), fn, flags);
}

static inline void thread_builder_leave(struct thread_builder *t, uint64_t time_ns, unsigned flags)
{
    uint64_t now = thread_builder_pass(t, time_ns);
    if (t->stack.len == 0)
        return;
    struct span *s = t->stack.data[--t->stack.len].span;
    if (!s)
        return;
    s->end_ns = now;
    s->flags |= (uint16_t)flags;
}

#endif

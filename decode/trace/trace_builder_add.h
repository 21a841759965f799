/* Entering and leaving frames of one of a builder's threads, as trace_builder_enter and trace_builder_leave do, for
 * those who do it tens of millions of times a second: what is usual stands here, the rest is theirs. */
#ifndef MTUI_DECODE_TRACE_BUILDER_ADD_H
#define MTUI_DECODE_TRACE_BUILDER_ADD_H

#include "decode/trace/trace_builder_priv.h"

/* It stays where it is as long as the builder lives. */
static inline struct thread_builder *thread_builder_of(const struct trace_builder *b, size_t thread)
{
    return b->threads.data[thread];
}

static inline int thread_builder_enter(struct thread_builder *t, uint64_t time_ns, fn_id fn, unsigned flags)
{
    struct span_chunk *c = t->last;
    size_t depth = t->stack.len;
    /* Where the present stretch has a row for it, there are a chunk and a time. */
    bool usual = depth < t->now.rows && depth < t->stack.cap && c->used < c->cap && time_ns >= t->now_ns;
    if (__builtin_expect(!usual, 0))
        return thread_builder_enter_any(t, time_ns, fn, flags);
    struct span *s = &c->spans[c->used++];
    *s = (struct span){time_ns, time_ns, fn, (uint16_t)(depth + t->now.floor), (uint16_t)flags};
    t->stack.data[t->stack.len++] = (struct open_span){s, fn};
    t->now_ns = time_ns;
    t->now.spans++;
    t->info.spans++;
    return 0;
}

static inline void thread_builder_leave(struct thread_builder *t, uint64_t time_ns, unsigned flags)
{
    if (__builtin_expect(!t->stack.len || time_ns < t->now_ns, 0)) {
        thread_builder_leave_any(t, time_ns, flags);
        return;
    }
    t->now_ns = time_ns;
    struct span *s = t->stack.data[--t->stack.len].span;
    if (!s)
        return;
    s->end_ns = time_ns;
    s->flags |= (uint16_t)flags;
}

#endif

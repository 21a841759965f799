/* Builds traces. The invariants of trace.h hold by construction: a thread's events come in the order
 * of time (a time that goes backwards is raised), and a span opens inside the one that is open. So the
 * spans of one depth are appended already sorted; trace_finish.c makes rows of them. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/base/large.h"
#include "decode/trace/trace_builder_priv.h"

#define CHUNK_FIRST 64
#define CHUNK_MOST (((size_t)4 << 20) / sizeof(struct span) - 1) /* two huge pages, given back once sorted */
#define AHEAD_FROM 1000000 /* spans of a thread: one more chunk is not much memory beside them */

struct trace_builder *trace_builder_new(struct functions *functions)
{
    struct trace_builder *b = xcalloc(1, sizeof *b);
    b->functions = functions;
    b->info.recorder = "perf";
    return b;
}

static void free_chunk(struct span_chunk *c)
{
    if (c)
        large_free(c, c->cap + 1, sizeof(struct span));
}

void trace_builder_drop(struct thread_builder *t, const struct span_chunk *until)
{
    while (t->first != until) {
        struct span_chunk *c = t->first;
        t->first = c->next;
        free_chunk(t->spare);
        t->spare = c;
    }
}

static void free_spans(struct thread_builder *t)
{
    while (t->first && !t->borrowed) {
        struct span_chunk *next = t->first->next;
        free_chunk(t->first);
        t->first = next;
    }
    free_chunk(t->spare);
    t->first = t->last = t->spare = NULL;
}

static void free_thread(struct thread_builder *t)
{
    free_spans(t);
    free(t->comm);
    vec_free(&t->stack);
    vec_free(&t->stretches);
    vec_free(&t->wraps);
    free(t);
}

void trace_builder_free(struct trace_builder *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->threads.len; i++)
        free_thread(b->threads.data[i]);
    vec_free(&b->threads);
    free(b->slots);
    vec_free(&b->gaps);
    vec_free(&b->marks);
    while (b->texts) {
        struct text_chunk *next = b->texts->next;
        free(b->texts);
        b->texts = next;
    }
    functions_free(b->functions);
    large_ahead_free(b->ahead);
    free(b);
}

void trace_builder_ahead(struct trace_builder *b)
{
    if (!b->ahead)
        b->ahead = large_ahead_new(CHUNK_MOST + 1, sizeof(struct span));
}

/* A copy that lives as long as the trace; the same text twice in a row is stored once. */
static const char *keep_text(struct trace_builder *b, const char *s, const char *previous)
{
    if (!s)
        s = "";
    if (previous && strcmp(previous, s) == 0)
        return previous;
    size_t len = strlen(s) + 1;
    if (!b->texts || b->texts->cap - b->texts->used < len) {
        size_t cap = len > 4096 ? len : 4096;
        struct text_chunk *c = malloc(sizeof *c + cap);
        if (!c) {
            b->no_memory = true;
            return "";
        }
        c->next = b->texts;
        c->used = 0;
        c->cap = cap;
        b->texts = c;
    }
    char *copy = b->texts->bytes + b->texts->used;
    memcpy(copy, s, len);
    b->texts->used += len;
    return copy;
}

void trace_builder_set_info(struct trace_builder *b, const struct trace_info *info)
{
    b->info = *info;
    b->info.recorder = keep_text(b, info->recorder ? info->recorder : "perf", NULL);
    b->info.partial = info->partial ? keep_text(b, info->partial, NULL) : NULL;
}

/* ---- Threads ---- */

static size_t slot_of(const struct trace_builder *b, pid_t pid, pid_t tid)
{
    uint64_t key = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
    size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (b->nslots - 1);
    while (b->slots[i]) {
        const struct trace_thread *t = &b->threads.data[b->slots[i] - 1]->info;
        if (t->pid == pid && t->tid == tid)
            break;
        i = (i + 1) & (b->nslots - 1);
    }
    return i;
}

static void grow_slots(struct trace_builder *b)
{
    free(b->slots);
    b->nslots = b->nslots ? b->nslots * 2 : 64;
    b->slots = xcalloc(b->nslots, sizeof *b->slots);
    for (size_t i = 0; i < b->threads.len; i++) {
        const struct trace_thread *t = &b->threads.data[i]->info;
        b->slots[slot_of(b, t->pid, t->tid)] = i + 1;
    }
}

void trace_builder_add_thread(struct trace_builder *b, struct thread_builder *t)
{
    if (b->threads.len * 2 >= b->nslots)
        grow_slots(b);
    t->owner = b;
    vec_push(&b->threads, t);
    b->slots[slot_of(b, t->info.pid, t->info.tid)] = b->threads.len;
}

size_t trace_builder_thread(struct trace_builder *b, pid_t pid, pid_t tid)
{
    size_t slot = b->nslots ? slot_of(b, pid, tid) : 0;
    if (b->nslots && b->slots[slot])
        return b->slots[slot] - 1;
    struct thread_builder *t = xcalloc(1, sizeof *t);
    t->info.pid = pid;
    t->info.tid = tid;
    t->info.last_cpu = -1;
    trace_builder_add_thread(b, t);
    return b->threads.len - 1;
}

void trace_builder_comm(struct trace_builder *b, size_t thread, const char *comm)
{
    struct thread_builder *t = b->threads.data[thread];
    if (t->comm && strcmp(t->comm, comm) == 0)
        return;
    free(t->comm);
    t->comm = xstrdup(comm);
}

void trace_builder_count_sample(struct trace_builder *b, size_t thread, int cpu)
{
    struct trace_thread *info = &b->threads.data[thread]->info;
    info->samples++;
    if (cpu >= 0)
        info->last_cpu = cpu;
}

void trace_builder_cpu(struct trace_builder *b, size_t thread, int cpu)
{
    b->threads.data[thread]->info.last_cpu = cpu;
}

/* ---- Frames ---- */

static uint64_t advance(struct thread_builder *t, uint64_t time_ns)
{
    if (!t->has_time) {
        t->has_time = true;
        t->now_ns = t->info.first_ns = t->info.last_ns = time_ns;
    } else if (time_ns < t->now_ns) {
        t->clamped++;
    } else {
        t->now_ns = time_ns;
    }
    return t->now_ns;
}

/* The next chunk, four times as large as the one before; NULL: memory is short. */
static __attribute__((noinline)) struct span_chunk *add_chunk(struct thread_builder *t)
{
    struct large_ahead *ahead = t->owner->ahead;
    size_t cap = t->last ? t->last->cap * 4 : CHUNK_FIRST;
    if (cap > CHUNK_MOST)
        cap = CHUNK_MOST;
    bool fetched = ahead && cap == CHUNK_MOST && t->info.spans >= AHEAD_FROM;
    struct span_chunk *c = t->spare;
    t->spare = NULL;
    if (c)
        cap = c->cap;
    else
        c = fetched ? large_ahead_take(ahead) : large_alloc(cap + 1, sizeof(struct span));
    if (!c)
        return NULL;
    *c = (struct span_chunk){.cap = cap};
    if (t->last)
        t->last->next = c;
    else
        t->first = c;
    t->last = c;
    return c;
}

static inline struct span *append_span(struct thread_builder *t)
{
    struct span_chunk *c = t->last;
    if (__builtin_expect(!c || c->used == c->cap, 0) && !(c = add_chunk(t)))
        return NULL;
    return &c->spans[c->used++];
}

/* Opens a span at a depth relative to the present stretch. */
static inline int open_span(struct thread_builder *t, uint64_t start_ns, uint64_t now_ns, uint16_t depth, fn_id fn,
                            unsigned flags)
{
    struct span *s = append_span(t);
    if (!s)
        return MTUI_E_NOMEM;
    if (!vec_try_push(&t->stack, ((struct open_span){.span = s, .fn = fn}))) {
        t->last->used--;
        return MTUI_E_NOMEM;
    }
    *s = (struct span){start_ns, now_ns, fn, depth, (uint16_t)flags};
    if (!t->now.spans++)
        t->now.first_ns = start_ns;
    t->info.spans++;
    return 0;
}

int thread_builder_enter_any(struct thread_builder *t, uint64_t time_ns, fn_id fn, unsigned flags)
{
    uint64_t now = advance(t, time_ns);
    size_t depth = t->stack.len;
    if (depth >= TRACE_MAX_DEPTH) {
        t->too_deep++;
        return vec_try_push(&t->stack, ((struct open_span){.fn = fn})) ? 0 : MTUI_E_NOMEM;
    }
    if (depth >= t->now.rows)
        t->now.rows = depth + 1;
    return open_span(t, now, now, (uint16_t)(depth + t->now.floor), fn, flags);
}

int trace_builder_enter(struct trace_builder *b, size_t thread, uint64_t time_ns, fn_id fn,
                        unsigned flags)
{
    return thread_builder_enter_any(b->threads.data[thread], time_ns, fn, flags);
}

int trace_builder_wrap(struct trace_builder *b, size_t thread, uint64_t time_ns, fn_id fn)
{
    struct thread_builder *t = b->threads.data[thread];
    uint64_t now = advance(t, time_ns);
    if (t->stack.len || !t->now.spans || t->now.rows >= TRACE_MAX_DEPTH)
        return trace_builder_enter(b, thread, time_ns, fn, SPAN_INFERRED_START);
    if (!vec_try_push(&t->wraps, fn))
        return MTUI_E_NOMEM;
    t->now.floor--;
    t->now.rows++;
    return open_span(t, t->now.first_ns, now, t->now.floor, fn, SPAN_INFERRED_START);
}

static void end_stretch(struct trace_builder *b, struct thread_builder *t)
{
    if (t->now.rows > t->rows)
        t->rows = t->now.rows;
    if (!vec_try_push(&t->stretches, t->now))
        b->no_memory = true;
    t->now = (struct stretch){0};
}

void trace_builder_cut(struct trace_builder *b, size_t thread, uint64_t time_ns, unsigned flags)
{
    struct thread_builder *t = b->threads.data[thread];
    while (t->stack.len)
        trace_builder_leave(b, thread, time_ns, flags);
    if (t->now.spans)
        end_stretch(b, t);
}

void thread_builder_leave_any(struct thread_builder *t, uint64_t time_ns, unsigned flags)
{
    uint64_t now = advance(t, time_ns);
    if (t->stack.len == 0)
        return;
    struct span *s = t->stack.data[--t->stack.len].span;
    if (!s)
        return;
    s->end_ns = now;
    s->flags |= (uint16_t)flags;
}

void trace_builder_leave(struct trace_builder *b, size_t thread, uint64_t time_ns, unsigned flags)
{
    thread_builder_leave_any(b->threads.data[thread], time_ns, flags);
}

int trace_builder_pause(struct trace_builder *b, size_t thread, uint64_t from_ns, uint64_t to_ns, fn_id fn,
                        struct trace_pause *out)
{
    struct thread_builder *t = b->threads.data[thread];
    uint64_t from = advance(t, from_ns);
    int rc = 0;
    if (to_ns > from) {
        rc = trace_builder_enter(b, thread, from, fn, 0);
        trace_builder_leave(b, thread, to_ns, 0);
    }
    *out = (struct trace_pause){.chunk = t->last,
                                .used = t->last ? t->last->used : 0,
                                .spans = t->now.spans,
                                .from_ns = from,
                                .shown = rc == 0 && to_ns > from && t->stack.len < TRACE_MAX_DEPTH};
    return rc;
}

void trace_builder_split(struct trace_builder *b, size_t thread, const struct trace_pause *p, size_t depth)
{
    struct thread_builder *t = b->threads.data[thread];
    struct span_chunk *c = p->chunk;
    struct stretch since = {.spans = t->now.spans - p->spans};
    uint16_t base = (uint16_t)(t->now.floor + depth);
    if (p->shown)
        c->spans[p->used - 1].depth = t->now.floor;
    for (size_t i = 0; i < depth; i++) {
        struct span *s = t->stack.data[i].span;
        if (!s)
            continue;
        s->end_ns = p->from_ns;
        s->flags |= SPAN_INFERRED_END;
    }
    t->stack.len -= depth;
    memmove(t->stack.data, t->stack.data + depth, t->stack.len * sizeof *t->stack.data);
    for (size_t i = p->used; c; c = c->next, i = 0)
        for (; i < c->used; i++) {
            struct span *s = &c->spans[i];
            if (!since.rows)
                since.first_ns = s->start_ns;
            s->depth = (uint16_t)(s->depth - base);
            if (s->depth >= since.rows)
                since.rows = s->depth + 1u;
        }
    t->now.spans = p->spans;
    end_stretch(b, t);
    t->now = since;
}

void trace_builder_pass(struct trace_builder *b, size_t thread, uint64_t time_ns)
{
    struct thread_builder *t = b->threads.data[thread];
    if (!t->has_time || time_ns > t->now_ns)
        advance(t, time_ns);
}

size_t trace_builder_depth(const struct trace_builder *b, size_t thread)
{
    return b->threads.data[thread]->stack.len;
}

fn_id trace_builder_open_fn(const struct trace_builder *b, size_t thread, size_t depth)
{
    const struct thread_builder *t = b->threads.data[thread];
    return depth < t->stack.len ? t->stack.data[depth].fn : FN_NONE;
}

/* ---- Gaps and marks ---- */

void trace_builder_gap(struct trace_builder *b, const struct gap *gap)
{
    struct gap g = *gap;
    if (g.end_ns < g.start_ns)
        g.end_ns = g.start_ns;
    g.detail = keep_text(b, gap->detail, b->gaps.len ? b->gaps.data[b->gaps.len - 1].detail : NULL);
    if (!vec_try_push(&b->gaps, g))
        b->no_memory = true;
}

void trace_builder_mark(struct trace_builder *b, const struct mark *mark)
{
    struct mark m = *mark;
    m.detail =
        keep_text(b, mark->detail, b->marks.len ? b->marks.data[b->marks.len - 1].detail : NULL);
    if (!vec_try_push(&b->marks, m))
        b->no_memory = true;
}

uint64_t trace_builder_spans(const struct trace_builder *b)
{
    uint64_t n = 0;
    for (size_t i = 0; i < b->threads.len; i++)
        n += b->threads.data[i]->info.spans + b->threads.data[i]->gone;
    return n;
}

uint64_t trace_builder_clamped(const struct trace_builder *b)
{
    uint64_t n = 0;
    for (size_t i = 0; i < b->threads.len; i++)
        n += b->threads.data[i]->clamped;
    return n;
}

uint64_t trace_builder_too_deep(const struct trace_builder *b)
{
    uint64_t n = 0;
    for (size_t i = 0; i < b->threads.len; i++)
        n += b->threads.data[i]->too_deep;
    return n;
}

/* Builds traces. The invariants of trace.h hold by construction: a thread's events come in the order
 * of time (a time that goes backwards is raised), and a span opens inside the one that is open. So the
 * spans of one depth are appended already sorted, and one counting sort by depth at the end turns the
 * order of calls into rows, a chunk at a time: the peak is one copy of the trace, not two. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/vec.h"
#include "decode/large.h"
#include "decode/trace_priv.h"

#define CHUNK_FIRST 64
#define CHUNK_MOST (((size_t)4 << 20) / sizeof(struct span) - 1) /* two huge pages, given back once sorted */

struct span_chunk {
    struct span_chunk *next;
    size_t used, cap;
    struct span spans[];
};
_Static_assert(sizeof(struct span_chunk) == sizeof(struct span), "chunks are counted in spans");

struct frame {
    struct span *span; /* NULL: deeper than TRACE_MAX_DEPTH, not stored */
    fn_id fn;
};

/* A stretch between two cuts. Spans carry their depth relative to where the stretch began, modulo 2^16;
 * frames found around it later lie above that, so its floor may be negative. */
struct stretch {
    uint64_t spans; /* in it */
    uint64_t first_ns;
    size_t rows;    /* that it takes */
    uint16_t floor; /* subtracted from the stored depths at the end, modulo 2^16 */
};

struct thread_builder {
    struct trace_thread info;
    char *comm;
    bool has_time;
    uint64_t now_ns, clamped, too_deep;
    struct span_chunk *first, *last;
    VEC(struct frame) stack;
    VEC(struct stretch) stretches; /* all but the present one */
    struct stretch now;
    size_t rows; /* that any of the stretches takes */
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
    bool no_memory;
};

struct trace_builder *trace_builder_new(struct functions *functions)
{
    struct trace_builder *b = xcalloc(1, sizeof *b);
    b->functions = functions;
    b->info.recorder = "perf";
    return b;
}

static void free_spans(struct thread_builder *t)
{
    while (t->first) {
        struct span_chunk *next = t->first->next;
        large_free(t->first, t->first->cap + 1, sizeof(struct span));
        t->first = next;
    }
    t->last = NULL;
}

static void free_thread(struct thread_builder *t)
{
    free_spans(t);
    free(t->comm);
    vec_free(&t->stack);
    vec_free(&t->stretches);
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
    free(b);
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

size_t trace_builder_thread(struct trace_builder *b, pid_t pid, pid_t tid)
{
    if (b->threads.len * 2 >= b->nslots)
        grow_slots(b);
    size_t slot = slot_of(b, pid, tid);
    if (b->slots[slot])
        return b->slots[slot] - 1;
    struct thread_builder *t = xcalloc(1, sizeof *t);
    t->info.pid = pid;
    t->info.tid = tid;
    t->info.last_cpu = -1;
    vec_push(&b->threads, t);
    b->slots[slot] = b->threads.len;
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

static struct span *append_span(struct thread_builder *t)
{
    struct span_chunk *c = t->last;
    if (!c || c->used == c->cap) {
        size_t cap = c ? c->cap * 4 : CHUNK_FIRST;
        if (cap > CHUNK_MOST)
            cap = CHUNK_MOST;
        struct span_chunk *more = large_alloc(cap + 1, sizeof(struct span));
        if (!more)
            return NULL;
        *more = (struct span_chunk){.cap = cap};
        if (c)
            c->next = more;
        else
            t->first = more;
        t->last = c = more;
    }
    return &c->spans[c->used++];
}

/* Opens a span at a depth relative to the present stretch. */
static int open_span(struct thread_builder *t, uint64_t start_ns, uint64_t now_ns, uint16_t depth,
                     fn_id fn, unsigned flags)
{
    struct span *s = append_span(t);
    if (!s)
        return MTUI_E_NOMEM;
    if (!vec_try_push(&t->stack, ((struct frame){.span = s, .fn = fn}))) {
        t->last->used--;
        return MTUI_E_NOMEM;
    }
    *s = (struct span){start_ns, now_ns, fn, depth, (uint16_t)flags};
    if (!t->now.spans++)
        t->now.first_ns = start_ns;
    t->info.spans++;
    return 0;
}

int trace_builder_enter(struct trace_builder *b, size_t thread, uint64_t time_ns, fn_id fn,
                        unsigned flags)
{
    struct thread_builder *t = b->threads.data[thread];
    uint64_t now = advance(t, time_ns);
    size_t depth = t->stack.len;
    if (depth >= TRACE_MAX_DEPTH) {
        t->too_deep++;
        return vec_try_push(&t->stack, ((struct frame){.fn = fn})) ? 0 : MTUI_E_NOMEM;
    }
    if (depth >= t->now.rows)
        t->now.rows = depth + 1;
    return open_span(t, now, now, (uint16_t)(depth + t->now.floor), fn, flags);
}

int trace_builder_wrap(struct trace_builder *b, size_t thread, uint64_t time_ns, fn_id fn)
{
    struct thread_builder *t = b->threads.data[thread];
    uint64_t now = advance(t, time_ns);
    if (t->stack.len || !t->now.spans || t->now.rows >= TRACE_MAX_DEPTH)
        return trace_builder_enter(b, thread, time_ns, fn, SPAN_INFERRED_START);
    t->now.floor--;
    t->now.rows++;
    return open_span(t, t->now.first_ns, now, t->now.floor, fn, SPAN_INFERRED_START);
}

void trace_builder_cut(struct trace_builder *b, size_t thread, uint64_t time_ns, unsigned flags)
{
    struct thread_builder *t = b->threads.data[thread];
    while (t->stack.len)
        trace_builder_leave(b, thread, time_ns, flags);
    if (!t->now.spans)
        return;
    if (t->now.rows > t->rows)
        t->rows = t->now.rows;
    if (!vec_try_push(&t->stretches, t->now))
        b->no_memory = true;
    t->now = (struct stretch){0};
}

void trace_builder_leave(struct trace_builder *b, size_t thread, uint64_t time_ns, unsigned flags)
{
    struct thread_builder *t = b->threads.data[thread];
    uint64_t now = advance(t, time_ns);
    if (t->stack.len == 0)
        return;
    struct span *s = t->stack.data[--t->stack.len].span;
    if (!s)
        return;
    s->end_ns = now;
    s->flags |= (uint16_t)flags;
}

void trace_builder_pass(struct trace_builder *b, size_t thread, uint64_t time_ns)
{
    advance(b->threads.data[thread], time_ns);
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

/* ---- Finishing ---- */

/* The spans in the order of calls, with their stretches. */
struct reader {
    const struct thread_builder *t;
    size_t stretch;
    uint64_t left; /* of the stretch */
    uint16_t floor;
};

static uint16_t true_depth(struct reader *r, const struct span *s)
{
    while (!r->left) {
        const struct thread_builder *t = r->t;
        const struct stretch *st =
            r->stretch < t->stretches.len ? &t->stretches.data[r->stretch] : &t->now;
        r->stretch++;
        r->left = st->spans;
        r->floor = st->floor;
    }
    r->left--;
    return (uint16_t)(s->depth - r->floor);
}

static void count_rows(const struct thread_builder *t, size_t *rows)
{
    struct reader r = {.t = t};
    for (const struct span_chunk *c = t->first; c; c = c->next)
        for (size_t i = 0; i < c->used; i++)
            rows[true_depth(&r, &c->spans[i])]++;
}

/* From the order of calls into rows; frees the chunks as it goes. A frame found around others is
 * appended after them, but it is the first of its stretch in its row: rows come out sorted. */
static int sort_into_rows(struct thread_builder *t, struct track *k)
{
    size_t depths = t->now.rows > t->rows ? t->now.rows : t->rows;
    if (t->info.spans == 0)
        return 0;
    size_t *first = malloc((depths + 1) * sizeof *first), *next = calloc(depths, sizeof *next);
    struct span *spans = large_alloc((size_t)t->info.spans, sizeof *spans);
    if (!first || !next || !spans) {
        free(first);
        free(next);
        large_free(spans, (size_t)t->info.spans, sizeof *spans);
        return MTUI_E_NOMEM;
    }
    count_rows(t, next);
    first[0] = 0;
    for (size_t d = 0; d < depths; d++) {
        first[d + 1] = first[d] + next[d];
        next[d] = first[d];
    }
    struct reader r = {.t = t};
    while (t->first) {
        struct span_chunk *c = t->first;
        for (size_t i = 0; i < c->used; i++) {
            uint16_t depth = true_depth(&r, &c->spans[i]);
            struct span *to = &spans[next[depth]++];
            *to = c->spans[i];
            to->depth = depth;
        }
        t->first = c->next;
        large_free(c, c->cap + 1, sizeof(struct span));
    }
    t->last = NULL;
    t->rows = depths;
    free(next);
    k->spans = spans;
    k->row_first = first;
    return 0;
}

static void widen(uint64_t *first, uint64_t *last, uint64_t from, uint64_t to)
{
    if (from < *first)
        *first = from;
    if (to > *last)
        *last = to;
}

static int by_pid_tid(const void *a, const void *b)
{
    const struct track *x = a, *y = b;
    if (x->info.pid != y->info.pid)
        return x->info.pid < y->info.pid ? -1 : 1;
    return x->info.tid < y->info.tid ? -1 : x->info.tid > y->info.tid;
}

static int by_tid(const void *a, const void *b)
{
    const struct tid_index *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Equal ones keep no order of their own in qsort, so every field takes part. */
static int by_gap_time(const void *a, const void *b)
{
    const struct gap *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    if (x->cause != y->cause)
        return x->cause < y->cause ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->detail, y->detail);
}

static int by_mark_time(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return strcmp(x->detail, y->detail);
}

/* Every thread of the builder becomes a track of t; what is still open ends at the thread's last time. */
static int build_tracks(struct trace_builder *b, struct trace *t)
{
    for (size_t i = 0; i < b->threads.len; i++) {
        struct thread_builder *from = b->threads.data[i];
        while (from->stack.len)
            trace_builder_leave(b, i, from->now_ns, SPAN_INFERRED_END);
        struct track *k = &t->tracks[i];
        if (sort_into_rows(from, k) < 0)
            return MTUI_E_NOMEM;
        k->info = from->info;
        k->info.depths = k->row_first ? from->rows : 0;
        k->info.last_ns = from->now_ns;
        if (!from->has_time) { /* the empty range, for widening */
            k->info.first_ns = UINT64_MAX;
            k->info.last_ns = 0;
        }
        k->comm = from->comm ? from->comm : xstrdup("");
        from->comm = NULL;
        k->info.comm = k->comm;
        t->ntracks++;
    }
    return 0;
}

static int index_tids(struct trace *t)
{
    if (t->ntracks == 0)
        return 0;
    qsort(t->tracks, t->ntracks, sizeof *t->tracks, by_pid_tid);
    t->by_tid = malloc(t->ntracks * sizeof *t->by_tid);
    if (!t->by_tid)
        return MTUI_E_NOMEM;
    for (size_t i = 0; i < t->ntracks; i++)
        t->by_tid[i] = (struct tid_index){t->tracks[i].info.tid, i};
    qsort(t->by_tid, t->ntracks, sizeof *t->by_tid, by_tid);
    return 0;
}

/* first_ns and last_ns of the threads and the trace: whatever happened lies inside. */
static void set_times(struct trace *t)
{
    uint64_t first = t->info.first_ns, last = t->info.last_ns;
    if (first == 0 && last == 0)
        first = UINT64_MAX;
    for (size_t i = 0; i < t->ngaps; i++) {
        const struct gap *g = &t->gaps[i];
        ssize_t thread = g->tid > 0 ? trace_find_thread(t, g->tid) : -1;
        widen(&first, &last, g->start_ns, g->end_ns);
        if (thread >= 0)
            widen(&t->tracks[thread].info.first_ns, &t->tracks[thread].info.last_ns, g->start_ns,
                  g->end_ns);
    }
    for (size_t i = 0; i < t->nmarks; i++)
        widen(&first, &last, t->marks[i].time_ns, t->marks[i].time_ns);
    for (size_t i = 0; i < t->ntracks; i++)
        widen(&first, &last, t->tracks[i].info.first_ns, t->tracks[i].info.last_ns);
    if (first > last)
        first = last = 0;
    for (size_t i = 0; i < t->ntracks; i++) {
        struct trace_thread *info = &t->tracks[i].info;
        if (info->first_ns > info->last_ns)
            info->first_ns = info->last_ns = first;
    }
    t->info.first_ns = first;
    t->info.last_ns = last;
}

int trace_builder_finish(struct trace_builder *b, struct trace **out, struct err *err)
{
    struct trace *t = xcalloc(1, sizeof *t);
    size_t nthreads = b->threads.len;
    t->tracks = calloc(nthreads ? nthreads : 1, sizeof *t->tracks);
    if (b->no_memory || !t->tracks || build_tracks(b, t) < 0 || index_tids(t) < 0) {
        trace_free(t);
        return err_set(err, MTUI_E_NOMEM,
                       "not enough memory for this trace: choose a smaller range or fewer threads");
    }
    t->info = b->info;
    t->gaps = b->gaps.data;
    t->ngaps = b->gaps.len;
    t->marks = b->marks.data;
    t->nmarks = b->marks.len;
    t->texts = b->texts;
    t->functions = b->functions;
    memset(&b->gaps, 0, sizeof b->gaps);
    memset(&b->marks, 0, sizeof b->marks);
    b->texts = NULL;
    b->functions = NULL;
    if (t->ngaps)
        qsort(t->gaps, t->ngaps, sizeof *t->gaps, by_gap_time);
    if (t->nmarks)
        qsort(t->marks, t->nmarks, sizeof *t->marks, by_mark_time);
    set_times(t);
    *out = t;
    return 0;
}

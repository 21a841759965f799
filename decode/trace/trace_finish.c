/* From a builder to a trace. One counting sort by depth turns the order of calls into rows, a chunk at a
 * time: the peak is one copy of the trace, not two. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/large.h"
#include "decode/trace/nesting.h"
#include "decode/trace/span_runs.h"

/* Of a row: the place to fill next (while counting: the spans so far); up to which one there is memory. */
struct cursor {
    size_t next, backed;
};

static void count_rows(const struct thread_builder *t, struct cursor *rows)
{
    struct span_runs r = span_runs_start(t, NULL);
    struct span_run run;
    while (span_runs_next(&r, &run))
        for (size_t i = 0; i < run.n; i++)
            rows[(uint16_t)(run.spans[i].depth - run.floor)].next++;
}

/* What rows are made into. */
struct rows {
    struct span *spans;
    struct large_heir memory; /* of spans: the chunks' */
    size_t *first; /* a row: its first place */
    struct cursor *cursors;
    uint64_t *nested;
    struct nesting nesting;
    size_t wraps; /* of the builder's, used up */
};

static int rows_init(struct rows *r, const struct thread_builder *t, size_t nfn, size_t depths)
{
    *r = (struct rows){.first = malloc((depths + 1) * sizeof *r->first),
                       .cursors = calloc(depths, sizeof *r->cursors),
                       .nested = calloc((size_t)t->info.spans / 64 + 1, sizeof *r->nested),
                       .spans = large_alloc((size_t)t->info.spans, sizeof *r->spans)};
    if (r->first && r->cursors && r->nested && r->spans && nesting_init(&r->nesting, nfn, depths) == 0)
        return 0;
    free(r->first);
    free(r->cursors);
    free(r->nested);
    large_free(r->spans, (size_t)t->info.spans, sizeof *r->spans);
    return MTUI_E_NOMEM;
}

/* Frames found around others come after them, but were open all the time, the last one outermost. */
static void open_wraps(struct rows *r, const struct thread_builder *t, size_t n)
{
    nesting_leave(&r->nesting, 0);
    r->wraps += n;
    for (size_t d = 0; d < n; d++)
        nesting_enter(&r->nesting, d, t->wraps.data[r->wraps - 1 - d]);
}

static void put_run(struct rows *r, const struct span_run *run)
{
    struct nesting nesting = r->nesting; /* what is written to below does not alias a local one */
    struct span *spans = r->spans;
    uint64_t *nested = r->nested;
    struct cursor *cursors = r->cursors;
    for (size_t i = 0; i < run->n; i++) {
        struct span s = run->spans[i];
        s.depth = (uint16_t)(s.depth - run->floor);
        struct cursor *c = &cursors[s.depth];
        if (c->next >= c->backed)
            c->backed = large_heir_need(&r->memory, c->next * sizeof s, (c->next + 1) * sizeof s) / sizeof s;
        size_t at = c->next++;
        spans[at] = s;
        if (nesting_enter(&nesting, s.depth, s.fn))
            nested[at / 64] |= (uint64_t)1 << at % 64;
    }
    r->nesting = nesting;
}

/* The spans of the run, ending at the open ones among them: those end at the thread's last time. */
static void sort_run(struct rows *r, const struct thread_builder *t, struct span_run run, const struct span **open,
                     size_t *open_at)
{
    const struct span *end = run.spans + run.n;
    while (*open && *open >= run.spans && *open < end) {
        run.n = (size_t)(*open - run.spans) + 1;
        put_run(r, &run);
        struct span *s = &r->spans[r->cursors[(uint16_t)((*open)->depth - run.floor)].next - 1];
        s->end_ns = t->now_ns;
        s->flags |= SPAN_INFERRED_END;
        run.spans = *open + 1;
        *open = span_runs_open(t, open_at);
    }
    run.n = (size_t)(end - run.spans);
    put_run(r, &run);
}

static void free_chunks(struct thread_builder *t, struct large_heir *heir, const struct span_chunk *until)
{
    while (t->first != until) {
        struct span_chunk *c = t->first;
        t->first = c->next;
        if (!t->borrowed)
            large_heir_give(heir, c, c->cap + 1, sizeof(struct span));
    }
}

/* From the order of calls into rows; what is open ends at the thread's last time. Frees the chunks as it
 * goes, unless they are borrowed. A frame found around others is appended after them, but it is the first
 * of its stretch in its row: rows come out sorted. */
static int sort_into_rows(struct thread_builder *t, size_t nfn, const atomic_bool *cancel, struct track *k)
{
    struct rows rows;
    int rc = 0;
    size_t depths = t->now.rows > t->rows ? t->now.rows : t->rows;
    if (t->info.spans == 0)
        return 0;
    if (rows_init(&rows, t, nfn, depths) < 0)
        return MTUI_E_NOMEM;
    count_rows(t, rows.cursors);
    while (depths > 1 && !rows.cursors[depths - 1].next) /* what stood there was moved up (trace_builder_split) */
        depths--;
    rows.first[0] = 0;
    for (size_t d = 0; d < depths; d++) {
        rows.first[d + 1] = rows.first[d] + rows.cursors[d].next;
        rows.cursors[d].next = rows.first[d];
    }
    if (!t->borrowed)
        large_heir_init(&rows.memory, rows.spans, (size_t)t->info.spans, sizeof *rows.spans, depths);
    struct span_runs r = span_runs_start(t, NULL);
    struct span_run run;
    size_t open_at = 0;
    const struct span *open = span_runs_open(t, &open_at);
    while (rc == 0 && span_runs_next(&r, &run)) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            rc = MTUI_E_CANCEL;
        free_chunks(t, &rows.memory, r.chunk);
        if (run.begins)
            open_wraps(&rows, t, (uint16_t)-run.floor);
        sort_run(&rows, t, run, &open, &open_at);
    }
    free_chunks(t, &rows.memory, NULL);
    t->last = NULL;
    t->rows = depths;
    large_heir_end(&rows.memory);
    nesting_free(&rows.nesting);
    free(rows.cursors);
    k->spans = rows.spans;
    k->nested = rows.nested;
    k->row_first = rows.first;
    return rc;
}

static void widen(uint64_t *first, uint64_t *last, uint64_t from, uint64_t to)
{
    if (from < *first)
        *first = from;
    if (to > *last)
        *last = to;
}

void trace_builder_times(const struct trace_builder *b, uint64_t *first_ns, uint64_t *last_ns)
{
    uint64_t first = *first_ns || *last_ns ? *first_ns : UINT64_MAX, last = *last_ns;
    for (size_t i = 0; i < b->threads.len; i++)
        if (b->threads.data[i]->has_time)
            widen(&first, &last, b->threads.data[i]->info.first_ns, b->threads.data[i]->now_ns);
    for (size_t i = 0; i < b->gaps.len; i++)
        widen(&first, &last, b->gaps.data[i].start_ns, b->gaps.data[i].end_ns);
    *first_ns = first > last ? last : first;
    *last_ns = last;
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

/* At the same time, what is over (MARK_NOTE) stands before what begins. */
static int by_mark_time(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if ((x->kind == MARK_NOTE) != (y->kind == MARK_NOTE))
        return x->kind == MARK_NOTE ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return strcmp(x->detail, y->detail);
}

/* Every thread of the builder becomes a track of t. */
static int build_tracks(struct trace_builder *b, struct trace *t)
{
    for (size_t i = 0; i < b->threads.len; i++) {
        struct thread_builder *from = b->threads.data[i];
        struct track *k = &t->tracks[i];
        int rc = sort_into_rows(from, functions_count(b->functions), b->cancel, k);
        if (rc < 0 && !k->spans)
            return rc;
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
        if (rc < 0)
            return rc;
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

void trace_builder_set_cancel(struct trace_builder *b, const atomic_bool *cancel)
{
    b->cancel = cancel;
}

int trace_builder_finish(struct trace_builder *b, struct trace **out, struct err *err)
{
    struct trace *t = xcalloc(1, sizeof *t);
    size_t nthreads = b->threads.len;
    large_ahead_free(b->ahead);
    b->ahead = NULL;
    t->tracks = calloc(nthreads ? nthreads : 1, sizeof *t->tracks);
    int rc = b->no_memory || !t->tracks ? MTUI_E_NOMEM : build_tracks(b, t);
    if (rc == 0)
        rc = index_tids(t);
    if (rc < 0) {
        trace_free(t);
        if (rc == MTUI_E_CANCEL)
            return err_set(err, rc, "cancelled");
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

/* ---- A trace of what is there so far ---- */

static struct thread_builder *fork_thread(const struct thread_builder *t, bool *no_memory)
{
    struct thread_builder *k = xcalloc(1, sizeof *k);
    *k = *t;
    k->comm = t->comm ? xstrdup(t->comm) : NULL;
    k->borrowed = true;
    memset(&k->stack, 0, sizeof k->stack);
    memset(&k->stretches, 0, sizeof k->stretches);
    memset(&k->wraps, 0, sizeof k->wraps);
    k->spare = NULL;
    for (size_t i = 0; i < t->stack.len; i++)
        *no_memory |= !vec_try_push(&k->stack, t->stack.data[i]);
    for (size_t i = 0; i < t->stretches.len; i++)
        *no_memory |= !vec_try_push(&k->stretches, t->stretches.data[i]);
    for (size_t i = 0; i < t->wraps.len; i++)
        *no_memory |= !vec_try_push(&k->wraps, t->wraps.data[i]);
    return k;
}

struct trace_builder *trace_builder_fork(const struct trace_builder *b)
{
    struct trace_builder *k = trace_builder_new(b->functions ? functions_share(b->functions) : NULL);
    k->no_memory = b->no_memory;
    trace_builder_set_info(k, &b->info);
    for (size_t i = 0; i < b->threads.len; i++)
        trace_builder_add_thread(k, fork_thread(b->threads.data[i], &k->no_memory));
    for (size_t i = 0; i < b->gaps.len; i++)
        trace_builder_gap(k, &b->gaps.data[i]);
    for (size_t i = 0; i < b->marks.len; i++)
        trace_builder_mark(k, &b->marks.data[i]);
    return k;
}

void trace_builder_functions(struct trace_builder *b, struct functions *functions)
{
    b->functions = functions;
}

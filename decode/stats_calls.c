/* One function of a trace: its callers and callees, its longest calls. */
#include <stdlib.h>
#include <string.h>

#include "decode/stats.h"
#include "decode/walk.h"

struct range {
    uint64_t from_ns, to_ns;
};

static struct range range_of(const struct stats_options *o)
{
    struct range r = {o->from_ns, o->to_ns};
    if (r.from_ns == 0 && r.to_ns == 0)
        r.to_ns = UINT64_MAX;
    return r;
}

static uint64_t inside(const struct span *s, struct range r)
{
    uint64_t from = s->start_ns > r.from_ns ? s->start_ns : r.from_ns;
    uint64_t to = s->end_ns < r.to_ns ? s->end_ns : r.to_ns;
    return to > from ? to - from : 0;
}

/* ---- Callers and callees ---- */

static void count_edge(struct stats_edge *edges, size_t i, const struct span *callee, struct range r)
{
    edges[i].calls++;
    edges[i].total_ns += inside(callee, r);
}

/* callers and callees have a place per function; callers one more, for calls from nowhere. */
static int walk_edges(const struct trace *t, size_t thread, fn_id fn, const struct stats_options *o,
                      size_t nfn, struct stats_edge *callers, struct stats_edge *callees)
{
    struct walk w;
    struct walk_event ev;
    struct range r = range_of(o);
    if (walk_init(&w, t, thread, r.from_ns, r.to_ns) < 0)
        return MTUI_E_NOMEM;
    while (walk_next(&w, &ev)) {
        if (!ev.enter)
            continue;
        const struct span *caller = ev.depth ? w.stack[ev.depth - 1] : NULL;
        if (ev.span->fn == fn)
            count_edge(callers, caller ? caller->fn : nfn, ev.span, r);
        if (caller && caller->fn == fn)
            count_edge(callees, ev.span->fn, ev.span, r);
    }
    walk_free(&w);
    return o->cancel && atomic_load_explicit(o->cancel, memory_order_relaxed) ? MTUI_E_CANCEL : 0;
}

static int by_calls(const void *a, const void *b)
{
    const struct stats_edge *x = a, *y = b;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    return (x->fn > y->fn) - (x->fn < y->fn);
}

/* Moves the places in use to the front, in order; returns how many. */
static size_t compact(struct stats_edge *edges, size_t n, size_t nfn)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        if (edges[i].calls) {
            edges[i].fn = i < nfn ? (fn_id)i : FN_NONE;
            edges[used++] = edges[i];
        }
    if (used)
        qsort(edges, used, sizeof *edges, by_calls);
    return used;
}

int stats_edges(const struct trace *t, fn_id fn, const struct stats_options *options,
                struct stats_edge **callers, size_t *ncallers, struct stats_edge **callees,
                size_t *ncallees, struct err *err)
{
    size_t nfn = functions_count(trace_functions(t));
    struct stats_edge *up = calloc(nfn + 1, sizeof *up), *down = calloc(nfn + 1, sizeof *down);
    int rc = up && down ? 0 : MTUI_E_NOMEM;
    for (size_t i = 0; rc == 0 && i < trace_thread_count(t); i++)
        if (options->thread < 0 || (size_t)options->thread == i)
            rc = walk_edges(t, i, fn, options, nfn, up, down);
    if (rc < 0) {
        free(up);
        free(down);
        return err_set(err, rc, rc == MTUI_E_CANCEL ? "cancelled" : "not enough memory");
    }
    *ncallers = compact(up, nfn + 1, nfn);
    *ncallees = compact(down, nfn + 1, nfn);
    *callers = up;
    *callees = down;
    return 0;
}

/* ---- Longest calls: a heap of the best so far, the worst of them on top ---- */

static bool worse(const struct stats_call *a, const struct stats_call *b)
{
    if (a->duration_ns != b->duration_ns)
        return a->duration_ns < b->duration_ns;
    if (a->start_ns != b->start_ns)
        return a->start_ns > b->start_ns;
    return a->thread != b->thread ? a->thread > b->thread : a->depth > b->depth;
}

static void swap(struct stats_call *a, struct stats_call *b)
{
    struct stats_call x = *a;
    *a = *b;
    *b = x;
}

static void sift_down(struct stats_call *heap, size_t n, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && worse(&heap[child + 1], &heap[child]))
            child++;
        if (!worse(&heap[child], &heap[i]))
            return;
        swap(&heap[child], &heap[i]);
    }
}

static void sift_up(struct stats_call *heap, size_t i)
{
    for (; i && worse(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&heap[i], &heap[(i - 1) / 2]);
}

static void offer(struct stats_call *heap, size_t *n, size_t max, const struct stats_call *c)
{
    if (*n < max) {
        heap[*n] = *c;
        sift_up(heap, (*n)++);
    } else if (worse(&heap[0], c)) {
        heap[0] = *c;
        sift_down(heap, *n, 0);
    }
}

size_t stats_longest(const struct trace *t, fn_id fn, const struct stats_options *options,
                     struct stats_call *out, size_t max)
{
    struct range r = range_of(options);
    size_t n = 0;
    for (size_t th = 0; max && th < trace_thread_count(t); th++) {
        if (options->thread >= 0 && (size_t)options->thread != th)
            continue;
        for (size_t d = 0; d < trace_thread(t, th)->depths; d++) {
            size_t len = 0;
            const struct span *row = trace_row(t, th, d, &len);
            for (size_t i = 0; i < len && row[i].start_ns < r.to_ns; i++) {
                bool in = row[i].end_ns > r.from_ns || row[i].start_ns >= r.from_ns;
                if (!in || row[i].fn != fn)
                    continue;
                struct stats_call c = {th, d, i, row[i].end_ns - row[i].start_ns, row[i].start_ns};
                offer(out, &n, max, &c);
            }
        }
    }
    for (size_t left = n; left > 1; left--) { /* heap sort: the worst goes last */
        swap(&out[0], &out[left - 1]);
        sift_down(out, left - 1, 0);
    }
    return n;
}

/* One function of a trace: its callers and callees, its longest calls. */
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"
#include "decode/trace/select.h"
#include "decode/trace/stats.h"
#include "decode/trace/walk.h"

#define LOOK_EVERY 0xfffff /* spans between two looks at cancel */

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

static bool cancelled(const struct stats_options *o)
{
    return o->cancel && atomic_load_explicit(o->cancel, memory_order_relaxed);
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
    uint64_t events = 0;
    while (walk_next(&w, &ev)) {
        if ((++events & LOOK_EVERY) == 0 && cancelled(o))
            break;
        if (!ev.enter)
            continue;
        const struct span *caller = ev.depth ? w.stack[ev.depth - 1] : NULL;
        if (ev.span->fn == fn)
            count_edge(callers, caller ? caller->fn : nfn, ev.span, r);
        if (caller && caller->fn == fn)
            count_edge(callees, ev.span->fn, ev.span, r);
    }
    walk_free(&w);
    return cancelled(o) ? MTUI_E_CANCEL : 0;
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

/* ---- All calls of a function ---- */

typedef int visit_fn(void *arg, const struct stats_call *call);

/* The first span of a row that reaches into the range. */
static size_t first_in(const struct span *row, size_t n, struct range r)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (row[mid].end_ns > r.from_ns || row[mid].start_ns >= r.from_ns)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static int visit_row(const struct trace *t, size_t thread, size_t depth, fn_id fn,
                     const struct stats_options *o, visit_fn *visit, void *arg)
{
    struct range r = range_of(o);
    size_t n = 0;
    const struct span *row = trace_row(t, thread, depth, &n);
    for (size_t i = first_in(row, n, r); i < n && row[i].start_ns < r.to_ns; i++) {
        if ((i & LOOK_EVERY) == 0 && cancelled(o))
            return MTUI_E_CANCEL;
        if (row[i].fn != fn)
            continue;
        struct stats_call c = {thread, depth, i, row[i].end_ns - row[i].start_ns, row[i].start_ns};
        int rc = visit(arg, &c);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int visit_calls(const struct trace *t, fn_id fn, const struct stats_options *o, visit_fn *visit,
                       void *arg)
{
    int rc = 0;
    for (size_t th = 0; rc == 0 && th < trace_thread_count(t); th++)
        for (size_t d = 0; rc == 0 && (o->thread < 0 || (size_t)o->thread == th) &&
                           d < trace_thread(t, th)->depths; d++)
            rc = visit_row(t, th, d, fn, o, visit, arg);
    return rc;
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

struct longest {
    struct stats_call *heap;
    size_t n, max;
};

static int offer(void *arg, const struct stats_call *c)
{
    struct longest *l = arg;
    if (l->n < l->max) {
        l->heap[l->n] = *c;
        sift_up(l->heap, l->n++);
    } else if (worse(&l->heap[0], c)) {
        l->heap[0] = *c;
        sift_down(l->heap, l->n, 0);
    }
    return 0;
}

/* The worst goes last. */
static void sort_heap(struct stats_call *heap, size_t n)
{
    for (size_t left = n; left > 1; left--) {
        swap(&heap[0], &heap[left - 1]);
        sift_down(heap, left - 1, 0);
    }
}

size_t stats_longest(const struct trace *t, fn_id fn, const struct stats_options *options,
                     struct stats_call *out, size_t max)
{
    struct longest l = {.heap = out, .max = max};
    if (max)
        visit_calls(t, fn, options, offer, &l);
    sort_heap(out, l.n);
    return l.n;
}

/* ---- Ranks ---- */

/* Durations; what needs more than 32 bits is the largest value, and ranks above the others. */
struct durations {
    VEC(uint32_t) ns;
    struct function_stats all;
    struct longest longest; /* max 0: not asked for */
};

static int gather(void *arg, const struct stats_call *c)
{
    struct durations *d = arg;
    struct function_stats *f = &d->all;
    uint64_t ns = c->duration_ns;
    if (!vec_try_push(&d->ns, ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX))
        return MTUI_E_NOMEM;
    f->min_ns = f->calls == 0 || ns < f->min_ns ? ns : f->min_ns;
    f->max_ns = ns > f->max_ns ? ns : f->max_ns;
    f->histogram[ns ? 63 - __builtin_clzll(ns) : 0]++;
    f->sum_ns += ns;
    f->calls++;
    return d->longest.max ? offer(&d->longest, c) : 0;
}

/* The duration of that rank from 1 (nearest rank, as in struct function_stats). */
static int duration_of(struct durations *d, const struct trace *t, const struct stats_options *o,
                       uint64_t percent, uint64_t *ns)
{
    size_t n = d->ns.len, rank = n / 100 * percent + (n % 100 * percent + 99) / 100;
    *ns = select_u32(d->ns.data, n, rank - 1);
    if (*ns < UINT32_MAX)
        return 0;
    size_t from_top = n - rank + 1;
    struct stats_call *calls = malloc(from_top * sizeof *calls);
    if (!calls)
        return MTUI_E_NOMEM;
    stats_longest(t, d->all.fn, o, calls, from_top);
    *ns = calls[from_top - 1].duration_ns;
    free(calls);
    return 0;
}

static int finish(int rc, struct err *err)
{
    return rc == 0 ? 0 : err_set(err, rc, rc == MTUI_E_CANCEL ? "cancelled" : "not enough memory");
}

/* ---- The median call ---- */

struct wanted {
    uint64_t ns;
    struct stats_call best;
    bool found;
};

static int take_first(void *arg, const struct stats_call *c)
{
    struct wanted *w = arg;
    if (c->duration_ns == w->ns && (!w->found || worse(&w->best, c))) {
        w->best = *c;
        w->found = true;
    }
    return 0;
}

int stats_median(const struct trace *t, fn_id fn, const struct stats_options *options,
                 struct stats_call *out, uint64_t *calls, struct err *err)
{
    struct durations d = {.all.fn = fn};
    struct wanted w = {0};
    int rc = visit_calls(t, fn, options, gather, &d);
    if (rc == 0 && d.ns.len == 0)
        return err_set(err, MTUI_E_NOENT, "no calls");
    if (rc == 0)
        rc = duration_of(&d, t, options, 50, &w.ns);
    vec_free(&d.ns);
    if (rc == 0)
        rc = visit_calls(t, fn, options, take_first, &w);
    if (rc == 0) {
        *out = w.best;
        *calls = d.all.calls;
    }
    return finish(rc, err);
}

/* ---- All of them ---- */

int stats_calls_new(struct stats_calls *out, const struct trace *t, fn_id fn,
                    const struct stats_options *options, size_t max, struct err *err)
{
    struct durations d = {.all.fn = fn, .longest.max = max};
    d.longest.heap = malloc(max * sizeof *d.longest.heap);
    int rc = d.longest.heap ? visit_calls(t, fn, options, gather, &d) : MTUI_E_NOMEM;
    if (rc == 0 && d.ns.len)
        rc = duration_of(&d, t, options, 50, &d.all.p50_ns);
    if (rc == 0 && d.ns.len)
        rc = duration_of(&d, t, options, 99, &d.all.p99_ns);
    vec_free(&d.ns);
    if (rc < 0) {
        free(d.longest.heap);
        return finish(rc, err);
    }
    sort_heap(d.longest.heap, d.longest.n);
    *out = (struct stats_calls){d.longest.heap, d.longest.n, d.all};
    return 0;
}

void stats_calls_free(struct stats_calls *c)
{
    free(c->longest);
    *c = (struct stats_calls){0};
}

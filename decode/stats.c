#include "decode/stats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "decode/large.h"
#include "decode/quiet.h"
#include "decode/select.h"
#include "decode/walk.h"

#define MAX_WORKERS 64

struct stats {
    struct function_stats *list; /* those with calls, by total */
    size_t n;
    uint32_t *place; /* per function: index into list + 1 */
    size_t nfn;
    bool estimated;
    uint64_t gap_ns;
    size_t gap_count;
};

/* What is counted at every call, small so that thousands of functions stay in the cache; the rest comes
 * from the durations, function by function. */
struct hot {
    uint64_t calls, total_ns, self_ns, sum_ns, min_ns, max_ns;
};

/* What one worker has counted. */
struct tally {
    const struct trace *t;
    const struct stats_options *o;
    uint64_t from_ns, to_ns;
    atomic_size_t *next; /* the next thread to take */
    struct hot *fns;
    uint32_t *active;  /* calls of each function on the present stack */
    uint64_t gap_ns;
    size_t gap_count;
    int rc;
};

static bool cancelled(const struct stats_options *o)
{
    return o->cancel && atomic_load_explicit(o->cancel, memory_order_relaxed);
}

static uint64_t clipped(const struct tally *y, const struct span *s)
{
    uint64_t from = s->start_ns > y->from_ns ? s->start_ns : y->from_ns;
    uint64_t to = s->end_ns < y->to_ns ? s->end_ns : y->to_ns;
    return to > from ? to - from : 0;
}

static void count_call(struct tally *y, const struct span *s)
{
    struct hot *f = &y->fns[s->fn];
    uint64_t ns = s->end_ns - s->start_ns;
    if (f->calls == 0 || ns < f->min_ns)
        f->min_ns = ns;
    if (ns > f->max_ns)
        f->max_ns = ns;
    f->calls++;
    f->sum_ns += ns;
    if (y->active[s->fn]++ == 0)
        f->total_ns += clipped(y, s);
}

/* Between two events the time belongs to what is innermost, less what lies in gaps. */
static int tally_thread(struct tally *y, size_t thread)
{
    struct walk w;
    struct walk_event ev;
    struct quiet quiet;
    uint64_t at = y->from_ns, events = 0;
    if (quiet_init(&quiet, y->t, thread) < 0)
        return MTUI_E_NOMEM;
    if (walk_init(&w, y->t, thread, y->from_ns, y->to_ns) < 0) {
        quiet_free(&quiet);
        return MTUI_E_NOMEM;
    }
    y->gap_ns += quiet_total(&quiet, y->from_ns, y->to_ns, &y->gap_count);
    const struct span *top = NULL;
    while (walk_next(&w, &ev)) {
        uint64_t now = ev.enter ? ev.span->start_ns : ev.span->end_ns;
        now = now > y->to_ns ? y->to_ns : now;
        if (now > at) {
            if (top)
                y->fns[top->fn].self_ns += now - at - (quiet.n ? quiet_between(&quiet, at, now) : 0);
            at = now;
        }
        if (ev.enter)
            count_call(y, ev.span);
        else
            y->active[ev.span->fn]--;
        top = w.depth ? w.stack[w.depth - 1] : NULL;
        if ((++events & 0xfffff) == 0 && cancelled(y->o)) {
            y->rc = MTUI_E_CANCEL;
            break;
        }
    }
    walk_free(&w);
    quiet_free(&quiet);
    return y->rc;
}

static void *tally_run(void *arg)
{
    struct tally *y = arg;
    size_t n = trace_thread_count(y->t), i;
    while (y->rc == 0 && (i = atomic_fetch_add(y->next, 1)) < n)
        if (y->o->thread < 0 || (size_t)y->o->thread == i)
            y->rc = cancelled(y->o) ? MTUI_E_CANCEL : tally_thread(y, i);
    return NULL;
}

static int tally_init(struct tally *y, const struct trace *t, const struct stats_options *o,
                      atomic_size_t *next)
{
    size_t nfn = functions_count(trace_functions(t));
    *y = (struct tally){.t = t, .o = o, .from_ns = o->from_ns, .to_ns = o->to_ns, .next = next};
    if (o->from_ns == 0 && o->to_ns == 0)
        y->to_ns = UINT64_MAX;
    y->fns = calloc(nfn + 1, sizeof *y->fns);
    y->active = calloc(nfn + 1, sizeof *y->active);
    return y->fns && y->active ? 0 : MTUI_E_NOMEM;
}

static void tally_free(struct tally *y)
{
    free(y->fns);
    free(y->active);
}

static void tally_add(struct tally *to, const struct tally *from, size_t nfn)
{
    for (size_t i = 0; i < nfn; i++) {
        struct hot *a = &to->fns[i];
        const struct hot *b = &from->fns[i];
        if (b->calls == 0)
            continue;
        if (a->calls == 0 || b->min_ns < a->min_ns)
            a->min_ns = b->min_ns;
        if (b->max_ns > a->max_ns)
            a->max_ns = b->max_ns;
        a->calls += b->calls;
        a->total_ns += b->total_ns;
        a->self_ns += b->self_ns;
        a->sum_ns += b->sum_ns;
    }
    to->gap_ns += from->gap_ns;
    to->gap_count += from->gap_count;
    if (to->rc == 0)
        to->rc = from->rc;
}

/* Runs the workers; the sum is in tallies[0]. */
static int tally_all(struct tally *tallies, unsigned workers, size_t nfn)
{
    pthread_t threads[MAX_WORKERS];
    bool started[MAX_WORKERS] = {false};
    for (unsigned i = 1; i < workers; i++)
        started[i] = pthread_create(&threads[i], NULL, tally_run, &tallies[i]) == 0;
    tally_run(&tallies[0]);
    for (unsigned i = 1; i < workers; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        tally_add(&tallies[0], &tallies[i], nfn);
    }
    return tallies[0].rc;
}

/* ---- Durations: histogram and percentiles ---- */

static const struct function_stats *list_place(const struct stats *s, fn_id fn)
{
    return fn < s->nfn && s->place[fn] ? &s->list[s->place[fn] - 1] : NULL;
}

static unsigned bucket_of(uint64_t ns)
{
    return ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
}

struct durations {
    struct stats *s;
    const struct tally *y;
    size_t *next;  /* per function: where its next duration goes */
    uint32_t *all; /* a slice a function */
};

/* What needs more than 32 bits is kept as the largest value, which only means that it ranks above the
 * others; its bucket is counted here. */
static void put_duration(struct durations *d, const struct span *span)
{
    uint64_t ns = span->end_ns - span->start_ns;
    if (ns >= UINT32_MAX)
        d->s->list[d->s->place[span->fn] - 1].histogram[bucket_of(ns)]++;
    d->all[d->next[span->fn]++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/* The calls that were tallied, in any order: row by row where all of them count. */
static int gather(struct durations *d, size_t thread)
{
    const struct tally *y = d->y;
    if (y->from_ns == 0 && y->to_ns == UINT64_MAX) {
        for (size_t depth = 0; depth < trace_thread(y->t, thread)->depths; depth++) {
            size_t n = 0;
            const struct span *row = trace_row(y->t, thread, depth, &n);
            for (size_t i = 0; i < n && row[i].start_ns < UINT64_MAX; i++)
                put_duration(d, &row[i]);
        }
        return 0;
    }
    struct walk w;
    struct walk_event ev;
    if (walk_init(&w, y->t, thread, y->from_ns, y->to_ns) < 0)
        return MTUI_E_NOMEM;
    while (walk_next(&w, &ev))
        if (ev.enter)
            put_duration(d, ev.span);
    walk_free(&w);
    return 0;
}

/* The rank-th (from 1) of a function's durations when it does not fit into 32 bits: there are few. */
static uint64_t long_rank(const struct tally *y, fn_id fn, uint64_t from_top)
{
    struct stats_options o = *y->o;
    struct stats_call *calls = malloc((size_t)from_top * sizeof *calls);
    if (!calls)
        return UINT32_MAX;
    size_t n = stats_longest(y->t, fn, &o, calls, (size_t)from_top);
    uint64_t ns = n ? calls[n - 1].duration_ns : 0;
    free(calls);
    return ns;
}

static uint64_t rank_of(const struct function_stats *f, unsigned percent)
{
    return f->calls / 100 * percent + (f->calls % 100 * percent + 99) / 100;
}

/* Both ranks of a slice; what the first selection leaves behind its rank is where the second one looks. */
static void percentiles(const struct tally *y, struct function_stats *f, uint32_t *slice)
{
    uint64_t half = rank_of(f, 50), most = rank_of(f, 99);
    uint32_t p50 = select_u32(slice, (size_t)f->calls, (size_t)half - 1);
    uint32_t p99 = select_u32(slice + (half - 1), (size_t)(f->calls - half + 1), (size_t)(most - half));
    f->p50_ns = p50 < UINT32_MAX ? p50 : long_rank(y, f->fn, f->calls - half + 1);
    f->p99_ns = p99 < UINT32_MAX ? p99 : long_rank(y, f->fn, f->calls - most + 1);
}

#define COUNTED      4096                 /* durations below this many ns are counted, not sorted */
#define MANY_CALLS   (16 * (size_t)COUNTED) /* where that is worth it */

/* Many calls are mostly short ones: counting them once gives the histogram and, if they lie among them, the
 * ranks. False when a rank lies among the longer ones; the histogram is made in any case. */
static bool count_short(struct function_stats *f, const uint32_t *slice)
{
    uint32_t count[COUNTED] = {0};
    uint64_t half = rank_of(f, 50), most = rank_of(f, 99), below = 0;
    for (size_t k = 0; k < f->calls; k++)
        if (slice[k] < COUNTED)
            count[slice[k]]++;
        else if (slice[k] < UINT32_MAX)
            f->histogram[bucket_of(slice[k])]++;
    for (unsigned ns = 0; ns < COUNTED; ns++) {
        f->histogram[bucket_of(ns)] += count[ns];
        if (below < half && below + count[ns] >= half)
            f->p50_ns = ns;
        if (below < most && below + count[ns] >= most)
            f->p99_ns = ns;
        below += count[ns];
    }
    return below >= most;
}

static void rank_durations(const struct tally *y, struct function_stats *f, uint32_t *slice)
{
    if (f->calls >= MANY_CALLS && f->calls < UINT32_MAX) {
        if (!count_short(f, slice))
            percentiles(y, f, slice);
        return;
    }
    for (size_t k = 0; k < f->calls; k++)
        if (slice[k] < UINT32_MAX)
            f->histogram[bucket_of(slice[k])]++;
    percentiles(y, f, slice);
}

static int add_durations(struct stats *s, const struct tally *y)
{
    size_t n = 0;
    size_t *first = malloc((s->nfn + 1) * sizeof *first);
    size_t *next = malloc((s->nfn + 1) * sizeof *next);
    int rc = first && next ? 0 : MTUI_E_NOMEM;
    for (size_t fn = 0; rc == 0 && fn < s->nfn; fn++) {
        const struct function_stats *f = list_place(s, (fn_id)fn);
        first[fn] = next[fn] = n;
        n += f ? (size_t)f->calls : 0;
    }
    uint32_t *all = n ? large_alloc(n, sizeof *all) : NULL;
    struct durations d = {s, y, next, all};
    if (n && !all)
        rc = MTUI_E_NOMEM;
    for (size_t th = 0; rc == 0 && n && th < trace_thread_count(y->t); th++)
        if (y->o->thread < 0 || (size_t)y->o->thread == th)
            rc = cancelled(y->o) ? MTUI_E_CANCEL : gather(&d, th);
    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        struct function_stats *f = &s->list[i];
        rank_durations(y, f, all + first[f->fn]);
        if (cancelled(y->o))
            rc = MTUI_E_CANCEL;
    }
    large_free(all, n, sizeof *all);
    free(first);
    free(next);
    return rc;
}

/* ---- The list ---- */

static int by_total(const void *a, const void *b, void *arg)
{
    const struct function_stats *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    const struct function *f = functions_get(arg, x->fn), *g = functions_get(arg, y->fn);
    int c = strcmp(f->name, g->name);
    if (c == 0)
        c = strcmp(f->module, g->module);
    return c ? c : (x->fn > y->fn) - (x->fn < y->fn);
}

static int make_list(struct stats *s, const struct trace *t, const struct tally *sum)
{
    for (size_t i = 0; i < s->nfn; i++)
        s->n += sum->fns[i].calls > 0;
    s->list = malloc((s->n + 1) * sizeof *s->list);
    s->place = calloc(s->nfn + 1, sizeof *s->place);
    if (!s->list || !s->place)
        return MTUI_E_NOMEM;
    size_t n = 0;
    for (size_t i = 0; i < s->nfn; i++) {
        if (sum->fns[i].calls == 0)
            continue;
        const struct hot *f = &sum->fns[i];
        s->list[n++] = (struct function_stats){.fn = (fn_id)i,
                                               .calls = f->calls,
                                               .total_ns = f->total_ns,
                                               .self_ns = f->self_ns,
                                               .min_ns = f->min_ns,
                                               .max_ns = f->max_ns,
                                               .mean_ns = f->sum_ns / f->calls};
    }
    union { /* qsort_r hands the table on as it is, and it is only read */
        const struct functions *c;
        void *p;
    } table = {trace_functions(t)};
    qsort_r(s->list, s->n, sizeof *s->list, by_total, table.p);
    for (size_t i = 0; i < s->n; i++)
        s->place[s->list[i].fn] = (uint32_t)i + 1;
    return 0;
}

int stats_new(struct stats **out, const struct trace *t, const struct stats_options *options,
              struct err *err)
{
    struct tally tallies[MAX_WORKERS];
    atomic_size_t next = 0;
    unsigned workers = options->workers, made = 0;
    workers = workers < 1 ? 1 : workers > MAX_WORKERS ? MAX_WORKERS : workers;
    struct stats *s = xcalloc(1, sizeof *s);
    int rc = 0;
    s->nfn = functions_count(trace_functions(t));
    s->estimated = trace_info(t)->sampled;
    for (; made < workers && rc == 0; made++)
        rc = tally_init(&tallies[made], t, options, &next);
    if (rc == 0)
        rc = tally_all(tallies, workers, s->nfn);
    if (rc == 0)
        rc = make_list(s, t, &tallies[0]);
    if (rc == 0)
        rc = add_durations(s, &tallies[0]);
    s->gap_ns = tallies[0].gap_ns;
    s->gap_count = tallies[0].gap_count;
    for (unsigned i = 0; i < made; i++)
        tally_free(&tallies[i]);
    if (rc < 0) {
        stats_free(s);
        return rc == MTUI_E_CANCEL ? err_set(err, rc, "cancelled")
                                   : err_set(err, rc, "not enough memory for the statistics");
    }
    *out = s;
    return 0;
}

void stats_free(struct stats *s)
{
    if (!s)
        return;
    free(s->list);
    free(s->place);
    free(s);
}

const struct function_stats *stats_functions(const struct stats *s, size_t *n)
{
    *n = s->n;
    return s->list;
}

const struct function_stats *stats_find(const struct stats *s, fn_id fn)
{
    return list_place(s, fn);
}

bool stats_estimated(const struct stats *s)
{
    return s->estimated;
}

uint64_t stats_gap_ns(const struct stats *s)
{
    return s->gap_ns;
}

size_t stats_gap_count(const struct stats *s)
{
    return s->gap_count;
}

#include "decode/trace/stats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "decode/trace/durations.h"
#include "decode/trace/stats_rows.h"

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

/* What is counted at every call, small so that thousands of functions stay in the cache. */
struct hot {
    uint64_t calls, total_ns, self_ns, sum_ns, min_ns, max_ns;
};

struct stats_run {
    const struct stats_options *o;
    struct stats_rows rows;
    size_t nfn;
    atomic_size_t next; /* the next piece to take */
};

/* What one worker has counted. */
struct tally {
    struct stats_run *run;
    struct hot *fns;
    struct durations *durations; /* per function as well */
    int rc;
};

static bool cancelled(const struct stats_options *o)
{
    return o->cancel && atomic_load_explicit(o->cancel, memory_order_relaxed);
}

static const struct stats_piece *take_piece(struct tally *y)
{
    size_t i = atomic_fetch_add_explicit(&y->run->next, 1, memory_order_relaxed);
    if (i >= y->run->rows.pieces.len)
        return NULL;
    if (cancelled(y->run->o)) {
        y->rc = MTUI_E_CANCEL;
        return NULL;
    }
    return &y->run->rows.pieces.data[i];
}

static int tally_init(struct tally *y, struct stats_run *run)
{
    *y = (struct tally){.run = run};
    y->fns = calloc(run->nfn + 1, sizeof *y->fns);
    y->durations = calloc(run->nfn + 1, sizeof *y->durations);
    return y->fns && y->durations ? 0 : MTUI_E_NOMEM;
}

static void tally_free(struct tally *y)
{
    for (size_t i = 0; y->durations && i < y->run->nfn; i++)
        durations_free(&y->durations[i]);
    free(y->fns);
    free(y->durations);
}

static void count_call(struct hot *f, uint64_t ns)
{
    if (f->calls == 0 || ns < f->min_ns)
        f->min_ns = ns;
    if (ns > f->max_ns)
        f->max_ns = ns;
    f->calls++;
    f->sum_ns += ns;
}

/* The time of a call is its own and its caller's no longer. */
static void tally_piece(struct tally *y, const struct stats_piece *p)
{
    struct stats_clock clock = stats_clock_start(&y->run->rows, p);
    size_t up = 0;
    uint64_t of_caller = 0;
    if (p->up)
        up = stats_piece_caller(p, p->from);
    for (size_t i = p->from; i < p->to; i++) {
        const struct span *s = &p->row[i];
        struct hot *f = &y->fns[s->fn];
        uint64_t ns = s->end_ns - s->start_ns, inside, net = stats_clock_net(&clock, s, &inside);
        count_call(f, ns);
        if (!durations_add(&y->durations[s->fn], ns))
            y->rc = MTUI_E_NOMEM;
        f->self_ns += net;
        if (!stats_piece_nested(p, i))
            f->total_ns += inside;
        if (!p->up)
            continue;
        while (up + 1 < p->n_up && p->up[up + 1].start_ns <= s->start_ns) {
            y->fns[p->up[up].fn].self_ns -= of_caller;
            of_caller = 0;
            up++;
        }
        of_caller += net;
    }
    if (p->up)
        y->fns[p->up[up].fn].self_ns -= of_caller;
}

static void *tally_run(void *arg)
{
    struct tally *y = arg;
    const struct stats_piece *p;
    while (y->rc == 0 && (p = take_piece(y)) != NULL)
        tally_piece(y, p);
    return NULL;
}

static void tally_add(struct tally *to, const struct tally *from)
{
    for (size_t i = 0; i < to->run->nfn; i++) {
        struct hot *a = &to->fns[i];
        const struct hot *b = &from->fns[i];
        a->self_ns += b->self_ns; /* also of one whose calls another worker has met */
        if (b->calls == 0)
            continue;
        if (!durations_join(&to->durations[i], &from->durations[i]))
            to->rc = MTUI_E_NOMEM;
        if (a->calls == 0 || b->min_ns < a->min_ns)
            a->min_ns = b->min_ns;
        if (b->max_ns > a->max_ns)
            a->max_ns = b->max_ns;
        a->calls += b->calls;
        a->total_ns += b->total_ns;
        a->sum_ns += b->sum_ns;
    }
}

/* Every worker, the caller's thread as the first; the sum is in tallies[0]. */
static int tally_all(struct tally *tallies, unsigned workers)
{
    pthread_t threads[MAX_WORKERS];
    bool started[MAX_WORKERS] = {false};
    for (unsigned i = 1; i < workers; i++)
        started[i] = pthread_create(&threads[i], NULL, tally_run, &tallies[i]) == 0;
    tally_run(&tallies[0]);
    for (unsigned i = 1; i < workers; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        tally_add(&tallies[0], &tallies[i]);
        if (tallies[0].rc == 0)
            tallies[0].rc = tallies[i].rc;
    }
    return tallies[0].rc;
}

/* ---- The list ---- */

static const struct function_stats *list_place(const struct stats *s, fn_id fn)
{
    return fn < s->nfn && s->place[fn] ? &s->list[s->place[fn] - 1] : NULL;
}

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

static uint64_t rank_of(uint64_t calls, unsigned percent)
{
    return calls / 100 * percent + (calls % 100 * percent + 99) / 100;
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
        struct function_stats *to = &s->list[n++];
        *to = (struct function_stats){.fn = (fn_id)i,
                                      .calls = f->calls,
                                      .total_ns = f->total_ns,
                                      .self_ns = f->self_ns,
                                      .min_ns = f->min_ns,
                                      .max_ns = f->max_ns,
                                      .mean_ns = f->sum_ns / f->calls};
        to->p50_ns = durations_rank(&sum->durations[i], rank_of(f->calls, 50));
        to->p99_ns = durations_rank(&sum->durations[i], rank_of(f->calls, 99));
        durations_histogram(&sum->durations[i], to->histogram);
        if (cancelled(sum->run->o))
            return MTUI_E_CANCEL;
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
    unsigned workers = options->workers, made = 0;
    workers = workers < 1 ? 1 : workers > MAX_WORKERS ? MAX_WORKERS : workers;
    struct stats *s = xcalloc(1, sizeof *s);
    s->nfn = functions_count(trace_functions(t));
    s->estimated = trace_info(t)->sampled;
    struct stats_run run = {.o = options, .nfn = s->nfn};
    int rc = stats_rows_init(&run.rows, t, options);
    if (workers > run.rows.pieces.len) /* also the first has something to do: to notice that it is cancelled */
        workers = run.rows.pieces.len ? (unsigned)run.rows.pieces.len : 1;
    for (; made < workers && rc == 0; made++)
        rc = tally_init(&tallies[made], &run);
    if (rc == 0)
        rc = tally_all(tallies, workers);
    if (rc == 0)
        rc = make_list(s, t, &tallies[0]);
    s->gap_ns = run.rows.gap_ns;
    s->gap_count = run.rows.gap_count;
    for (unsigned i = 0; i < made; i++)
        tally_free(&tallies[i]);
    stats_rows_free(&run.rows);
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

/* The spans of a trace counted, piece by piece, by as many workers as wanted. */
#include "decode/trace/stats.h"

#include <pthread.h>
#include <stdlib.h>

#include "decode/trace/stats_rows.h"
#include "decode/trace/tally.h"

#define MAX_WORKERS 64

struct stats_run {
    const struct stats_options *o;
    struct stats_rows rows;
    atomic_size_t next; /* the next piece to take */
};

struct worker {
    struct stats_run *run;
    struct tally tally;
    int rc;
};

static const struct stats_piece *take_piece(struct worker *w)
{
    const atomic_bool *cancel = w->run->o->cancel;
    size_t i = atomic_fetch_add_explicit(&w->run->next, 1, memory_order_relaxed);
    if (i >= w->run->rows.pieces.len)
        return NULL;
    if (cancel && atomic_load_explicit(cancel, memory_order_relaxed)) {
        w->rc = MTUI_E_CANCEL;
        return NULL;
    }
    return &w->run->rows.pieces.data[i];
}

/* The time of a call is its own and its caller's no longer. */
static void count_piece(struct worker *w, const struct stats_piece *p)
{
    struct stats_clock clock = stats_clock_start(&w->run->rows, p);
    struct tally *y = &w->tally;
    size_t up = 0;
    uint64_t of_caller = 0;
    if (p->up)
        up = stats_piece_caller(p, p->from);
    for (size_t i = p->from; i < p->to; i++) {
        const struct span *s = &p->row[i];
        struct tally_fn *f = &y->fns[s->fn];
        uint64_t inside, net = stats_clock_net(&clock, s, &inside);
        if (!tally_call(y, s->fn, s->end_ns - s->start_ns))
            w->rc = MTUI_E_NOMEM;
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

static void *work(void *arg)
{
    struct worker *w = arg;
    const struct stats_piece *p;
    while (w->rc == 0 && (p = take_piece(w)) != NULL)
        count_piece(w, p);
    return NULL;
}

/* Every worker, the caller's thread as the first, which gets the sum. */
static int count_all(struct worker *workers, unsigned n)
{
    pthread_t threads[MAX_WORKERS];
    bool started[MAX_WORKERS] = {false};
    int rc = 0;
    for (unsigned i = 1; i < n; i++)
        started[i] = pthread_create(&threads[i], NULL, work, &workers[i]) == 0;
    work(&workers[0]);
    for (unsigned i = 1; i < n; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        if (tally_join(&workers[0].tally, &workers[i].tally) < 0)
            rc = MTUI_E_NOMEM;
    }
    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = workers[i].rc;
    return rc;
}

int stats_new(struct stats **out, const struct trace *t, const struct stats_options *options,
              struct err *err)
{
    struct worker workers[MAX_WORKERS];
    unsigned n = options->workers, made = 0;
    n = n < 1 ? 1 : n > MAX_WORKERS ? MAX_WORKERS : n;
    struct stats_run run = {.o = options};
    const struct functions *functions = trace_functions(t);
    int rc = stats_rows_init(&run.rows, t, options);
    if (n > run.rows.pieces.len) /* also the first has something to do: to notice that it is cancelled */
        n = run.rows.pieces.len ? (unsigned)run.rows.pieces.len : 1;
    for (; made < n && rc == 0; made++) {
        workers[made] = (struct worker){.run = &run};
        rc = tally_reserve(&workers[made].tally, functions_count(functions));
    }
    if (rc == 0)
        rc = count_all(workers, n);
    if (rc == 0)
        rc = tally_stats(out, &workers[0].tally, functions, options->cancel);
    if (rc == 0) {
        stats_set_gaps(*out, run.rows.gap_ns, run.rows.gap_count);
        stats_set_estimated(*out, trace_info(t)->sampled);
    }
    for (unsigned i = 0; i < made; i++)
        tally_free(&workers[i].tally);
    stats_rows_free(&run.rows);
    if (rc == MTUI_E_CANCEL)
        return err_set(err, rc, "cancelled");
    return rc < 0 ? err_set(err, rc, "not enough memory for the statistics") : 0;
}

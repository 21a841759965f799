/* From what was counted to the table of functions. */
#include "decode/trace/tally.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

struct stats {
    struct function_stats *list; /* those with calls, by total */
    size_t n;
    uint32_t *place; /* per function: index into list + 1 */
    size_t nfn;
    bool estimated;
    uint64_t gap_ns;
    size_t gap_count;
};

/* ---- Counting ---- */

void tally_free(struct tally *y)
{
    for (size_t i = 0; y->durations && i < y->nfn; i++)
        durations_free(&y->durations[i]);
    free(y->fns);
    free(y->durations);
    *y = (struct tally){0};
}

int tally_reserve(struct tally *y, size_t nfn)
{
    if (y->fns && nfn <= y->nfn)
        return 0;
    size_t n = nfn + nfn / 2 + 1; /* functions turn up one by one */
    struct tally_fn *fns = realloc(y->fns, n * sizeof *fns);
    if (fns)
        y->fns = fns;
    struct durations *durations = realloc(y->durations, n * sizeof *durations);
    if (durations)
        y->durations = durations;
    if (!fns || !durations)
        return MTUI_E_NOMEM;
    memset(fns + y->nfn, 0, (n - y->nfn) * sizeof *fns);
    memset(durations + y->nfn, 0, (n - y->nfn) * sizeof *durations);
    y->nfn = n;
    return 0;
}

int tally_join(struct tally *to, const struct tally *from)
{
    int rc = 0;
    for (size_t i = 0; i < to->nfn; i++) {
        struct tally_fn *a = &to->fns[i];
        const struct tally_fn *b = &from->fns[i];
        a->self_ns += b->self_ns; /* also of one whose calls another worker has met */
        if (b->calls == 0)
            continue;
        if (!durations_join(&to->durations[i], &from->durations[i]))
            rc = MTUI_E_NOMEM;
        if (a->calls == 0 || b->min_ns < a->min_ns)
            a->min_ns = b->min_ns;
        if (b->max_ns > a->max_ns)
            a->max_ns = b->max_ns;
        a->calls += b->calls;
        a->total_ns += b->total_ns;
        a->sum_ns += b->sum_ns;
    }
    return rc;
}

/* ---- The table ---- */

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

static void make_row(struct function_stats *to, fn_id fn, const struct tally_fn *f, struct durations *durations)
{
    *to = (struct function_stats){.fn = fn,
                                  .calls = f->calls,
                                  .total_ns = f->total_ns,
                                  .self_ns = f->self_ns,
                                  .min_ns = f->min_ns,
                                  .max_ns = f->max_ns,
                                  .sum_ns = f->sum_ns};
    to->p50_ns = durations_rank(durations, rank_of(f->calls, 50));
    to->p99_ns = durations_rank(durations, rank_of(f->calls, 99));
    durations_histogram(durations, to->histogram);
}

static int make_list(struct stats *s, struct tally *y, const struct functions *functions, const atomic_bool *cancel)
{
    size_t n = 0;
    for (size_t i = 0; i < y->nfn; i++)
        s->n += y->fns[i].calls > 0;
    s->list = malloc((s->n + 1) * sizeof *s->list);
    s->place = calloc(y->nfn + 1, sizeof *s->place);
    s->nfn = y->nfn;
    if (!s->list || !s->place)
        return MTUI_E_NOMEM;
    for (size_t i = 0; i < y->nfn; i++) {
        if (y->fns[i].calls)
            make_row(&s->list[n++], (fn_id)i, &y->fns[i], &y->durations[i]);
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            return MTUI_E_CANCEL;
    }
    union { /* qsort_r hands the table on as it is, and it is only read */
        const struct functions *c;
        void *p;
    } table = {functions};
    qsort_r(s->list, s->n, sizeof *s->list, by_total, table.p);
    for (size_t i = 0; i < s->n; i++)
        s->place[s->list[i].fn] = (uint32_t)i + 1;
    return 0;
}

int tally_stats(struct stats **out, struct tally *y, const struct functions *functions, const atomic_bool *cancel)
{
    struct stats *s = xcalloc(1, sizeof *s);
    int rc = make_list(s, y, functions, cancel);
    if (rc < 0)
        stats_free(s);
    else
        *out = s;
    return rc;
}

void stats_set_gaps(struct stats *s, uint64_t gap_ns, size_t count)
{
    s->gap_ns = gap_ns;
    s->gap_count = count;
}

void stats_set_estimated(struct stats *s, bool estimated)
{
    s->estimated = estimated;
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
    return fn < s->nfn && s->place[fn] ? &s->list[s->place[fn] - 1] : NULL;
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

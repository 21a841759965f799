#include "decode/trace/compare.h"

#include <stdlib.h>

#include "decode/trace/quiet.h"
#include "decode/trace/walk.h"

#define LOOK_EVERY 0xfffff /* events between two looks at cancel */

/* One call being counted, into places per function. */
struct count {
    const struct trace *t;
    const struct stats_call *call;
    struct compare_side *fns;
    uint32_t *active; /* calls of each function on the present stack */
};

static void count_span(struct count *c, const struct span *s, size_t depth)
{
    struct compare_side *f = &c->fns[s->fn];
    uint64_t ns = s->end_ns - s->start_ns;
    if (f->calls == 0 || ns > f->longest.duration_ns) {
        size_t n = 0;
        const struct span *row = trace_row(c->t, c->call->thread, depth, &n);
        f->longest = (struct stats_call){c->call->thread, depth, (size_t)(s - row), ns, s->start_ns};
    }
    f->calls++;
    if (c->active[s->fn]++ == 0)
        f->total_ns += ns;
}

static int count_events(struct count *c, struct walk *w, struct quiet *quiet, const atomic_bool *cancel)
{
    struct walk_event ev;
    uint64_t at = c->call->start_ns, events = 0;
    const struct span *top = NULL;
    while (walk_next(w, &ev)) {
        uint64_t now = ev.enter ? ev.span->start_ns : ev.span->end_ns;
        if (top && now > at)
            c->fns[top->fn].self_ns += now - at - (quiet->n ? quiet_between(quiet, at, now) : 0);
        at = now;
        if (ev.enter)
            count_span(c, ev.span, c->call->depth + ev.depth);
        else
            c->active[ev.span->fn]--;
        if (w->depth == 0)
            return 0;
        top = w->stack[w->depth - 1];
        if ((++events & LOOK_EVERY) == 0 && cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            return MTUI_E_CANCEL;
    }
    return 0;
}

static int count_call(struct count *c, const atomic_bool *cancel)
{
    struct walk w;
    struct quiet quiet;
    if (quiet_init(&quiet, c->t, c->call->thread) < 0)
        return MTUI_E_NOMEM;
    int rc = walk_init_call(&w, c->t, c->call->thread, c->call->depth, c->call->index);
    if (rc == 0)
        rc = count_events(c, &w, &quiet, cancel);
    walk_free(&w);
    quiet_free(&quiet);
    return rc;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static int by_difference(const void *a, const void *b)
{
    const struct compare_row *x = a, *y = b;
    const uint64_t dx[] = {apart(x->side[0].self_ns, x->side[1].self_ns),
                           apart(x->side[0].calls, x->side[1].calls),
                           apart(x->side[0].total_ns, x->side[1].total_ns)};
    const uint64_t dy[] = {apart(y->side[0].self_ns, y->side[1].self_ns),
                           apart(y->side[0].calls, y->side[1].calls),
                           apart(y->side[0].total_ns, y->side[1].total_ns)};
    for (size_t i = 0; i < 3; i++)
        if (dx[i] != dy[i])
            return dx[i] > dy[i] ? -1 : 1;
    return (x->fn > y->fn) - (x->fn < y->fn);
}

static int make_rows(struct comparison *out, const struct compare_side *a, const struct compare_side *b,
                     size_t nfn)
{
    size_t n = 0;
    for (size_t i = 0; i < nfn; i++)
        n += a[i].calls || b[i].calls;
    out->rows = malloc((n + 1) * sizeof *out->rows);
    if (!out->rows)
        return MTUI_E_NOMEM;
    out->n = 0;
    for (size_t i = 0; i < nfn; i++)
        if (a[i].calls || b[i].calls)
            out->rows[out->n++] = (struct compare_row){(fn_id)i, {a[i], b[i]}};
    qsort(out->rows, out->n, sizeof *out->rows, by_difference);
    return 0;
}

int compare_calls(struct comparison *out, const struct trace *t, const struct stats_call *a,
                  const struct stats_call *b, const atomic_bool *cancel, struct err *err)
{
    size_t nfn = functions_count(trace_functions(t));
    uint32_t *active = calloc(nfn + 1, sizeof *active);
    struct count count[2] = {{t, a, calloc(nfn + 1, sizeof(struct compare_side)), active},
                             {t, b, calloc(nfn + 1, sizeof(struct compare_side)), active}};
    int rc = active && count[0].fns && count[1].fns ? 0 : MTUI_E_NOMEM;
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = count_call(&count[i], cancel);
    if (rc == 0)
        rc = make_rows(out, count[0].fns, count[1].fns, nfn);
    free(active);
    free(count[0].fns);
    free(count[1].fns);
    if (rc == MTUI_E_CANCEL)
        return err_set(err, rc, "cancelled");
    return rc ? err_set(err, rc, "not enough memory to compare two calls") : 0;
}

void comparison_free(struct comparison *c)
{
    free(c->rows);
    *c = (struct comparison){0};
}

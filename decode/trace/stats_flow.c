#include "decode/trace/stats_flow.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "decode/trace/quiet.h"
#include "decode/trace/span_runs.h"
#include "decode/trace/tally.h"

#define TAKE_LEAST 2048 /* spans: 48 KB, well inside of a CPU's second cache */

/* A function within a thread. */
struct within {
    uint32_t outermost; /* level where a call of it was last entered that lies in no other */
    uint32_t stretch;   /* that outer_ns is of */
    uint64_t outer_ns;  /* of its calls that lie in no other call of it */
};

struct open_call {
    fn_id fn;
    bool nested; /* in another call of its function */
};

/* From the beginning of the first call to the end of the last. */
struct covered {
    uint64_t from_ns, to_ns;
};

struct flow_thread {
    struct open_call *open; /* by level: the stack, the outermost first; what lies above it is over */
    size_t cap;
    VEC(struct span) carried; /* taken and open, the outermost first: where the builder ends them */
    struct within *fns;
    size_t nfn;
    uint32_t stretch;      /* its number, from 1 */
    uint16_t floor;        /* stored depth of the outermost calls */
    uint64_t outermost_ns; /* durations of those, in this stretch */
    VEC(struct covered) covered; /* by stretch */
};

struct stats_flow {
    struct trace_builder *b;
    struct tally tally;
    VEC(struct flow_thread) threads; /* by their index in the builder */
    bool no_memory;
};

struct stats_flow *stats_flow_new(struct trace_builder *b)
{
    struct stats_flow *f = xcalloc(1, sizeof *f);
    f->b = b;
    return f;
}

void stats_flow_free(struct stats_flow *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->threads.len; i++) {
        free(f->threads.data[i].open);
        free(f->threads.data[i].fns);
        vec_free(&f->threads.data[i].carried);
        vec_free(&f->threads.data[i].covered);
    }
    vec_free(&f->threads);
    tally_free(&f->tally);
    free(f);
}

/* ---- Counting, call by call ---- */

/* What is open at lower levels is around it. */
static inline bool enter(struct flow_thread *t, size_t level, fn_id fn)
{
    struct within *in = &t->fns[fn];
    bool nested = in->outermost < level && t->open[in->outermost].fn == fn;
    if (!nested)
        in->outermost = (uint32_t)level;
    t->open[level] = (struct open_call){fn, nested};
    return nested;
}

/* A call that is over: its time is its own and its caller's no longer. */
static inline __attribute__((always_inline)) void count(struct stats_flow *f, struct flow_thread *t,
                                                        const struct span *s, size_t level, bool nested)
{
    uint64_t ns = s->end_ns - s->start_ns;
    struct tally_fn *fn = &f->tally.fns[s->fn];
    if (!tally_call(&f->tally, s->fn, ns))
        f->no_memory = true;
    fn->self_ns += ns;
    if (!nested) {
        struct within *in = &t->fns[s->fn];
        fn->total_ns += ns;
        in->outer_ns = (in->stretch == t->stretch ? in->outer_ns : 0) + ns;
        in->stretch = t->stretch;
    }
    if (level > 0) {
        f->tally.fns[t->open[level - 1].fn].self_ns -= ns;
    } else {
        t->outermost_ns += ns;
        t->covered.data[t->covered.len - 1].to_ns = s->end_ns;
    }
}

static void begin_stretch(struct stats_flow *f, struct flow_thread *t, uint64_t from_ns)
{
    t->stretch++;
    t->floor = 0;
    t->outermost_ns = 0;
    if (!vec_try_push(&t->covered, ((struct covered){from_ns, from_ns})))
        f->no_memory = true;
}

/* A frame around everything since the stretch began: its own calls have turned out to lie in another one, and
 * what was outermost is not its own time. */
static void wrap(struct stats_flow *f, struct flow_thread *t, const struct span *s)
{
    struct tally_fn *fn = &f->tally.fns[s->fn];
    struct within *in = &t->fns[s->fn];
    t->floor = s->depth;
    if (in->stretch == t->stretch) {
        fn->total_ns -= in->outer_ns;
        in->outer_ns = 0;
    }
    fn->self_ns -= t->outermost_ns;
    t->outermost_ns = 0;
    t->covered.data[t->covered.len - 1].from_ns = s->start_ns;
}

static inline size_t level_of(struct stats_flow *f, struct flow_thread *t, const struct span *s)
{
    uint16_t level = (uint16_t)(s->depth - t->floor);
    if (__builtin_expect(level == UINT16_MAX, 0)) {
        wrap(f, t, s);
        return 0;
    }
    return level;
}

static void count_closed(struct stats_flow *f, struct flow_thread *t, const struct span *spans, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t level = level_of(f, t, &spans[i]);
        count(f, t, &spans[i], level, enter(t, level, spans[i].fn));
    }
}

/* ---- From a builder ---- */

/* Where counting stands in the spans of a thread. */
struct taking {
    struct stats_flow *f;
    struct flow_thread *t;
    struct thread_builder *from;
    const struct span *open; /* the next one that is open still */
    size_t open_at;
    VEC(struct span) carried; /* open ones so far */
};

static void next_open(struct taking *k)
{
    k->open = span_runs_open(k->from, &k->open_at);
}

static void carry(struct taking *k)
{
    if (!vec_try_push(&k->carried, *k->open))
        k->f->no_memory = true;
    next_open(k);
}

/* Those that were open before: the ones that are over by now are counted. */
static void take_carried(struct taking *k)
{
    for (size_t i = 0; i < k->t->carried.len; i++) {
        if (&k->t->carried.data[i] == k->open)
            carry(k);
        else
            count(k->f, k->t, &k->t->carried.data[i], i, k->t->open[i].nested);
    }
}

static void take_run(struct taking *k, const struct span_run *run)
{
    const struct span *at = run->spans, *end = at + run->n;
    if (run->begins)
        begin_stretch(k->f, k->t, at->start_ns);
    if (k->f->no_memory)
        return;
    while (k->open && k->open >= at && k->open < end) {
        count_closed(k->f, k->t, at, (size_t)(k->open - at));
        size_t level = level_of(k->f, k->t, k->open);
        enter(k->t, level, k->open->fn);
        at = k->open + 1;
        carry(k);
    }
    count_closed(k->f, k->t, at, (size_t)(end - at));
}

/* The open ones move here, where they stay until they are over. */
static void move_carried(struct taking *k)
{
    for (size_t i = 0, n = 0; i < k->from->stack.len && n < k->carried.len; i++)
        if (k->from->stack.data[i].span)
            k->from->stack.data[i].span = &k->carried.data[n++];
    vec_free(&k->t->carried);
    memcpy(&k->t->carried, &k->carried, sizeof k->carried);
}

/* What has been read is over for the builder. */
static void drop(struct thread_builder *from, const struct span_runs *read, uint64_t n)
{
    size_t at = read->stretch - 1, ended = from->stretches.len;
    trace_builder_drop(from, read->chunk);
    from->taken = read->at;
    if (!read->end_chunk && read->at == read->chunk->used)
        from->taken = from->first->used = 0;
    from->info.spans -= n;
    from->gone += n;
    from->wraps.len = 0;
    if (!read->stretch)
        return;
    struct stretch *st = at < ended ? &from->stretches.data[at] : &from->now;
    st->gone = st->spans - read->left;
    for (size_t i = at; i < ended; i++)
        from->stretches.data[i - at] = from->stretches.data[i];
    from->stretches.len = at < ended ? ended - at : 0;
}

static bool grow(void **p, size_t *n, size_t need, size_t size)
{
    if (need <= *n)
        return true;
    size_t cap = need + need / 2;
    void *more = realloc(*p, cap * size);
    if (!more)
        return false;
    *p = more;
    *n = cap;
    return true;
}

/* For all rows and functions that there are by now. */
static bool make_room(struct stats_flow *f, struct flow_thread *t, const struct thread_builder *from)
{
    size_t nfn = functions_count(f->b->functions), old = t->nfn;
    size_t rows = from->now.rows > from->rows ? from->now.rows : from->rows;
    if (tally_reserve(&f->tally, nfn) < 0 || !grow((void **)&t->open, &t->cap, rows + 1, sizeof *t->open) ||
        !grow((void **)&t->fns, &t->nfn, nfn, sizeof *t->fns))
        return false;
    memset(t->fns + old, 0, (t->nfn - old) * sizeof *t->fns);
    return true;
}

static struct flow_thread *thread_at(struct stats_flow *f, size_t thread)
{
    while (f->threads.len <= thread)
        vec_push(&f->threads, (struct flow_thread){0});
    return &f->threads.data[thread];
}

static int take(struct stats_flow *f, size_t thread, const struct trace_pause *until)
{
    struct thread_builder *from = f->b->threads.data[thread];
    struct flow_thread *t = thread_at(f, thread);
    struct span_runs runs = span_runs_start(from, until);
    struct span_run run;
    struct taking k = {.f = f, .t = t, .from = from};
    uint64_t n = 0;
    if (!from->first)
        return 0;
    if (!make_room(f, t, from))
        return MTUI_E_NOMEM;
    next_open(&k);
    take_carried(&k);
    for (; span_runs_next(&runs, &run) && !f->no_memory; n += run.n)
        take_run(&k, &run);
    move_carried(&k);
    drop(from, &runs, n);
    return f->no_memory ? MTUI_E_NOMEM : 0;
}

int stats_flow_take(struct stats_flow *f, size_t thread, const struct trace_pause *until)
{
    const struct thread_builder *from = f->b->threads.data[thread];
    uint64_t n = from->info.spans;
    if (until && until->chunk == from->first)
        n = until->used - from->taken;
    return n < TAKE_LEAST ? 0 : take(f, thread, until);
}

int stats_flow_end(struct stats_flow *f)
{
    int rc = 0;
    for (size_t i = 0; i < f->b->threads.len && rc == 0; i++) {
        trace_builder_cut(f->b, i, f->b->threads.data[i]->now_ns, 0);
        rc = take(f, i, NULL);
    }
    return rc;
}

/* ---- The result ---- */

static bool overlap(const struct quiet *q, const struct covered *c, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        while (k < q->n && q->parts[k].to_ns <= c[i].from_ns)
            k++;
        if (k < q->n && q->parts[k].from_ns < c[i].to_ns)
            return true;
    }
    return false;
}

/* A thread of the builder in the trace, where they are in order. */
static size_t place_of(const struct trace *t, const struct trace_thread *info)
{
    size_t lo = 0, hi = trace_thread_count(t);
    while (lo + 1 < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct trace_thread *m = trace_thread(t, mid);
        if (m->pid < info->pid || (m->pid == info->pid && m->tid <= info->tid))
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Gap time of all threads; MTUI_E_NOTSUP when some of it lies within calls. */
static int add_gaps(const struct stats_flow *f, const struct trace *t, uint64_t *ns)
{
    int rc = 0;
    for (size_t i = 0; i < f->b->threads.len && rc == 0; i++) {
        struct quiet q;
        if (quiet_init(&q, t, place_of(t, &f->b->threads.data[i]->info)) < 0)
            return MTUI_E_NOMEM;
        *ns += quiet_total(&q, 0, UINT64_MAX);
        if (i < f->threads.len && overlap(&q, f->threads.data[i].covered.data, f->threads.data[i].covered.len))
            rc = MTUI_E_NOTSUP;
        quiet_free(&q);
    }
    return rc;
}

int stats_flow_finish(struct stats_flow *f, const struct trace *t, struct stats **out, struct err *err)
{
    uint64_t gap_ns = 0;
    int rc = add_gaps(f, t, &gap_ns);
    if (rc == MTUI_E_NOTSUP)
        return err_set(err, rc, "trace data was lost within calls");
    if (rc == 0)
        rc = tally_reserve(&f->tally, functions_count(trace_functions(t)));
    if (rc == 0)
        rc = tally_stats(out, &f->tally, trace_functions(t), NULL);
    if (rc < 0)
        return err_set(err, rc, "not enough memory for the statistics");
    stats_set_gaps(*out, gap_ns, trace_gap_count(t, 0, 0, UINT64_MAX));
    return 0;
}

/* From a log of samples to the spans of a trace: one pass for the period, one that replays. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/sample/period.h"
#include "decode/sample/sample_log.h"
#include "decode/sample/sample_log_priv.h"
#include "decode/sample/samples.h"

#define MAX_CPUS 65536
#define MIN_DISTANCES 16 /* fewer, and what the recording promises is believed more than they are */

struct builder {
    struct sample_log *log;
    struct trace_builder *b;
    const struct functions *functions;
    struct samples *samples;
    struct sample_log_account *account;
    VEC(fn_id) stack;
    VEC(uint64_t) cpu_ns;  /* per CPU: time of its last event, for the extent of a loss */
    uint64_t *forked_ns;   /* per thread of the log: its fork, until something else is seen of it */
    bool *seen;            /* per thread of the log: has a track */
    uint64_t last_ns;      /* of the files before */
    bool later_file;
};

static bool timed(const struct sample_event *e)
{
    return e->kind != SAMPLE_BORDER && e->time_ns != SAMPLE_NO_TIME;
}

/* The event whose samples say whether any are missing: the one with the most, clocks first. */
static size_t main_source(const struct sample_log *l)
{
    size_t best = 0;
    for (size_t i = 1; i < sample_log_source_count(l); i++) {
        const struct sample_source *a = sample_log_source(l, best), *s = sample_log_source(l, i);
        if (s->samples && (!a->samples || s->clock > a->clock ||
                           (s->clock == a->clock && s->samples > a->samples)))
            best = i;
    }
    return best;
}

static uint64_t measure_period(struct sample_log *l)
{
    size_t n = sample_log_count(l), source = main_source(l), samples = 0;
    const struct sample_event *e = sample_log_events(l);
    struct period_meter *m = period_meter_new();
    for (size_t i = 0; i < n; i++) {
        if (!timed(&e[i]) || e[i].thread == SAMPLE_NO_THREAD)
            continue;
        if (e[i].kind == SAMPLE_STACK && e[i].event == source) {
            period_meter_sample(m, e[i].thread, e[i].time_ns);
            samples++;
        } else if (e[i].kind == SAMPLE_SWITCH_IN || e[i].kind == SAMPLE_SWITCH_OUT ||
                   e[i].kind == SAMPLE_SWITCH_OUT_PREEMPT) {
            period_meter_switch(m, e[i].thread, e[i].time_ns, e[i].kind != SAMPLE_SWITCH_IN);
        }
    }
    uint64_t median = period_meter_median(m), expected = 0;
    period_meter_free(m);
    if (sample_log_source_count(l))
        expected = sample_log_source(l, source)->period_ns;
    return median == 0 || (samples < MIN_DISTANCES && expected) ? expected : median;
}

/* Where code keeps no frame pointers, the chain runs through what lies on the stack and gives addresses
 * without a name by the dozen. On a timeline one frame says the same. */
static void join_unknown(struct builder *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->stack.len; i++) {
        fn_id fn = w->stack.data[i];
        if (kept && fn == w->stack.data[kept - 1] &&
            functions_get(w->functions, fn)->kind == FN_UNKNOWN)
            continue;
        w->stack.data[kept++] = fn;
    }
    w->stack.len = kept;
}

static int put_sample(struct builder *w, const struct sample_event *e, const struct sample_thread *t)
{
    w->stack.len = 0;
    for (stack_id id = e->stack; id != STACK_EMPTY;) {
        struct stack_node node = stack_tree_node(sample_log_stacks(w->log), id);
        if (!vec_try_push(&w->stack, node.fn))
            return MTUI_E_NOMEM;
        id = node.caller;
    }
    for (size_t i = 0, j = w->stack.len; i + 1 < j; i++) {
        fn_id fn = w->stack.data[i];
        w->stack.data[i] = w->stack.data[--j];
        w->stack.data[j] = fn;
    }
    join_unknown(w);
    return e->kind == SAMPLE_KNOWN
               ? samples_known(w->samples, t->pid, t->tid, e->time_ns, w->stack.data, w->stack.len)
               : samples_stack(w->samples, t->pid, t->tid, e->cpu, e->time_ns, w->stack.data, w->stack.len);
}

static void put_loss(struct builder *w, const struct sample_event *e)
{
    uint64_t from = e->time_ns;
    if (e->cpu >= 0 && (size_t)e->cpu < w->cpu_ns.len && w->cpu_ns.data[e->cpu])
        from = w->cpu_ns.data[e->cpu];
    struct gap g = {0, from, e->time_ns, 0, GAP_LOST,
                    "perf could not keep up and the kernel dropped records of one CPU", 0};
    trace_builder_gap(w->b, &g);
    w->account->lost += e->period;
}

static void put_throttle(struct builder *w, const struct sample_event *e)
{
    struct mark m = {e->time_ns, 0, MARK_NOTE, "the kernel throttled the sampling"};
    trace_builder_mark(w->b, &m);
    w->account->throttled++;
}

static void note_cpu(struct builder *w, const struct sample_event *e)
{
    if (e->cpu < 0 || e->cpu >= MAX_CPUS)
        return;
    while (w->cpu_ns.len <= (size_t)e->cpu)
        vec_push(&w->cpu_ns, (uint64_t)0);
    w->cpu_ns.data[e->cpu] = e->time_ns;
}

static int put_thread_event(struct builder *w, const struct sample_event *e)
{
    const struct sample_thread *t = sample_log_thread_at(w->log, e->thread);
    uint64_t *forked = &w->forked_ns[e->thread];
    if (e->kind == SAMPLE_FORK) {
        *forked = e->time_ns;
        return 0;
    }
    if ((e->kind == SAMPLE_EXIT || e->kind == SAMPLE_EXEC) && !w->seen[e->thread])
        return 0; /* nothing of it to show */
    if (*forked != SAMPLE_NO_TIME)
        samples_fork(w->samples, t->pid, t->tid, *forked);
    *forked = SAMPLE_NO_TIME;
    w->seen[e->thread] = true;
    switch ((enum sample_event_kind)e->kind) {
    case SAMPLE_STACK:
    case SAMPLE_KNOWN:
        return put_sample(w, e, t);
    case SAMPLE_SWITCH_OUT:
    case SAMPLE_SWITCH_OUT_PREEMPT:
    case SAMPLE_SWITCH_IN:
        return samples_switch(w->samples, t->pid, t->tid, e->time_ns, e->kind != SAMPLE_SWITCH_IN,
                              e->kind == SAMPLE_SWITCH_OUT_PREEMPT);
    case SAMPLE_EXIT:
        return samples_exit(w->samples, t->pid, t->tid, e->time_ns);
    case SAMPLE_EXEC:
        return samples_exec(w->samples, t->pid, t->tid, e->time_ns);
    case SAMPLE_FORK:
    case SAMPLE_STILL:
    case SAMPLE_LOST:
    case SAMPLE_THROTTLE:
    case SAMPLE_BORDER:
        break;
    }
    return 0;
}

static int put_event(struct builder *w, const struct sample_event *e)
{
    int rc = 0;
    if (e->kind == SAMPLE_LOST)
        put_loss(w, e);
    else if (e->kind == SAMPLE_THROTTLE)
        put_throttle(w, e);
    else if (e->thread != SAMPLE_NO_THREAD) {
        if (sample_log_thread_at(w->log, e->thread)->tid == 0)
            w->account->idle += e->kind == SAMPLE_STACK;
        else
            rc = put_thread_event(w, e);
    }
    note_cpu(w, e);
    return rc;
}

/* One file: the events from … to − 1, sorted by time. */
static int put_file(struct builder *w, const struct sample_event *e, size_t from, size_t to,
                    uint64_t period_ns)
{
    while (to > from && !timed(&e[to - 1])) /* those without a time are sorted last */
        to--;
    while (w->later_file && from < to && e[from].time_ns <= w->last_ns) {
        w->account->repeated += e[from].kind == SAMPLE_STACK;
        from++;
    }
    if (from == to)
        return 0;
    struct samples_limits limits = {e[from].time_ns, e[to - 1].time_ns, period_ns};
    samples_set_limits(w->samples, &limits);
    if (w->later_file) {
        struct gap g = {0, w->last_ns, limits.first_ns, 0, GAP_LOST,
                        "between two snapshots nothing was written", 0};
        trace_builder_gap(w->b, &g);
    }
    for (size_t i = from; i < to; i++)
        if (put_event(w, &e[i]) < 0)
            return MTUI_E_NOMEM;
    w->last_ns = limits.last_ns;
    w->later_file = true;
    return samples_finish(w->samples);
}

static void count_events(struct sample_log *l, struct sample_log_account *a)
{
    const struct sample_event *e = sample_log_events(l);
    bool any = false;
    for (size_t i = 0; i < sample_log_count(l); i++) {
        if (e[i].kind == SAMPLE_STACK) {
            a->samples++;
            a->without_time += e[i].time_ns == SAMPLE_NO_TIME;
            if (e[i].event < sample_log_source_count(l))
                a->not_clock += !sample_log_source(l, e[i].event)->clock;
        }
        if (!timed(&e[i]))
            continue;
        if (!any || e[i].time_ns < a->first_ns)
            a->first_ns = e[i].time_ns;
        if (!any || e[i].time_ns > a->last_ns)
            a->last_ns = e[i].time_ns;
        any = true;
    }
    a->period_ns = measure_period(l);
}

static int replay(struct builder *w)
{
    const struct sample_event *e = sample_log_events(w->log);
    size_t n = sample_log_count(w->log);
    for (size_t from = 0, to; from < n; from = to + 1) {
        for (to = from; to < n && e[to].kind != SAMPLE_BORDER; to++)
            ;
        if (put_file(w, e, from, to, w->account->period_ns) < 0)
            return MTUI_E_NOMEM;
    }
    for (size_t i = 0; i < sample_log_thread_count(w->log); i++) {
        const struct sample_thread *t = sample_log_thread_at(w->log, (uint32_t)i);
        if (w->seen[i] && t->comm)
            trace_builder_comm(w->b, trace_builder_thread(w->b, t->pid, t->tid), t->comm);
    }
    return 0;
}

int sample_log_build(struct sample_log *l, struct trace_builder *b, struct functions *f,
                     struct sample_log_account *account, struct err *err)
{
    struct sample_log_account a = {0};
    size_t nthreads = sample_log_thread_count(l);
    struct builder w = {.log = l, .b = b, .functions = f, .account = &a};
    w.forked_ns = malloc((nthreads + 1) * sizeof *w.forked_ns);
    w.seen = calloc(nthreads + 1, sizeof *w.seen);
    int rc = w.forked_ns && w.seen ? sample_log_sort(l) : MTUI_E_NOMEM;
    if (rc == 0) {
        for (size_t i = 0; i < nthreads; i++)
            w.forked_ns[i] = SAMPLE_NO_TIME;
        count_events(l, &a);
        struct samples_limits none = {0, 0, a.period_ns};
        w.samples = samples_new(b, f, &none);
        rc = replay(&w);
        samples_free(w.samples);
    }
    free(w.forked_ns);
    free(w.seen);
    vec_free(&w.stack);
    vec_free(&w.cpu_ns);
    if (rc < 0)
        return err_set(err, rc, "not enough memory for the samples of this recording");
    *account = a;
    return 0;
}

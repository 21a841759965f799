#include "decode/sample/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

struct wait {
    uint64_t from_ns, to_ns;
    fn_id fn;
    uint16_t flags;
};

struct sampled {
    pid_t tid;
    bool started;     /* has a stack, open in the builder (it may be empty) */
    bool born, ended; /* its fork, its exit was seen */
    bool seen;        /* anything at all was */
    bool off;         /* waits since off_ns */
    fn_id off_fn;
    int cpu;
    uint64_t born_ns, off_ns, last_ns; /* last_ns: time of the last sample */
    VEC(struct wait) waits;            /* since then, each over */
};

struct samples {
    struct trace_builder *b;
    struct samples_limits limits;
    fn_id off_cpu, preempted;
    VEC(struct sampled) threads; /* by the builder's index */
};

struct samples *samples_new(struct trace_builder *b, struct functions *f,
                            const struct samples_limits *limits)
{
    struct samples *s = xcalloc(1, sizeof *s);
    s->b = b;
    s->limits = *limits;
    s->off_cpu = functions_intern(f, "[kernel]", "[off cpu]", "[off cpu]", 0, FN_PSEUDO);
    s->preempted = functions_intern(f, "[kernel]", "[preempted]", "[preempted]", 0, FN_PSEUDO);
    return s;
}

void samples_free(struct samples *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->threads.len; i++)
        vec_free(&s->threads.data[i].waits);
    vec_free(&s->threads);
    free(s);
}

void samples_set_limits(struct samples *s, const struct samples_limits *limits)
{
    s->limits = *limits;
}

static struct sampled *thread_at(struct samples *s, pid_t pid, pid_t tid, size_t *index)
{
    *index = trace_builder_thread(s->b, pid, tid);
    while (s->threads.len <= *index)
        vec_push(&s->threads, ((struct sampled){.cpu = -1}));
    s->threads.data[*index].tid = tid;
    return &s->threads.data[*index];
}

/* ---- Writing into the trace ---- */

static int enter(struct samples *s, size_t thread, uint64_t time_ns, const fn_id *stack,
                 size_t from, size_t n, unsigned flags)
{
    for (size_t d = from; d < n; d++)
        if (trace_builder_enter(s->b, thread, time_ns, stack[d], SPAN_SAMPLED | flags) < 0)
            return MTUI_E_NOMEM;
    return 0;
}

static void leave_to(struct samples *s, size_t thread, uint64_t time_ns, size_t depth,
                     unsigned flags)
{
    while (trace_builder_depth(s->b, thread) > depth)
        trace_builder_leave(s->b, thread, time_ns, flags);
}

static int put_wait(struct samples *s, size_t thread, const struct wait *w)
{
    if (trace_builder_enter(s->b, thread, w->from_ns, w->fn,
                            SPAN_SAMPLED | SPAN_OFF_CPU | w->flags) < 0)
        return MTUI_E_NOMEM;
    trace_builder_leave(s->b, thread, w->to_ns, 0);
    return 0;
}

static int put_waits(struct samples *s, size_t thread, struct sampled *t)
{
    for (size_t i = 0; i < t->waits.len; i++)
        if (put_wait(s, thread, &t->waits.data[i]) < 0)
            return MTUI_E_NOMEM;
    t->waits.len = 0;
    return 0;
}

static void put_gap(struct samples *s, pid_t tid, uint64_t from_ns, uint64_t to_ns)
{
    if (to_ns <= from_ns)
        return;
    struct gap g = {tid,           from_ns,
                    to_ns,         0,
                    GAP_NO_SAMPLE, "the thread ran, or was not seen to wait, and no sample came", 0};
    trace_builder_gap(s->b, &g);
}

/* ---- What happened between two known moments ---- */

static uint64_t after(uint64_t time_ns, uint64_t ns)
{
    return time_ns > UINT64_MAX - ns ? UINT64_MAX : time_ns + ns;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whether so much CPU time without a sample means that samples are missing. */
static bool too_long(const struct samples *s, uint64_t ns)
{
    uint64_t period = s->limits.period_ns;
    return period && ns / SAMPLES_BRIDGE > period;
}

/* CPU time from from_ns to to_ns: what the waits leave. */
static uint64_t ran_ns(const struct sampled *t, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t ns = to_ns > from_ns ? to_ns - from_ns : 0;
    for (size_t i = 0; i < t->waits.len; i++) {
        uint64_t waited = t->waits.data[i].to_ns - t->waits.data[i].from_ns;
        ns -= min_u64(ns, waited);
    }
    return ns;
}

/* Writes the waits outermost, with gaps where the thread ran between from_ns and to_ns for more
 * than a moment; nothing is open. Returns in *start_ns where the stack seen at to_ns may begin: at
 * the end of the last wait when that is near. */
static int put_unknown(struct samples *s, size_t thread, struct sampled *t, uint64_t from_ns,
                       uint64_t to_ns, bool gaps, uint64_t *start_ns)
{
    uint64_t at = from_ns;
    bool waited = t->waits.len > 0;
    for (size_t i = 0; gaps && i < t->waits.len; i++) {
        put_gap(s, t->tid, at, t->waits.data[i].from_ns);
        at = t->waits.data[i].to_ns;
    }
    if (waited)
        at = t->waits.data[t->waits.len - 1].to_ns;
    if (put_waits(s, thread, t) < 0)
        return MTUI_E_NOMEM;
    bool near = to_ns < at || !too_long(s, to_ns - at);
    *start_ns = near && (waited || !gaps) ? min_u64(at, to_ns) : to_ns;
    if (gaps)
        put_gap(s, t->tid, at, *start_ns);
    return 0;
}

/* Samples are missing between the last one and to_ns: the stack ends a period after it was seen. */
static int cut(struct samples *s, size_t thread, struct sampled *t, uint64_t to_ns,
               uint64_t *start_ns)
{
    uint64_t end = min_u64(after(t->last_ns, s->limits.period_ns), to_ns);
    if (t->waits.len)
        end = min_u64(end, t->waits.data[0].from_ns);
    leave_to(s, thread, end, 0, SPAN_GAP_END);
    return put_unknown(s, thread, t, end, to_ns, true, start_ns);
}

/* Before a thread's first sample: its waits, and where its first stack begins. */
static int begin(struct samples *s, size_t thread, struct sampled *t, uint64_t to_ns,
                 uint64_t *start_ns)
{
    uint64_t from = t->born ? t->born_ns : s->limits.first_ns;
    bool gaps = too_long(s, ran_ns(t, from, to_ns));
    if (!t->waits.len && !gaps && !t->born) { /* nothing known of what was before */
        *start_ns = to_ns;
        return 0;
    }
    return put_unknown(s, thread, t, from, to_ns, gaps, start_ns);
}

static size_t common_prefix(const struct samples *s, size_t thread, const fn_id *stack, size_t n)
{
    size_t d = 0;
    while (d < n && trace_builder_open_fn(s->b, thread, d) == stack[d])
        d++;
    return d;
}

/* The open stack becomes `stack`, seen at time_ns. */
static int change_stack(struct samples *s, size_t thread, struct sampled *t, uint64_t time_ns,
                        const fn_id *stack, size_t n)
{
    uint64_t start = time_ns;
    if (too_long(s, ran_ns(t, t->last_ns, time_ns))) {
        if (cut(s, thread, t, time_ns, &start) < 0)
            return MTUI_E_NOMEM;
        return enter(s, thread, start, stack, 0, n, SPAN_INFERRED_START);
    }
    size_t same = common_prefix(s, thread, stack, n);
    leave_to(s, thread, t->waits.len ? t->waits.data[0].from_ns : time_ns, same, 0);
    if (t->waits.len)
        start = t->waits.data[t->waits.len - 1].to_ns;
    if (put_waits(s, thread, t) < 0)
        return MTUI_E_NOMEM;
    return enter(s, thread, start, stack, same, n, 0);
}

/* ---- Events ---- */

static int end_wait(struct sampled *t, uint64_t to_ns, unsigned flags)
{
    t->off = false;
    if (to_ns <= t->off_ns)
        return 0;
    struct wait w = {t->off_ns, to_ns, t->off_fn, (uint16_t)flags};
    return vec_try_push(&t->waits, w) ? 0 : MTUI_E_NOMEM;
}

static void note_cpu(struct samples *s, struct sampled *t, int cpu, uint64_t time_ns)
{
    if (cpu >= 0 && t->cpu >= 0 && cpu != t->cpu) {
        char detail[48];
        snprintf(detail, sizeof detail, MIGRATION_DETAIL, t->cpu, cpu);
        trace_builder_mark(s->b, &(struct mark){time_ns, t->tid, MARK_MIGRATION, detail});
    }
    if (cpu >= 0)
        t->cpu = cpu;
}

int samples_stack(struct samples *s, pid_t pid, pid_t tid, int cpu, uint64_t time_ns,
                  const fn_id *stack, size_t n)
{
    size_t thread = 0;
    struct sampled *t = thread_at(s, pid, tid, &thread);
    trace_builder_count_sample(s->b, thread, cpu);
    note_cpu(s, t, cpu, time_ns);
    return samples_known(s, pid, tid, time_ns, stack, n);
}

int samples_known(struct samples *s, pid_t pid, pid_t tid, uint64_t time_ns, const fn_id *stack, size_t n)
{
    size_t thread = 0;
    struct sampled *t = thread_at(s, pid, tid, &thread);
    int rc = 0;
    if (t->off) { /* its switch in was lost, or this sample fell into the switch itself */
        uint64_t back = time_ns - min_u64(time_ns, s->limits.period_ns);
        rc = end_wait(t, back, SPAN_INFERRED_END);
    }
    if (rc == 0 && t->started) {
        rc = change_stack(s, thread, t, time_ns, stack, n);
    } else if (rc == 0) {
        uint64_t start = time_ns;
        rc = begin(s, thread, t, time_ns, &start);
        if (rc == 0)
            rc = enter(s, thread, start, stack, 0, n, t->born ? 0 : SPAN_INFERRED_START);
    }
    t->started = t->seen = true;
    t->ended = false;
    t->last_ns = time_ns;
    return rc;
}

int samples_switch(struct samples *s, pid_t pid, pid_t tid, uint64_t time_ns, bool out,
                   bool preempted)
{
    size_t thread = 0;
    struct sampled *t = thread_at(s, pid, tid, &thread);
    bool first = !t->seen;
    if (t->ended || (out && t->off))
        return 0;
    t->seen = true;
    if (out) {
        t->off = true;
        t->off_ns = time_ns;
        t->off_fn = preempted ? s->preempted : s->off_cpu;
        return 0;
    }
    if (t->off)
        return end_wait(t, time_ns, 0);
    /* Its switch out is older than the recording, or lost. */
    t->off_fn = s->off_cpu;
    if (t->waits.len)
        t->off_ns = t->waits.data[t->waits.len - 1].to_ns;
    else if (t->started)
        t->off_ns = t->last_ns;
    else
        t->off_ns = t->born ? t->born_ns : s->limits.first_ns;
    if (!first && !t->started && !t->born && !t->waits.len)
        return 0;
    return end_wait(t, time_ns, t->born && !t->started ? 0 : SPAN_INFERRED_START);
}

void samples_fork(struct samples *s, pid_t pid, pid_t tid, uint64_t time_ns)
{
    size_t thread = 0;
    struct sampled *t = thread_at(s, pid, tid, &thread);
    if (t->seen && !t->ended)
        return; /* known to live: an event of another file, or out of order */
    vec_free(&t->waits);
    *t = (struct sampled){.tid = tid, .cpu = -1, .born = true, .seen = true, .born_ns = time_ns};
}

/* The stack is empty from time_ns on. */
static int close_stack(struct samples *s, size_t thread, struct sampled *t, uint64_t time_ns)
{
    int rc = 0;
    uint64_t start = time_ns;
    if (t->off)
        rc = end_wait(t, time_ns, SPAN_INFERRED_END);
    if (rc == 0 && t->started)
        rc = change_stack(s, thread, t, time_ns, NULL, 0);
    else if (rc == 0)
        rc = begin(s, thread, t, time_ns, &start);
    return rc;
}

int samples_exit(struct samples *s, pid_t pid, pid_t tid, uint64_t time_ns)
{
    size_t thread = 0;
    struct sampled *t = thread_at(s, pid, tid, &thread);
    if (t->ended || !t->seen)
        return 0;
    int rc = close_stack(s, thread, t, time_ns);
    vec_free(&t->waits);
    *t = (struct sampled){.tid = tid, .cpu = -1, .seen = true, .ended = true};
    return rc;
}

int samples_exec(struct samples *s, pid_t pid, pid_t tid, uint64_t time_ns)
{
    size_t thread = 0;
    struct sampled *t = thread_at(s, pid, tid, &thread);
    if (t->ended || !t->started)
        return 0;
    int rc = close_stack(s, thread, t, time_ns);
    t->last_ns = time_ns;
    return rc;
}

/* A wait without an end: the call that hangs when the thread has not run since its last sample. */
static int finish_waiting(struct samples *s, size_t thread, struct sampled *t)
{
    uint64_t last = s->limits.last_ns > t->off_ns ? s->limits.last_ns : t->off_ns, start = 0;
    struct wait w = {t->off_ns, last, t->off_fn, SPAN_INFERRED_END};
    int rc = 0;
    if (!t->started)
        rc = begin(s, thread, t, t->off_ns, &start);
    else if (too_long(s, ran_ns(t, t->last_ns, t->off_ns)))
        rc = cut(s, thread, t, t->off_ns, &start);
    else if (t->waits.len) {
        leave_to(s, thread, t->waits.data[0].from_ns, 0, SPAN_INFERRED_END);
        rc = put_waits(s, thread, t);
    }
    if (rc == 0 && last > t->off_ns) /* else the switch is the last that was recorded: no time has passed */
        rc = put_wait(s, thread, &w);
    leave_to(s, thread, last, 0, SPAN_INFERRED_END);
    return rc;
}

static int finish_thread(struct samples *s, size_t thread, struct sampled *t)
{
    uint64_t last = s->limits.last_ns, start = 0;
    if (t->off)
        return finish_waiting(s, thread, t);
    if (!t->started)
        return begin(s, thread, t, last, &start);
    if (last < t->last_ns)
        last = t->last_ns;
    if (too_long(s, ran_ns(t, t->last_ns, last)))
        return cut(s, thread, t, last, &start);
    leave_to(s, thread, t->waits.len ? t->waits.data[0].from_ns : last, 0, SPAN_INFERRED_END);
    return put_waits(s, thread, t);
}

int samples_finish(struct samples *s)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->threads.len; i++) {
        struct sampled *t = &s->threads.data[i];
        if (t->seen && !t->ended)
            rc = finish_thread(s, i, t);
        vec_free(&t->waits);
        *t = (struct sampled){.tid = t->tid, .cpu = t->cpu};
    }
    return rc;
}

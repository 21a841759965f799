/* Slow calls that triggers have timed, put between the samples of the same thread.
 *
 * Samples say nothing of what a thread does while it waits, and that is where a slow call mostly is. The hit tells
 * when the call began and ended and of which function it was; who called it, the samples tell: one with the function
 * in it, inside of the call or near, else what those before and behind have in common. Stacks that were not sampled
 * come into the log: the caller's right before and behind, the call's at its entry and its end. */
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"
#include "decode/open/open_calls.h"

#define SHORTEST_NS 1000000u /* what takes less, the samples show about as well */

struct call {
    uint64_t from_ns, to_ns; /* to: UINT64_MAX while it had not ended */
    uint64_t seen_ns;        /* when it had not */
    uint64_t before_ns, behind_ns;
    stack_id before, behind; /* the nearest samples */
    stack_id common;         /* of all before and behind, back to the next such call */
    stack_id inside, near;   /* the function's caller, by samples within the call, and before or behind */
    stack_id stack;          /* the call's own, when it is known */
    uint32_t thread, level; /* how many calls are around it */
    size_t around; /* the call of the same thread that it is part of; SIZE_MAX: none */
    fn_id fn;
    bool has_before, has_inside, has_behind, has_near;
    bool exits; /* its end is its thread's */
};

struct thread_end {
    uint64_t time_ns;
    uint32_t thread;
};

/* When a thread was last seen to switch in and out, and when anything else was heard of it, a sample for one; 0: never. */
struct latest {
    uint64_t other_ns, in_ns, out_ns;
};

struct calls {
    struct sample_log *log;
    size_t first_event; /* of this file, in the log */
    unsigned snapshot;
    uint64_t first_ns, last_ns;
    VEC(struct call) all; /* by thread, then by time, those around first */
    VEC(struct latest) seen; /* by thread, as far as it has events in this file */
    VEC(struct thread_end) ends; /* by thread, then by time */
    uint64_t too_deep;    /* calls that were left out */
    VEC(fn_id) stack, other; /* outermost first */
};

static int compare(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    return a->to_ns == b->to_ns ? 0 : a->to_ns > b->to_ns ? -1 : 1;
}

static bool timed(const struct sample_event *e)
{
    return e->time_ns != SAMPLE_NO_TIME && e->kind != SAMPLE_BORDER;
}

/* ---- Which calls ---- */

static bool is_seen(const struct calls *k, uint32_t thread)
{
    return thread < k->seen.len &&
           (k->seen.data[thread].other_ns || k->seen.data[thread].in_ns || k->seen.data[thread].out_ns);
}

static void note_latest(struct calls *k, const struct sample_event *e)
{
    while (k->seen.len <= e->thread)
        vec_push(&k->seen, (struct latest){0});
    struct latest *l = &k->seen.data[e->thread];
    bool out = e->kind == SAMPLE_SWITCH_OUT || e->kind == SAMPLE_SWITCH_OUT_PREEMPT;
    uint64_t *last = out ? &l->out_ns : e->kind == SAMPLE_SWITCH_IN ? &l->in_ns : &l->other_ns;
    if (e->time_ns > *last)
        *last = e->time_ns;
}

static void find_limits(struct calls *k)
{
    const struct sample_event *e = sample_log_events(k->log);
    k->first_ns = UINT64_MAX;
    for (size_t i = k->first_event; i < sample_log_count(k->log); i++) {
        if (!timed(&e[i]))
            continue;
        k->first_ns = e[i].time_ns < k->first_ns ? e[i].time_ns : k->first_ns;
        k->last_ns = e[i].time_ns > k->last_ns ? e[i].time_ns : k->last_ns;
        if (e[i].thread != SAMPLE_NO_THREAD)
            note_latest(k, &e[i]);
    }
}

static int take_hit(struct calls *k, const struct snapshot_hit *h, const struct addrspaces *as,
                    struct symbolizer *symbols)
{
    pid_t pid = addrspaces_pid(as, h->tid);
    if (h->duration_ns < SHORTEST_NS || h->duration_ns >= h->time_ns || !h->address || h->tid <= 0 || pid <= 0)
        return 0;
    uint64_t from_ns = h->time_ns - h->duration_ns;
    uint64_t end_ns = h->took_ns && h->took_ns < UINT64_MAX - from_ns ? from_ns + h->took_ns : h->time_ns;
    if (end_ns <= k->first_ns || from_ns >= k->last_ns)
        return 0;
    /* A snapshot is taken because the call is over, or runs on: that may lie behind all that was recorded. */
    bool ours = k->snapshot && h->snapshot == k->snapshot, inside = end_ns <= k->last_ns;
    bool ended = h->still_running ? h->took_ns && inside : ours || inside;
    struct call c = {.from_ns = from_ns,
                     .to_ns = ended ? end_ns : UINT64_MAX,
                     .seen_ns = h->still_running && ours ? h->time_ns : 0,
                     .thread = sample_log_thread(k->log, pid, h->tid),
                     .around = SIZE_MAX,
                     .fn = symbolizer_find(symbols, pid, h->address, PERF_MODE_USER)};
    return c.thread != SAMPLE_NO_THREAD && vec_try_push(&k->all, c) ? 0 : MTUI_E_NOMEM;
}

/* Each sample is looked at for all calls that it is in: those too deep in others are left out. */
static void nest(struct calls *k)
{
    size_t kept = 0;
    for (size_t i = 0; i < k->all.len; i++) {
        struct call c = k->all.data[i];
        size_t outer = kept ? kept - 1 : SIZE_MAX;
        while (outer != SIZE_MAX && (k->all.data[outer].thread != c.thread || k->all.data[outer].to_ns < c.to_ns))
            outer = k->all.data[outer].around;
        c.around = outer;
        c.level = outer != SIZE_MAX ? k->all.data[outer].level + 1 : 0;
        if (c.level < OPEN_CALLS_DEEPEST)
            k->all.data[kept++] = c;
    }
    k->too_deep = k->all.len - kept;
    k->all.len = kept;
}

static int compare_ends(const void *left, const void *right)
{
    const struct thread_end *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* A thread that exits is in none of its calls any more. */
static int end_with_threads(struct calls *k)
{
    const struct sample_event *e = sample_log_events(k->log);
    for (size_t i = k->first_event; k->all.len && i < sample_log_count(k->log); i++)
        if (e[i].kind == SAMPLE_EXIT && timed(&e[i]) && e[i].thread != SAMPLE_NO_THREAD &&
            !vec_try_push(&k->ends, ((struct thread_end){e[i].time_ns, e[i].thread})))
            return MTUI_E_NOMEM;
    if (k->ends.len)
        qsort(k->ends.data, k->ends.len, sizeof *k->ends.data, compare_ends);
    for (size_t i = 0, next = 0; i < k->all.len; i++) { /* both by thread, then by time */
        struct call *c = &k->all.data[i];
        const struct thread_end begin = {c->from_ns, c->thread};
        while (next < k->ends.len && compare_ends(&k->ends.data[next], &begin) < 0)
            next++;
        const struct thread_end *end = next < k->ends.len ? &k->ends.data[next] : NULL;
        if (end && end->thread == c->thread && end->time_ns < c->to_ns) {
            c->to_ns = end->time_ns;
            c->exits = true;
        }
    }
    return 0;
}

/* ---- Who called them ---- */

/* Whether the function is in the stack; its caller's stack there, where it stands outermost. */
static bool find_function(const struct calls *k, stack_id stack, fn_id fn, stack_id *caller)
{
    bool found = false;
    for (stack_id id = stack; id != STACK_EMPTY;) {
        struct stack_node node = stack_tree_node(sample_log_stacks(k->log), id);
        if (node.fn == fn) {
            *caller = node.caller;
            found = true;
        }
        id = node.caller;
    }
    return found;
}

static stack_id caller_of(const struct calls *k, stack_id stack)
{
    return stack == STACK_EMPTY ? STACK_EMPTY : stack_tree_node(sample_log_stacks(k->log), stack).caller;
}

/* One more sample that has the function. Before a function has set up its frame, the kernel's walk misses its caller:
 * a stack that has just that one more is the better one. */
static void take_caller(const struct calls *k, bool *has, stack_id *best, stack_id caller)
{
    if (!*has || (caller != STACK_EMPTY && caller_of(k, caller) == *best))
        *best = caller;
    *has = true;
}

/* The first call behind those of the thread that begin at or before the time. */
static size_t find_next(const struct calls *k, uint32_t thread, uint64_t time_ns)
{
    size_t low = 0, high = k->all.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct call *c = &k->all.data[mid];
        if (c->thread < thread || (c->thread == thread && c->from_ns <= time_ns))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The last call of its thread that had begun; SIZE_MAX: none. */
static size_t find_begun(const struct calls *k, const struct sample_event *e)
{
    size_t next = find_next(k, e->thread, e->time_ns);
    return next && k->all.data[next - 1].thread == e->thread ? next - 1 : SIZE_MAX;
}

static size_t depth(const struct calls *k, stack_id id)
{
    size_t n = 0;
    for (; id != STACK_EMPTY; id = caller_of(k, id))
        n++;
    return n;
}

static stack_id in_common(const struct calls *k, stack_id a, stack_id b)
{
    size_t na = depth(k, a), nb = depth(k, b);
    for (; na > nb; na--)
        a = caller_of(k, a);
    for (; nb > na; nb--)
        b = caller_of(k, b);
    while (a != b) {
        a = caller_of(k, a);
        b = caller_of(k, b);
    }
    return a;
}

static void look_around(struct calls *k, struct call *c, stack_id stack)
{
    c->common = c->has_before || c->has_behind ? in_common(k, c->common, stack) : stack;
    stack_id caller;
    if (find_function(k, stack, c->fn, &caller))
        take_caller(k, &c->has_near, &c->near, caller);
}

static void look_at(struct calls *k, const struct sample_event *e)
{
    size_t next = find_next(k, e->thread, e->time_ns), at = find_begun(k, e);
    stack_id caller;
    if (next < k->all.len && k->all.data[next].thread == e->thread) {
        struct call *c = &k->all.data[next];
        look_around(k, c, e->stack);
        if (!c->has_before || e->time_ns >= c->before_ns) {
            c->before = e->stack;
            c->before_ns = e->time_ns;
            c->has_before = true;
        }
    }
    for (; at != SIZE_MAX; at = k->all.data[at].around) {
        struct call *c = &k->all.data[at];
        if (e->time_ns > c->to_ns)
            look_around(k, c, e->stack);
        if (e->time_ns > c->to_ns && (!c->has_behind || e->time_ns < c->behind_ns)) {
            c->behind = e->stack;
            c->behind_ns = e->time_ns;
            c->has_behind = true;
        } else if (e->time_ns <= c->to_ns && find_function(k, e->stack, c->fn, &caller)) {
            take_caller(k, &c->has_inside, &c->inside, caller);
        }
    }
}

static int unroll(struct calls *k, stack_id stack)
{
    k->stack.len = 0;
    for (stack_id id = stack; id != STACK_EMPTY;) {
        struct stack_node node = stack_tree_node(sample_log_stacks(k->log), id);
        if (!vec_try_push(&k->stack, node.fn))
            return MTUI_E_NOMEM;
        id = node.caller;
    }
    for (size_t i = 0, j = k->stack.len; i + 1 < j; i++) {
        fn_id fn = k->stack.data[i];
        k->stack.data[i] = k->stack.data[--j];
        k->stack.data[j] = fn;
    }
    return 0;
}

/* The stack of whoever called it. */
static stack_id find_caller(struct calls *k, const struct call *c)
{
    const struct call *outer = c->around != SIZE_MAX ? &k->all.data[c->around] : NULL;
    stack_id ignored, caller = c->inside, guess;
    bool has = c->has_inside;
    if (has && c->has_near)
        take_caller(k, &has, &caller, c->near);
    if (outer && !(has && find_function(k, caller, outer->fn, &ignored)))
        return outer->stack;
    if (has || c->has_near)
        return has ? caller : c->near;
    guess = c->has_before && c->has_behind ? in_common(k, c->before, c->behind)
            : c->has_before || c->has_behind ? c->common : STACK_EMPTY;
    return find_function(k, guess, c->fn, &caller) ? caller : guess;
}

/* ---- Into the log ---- */

static int add(struct calls *k, const struct call *c, uint64_t time_ns, enum sample_event_kind kind, stack_id stack)
{
    struct sample_event e = {.time_ns = time_ns,
                             .period = 0,
                             .stack = stack,
                             .thread = kind == SAMPLE_STILL ? SAMPLE_NO_THREAD : c->thread,
                             .cpu = -1,
                             .event = UINT16_MAX,
                             .kind = (uint8_t)kind};
    return sample_log_add(k->log, &e);
}

/* It ran once more before it went to wait for good, too shortly for a sample: in this call still. */
static int put_last_run(struct calls *k, const struct call *c)
{
    const struct latest *l = c->thread < k->seen.len ? &k->seen.data[c->thread] : NULL;
    bool unseen = l && l->in_ns > c->from_ns && l->in_ns > l->other_ns && l->out_ns > l->in_ns + 1;
    return unseen ? add(k, c, l->out_ns - 1, SAMPLE_KNOWN, c->stack) : 0;
}

static int put(struct calls *k, struct call *c)
{
    bool begun_before = c->from_ns <= k->first_ns, ended = c->to_ns != UINT64_MAX;
    uint64_t from_ns = begun_before ? k->first_ns : c->from_ns;
    stack_id caller = find_caller(k, c);
    int rc = unroll(k, caller);
    if (rc == 0 && !vec_try_push(&k->stack, c->fn))
        rc = MTUI_E_NOMEM;
    if (rc == 0)
        rc = sample_log_stack(k->log, k->stack.data, k->stack.len, &c->stack);
    if (rc == 0 && !begun_before)
        rc = add(k, c, from_ns - 1, SAMPLE_KNOWN, caller);
    if (rc == 0)
        rc = add(k, c, from_ns, SAMPLE_KNOWN, c->stack);
    /* A thread of which nothing was recorded has waited all the time. */
    if (rc == 0 && !is_seen(k, c->thread))
        rc = add(k, c, from_ns, SAMPLE_SWITCH_OUT, STACK_EMPTY);
    if (rc == 0 && !ended)
        rc = put_last_run(k, c);
    if (rc == 0 && !ended && c->seen_ns > k->last_ns)
        rc = add(k, c, c->seen_ns, SAMPLE_STILL, STACK_EMPTY);
    if (rc == 0 && ended)
        rc = add(k, c, c->to_ns - 1, SAMPLE_KNOWN, c->stack);
    if (rc == 0 && ended && !c->exits)
        rc = add(k, c, c->to_ns, SAMPLE_KNOWN, caller);
    return rc;
}

/* A sample within a call whose stack lacks it or its caller: without a frame pointer, or before it is set up, callers
 * are missing. What it has beyond them was called from here. */
static int mend(struct calls *k, size_t i)
{
    const struct sample_event *e = &sample_log_events(k->log)[i];
    size_t at = find_begun(k, e), n = 0;
    stack_id caller, stack;
    while (at != SIZE_MAX && k->all.data[at].to_ns <= e->time_ns)
        at = k->all.data[at].around;
    if (at == SIZE_MAX)
        return 0;
    const struct call *c = &k->all.data[at];
    bool has = find_function(k, e->stack, c->fn, &caller);
    if (has && caller == caller_of(k, c->stack))
        return 0;
    k->other.len = 0;
    if (unroll(k, e->stack) < 0 || !vec_try_append(&k->other, k->stack.data, k->stack.len) || unroll(k, c->stack) < 0)
        return MTUI_E_NOMEM;
    if (has)
        n = depth(k, caller) + 1;
    while (!has && n < k->stack.len && n < k->other.len && k->other.data[n] == k->stack.data[n])
        n++;
    if (!vec_try_append(&k->stack, k->other.data + n, k->other.len - n) ||
        sample_log_stack(k->log, k->stack.data, k->stack.len, &stack) < 0)
        return MTUI_E_NOMEM;
    sample_log_set_stack(k->log, i, stack);
    return 0;
}

static int take_hits(struct calls *k, const struct snapshot_dir *dir, const struct addrspaces *as,
                     struct symbolizer *symbols)
{
    struct snapshot_hit *hits = NULL;
    size_t n = 0, bad = 0;
    struct err err;
    int rc = 0;
    if (snapshot_dir_read_hits(dir, &hits, &n, &bad, &err) < 0)
        return 0; /* said where the marks are made */
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = take_hit(k, &hits[i], as, symbols);
    snapshot_dir_free_hits(hits, n);
    return rc;
}

int open_known_calls(struct sample_log *log, size_t first_event, const struct snapshot_dir *dir, unsigned snapshot,
                     const struct addrspaces *as, struct symbolizer *symbols, uint64_t *too_deep)
{
    struct calls k = {.log = log, .first_event = first_event, .snapshot = snapshot};
    find_limits(&k);
    int rc = k.first_ns < k.last_ns ? take_hits(&k, dir, as, symbols) : 0;
    if (k.all.len)
        qsort(k.all.data, k.all.len, sizeof *k.all.data, compare);
    nest(&k);
    if (rc == 0)
        rc = end_with_threads(&k);
    size_t n = k.all.len ? sample_log_count(log) : 0;
    for (size_t i = first_event; i < n && rc == 0; i++) {
        const struct sample_event *e = &sample_log_events(log)[i];
        if (e->kind == SAMPLE_STACK && timed(e) && e->thread != SAMPLE_NO_THREAD)
            look_at(&k, e);
    }
    for (size_t i = 0; i < k.all.len && rc == 0; i++)
        rc = put(&k, &k.all.data[i]);
    for (size_t i = first_event; i < n && rc == 0; i++) {
        const struct sample_event *e = &sample_log_events(log)[i];
        if (e->kind == SAMPLE_STACK && timed(e) && e->thread != SAMPLE_NO_THREAD)
            rc = mend(&k, i);
    }
    vec_free(&k.all);
    vec_free(&k.seen);
    vec_free(&k.ends);
    vec_free(&k.stack);
    vec_free(&k.other);
    *too_deep += k.too_deep;
    return rc;
}

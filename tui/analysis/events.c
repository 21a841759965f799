#include "tui/analysis/events.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

#define BUDGET 2000000 /* events passed over in one step: some ten milliseconds */

const char *event_kind_name(enum event_kind kind)
{
    static const char *const names[EVENT_KINDS] = {"call", "ret", "gap", "mark"};
    return names[kind];
}

/* A place between two events of one thread: how many spans of each row have been entered, and how many
 * calls are open. The open call of depth d is the last one entered there. */
struct walker {
    size_t thread, depths, open;
    size_t *entered; /* per depth */
};

struct events {
    const struct trace *t;
    struct flame_source *src;
    struct events_filter filter;
    struct walker *walkers;
    size_t nwalkers;
    const struct gap *gaps;
    const struct mark *marks;
    size_t ngaps, nmarks, gap, mark; /* gap, mark: the next ones */
    bool tired;
};

struct events *events_new(const struct trace *t, struct flame_source *src,
                          struct events_filter filter)
{
    struct events *e = xcalloc(1, sizeof *e);
    *e = (struct events){.t = t, .src = src, .filter = filter};
    e->gaps = trace_gaps(t, &e->ngaps);
    e->marks = trace_marks(t, &e->nmarks);
    size_t n = trace_thread_count(t);
    e->walkers = xcalloc(n + 1, sizeof *e->walkers);
    for (size_t i = 0; i < n; i++) {
        if (filter.thread != EVENTS_ALL_THREADS && filter.thread != i)
            continue;
        struct walker *w = &e->walkers[e->nwalkers++];
        w->thread = i;
        w->depths = trace_thread(t, i)->depths;
        w->entered = xcalloc(w->depths + 1, sizeof *w->entered);
    }
    return e;
}

struct events *events_copy(const struct events *e)
{
    struct events *c = xmalloc(sizeof *c);
    *c = *e;
    c->walkers = xcalloc(e->nwalkers + 1, sizeof *c->walkers);
    for (size_t i = 0; i < e->nwalkers; i++) {
        c->walkers[i] = e->walkers[i];
        c->walkers[i].entered = xcalloc(e->walkers[i].depths + 1, sizeof(size_t));
        memcpy(c->walkers[i].entered, e->walkers[i].entered, e->walkers[i].depths * sizeof(size_t));
    }
    return c;
}

void events_free(struct events *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < e->nwalkers; i++)
        free(e->walkers[i].entered);
    free(e->walkers);
    free(e);
}

/* ---- One thread ---- */

static const struct span *span_at(const struct events *e, const struct walker *w, size_t depth,
                                  size_t index)
{
    size_t n;
    const struct span *row = depth < w->depths ? trace_row(e->t, w->thread, depth, &n) : NULL;
    return row && index < n ? &row[index] : NULL;
}

static const struct span *open_span(const struct events *e, const struct walker *w)
{
    return w->open ? span_at(e, w, w->open - 1, w->entered[w->open - 1] - 1) : NULL;
}

static bool lies_in(const struct span *s, const struct span *outer)
{
    return !outer || (s->start_ns >= outer->start_ns && s->end_ns <= outer->end_ns);
}

/* A call, or the return from it. */
static struct event event_at(const struct walker *w, enum event_kind kind, const struct span *s,
                             size_t depth, size_t index)
{
    return (struct event){.kind = kind,
                          .thread = w->thread,
                          .span = s,
                          .depth = depth,
                          .index = index,
                          .time_ns = kind == EVENT_CALL ? s->start_ns : s->end_ns};
}

/* The event behind the place: the next call below the open one, if it still belongs to it, else the
 * return from the open one. */
static bool walker_peek(const struct events *e, const struct walker *w, struct event *out)
{
    const struct span *open = open_span(e, w);
    size_t entered = w->open < w->depths ? w->entered[w->open] : 0;
    const struct span *next = span_at(e, w, w->open, entered);
    if (next && lies_in(next, open))
        *out = event_at(w, EVENT_CALL, next, w->open, entered);
    else if (open)
        *out = event_at(w, EVENT_RETURN, open, w->open - 1, w->entered[w->open - 1] - 1);
    else
        return false;
    return true;
}

static void walker_step(struct walker *w, const struct event *ev)
{
    if (ev->kind == EVENT_CALL)
        w->entered[w->open++]++;
    else
        w->open--;
}

/* The event before the place: the return from the last call entered below the open one, if it lies in
 * it, else the call of the open one itself. */
static bool walker_peek_back(const struct events *e, const struct walker *w, struct event *out)
{
    const struct span *open = open_span(e, w);
    size_t entered = w->open < w->depths ? w->entered[w->open] : 0;
    const struct span *last = entered ? span_at(e, w, w->open, entered - 1) : NULL;
    if (last && lies_in(last, open))
        *out = event_at(w, EVENT_RETURN, last, w->open, entered - 1);
    else if (open)
        *out = event_at(w, EVENT_CALL, open, w->open - 1, w->entered[w->open - 1] - 1);
    else
        return false;
    return true;
}

static void walker_step_back(struct walker *w, const struct event *ev)
{
    if (ev->kind == EVENT_RETURN)
        w->open++;
    else
        w->entered[--w->open]--;
}

/* Before everything that happens at t: calls open are those that started before t and end at or behind
 * it. */
static void walker_seek(struct events *e, struct walker *w, uint64_t t_ns)
{
    w->open = 0;
    bool chain = true;
    for (size_t d = 0; d < w->depths; d++) {
        struct flame_row row = flame_source_row(e->src, w->thread, d);
        size_t k = row.seek(&row, 0, t_ns);
        w->entered[d] = k;
        chain = chain && k > 0 && row.spans[k - 1].end_ns >= t_ns &&
                lies_in(&row.spans[k - 1], open_span(e, w));
        if (chain)
            w->open = d + 1;
    }
}

/* ---- All together ---- */

void events_seek(struct events *e, uint64_t t_ns)
{
    for (size_t i = 0; i < e->nwalkers; i++)
        walker_seek(e, &e->walkers[i], t_ns);
    for (e->gap = 0; e->gap < e->ngaps && e->gaps[e->gap].start_ns < t_ns;)
        e->gap++;
    for (e->mark = 0; e->mark < e->nmarks && e->marks[e->mark].time_ns < t_ns;)
        e->mark++;
}

static size_t thread_of(const struct events *e, pid_t tid)
{
    ssize_t i = tid ? trace_find_thread(e->t, tid) : -1;
    return i < 0 ? SIZE_MAX : (size_t)i;
}

static struct event gap_event(const struct events *e, size_t i)
{
    return (struct event){.kind = EVENT_GAP,
                          .time_ns = e->gaps[i].start_ns,
                          .thread = thread_of(e, e->gaps[i].tid),
                          .gap = &e->gaps[i]};
}

static struct event mark_event(const struct events *e, size_t i)
{
    return (struct event){.kind = EVENT_MARK,
                          .time_ns = e->marks[i].time_ns,
                          .thread = thread_of(e, e->marks[i].tid),
                          .mark = &e->marks[i]};
}

static bool passes(const struct events *e, const struct event *ev)
{
    if (ev->kind == EVENT_MARK && e->filter.marks && !(e->filter.marks >> ev->mark->kind & 1))
        return false;
    if (!(e->filter.kinds >> ev->kind & 1))
        return false;
    if (ev->span)
        return !e->filter.fn || (e->filter.fn[ev->span->fn / 8] >> ev->span->fn % 8 & 1);
    /* What concerns the whole recording concerns each thread. */
    return e->filter.thread == EVENTS_ALL_THREADS || ev->thread == SIZE_MAX ||
           ev->thread == e->filter.thread;
}

static bool step(struct events *e, struct event *out)
{
    struct walker *from = NULL;
    bool found = false;
    if (e->gap < e->ngaps) {
        *out = gap_event(e, e->gap);
        found = true;
    }
    if (e->mark < e->nmarks && (!found || e->marks[e->mark].time_ns < out->time_ns)) {
        *out = mark_event(e, e->mark);
        found = true;
    }
    for (size_t i = 0; i < e->nwalkers; i++) {
        struct event ev;
        if (walker_peek(e, &e->walkers[i], &ev) && (!found || ev.time_ns < out->time_ns)) {
            *out = ev;
            found = true;
            from = &e->walkers[i];
        }
    }
    if (!found)
        return false;
    if (from)
        walker_step(from, out);
    else if (out->kind == EVENT_GAP)
        e->gap++;
    else
        e->mark++;
    return true;
}

static bool step_back(struct events *e, struct event *out)
{
    struct walker *from = NULL;
    bool found = false;
    for (size_t i = e->nwalkers; i-- > 0;) {
        struct event ev;
        if (walker_peek_back(e, &e->walkers[i], &ev) && (!found || ev.time_ns > out->time_ns)) {
            *out = ev;
            found = true;
            from = &e->walkers[i];
        }
    }
    if (e->mark > 0 && (!found || e->marks[e->mark - 1].time_ns > out->time_ns)) {
        *out = mark_event(e, e->mark - 1);
        found = true;
        from = NULL;
    }
    if (e->gap > 0 && (!found || e->gaps[e->gap - 1].start_ns > out->time_ns)) {
        *out = gap_event(e, e->gap - 1);
        found = true;
        from = NULL;
    }
    if (!found)
        return false;
    if (from)
        walker_step_back(from, out);
    else if (out->kind == EVENT_GAP)
        e->gap--;
    else
        e->mark--;
    return true;
}

bool events_next(struct events *e, struct event *out)
{
    e->tired = false;
    for (size_t tries = 0; step(e, out); tries++) {
        if (passes(e, out))
            return true;
        if (tries == BUDGET) {
            e->tired = true;
            return false;
        }
    }
    return false;
}

bool events_prev(struct events *e, struct event *out)
{
    e->tired = false;
    for (size_t tries = 0; step_back(e, out); tries++) {
        if (passes(e, out))
            return true;
        if (tries == BUDGET) {
            e->tired = true;
            return false;
        }
    }
    return false;
}

bool events_tired(const struct events *e)
{
    return e->tired;
}

/* Threads and processes of the trace: their order, and which of them are collapsed, hidden, pinned. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "tui/timeline/timeline.h"

/* ---- A trace comes in ---- */

static void add_gap(struct tl_thread *th, const struct gap *gap)
{
    flame_gaps_add(flame_gap_is_hard(gap->cause) ? &th->hard : &th->soft, gap);
    th->gaps[gap->cause] += gap->tid != 0;
    if (gap->cause == GAP_NOT_DECODED)
        th->not_decoded = gap;
}

static void add_gaps(struct timeline *tl)
{
    size_t n;
    const struct gap *gaps = trace_gaps(tl->trace, &n); /* lives as long as the threads */
    for (size_t i = 0; i < n; i++) {
        ssize_t own = gaps[i].tid ? trace_find_thread(tl->trace, gaps[i].tid) : -1;
        if (own >= 0)
            add_gap(&tl->threads[own], &gaps[i]);
        for (size_t k = 0; gaps[i].tid == 0 && k < tl->nthreads; k++)
            add_gap(&tl->threads[k], &gaps[i]);
    }
}

/* Threads are ordered by process. */
static void add_processes(struct timeline *tl)
{
    tl->nprocesses = 0;
    for (size_t i = 0; i < tl->nthreads; i++) {
        const struct trace_thread *t = trace_thread(tl->trace, i);
        struct tl_process *p = tl->nprocesses ? &tl->processes[tl->nprocesses - 1] : NULL;
        if (!p || p->pid != t->pid) {
            p = &tl->processes[tl->nprocesses++];
            *p = (struct tl_process){.pid = t->pid, .comm = t->comm};
        }
        if (t->tid == t->pid)
            p->comm = t->comm;
        p->threads++;
        p->spans += t->spans;
        tl->threads[i].process = tl->nprocesses - 1;
    }
}

void tl_set_threads(struct timeline *tl)
{
    size_t n, nmarks;
    const struct mark *marks = trace_marks(tl->trace, &nmarks);
    tl->nthreads = n = trace_thread_count(tl->trace);
    tl->threads = xcalloc(n + 1, sizeof *tl->threads);
    tl->processes = xcalloc(n + 1, sizeof *tl->processes);
    tl->shown = xcalloc(n + 1, sizeof *tl->shown);
    for (size_t i = 0; i < n; i++) {
        tl->shown[i] = i;
        tl->threads[i].collapsed = trace_thread(tl->trace, i)->spans == 0; /* nothing to see in it */
    }
    add_processes(tl);
    add_gaps(tl);
    for (size_t i = 0; i < nmarks; i++)
        if (marks[i].kind == MARK_TRIGGER)
            vec_push(&tl->triggers, i);
}

void tl_free_threads(struct timeline *tl)
{
    for (size_t i = 0; i < tl->nthreads; i++) {
        flame_gaps_free(&tl->threads[i].hard);
        flame_gaps_free(&tl->threads[i].soft);
    }
    free(tl->threads);
    free(tl->processes);
    free(tl->shown);
    vec_free(&tl->triggers);
    tl->threads = NULL;
    tl->processes = NULL;
    tl->shown = NULL;
    tl->nthreads = tl->nprocesses = 0;
}

/* ---- Order ---- */

struct place {
    size_t thread, process;
    bool pinned;
    const char *name; /* TL_BY_NAME */
    uint64_t weight;  /* TL_BY_SPANS, TL_BY_BUSY: most first */
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->pinned != y->pinned)
        return x->pinned ? -1 : 1;
    if (x->process != y->process && !x->pinned)
        return x->process < y->process ? -1 : 1;
    int names = x->name && y->name ? strcmp(x->name, y->name) : 0;
    if (names)
        return names;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static uint64_t busy_time(struct timeline *tl, size_t thread)
{
    const struct trace_thread *t = trace_thread(tl->trace, thread);
    if (tl->pyramid)
        return tl_busy(tl, thread, 0, t->first_ns, t->last_ns).ns;
    return t->last_ns - t->first_ns;
}

void tl_order_threads(struct timeline *tl)
{
    struct place *places = xcalloc(tl->nthreads + 1, sizeof *places);
    for (size_t i = 0; i < tl->nthreads; i++) {
        const struct trace_thread *t = trace_thread(tl->trace, i);
        places[i] = (struct place){
            .thread = i,
            .process = tl->threads[i].process,
            .pinned = tl->threads[i].pinned,
            .name = tl->order == TL_BY_NAME ? t->comm : NULL,
            .weight = tl->order == TL_BY_SPANS  ? t->spans
                      : tl->order == TL_BY_BUSY ? busy_time(tl, i)
                                                : 0,
        };
    }
    qsort(places, tl->nthreads, sizeof *places, by_place);
    for (size_t i = 0; i < tl->nthreads; i++)
        tl->shown[i] = places[i].thread;
    free(places);
}

static const char *const order_names[] = {"tid", "name", "spans", "busy"};

static bool sort(struct timeline *tl, const char *arg)
{
    for (size_t i = 0; i < sizeof order_names / sizeof *order_names; i++) {
        if (strcmp(arg, order_names[i]) != 0)
            continue;
        tl->order = (enum tl_order)i;
        tl_layout(tl);
        tl_scroll_to_selection(tl);
        model_say(tl->m, "threads by %s", arg);
        return true;
    }
    model_error(tl->m, "threads are sorted by tid, name, spans or busy, not '%s'", arg);
    return true;
}

/* ---- Open, collapsed, hidden ---- */

/* False when it is not drawn at all, or only by its process. */
static bool is_open(const struct timeline *tl, size_t thread)
{
    const struct tl_thread *th = &tl->threads[thread];
    return !th->hidden && (th->pinned || !tl->processes[th->process].collapsed);
}

bool tl_open_thread(struct timeline *tl, size_t thread)
{
    struct tl_thread *th = &tl->threads[thread];
    bool was_open = is_open(tl, thread) && !th->collapsed;
    th->hidden = th->collapsed = false;
    if (!th->pinned)
        tl->processes[th->process].collapsed = false;
    return !was_open;
}

static void relayout(struct timeline *tl)
{
    tl_layout(tl);
    tl_scroll_to_selection(tl);
}

static bool hide(struct timeline *tl)
{
    size_t shown = 0, gone = tl->sel.thread;
    for (size_t i = 0; i < tl->nthreads; i++)
        shown += !tl->threads[i].hidden;
    if (!tl->sel.valid)
        return true;
    if (shown <= 1) {
        model_say(tl->m, "the last thread stays");
        return true;
    }
    tl_move(tl, ACT_THREAD_NEXT);
    tl->threads[gone].hidden = true;
    model_say(tl->m, "thread %d hidden; :unhide shows all", (int)trace_thread(tl->trace, gone)->tid);
    relayout(tl);
    return true;
}

static bool unhide(struct timeline *tl)
{
    for (size_t i = 0; i < tl->nthreads; i++)
        tl->threads[i].hidden = false;
    relayout(tl);
    return true;
}

static bool pin(struct timeline *tl)
{
    if (!tl->sel.valid)
        return true;
    tl->threads[tl->sel.thread].pinned = !tl->threads[tl->sel.thread].pinned;
    relayout(tl);
    return true;
}

/* The selected thread, its process, or every thread ("process", "all"). */
static bool collapse(struct timeline *tl, const char *arg)
{
    if (!tl->sel.valid)
        return true;
    struct tl_thread *th = &tl->threads[tl->sel.thread];
    struct tl_process *p = &tl->processes[th->process];
    bool *what = p->collapsed && !th->pinned ? &p->collapsed : &th->collapsed;
    if (arg && strcmp(arg, "process") == 0) {
        if (tl->nprocesses < 2)
            model_say(tl->m, "there is only one process");
        else
            p->collapsed = !p->collapsed;
    } else if (arg && strcmp(arg, "all") == 0) {
        bool to = !th->collapsed;
        for (size_t i = 0; i < tl->nthreads; i++)
            tl->threads[i].collapsed = to;
    } else if (arg && *arg) {
        model_error(tl->m, "collapse takes nothing, process or all");
    } else {
        *what = !*what;
    }
    relayout(tl);
    return true;
}

/* Shows only threads whose name or id, or whose process's, holds the pattern. */
static bool filter(struct timeline *tl, const char *pattern)
{
    size_t shown = 0;
    for (size_t i = 0; i < tl->nthreads; i++) {
        const struct trace_thread *t = trace_thread(tl->trace, i);
        char ids[48];
        snprintf(ids, sizeof ids, "%d %d", (int)t->tid, (int)t->pid);
        bool match = !pattern || !*pattern || strcasestr(t->comm, pattern) || strstr(ids, pattern) ||
                     strcasestr(tl->processes[tl->threads[i].process].comm, pattern);
        tl->threads[i].hidden = !match;
        shown += match;
    }
    if (shown == 0) {
        model_warn(tl->m, "no thread is called \"%s\": all stay", pattern);
        return unhide(tl);
    }
    tl_layout(tl);
    if (tl->sel.valid && tl->threads[tl->sel.thread].hidden)
        tl_move(tl, ACT_THREAD_NEXT);
    return true;
}

bool tl_thread_action(struct timeline *tl, enum action act, const char *arg)
{
    switch ((int)act) {
    case ACT_HIDE:
        return hide(tl);
    case ACT_UNHIDE:
        return unhide(tl);
    case ACT_PIN:
        return pin(tl);
    case ACT_COLLAPSE:
        return collapse(tl, arg);
    case ACT_FILTER:
        return filter(tl, arg);
    case ACT_SORT:
        return arg && *arg && sort(tl, arg);
    default:
        return false;
    }
}

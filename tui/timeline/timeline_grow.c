/* More of the trace comes in while it is being decoded: another trace object, in which threads, calls and
 * rows have other places. What the user sees and has set up stays, found again by what it is: threads by
 * their ids, the selected call by its thread, start and function, the first line by thread and depth. */
#include <stdlib.h>

#include "core/base/alloc.h"
#include "tui/timeline/timeline.h"

struct kept_thread {
    pid_t pid, tid;
    bool collapsed, pinned, hidden;
};

/* A line by its thread's place in `threads`. */
struct kept_line {
    bool there;
    struct tl_line line;
};

struct kept {
    struct kept_thread *threads;
    size_t nthreads;
    pid_t *closed; /* processes that are collapsed */
    size_t nclosed;
    struct selection sel;
    struct span span;  /* the selected one */
    size_t same_start; /* spans of its row before it that start when it does */
    struct kept_line first[2]; /* of the pinned ones, of the others */
    char *pattern;
    fn_id search_fn, jump_fn; /* FN_NONE: none */
};

static void keep(struct timeline *tl, struct kept *k)
{
    k->nthreads = tl->nthreads;
    k->threads = xcalloc(tl->nthreads + 1, sizeof *k->threads);
    for (size_t i = 0; i < tl->nthreads; i++) {
        const struct trace_thread *t = trace_thread(tl->trace, i);
        const struct tl_thread *th = &tl->threads[i];
        k->threads[i] = (struct kept_thread){t->pid, t->tid, th->collapsed && t->spans, th->pinned, th->hidden};
    }
    k->closed = xcalloc(tl->nprocesses + 1, sizeof *k->closed);
    for (size_t i = 0; i < tl->nprocesses; i++)
        if (tl->processes[i].collapsed)
            k->closed[k->nclosed++] = tl->processes[i].pid;
    const struct span *s = selection_span(tl->src, &tl->sel);
    if (s) {
        struct flame_row row = flame_source_row(tl->src, tl->sel.thread, tl->sel.depth);
        k->sel = tl->sel;
        k->span = *s;
        k->same_start = tl->sel.index - row.seek(&row, 0, s->start_ns);
    }
    for (int i = 0; i < 2; i++)
        k->first[i].there = tl_first_line(tl, i == 0, &k->first[i].line);
    k->search_fn = tl->search ? tl->search_fn : FN_NONE;
    k->pattern = tl->search ? xstrdup(search_text(tl->search)) : NULL;
    k->jump_fn = tl->job.jump_to_longest ? tl->calls_fn : FN_NONE;
}

/* The thread that was the i-th, or SIZE_MAX. */
static size_t thread_again(const struct timeline *tl, const struct kept *k, size_t i)
{
    for (size_t n = 0; n < tl->nthreads; n++)
        if (trace_thread(tl->trace, n)->tid == k->threads[i].tid &&
            trace_thread(tl->trace, n)->pid == k->threads[i].pid)
            return n;
    return SIZE_MAX;
}

static void restore_threads(struct timeline *tl, const struct kept *k)
{
    for (size_t i = 0; i < k->nthreads; i++) {
        size_t n = thread_again(tl, k, i);
        if (n == SIZE_MAX)
            continue;
        tl->threads[n].collapsed |= k->threads[i].collapsed;
        tl->threads[n].pinned = k->threads[i].pinned;
        tl->threads[n].hidden = k->threads[i].hidden;
    }
    for (size_t i = 0; i < tl->nprocesses; i++)
        for (size_t n = 0; n < k->nclosed; n++)
            tl->processes[i].collapsed |= tl->processes[i].pid == k->closed[n];
}

/* The kept call in one row. */
static bool in_row(struct timeline *tl, const struct kept *k, size_t thread, size_t depth,
                   struct selection *sel)
{
    struct flame_row row = flame_source_row(tl->src, thread, depth);
    size_t at = row.seek(&row, 0, k->span.start_ns) + k->same_start;
    if (at >= row.n || row.spans[at].start_ns != k->span.start_ns || row.spans[at].fn != k->span.fn)
        return false;
    *sel = (struct selection){true, thread, depth, at};
    return true;
}

/* Callers that turned up meanwhile have moved it down; else it is where it was, or what is there now. */
static bool find_selection(struct timeline *tl, const struct kept *k, struct selection *sel)
{
    size_t thread = k->sel.valid ? thread_again(tl, k, k->sel.thread) : SIZE_MAX;
    if (thread == SIZE_MAX)
        return false;
    size_t depths = trace_thread(tl->trace, thread)->depths;
    for (size_t d = k->sel.depth; d < depths; d++)
        if (in_row(tl, k, thread, d, sel))
            return true;
    for (size_t d = k->sel.depth; d-- > 0;)
        if (d < depths && in_row(tl, k, thread, d, sel))
            return true;
    return selection_innermost(tl->src, thread, depths, k->span.start_ns, sel);
}

/* Rows of the selection's thread may have moved down as it did. */
static void restore_scroll(struct timeline *tl, const struct kept *k)
{
    for (int i = 0; i < 2; i++) {
        struct tl_line line = k->first[i].line;
        if (!k->first[i].there)
            continue;
        if ((line.kind == TL_ROW || line.kind == TL_PAIR) && k->sel.valid && line.thread == k->sel.thread && tl->sel.valid)
            line.depth = line.depth + tl->sel.depth > k->sel.depth ? line.depth + tl->sel.depth - k->sel.depth : 0;
        line.thread = thread_again(tl, k, line.thread);
        if (line.thread != SIZE_MAX)
            tl_put_first(tl, i == 0, &line);
    }
}

void tl_show_trace(struct timeline *tl, struct trace *folded)
{
    struct kept k = {.search_fn = FN_NONE, .jump_fn = FN_NONE};
    tl_find_finish(tl);
    keep(tl, &k);
    tl_drop_trace(tl);
    tl_take_trace(tl, folded);
    viewport_set_trace(&tl->view, trace_info(tl->trace)->first_ns, trace_info(tl->trace)->last_ns);
    restore_threads(tl, &k);
    tl_layout(tl);
    if (tl->touched || !tl_open_at_call(tl)) {
        find_selection(tl, &k, &tl->sel);
        restore_scroll(tl, &k);
    }
    if (k.pattern)
        tl_search_again(tl, k.search_fn, k.pattern);
    if (k.jump_fn != FN_NONE && k.jump_fn == k.span.fn)
        tl_longest_call(tl);
    free(k.pattern);
    free(k.threads);
    free(k.closed);
    model_redraw(tl->m);
}

void tl_grow_trace(struct timeline *tl)
{
    if (!tl->trace || !tl->m->trace || !tl->sel.valid) {
        tl_set_trace(tl);
        return;
    }
    tl_fold_stop(tl);
    /* A folded one stands for itself: it stays until more of it is folded. */
    if (!tl->folded)
        tl_show_trace(tl, NULL);
    tl_fold_start(tl);
}

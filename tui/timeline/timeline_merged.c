#include "tui/timeline/timeline_merged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/loop.h"
#include "tui/term/glyph.h"
#include "tui/trace/trace_export.h"
#include "tui/timeline/v_timeline.h"

bool tl_merged_shown(const struct timeline *tl)
{
    return tl->merged && tl->merged->shown;
}

static struct tl_scope scope_now(const struct tl_merged *g)
{
    struct tl_scope s = g->scope;
    const struct model *m = g->of->m;
    bool range = m->range_end_ns > m->range_start_ns;
    s.from_ns = range ? m->range_start_ns : 0;
    s.to_ns = range ? m->range_end_ns : 0;
    return s;
}

/* ---- From a call to its stack, and back ---- */

typedef VEC(fn_id) stack_path;

/* The functions from the outermost to the selected one; with fold a run of one function once. */
static void path_of(struct timeline *tl, bool fold, stack_path *path)
{
    struct selection sel = tl->sel;
    const struct span *s;
    path->len = 0;
    while ((s = selection_span(tl->src, &sel))) {
        if (!fold || path->len == 0 || path->data[path->len - 1] != s->fn)
            vec_push(path, s->fn);
        if (!selection_caller(tl->src, &sel))
            break;
    }
    for (size_t i = 0, j = path->len; i + 1 < j; i++) {
        fn_id other = path->data[--j];
        path->data[j] = path->data[i];
        path->data[i] = other;
    }
}

static bool find_fn(struct timeline *tl, size_t depth, size_t from, size_t to, fn_id fn,
                    struct selection *sel)
{
    struct flame_row row = flame_source_row(tl->src, 0, depth);
    for (size_t i = from; i < to && i < row.n; i++)
        if (row.spans[i].fn == fn) {
            *sel = (struct selection){true, 0, depth, i};
            return true;
        }
    return false;
}

/* Selects the stack of the timeline's selection, or as much of it as was merged. */
static void select_stack(struct tl_merged *g, const stack_path *path)
{
    struct selection sel = {0}, next;
    size_t from = 0, to = flame_source_row(g->tl->src, 0, 0).n, depth = 0;
    while (depth < path->len && find_fn(g->tl, depth, from, to, path->data[depth], &next)) {
        sel = next;
        selection_children(g->tl->src, &sel, &from, &to);
        depth++;
    }
    if (sel.valid)
        tl_select(g->tl, sel);
}

/* The selected stack's longest call; false: nothing is selected. */
static bool longest_call(struct tl_merged *g, struct merged_node *node)
{
    const struct selection *sel = &g->tl->sel;
    if (!g->merged || !selection_span(g->tl->src, sel))
        return false;
    *node = merged_node(g->merged, sel->depth, sel->index);
    return true;
}

/* The call in the rows that the timeline shows: those of the trace, or folded ones, where it may have
 * moved up, or become part of one further out. */
static bool find_call(struct timeline *tl, const struct merged_node *node, struct selection *sel)
{
    for (size_t d = 0; d <= node->longest->depth; d++) {
        struct selection at;
        if (!selection_at(tl->src, node->thread, d, node->longest->start_ns, &at))
            break;
        const struct span *s = selection_span(tl->src, &at);
        if (s->fn == node->longest->fn && s->start_ns <= node->longest->start_ns &&
            s->end_ns >= node->longest->end_ns)
            *sel = at;
    }
    return sel->valid;
}

/* Back in the timeline the selection is a call of the stack chosen here: the one that it was, if that
 * has this stack, else the longest. */
static void leave(struct tl_merged *g)
{
    stack_path here = {0}, there = {0};
    struct merged_node node;
    struct selection sel = {0};
    g->shown = false;
    if (!longest_call(g, &node))
        return;
    path_of(g->tl, g->scope.fold, &here);
    path_of(g->of, g->scope.fold, &there);
    bool same = here.len == there.len && here.len &&
                memcmp(here.data, there.data, here.len * sizeof *here.data) == 0;
    vec_free(&here);
    vec_free(&there);
    if (same || !find_call(g->of, &node, &sel))
        return;
    const struct span *s = selection_span(g->of->src, &sel);
    if (viewport_col_of(&g->of->view, s->end_ns) - viewport_col_of(&g->of->view, s->start_ns) < 3)
        viewport_fit(&g->of->view, s->start_ns, s->end_ns, 3);
    tl_select_call(g->of, sel);
}

/* ---- Making it ---- */

static void run(void *arg, const atomic_bool *cancel)
{
    struct tl_merged *g = arg;
    const struct call_tree_options options = {.from_ns = g->scope.from_ns,
                                              .to_ns = g->scope.to_ns,
                                              .thread = g->scope.thread,
                                              .fold = g->scope.fold,
                                              .cancel = cancel,
                                              .done = &g->done};
    g->rc = merged_new(&g->made, g->trace, &options, &g->err);
}

static void replace(struct tl_merged *g, struct merged *with)
{
    char label[32] = "merged";
    model_set_trace(g->m, with ? merged_trace(with) : NULL, label, NULL, NULL);
    view_timeline.changed(g->tl, MODEL_TRACE);
    merged_free(g->merged);
    g->merged = with;
}

static void stop(struct tl_merged *g)
{
    worker_stop(g->worker);
    g->worker = NULL;
    g->busy = false;
    merged_free(g->made);
    g->made = NULL;
}

/* Back to the timeline; what is there is not what was asked for. */
static void give_up(struct tl_merged *g)
{
    stop(g);
    replace(g, NULL);
    g->shown = false;
}

static void finished(void *arg)
{
    struct tl_merged *g = arg;
    stack_path path = {0};
    worker_stop(g->worker);
    g->worker = NULL;
    g->busy = false;
    if (g->rc < 0) {
        give_up(g);
        model_error(g->of->m, "%s", g->err.text);
        return;
    }
    /* Merged anew, the choice stays; the first time it is the timeline's. */
    path_of(g->tl->sel.valid ? g->tl : g->of, g->scope.fold, &path);
    replace(g, g->made);
    g->made = NULL;
    select_stack(g, &path);
    vec_free(&path);
    model_redraw(g->m);
}

static void start(struct tl_merged *g, struct tl_scope scope)
{
    const struct trace *t = g->of->m->trace;
    stop(g);
    g->trace = t;
    g->scope = scope;
    g->spans = 0;
    atomic_store(&g->done, 0);
    for (size_t i = 0; i < trace_thread_count(t); i++)
        if (scope.thread < 0 || (size_t)scope.thread == i)
            g->spans += trace_thread(t, i)->spans;
    trace_export_thread(g->export, scope.thread < 0 ? 0 : trace_thread(t, (size_t)scope.thread)->tid);
    g->busy = true;
    g->worker = worker_start(g->of->m->loop, run, finished, g);
}

static bool same_scope(struct tl_scope a, struct tl_scope b)
{
    return a.thread == b.thread && a.from_ns == b.from_ns && a.to_ns == b.to_ns && a.fold == b.fold;
}

static void ensure(struct tl_merged *g, struct tl_scope scope)
{
    if (!same_scope(scope, g->scope) || (!g->busy && !g->merged))
        start(g, scope);
}

/* ---- Life ---- */

static void take_looks(struct tl_merged *g)
{
    g->m->settings = g->of->m->settings;
    g->m->glyphs = g->of->m->glyphs;
    g->m->theme = g->of->m->theme;
}

static struct tl_merged *merged_of(struct timeline *tl)
{
    if (tl->merged)
        return tl->merged;
    struct tl_merged *g = xcalloc(1, sizeof *g);
    g->of = tl;
    g->m = model_new(tl->m->loop, tl->m->settings);
    g->m->outer = tl->m;
    take_looks(g);
    g->tl = view_timeline.create(g->m);
    g->tl->inside = g;
    g->export = trace_export_new(tl->m, "folded");
    g->scope = (struct tl_scope){.thread = -1, .fold = tl->fold};
    tl->merged = g;
    return g;
}

void tl_merged_free(struct timeline *tl)
{
    struct tl_merged *g = tl->merged;
    if (!g)
        return;
    stop(g);
    trace_export_free(g->export);
    view_timeline.destroy(g->tl);
    model_free(g->m);
    merged_free(g->merged);
    free(g);
    tl->merged = NULL;
}

/* More of the trace is there: made anew when it is looked at. */
static void grow(struct tl_merged *g)
{
    struct tl_scope scope = scope_now(g);
    if (!g->shown || !g->trace) {
        tl_merged_free(g->of);
        return;
    }
    if (scope.thread >= 0)
        scope.thread =
            trace_find_thread(g->of->m->trace, trace_thread(g->trace, (size_t)scope.thread)->tid);
    trace_export_finish(g->export);
    stop(g);
    replace(g, NULL);
    start(g, scope);
}

void tl_merged_changed(struct timeline *tl, enum model_change what)
{
    struct tl_merged *g = tl->merged;
    if (!g)
        return;
    take_looks(g);
    if (what == MODEL_TRACE) {
        trace_export_finish(g->export);
        tl_merged_free(tl);
    } else if (what == MODEL_TRACE_GREW) {
        grow(g);
    } else if (what == MODEL_SETTINGS) {
        model_changed(g->m, what);
        view_timeline.changed(g->tl, what);
    } else if (what == MODEL_CURSOR && g->shown) {
        ensure(g, scope_now(g));
    }
}

/* ---- Actions ---- */

/* From one thread to the next, with all of them between the last and the first. */
static void step_thread(struct tl_merged *g, int delta)
{
    ssize_t n = (ssize_t)trace_thread_count(g->of->m->trace);
    struct tl_scope s = scope_now(g);
    if (n < 2) {
        model_say(g->m, "the only thread");
        return;
    }
    do
        s.thread = (s.thread + 1 + delta + n + 1) % (n + 1) - 1;
    while (s.thread >= 0 && trace_thread(g->of->m->trace, (size_t)s.thread)->spans == 0);
    ensure(g, s);
}

static bool toggle(struct timeline *tl, const char *arg)
{
    uint64_t tid = 0;
    ssize_t thread = -1;
    bool named = arg && *arg;
    if (named && strcmp(arg, "all") != 0) {
        if (fmt_parse_u64(arg, 1, INT32_MAX, &tid, NULL)) {
            model_error(tl->m, "merged takes nothing, all or the number of a thread");
            return true;
        }
        thread = trace_find_thread(tl->m->trace, (pid_t)tid);
        if (thread < 0) {
            model_error(tl->m, "no thread %s in this trace", arg);
            return true;
        }
    }
    if (!named && tl_merged_shown(tl)) {
        if (tl->merged->busy)
            give_up(tl->merged);
        else
            leave(tl->merged);
        return true;
    }
    struct tl_merged *g = merged_of(tl);
    struct tl_scope scope = scope_now(g);
    bool fresh = !g->shown && g->merged && same_scope(scope, g->scope);
    if (named)
        scope.thread = thread;
    g->shown = true;
    ensure(g, scope);
    if (fresh && g->merged) { /* made before: the timeline's selection may be another now */
        stack_path path = {0};
        path_of(g->of, g->scope.fold, &path);
        select_stack(g, &path);
        vec_free(&path);
    }
    model_go(tl->m, "timeline");
    return true;
}

/* Of a stack it is the longest call. */
static void name_subject(struct tl_merged *g)
{
    struct merged_node node;
    size_t n;
    struct model *m = g->of->m;
    if (!longest_call(g, &node))
        return;
    const struct span *row = trace_row(m->trace, node.thread, node.longest->depth, &n);
    model_name_subject(m, (struct model_subject){.valid = true,
                                                 .call = true,
                                                 .fn = node.longest->fn,
                                                 .thread = node.thread,
                                                 .depth = node.longest->depth,
                                                 .index = (size_t)(node.longest - row)});
}

static bool own_action(struct tl_merged *g, enum action act, const char *arg)
{
    struct tl_scope scope = scope_now(g);
    switch ((int)act) {
    case ACT_BACK:
        return toggle(g->of, NULL);
    case ACT_THREAD_NEXT:
    case ACT_THREAD_PREV:
        step_thread(g, act == ACT_THREAD_NEXT ? 1 : -1);
        return true;
    case ACT_RECURSION:
        scope.fold = !scope.fold;
        ensure(g, scope);
        model_say(g->m, scope.fold ? "direct recursion shows as one call"
                                   : "every level of recursion shows");
        return true;
    case ACT_EXPORT:
        trace_export_action(g->export, arg);
        return true;
    case ACT_GAP_NEXT:
    case ACT_GAP_PREV:
        model_say(g->m, "gaps are left out here; F leads back to the timeline, which has them");
        return true;
    case ACT_PIN:
    case ACT_HIDE:
    case ACT_UNHIDE:
    case ACT_FILTER:
    case ACT_SORT:
        model_say(g->m, "merged into one: t takes the next thread alone, behind the last all of them");
        return true;
    case ACT_INTERRUPT:
    case ACT_CANCEL:
        if (!g->busy)
            return false;
        give_up(g);
        model_say(g->m, "merging stopped");
        return true;
    case ACT_COMPARE:
    case ACT_CALLS:
        name_subject(g); /* the screens that answer come next */
        return false;
    default:
        return false;
    }
}

bool tl_merged_action(struct timeline *tl, enum action act, const char *arg)
{
    if (act == ACT_MERGED)
        return !tl->inside && toggle(tl, arg);
    if (!tl_merged_shown(tl))
        return false;
    struct tl_merged *g = tl->merged;
    if (own_action(g, act, arg))
        return true;
    return act != ACT_COMPARE && act != ACT_CALLS && !g->busy && view_timeline.action(g->tl, act, arg);
}

bool tl_merged_mouse(struct timeline *tl, const struct mouse *mouse, struct rect r)
{
    return !tl->merged->busy && view_timeline.mouse(tl->merged->tl, mouse, r);
}

int tl_merged_condition(struct timeline *tl, const char *name)
{
    if (!tl_merged_shown(tl) || tl->merged->busy)
        return 0;
    struct timeline *in = tl->merged->tl;
    const struct span *s = in->trace ? selection_span(in->src, &in->sel) : NULL;
    return !name || (s && strcmp(functions_get(trace_functions(in->trace), s->fn)->name, name) == 0);
}

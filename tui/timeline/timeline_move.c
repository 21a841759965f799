/* Moving the selection, the cursor and the window. */
#include "core/base/fmt.h"
#include "tui/timeline/timeline.h"

void tl_set_cursor(struct timeline *tl, uint64_t t_ns)
{
    uint64_t first = tl->view.first_ns, last = tl->view.last_ns;
    tl->cursor_ns = t_ns < first ? first : t_ns > last ? last : t_ns;
    pid_t tid = tl->sel.valid ? trace_thread(tl->trace, tl->sel.thread)->tid : 0;
    const bool depth_known = tl->sel.valid && !tl->folded; /* folded rows have other depths */
    model_set_cursor_call(tl->m, tid, tl->cursor_ns, depth_known ? tl->sel.depth : SIZE_MAX);
}

/* The cursor stays where it is when that is in the span and on the screen. */
static uint64_t cursor_in(const struct timeline *tl, const struct span *s)
{
    uint64_t from = viewport_time_at(&tl->view, 0), to = viewport_time_at(&tl->view, tl->view.cols);
    from = from > s->start_ns ? from : s->start_ns;
    to = to < s->end_ns ? to : s->end_ns;
    return tl->cursor_ns >= from && tl->cursor_ns < to ? tl->cursor_ns : from;
}

void tl_select(struct timeline *tl, struct selection sel)
{
    const struct span *s = selection_span(tl->src, &sel);
    if (!s)
        return;
    tl->sel = sel;
    tl->sel_alone = false;
    if (tl_open_thread(tl, sel.thread))
        tl_layout(tl);
    viewport_show(&tl->view, s->start_ns, s->end_ns);
    tl_set_cursor(tl, cursor_in(tl, s));
    tl_scroll_to_selection(tl);
}

void tl_select_call(struct timeline *tl, struct selection sel)
{
    tl_select(tl, sel);
    tl->sel_alone = true;
}

/* Folded rows have other depths than those of the trace: there it is the outermost of its chain. */
void tl_name_subject(struct timeline *tl)
{
    const struct trace *t = tl->m->trace;
    const struct span *s = selection_span(tl->src, &tl->sel);
    ssize_t thread = s ? trace_find_thread(t, trace_thread(tl->trace, tl->sel.thread)->tid) : -1;
    if (!tl->folded)
        thread = (ssize_t)tl->sel.thread; /* also where two threads have one id */
    for (size_t d = tl->sel.depth; s && thread >= 0 && d < trace_thread(t, (size_t)thread)->depths; d++) {
        size_t n = 0;
        const struct span *row = trace_row(t, (size_t)thread, d, &n);
        const struct span *at = tl->folded ? trace_row_at(t, (size_t)thread, d, s->start_ns) : s;
        if (!at || at->fn != s->fn || at->start_ns != s->start_ns || at->end_ns != s->end_ns)
            continue;
        model_name_subject(tl->m, (struct model_subject){.valid = true,
                                                         .call = true,
                                                         .fn = s->fn,
                                                         .thread = (size_t)thread,
                                                         .depth = d,
                                                         .index = (size_t)(at - row)});
        return;
    }
}

void tl_goto(struct timeline *tl, uint64_t t_ns)
{
    struct selection sel;
    size_t thread = tl->sel.valid ? tl->sel.thread : 0;
    viewport_show(&tl->view, t_ns, t_ns);
    tl->cursor_ns = t_ns;
    if (thread < tl->nthreads &&
        selection_innermost(tl->src, thread, trace_thread(tl->trace, thread)->depths, t_ns, &sel)) {
        const struct span *s = selection_span(tl->src, &sel);
        /* Nothing runs there: the cursor goes, the selection stays. */
        if (s->start_ns <= t_ns && s->end_ns >= t_ns)
            tl_select(tl, sel);
    }
    viewport_show(&tl->view, t_ns, t_ns);
    tl_set_cursor(tl, t_ns);
}

static bool go_to_thread(struct timeline *tl, int delta)
{
    size_t i = tl_thread_step(tl, delta);
    struct selection sel;
    if (i == SIZE_MAX || (tl->sel.valid && i == tl->sel.thread))
        return false;
    /* As deep as before, if the thread is that deep at the cursor. */
    size_t depths = trace_thread(tl->trace, i)->depths;
    size_t most = tl->sel.valid && tl->sel.depth + 1 < depths ? tl->sel.depth + 1 : depths;
    if (!selection_innermost(tl->src, i, most, tl->cursor_ns, &sel))
        return false;
    struct tl_process *process = &tl->processes[tl->threads[i].process];
    bool collapsed = tl->threads[i].collapsed, folded = process->collapsed;
    tl_select(tl, sel);
    if (collapsed || folded) { /* stays as it was: moving inside opens it */
        tl->threads[i].collapsed = collapsed;
        process->collapsed = folded;
        tl_layout(tl);
        tl_scroll_to_selection(tl);
    }
    return true;
}

static bool go_to_depth(struct timeline *tl, bool deepest)
{
    struct selection sel;
    if (!tl->sel.valid)
        return false;
    size_t depths = trace_thread(tl->trace, tl->sel.thread)->depths;
    if (!selection_innermost(tl->src, tl->sel.thread, deepest ? depths : 1, tl->cursor_ns, &sel))
        return false;
    tl_select(tl, sel);
    return true;
}

/* The first gap of the selected thread behind the cursor, or the last one before it. */
static bool go_to_gap(struct timeline *tl, int delta)
{
    size_t n;
    const struct gap *gaps = trace_gaps(tl->trace, &n), *best = NULL;
    pid_t tid = tl->sel.valid ? trace_thread(tl->trace, tl->sel.thread)->tid : 0;
    for (size_t i = 0; i < n; i++) {
        const struct gap *g = &gaps[i];
        if (g->tid != tid && g->tid != 0)
            continue;
        if (delta > 0 && g->start_ns > tl->cursor_ns) {
            best = g;
            break;
        }
        if (delta < 0 && g->start_ns < tl->cursor_ns)
            best = g;
    }
    if (!best) {
        model_say(tl->m, "no %s gap in this thread", delta > 0 ? "further" : "earlier");
        return true;
    }
    char d[FMT_MAX];
    viewport_show(&tl->view, best->start_ns, best->end_ns);
    tl_goto(tl, best->start_ns);
    model_say(tl->m, "%s, %s%s%s", gap_cause_name(best->cause),
              tl_duration(tl, d, best->end_ns - best->start_ns), best->detail[0] ? ": " : "",
              best->detail);
    return true;
}

static bool select_if(struct timeline *tl, bool found, struct selection sel, const char *otherwise)
{
    if (found)
        tl_select(tl, sel);
    else
        model_say(tl->m, "%s", otherwise);
    return true;
}

bool tl_move(struct timeline *tl, enum action act)
{
    struct selection sel = tl->sel;
    switch ((int)act) {
    case ACT_SPAN_PREV:
        return select_if(tl, selection_sibling(tl->src, &sel, -1), sel, "first span on this depth");
    case ACT_SPAN_NEXT:
        return select_if(tl, selection_sibling(tl->src, &sel, 1), sel, "last span on this depth");
    case ACT_CALLER:
        return select_if(tl, selection_caller(tl->src, &sel), sel, "outermost call: no caller");
    case ACT_CALLEE:
        return select_if(tl, selection_callee(tl->src, &sel, tl->cursor_ns), sel, "no calls below");
    case ACT_LONGEST_CHILD:
        return select_if(tl, selection_longest_child(tl->src, &sel), sel, "no calls below");
    case ACT_THREAD_NEXT:
    case ACT_THREAD_PREV:
        if (!go_to_thread(tl, act == ACT_THREAD_NEXT ? 1 : -1))
            model_say(tl->m, "no other thread");
        return true;
    case ACT_SHALLOWEST:
    case ACT_DEEPEST:
        return go_to_depth(tl, act == ACT_DEEPEST);
    case ACT_GAP_NEXT:
    case ACT_GAP_PREV:
        return go_to_gap(tl, act == ACT_GAP_NEXT ? 1 : -1);
    case ACT_PAGE_UP:
        tl_scroll(tl, -(tl->at.visible > 2 ? tl->at.visible - 2 : 1));
        return true;
    case ACT_PAGE_DOWN:
        tl_scroll(tl, tl->at.visible > 2 ? tl->at.visible - 2 : 1);
        return true;
    case ACT_TRACE_START:
        tl_goto(tl, tl->view.first_ns);
        return true;
    case ACT_TRACE_END:
        tl_goto(tl, tl->view.last_ns);
        return true;
    default:
        return false;
    }
}

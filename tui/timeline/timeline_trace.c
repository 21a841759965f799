/* A trace comes in: its index, colours and threads, and the place it opens at. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/loop.h"
#include "tui/term/color.h"
#include "tui/timeline/ruler.h"
#include "tui/term/theme.h"
#include "tui/timeline/timeline.h"

bool tl_instructions(const struct timeline *tl)
{
    return tl->trace && trace_info(tl->trace)->instructions;
}

char *tl_duration(const struct timeline *tl, char *out, uint64_t ns)
{
    return ruler_duration(out, ns, tl_instructions(tl));
}

char *tl_time(const struct timeline *tl, char *out, uint64_t t_ns)
{
    /* A tenth of a column tells neighbours apart. */
    uint64_t step = 1, col = viewport_col_ns(&tl->view);
    while (step * 10 <= col / 10)
        step *= 10;
    return ruler_time(out, (int64_t)(t_ns - tl->view.first_ns), step, tl_instructions(tl));
}

char *tl_time_exact(const struct timeline *tl, char *out, uint64_t t_ns)
{
    return ruler_time(out, (int64_t)(t_ns - tl->view.first_ns), 1, tl_instructions(tl));
}

/* ---- Colours ---- */

void tl_forget_roles(struct timeline *tl)
{
    tl->palette = theme_palette_size(tl->m->theme);
    size_t n = tl->trace ? functions_count(trace_functions(tl->trace)) : 0;
    free(tl->roles);
    tl->roles = xcalloc(n + 1, sizeof *tl->roles);
    memset(tl->roles, 0xff, n * sizeof *tl->roles);
}

static uint16_t role_of(const struct timeline *tl, const struct function *f)
{
    switch (f->kind) {
    case FN_KERNEL:
        return ROLE_KERNEL;
    case FN_VDSO:
        return ROLE_VDSO;
    case FN_UNKNOWN:
        return ROLE_UNKNOWN;
    case FN_PSEUDO:
        return ROLE_OFF_CPU;
    case FN_USER:
    case FN_PLT:
    case FN_PART:
        break;
    }
    if (tl->color == TL_BY_KERNEL)
        return ROLE_FN0;
    return (uint16_t)(ROLE_FN0 + (tl->color == TL_BY_MODULE
                                      ? color_of_module(f->module, tl->palette)
                                      : color_of_function(f->name, tl->palette)));
}

uint16_t tl_role(struct timeline *tl, fn_id fn)
{
    const struct functions *f = trace_functions(tl->trace);
    if (fn >= functions_count(f))
        return ROLE_UNKNOWN;
    if (tl->roles[fn] == UINT16_MAX)
        tl->roles[fn] = role_of(tl, functions_get(f, fn));
    return tl->roles[fn];
}

/* ---- Index ---- */

static void index_run(void *arg, const atomic_bool *cancel)
{
    struct timeline *tl = arg;
    struct pyramid *p = NULL;
    if (pyramid_new(&p, tl->trace, cancel, NULL) == 0)
        tl->made = p;
}

/* The index is there: rows are read through it from now on. Without memory for it they stay as they are:
 * slower, but the same picture. */
static void index_done(void *arg)
{
    struct timeline *tl = arg;
    worker_stop(tl->indexer);
    tl->indexer = NULL;
    if (!tl->made) {
        model_warn(tl->m, "not enough memory to index the trace: drawing will be slow");
        return;
    }
    tl->pyramid = tl->made;
    flame_source_use(tl->src, tl->pyramid);
    tl_job_start(tl);
    model_redraw(tl->m);
}

#define SMALL_SPANS 2000000 /* indexed at once, in some ten milliseconds */

static void make_index(struct timeline *tl)
{
    uint64_t spans = 0;
    for (size_t i = 0; i < trace_thread_count(tl->trace); i++)
        spans += trace_thread(tl->trace, i)->spans;
    tl->pyramid = tl->trace == tl->m->trace ? tl->m->pyramid : NULL;
    tl->src = flame_source_new(tl->trace, tl->pyramid);
    if (!model_is_growing(tl->m)) /* the two would only be in each other's way */
        trace_stats_start(tl->stats, tl->trace, &(struct stats_options){.thread = -1});
    if (!tl->pyramid)
        tl->indexer = worker_start(spans > SMALL_SPANS ? tl->m->loop : NULL, index_run, index_done,
                                   tl);
}

static void free_index(struct timeline *tl)
{
    trace_stats_clear(tl->stats);
    worker_stop(tl->indexer);
    tl->indexer = NULL;
    tl_job_stop(tl);
    tl_search_clear(tl);
    search_free(tl->calls);
    tl->calls = NULL;
    tl->calls_fn = FN_NONE;
    minimap_free(&tl->map);
    flame_source_free(tl->src);
    pyramid_free(tl->made);
    tl->src = NULL;
    tl->made = NULL;
    tl->pyramid = NULL;
    tl->busy.of = NULL;
}

void tl_drop_trace(struct timeline *tl)
{
    tl_fold_stop(tl);
    free_index(tl);
    source_finder_clear(tl->finder);
    tl_free_threads(tl);
    free(tl->roles);
    tl->roles = NULL;
    trace_free(tl->folded);
    tl->folded = NULL;
    tl->trace = NULL;
    tl->sel.valid = false;
    tl->lines.len = tl->pinned = tl->pin_top = tl->top = 0;
}

void tl_free_trace(struct timeline *tl)
{
    tl_drop_trace(tl);
    viewport_free(&tl->view);
    tl->ranging = false;
    tl->touched = false;
    tl->marks_set = 0;
    tl->last_mark = -1;
}

/* ---- Where it opens ---- */

/* The call of the mark: the innermost one around it whose name the mark mentions, else the innermost. */
static bool call_at_mark(struct timeline *tl, const struct mark *mark, struct selection *sel)
{
    ssize_t thread = trace_find_thread(tl->trace, mark->tid);
    if (thread < 0)
        return false;
    size_t depths = trace_thread(tl->trace, (size_t)thread)->depths;
    bool named = false;
    struct selection best = {0};
    for (size_t d = 0; d < depths; d++) {
        struct selection at;
        if (!selection_at(tl->src, (size_t)thread, d, mark->time_ns, &at))
            break;
        const struct span *s = selection_span(tl->src, &at);
        if (s->start_ns > mark->time_ns || s->end_ns < mark->time_ns)
            break;
        bool has_name = strstr(mark->detail, functions_get(trace_functions(tl->trace), s->fn)->name);
        if (has_name || !named)
            best = at;
        named |= has_name;
    }
    if (!best.valid)
        return false;
    *sel = best;
    return true;
}

/* The last that fired; where none did, the last that was reached. */
static const struct mark *last_trigger(const struct timeline *tl)
{
    size_t n;
    const struct mark *marks = trace_marks(tl->trace, &n), *fired = NULL, *reached = NULL;
    for (size_t i = 0; i < n; i++)
        if (marks[i].kind == MARK_TRIGGER)
            fired = &marks[i];
        else if (marks[i].kind == MARK_HIT)
            reached = &marks[i];
    return fired ? fired : reached;
}

bool tl_open_at_call(struct timeline *tl)
{
    const struct mark *trigger = last_trigger(tl);
    struct selection sel;
    if (!trigger || !call_at_mark(tl, trigger, &sel))
        return false;
    const struct span *s = selection_span(tl->src, &sel);
    viewport_fit(&tl->view, s->start_ns, s->end_ns, 3);
    tl_select(tl, sel);
    tl_set_cursor(tl, trigger->time_ns);
    /* The way there is no history. */
    tl->view.back.len = 0;
    return true;
}

/* At the last trigger, its call a third of the width; else the whole trace, first span selected. */
static void open_at_trigger(struct timeline *tl)
{
    /* A trigger that decoding has not come to is no place to look at yet. */
    const struct mark *trigger = model_is_growing(tl->m) ? NULL : last_trigger(tl);
    struct selection sel;
    if (tl_open_at_call(tl))
        return;
    if (trigger) {
        uint64_t around = viewport_length_ns(&tl->view) / 16;
        viewport_fit(&tl->view, trigger->time_ns - (trigger->time_ns > around ? around : 0),
                     trigger->time_ns + around, 1);
    }
    uint64_t at = trigger ? trigger->time_ns : tl->view.first_ns;
    for (size_t i = 0; i < tl->nthreads && !tl->sel.valid; i++)
        if ((!trigger || trace_thread(tl->trace, i)->tid == trigger->tid) &&
            selection_at(tl->src, i, 0, at, &sel))
            tl_select(tl, sel);
    tl_set_cursor(tl, at);
}

void tl_take_trace(struct timeline *tl, struct trace *folded)
{
    tl->folded = folded;
    tl->trace = folded ? folded : tl->m->trace;
    tl_forget_roles(tl);
    make_index(tl);
    tl_set_threads(tl);
}

void tl_set_trace(struct timeline *tl)
{
    int cols = tl->view.cols > 0 ? tl->view.cols : 80;
    tl_free_trace(tl);
    if (!tl->m->trace)
        return;
    const struct trace_info *info = trace_info(tl->m->trace);
    viewport_init(&tl->view, info->first_ns, info->last_ns, cols);
    tl_take_trace(tl, NULL);
    tl_layout(tl);
    open_at_trigger(tl);
    tl->view.back.len = 0;
    tl_fold_start(tl);
}

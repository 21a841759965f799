#include "tui/analysis/v_function.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "tui/ui/bar.h"
#include "tui/analysis/function_pane.h"
#include "tui/analysis/function_rows.h"
#include "tui/ui/list.h"
#include "tui/ui/model.h"
#include "tui/timeline/ruler.h"
#include "tui/ui/table.h"
#include "tui/trace/source_edit.h"
#include "tui/trace/trace_export.h"
#include "tui/trace/trace_stats.h"

#define PANE_MIN_ROWS 20
#define PANE_ROWS     11 /* at least; on high screens four ninths of them */

struct function_view {
    struct model *m;
    struct trace_stats *stats;
    struct function_rows *rows;
    struct list *list;
    struct table table;
    struct function_pane *pane;
    struct trace_export *export;
    struct source_edit *source;
    bool shown, stale; /* stale: to be counted anew once it is shown */
    bool one_thread, details;
    uint64_t keep; /* identity of the row to select once the rows are there again; 0: none */
    struct stats_options options; /* of the statistics at hand */
};

/* ---- The rows, for the list ---- */

static size_t row_count(void *arg)
{
    return function_rows_count(((struct function_view *)arg)->rows);
}

static uint64_t row_identity(void *arg, size_t row)
{
    return (uint64_t)function_rows_at(((struct function_view *)arg)->rows, row)->fn + 1;
}

static void row_cell(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    function_rows_cell(((struct function_view *)arg)->rows, row, (enum function_column)column, cell);
}

static const struct list_rows list_rows = {
    .count = row_count, .identity = row_identity, .cell = row_cell};

/* ---- Counting ---- */

static void select_changed(struct function_view *v)
{
    const struct function_stats *f = function_rows_at(v->rows, list_selected(v->list));
    if (v->details && f && v->m->trace)
        function_pane_show(v->pane, v->m->trace, f->fn, &v->options);
    else
        function_pane_clear(v->pane);
}

static void refresh_rows(struct function_view *v)
{
    function_rows_set(v->rows, v->m->trace, trace_stats_get(v->stats), v->m->glyphs);
    list_refresh(v->list, false);
    if (v->keep && trace_stats_get(v->stats)) {
        list_select_identity(v->list, v->keep);
        v->keep = 0;
    }
    select_changed(v);
}

static void stats_ready(void *arg)
{
    struct function_view *v = arg;
    if (*trace_stats_error(v->stats))
        model_error(v->m, "%s", trace_stats_error(v->stats));
    refresh_rows(v);
    model_redraw(v->m);
}

/* Lets go of everything that points into the trace; the selection is remembered by what it is. */
static void forget(struct function_view *v)
{
    if (function_rows_count(v->rows))
        v->keep = list_selected_identity(v->list);
    function_pane_clear(v->pane);
    function_rows_set(v->rows, NULL, NULL, v->m->glyphs);
    list_refresh(v->list, false);
    trace_stats_clear(v->stats);
    v->stale = true;
}

static void count_anew(struct function_view *v)
{
    forget(v);
    v->stale = false;
    if (!v->m->trace)
        return;
    v->options = (struct stats_options){.thread = -1};
    if (v->m->range_end_ns > v->m->range_start_ns) {
        v->options.from_ns = v->m->range_start_ns;
        v->options.to_ns = v->m->range_end_ns;
    }
    if (v->one_thread)
        v->options.thread = trace_find_thread(v->m->trace, v->m->cursor_tid);
    trace_stats_start(v->stats, v->m->trace, &v->options);
}

static void arrange(void *arg)
{
    struct function_view *v = arg;
    function_rows_sort(v->rows, (enum function_column)list_sort_column(v->list),
                       list_sort_inverted(v->list));
    list_refresh(v->list, false);
}

static void open_call(void *arg)
{
    struct function_view *v = arg;
    const struct stats_call *c = function_pane_call(v->pane);
    const struct function_stats *f = function_rows_at(v->rows, list_selected(v->list));
    struct stats_call one;
    if (!f)
        return;
    /* Without the pane, or before it is filled, look now. */
    if (!c && stats_longest(v->m->trace, f->fn, &v->options, &one, 1) == 1)
        c = &one;
    if (!c)
        return;
    model_set_cursor_call(v->m, trace_thread(v->m->trace, c->thread)->tid, c->start_ns, c->depth);
    model_go(v->m, "timeline");
}

static void filter(void *arg, const char *text)
{
    struct function_view *v = arg;
    struct err err;
    if (function_rows_filter(v->rows, text, &err))
        model_error(v->m, "%s", err.text);
    list_refresh(v->list, false);
}

static const char *filter_text(void *arg)
{
    return function_rows_filter_text(((struct function_view *)arg)->rows);
}

static const char *row_name(void *arg, size_t row)
{
    struct function_view *v = arg;
    return function_names_get(v->m->names, function_rows_at(v->rows, row)->fn);
}

static const struct table_ops table_ops = {.row = "function",
                                           .sort = "calls, total, self, min, avg, p50, p99, max or function",
                                           .arrange = arrange,
                                           .filter = filter,
                                           .filter_text = filter_text,
                                           .open = open_call,
                                           .count = row_count,
                                           .name = row_name};

/* ---- A view's members ---- */

static void pane_ready(void *arg)
{
    model_redraw(arg);
}

static void *create(struct model *m)
{
    struct function_view *v = xcalloc(1, sizeof *v);
    v->m = m;
    v->details = true;
    v->stats = trace_stats_new(m->loop, stats_ready, v);
    v->rows = function_rows_new(m->names);
    v->pane = function_pane_new(m->loop, pane_ready, m);
    v->export = trace_export_new(m, "functions");
    v->source = source_edit_new(m);
    v->list = list_new(function_columns, FCOL_COUNT, &list_rows, v);
    v->table = (struct table){m, v->list, function_columns, &table_ops, v};
    list_set_sort(v->list, FCOL_SELF, false);
    v->stale = m->trace != NULL;
    return v;
}

static void destroy(void *view)
{
    struct function_view *v = view;
    trace_stats_free(v->stats);
    trace_export_free(v->export);
    source_edit_free(v->source);
    function_pane_free(v->pane);
    list_free(v->list);
    function_rows_free(v->rows);
    free(v);
}

static void show(void *view)
{
    struct function_view *v = view;
    v->shown = true;
    if (v->stale)
        count_anew(v);
}

static void hide(void *view)
{
    ((struct function_view *)view)->shown = false;
}

static void changed(void *view, enum model_change what)
{
    struct function_view *v = view;
    bool range = what == MODEL_CURSOR &&
                 (v->options.from_ns != v->m->range_start_ns || v->options.to_ns != v->m->range_end_ns);
    bool thread = what == MODEL_CURSOR && v->one_thread && v->m->trace &&
                  v->options.thread != trace_find_thread(v->m->trace, v->m->cursor_tid);
    if (what == MODEL_SETTINGS)
        refresh_rows(v);
    if (what == MODEL_TRACE) {
        trace_export_finish(v->export);
        forget(v);
        list_clear_marks(v->list);
        v->keep = 0;
    }
    if (what == MODEL_TRACE_GREW) {
        trace_export_finish(v->export);
        forget(v);
    }
    v->stale |= range || thread;
    if (v->shown && v->stale)
        count_anew(v);
}

static void draw_empty(struct function_view *v, struct surface *s, struct rect r)
{
    const char *text = !v->m->trace                  ? "No trace is open: 4 says how to get one."
                       : trace_stats_busy(v->stats)  ? "counting..."
                       : *trace_stats_error(v->stats) ? trace_stats_error(v->stats)
                       : function_rows_total(v->rows) ? "No function passes the filter: \\ changes it."
                                                      : "No calls in here.";
    surface_text(s, r.row + 2, r.col + 1, r.cols - 1, text, SIZE_MAX, (struct style){.ink = ROLE_DIM});
}

static void draw(void *view, struct surface *s, struct rect r)
{
    struct function_view *v = view;
    char scope[160];
    if (r.rows < 2)
        return;
    table_scope_text(&v->table, scope, sizeof scope, function_rows_total(v->rows));
    table_draw_scope(&v->table, s, (struct rect){r.row, r.col, 1, r.cols}, v->one_thread ? "   this thread" : "",
                     scope);
    const int share = r.rows * 4 / 9, high = share > PANE_ROWS ? share : PANE_ROWS;
    const int pane = v->details && r.rows >= PANE_MIN_ROWS && function_rows_count(v->rows) ? high : 0;
    struct rect body = {r.row + 1, r.col, r.rows - 1 - pane, r.cols};
    list_draw(v->list, s, body, v->m->glyphs);
    if (function_rows_count(v->rows) == 0)
        draw_empty(v, s, body);
    const struct function_stats *f = function_rows_at(v->rows, list_selected(v->list));
    if (pane && f)
        function_pane_draw(v->pane, s, (struct rect){r.row + r.rows - pane, r.col, pane, r.cols}, f,
                           v->m->names, v->m->glyphs);
}

/* The selected function, and of its calls the one that is chosen. */
static struct model_subject subject_of(struct function_view *v, const struct function_stats *f)
{
    const struct stats_call *c = function_pane_call(v->pane);
    struct stats_call one;
    if (!f)
        return (struct model_subject){0};
    if (!c && stats_longest(v->m->trace, f->fn, &v->options, &one, 1) == 1)
        c = &one;
    struct model_subject subject = {.valid = true, .fn = f->fn, .call = c != NULL};
    if (c) {
        subject.thread = c->thread;
        subject.depth = c->depth;
        subject.index = c->index;
    }
    return subject;
}

static bool own_action(struct function_view *v, enum action act, const char *arg)
{
    const struct function_stats *f = function_rows_at(v->rows, list_selected(v->list));
    switch ((int)act) {
    case ACT_COMPARE:
    case ACT_CALLS:
        if (f)
            model_name_subject(v->m, subject_of(v, f)); /* the screens that answer come next */
        return false;
    case ACT_SOURCE:
        source_edit_subject(v->source, v->m->trace, subject_of(v, f), arg);
        return true;
    case ACT_CALLERS:
    case ACT_DETAILS:
        v->details = !v->details;
        return true;
    case ACT_CALL_NEXT:
    case ACT_CALL_PREV:
        function_pane_step(v->pane, act == ACT_CALL_NEXT ? 1 : -1);
        return true;
    case ACT_OPTIONS:
        v->one_thread = !v->one_thread;
        model_say(v->m, v->one_thread ? "the thread of the timeline's cursor alone" : "all threads");
        count_anew(v);
        return true;
    case ACT_EXPORT:
        trace_export_thread(v->export, v->options.thread < 0
                                           ? 0
                                           : trace_thread(v->m->trace, (size_t)v->options.thread)->tid);
        trace_export_action(v->export, arg);
        return true;
    case ACT_RELOAD:
        count_anew(v);
        return true;
    default:
        return table_action(&v->table, act, arg);
    }
}

static bool action(void *view, enum action act, const char *arg)
{
    struct function_view *v = view;
    if (!v->m->trace || !own_action(v, act, arg))
        return false;
    if (v->m->trace && !trace_stats_busy(v->stats) && act != ACT_CALL_NEXT && act != ACT_CALL_PREV)
        select_changed(v);
    model_redraw(v->m);
    return true;
}

static bool mouse(void *view, const struct mouse *m, struct rect r)
{
    struct function_view *v = view;
    (void)r;
    enum list_hit hit = v->m->trace ? table_mouse(&v->table, m) : LIST_MISS;
    if (hit != LIST_MISS)
        select_changed(v);
    model_redraw(v->m);
    return hit != LIST_MISS;
}

static void status(void *view, char *out, size_t size)
{
    struct function_view *v = view;
    const struct stats *s = trace_stats_get(v->stats);
    char a[FMT_MAX], n[FMT_MAX];
    if (!s)
        return;
    const char *sampled = stats_estimated(s) ? "; sampled: calls are estimates" : "";
    const char *range = v->options.to_ns ? "TOTAL, SELF within A-B; MIN to MAX of whole calls; " : "";
    const size_t gaps = stats_gap_count(s);
    if (gaps == 0)
        snprintf(out, size, "%s%s gaps in here; recursion counted once%s", range, *range ? "no" : "No", sampled);
    else
        snprintf(out, size, "%s%s leave out %s (%s); recursion counted once%s", range, *range ? "totals" : "Totals",
                 fmt_counted(n, gaps, "gap", "gaps"),
                 ruler_duration(a, stats_gap_ns(s), trace_info(v->m->trace)->instructions), sampled);
}

static void state(void *view, char *out, size_t size)
{
    struct function_view *v = view;
    if (v->m->trace)
        snprintf(out, size, "%s%s%s", trace_info(v->m->trace)->sampled ? "SAMPLED  " : "",
                 v->m->trace_label, v->options.to_ns ? "  A-B" : "");
}

/* "functions": the table is there. */
static int condition(void *view, const char *name, const char *arg)
{
    struct function_view *v = view;
    (void)arg;
    return strcmp(name, "functions") == 0 ? trace_stats_get(v->stats) != NULL : -1;
}

static const struct filter_help filter_help = {
    .brief = "TEXT  module=TEXT  calls>10  self>=1us  self%<5  (total self min avg p50 p99 max; > >= < <= =)",
    .lines = {{"TEXT", "in the name, or a pattern of it"},
              {"module=TEXT", "in the module's path"},
              {"calls>10", "calls made; > >= < <= ="},
              {"self>=1us", "total self min avg p50 p99 max"},
              {"self%<5", "percent of all self time"},
              {"name=TEXT", "TEXT that looks like the above"}},
};

const struct view_ops view_function = {
    .name = "functions",
    .title = "Functions",
    .contexts = {CTX_FUNCTIONS, CTX_LIST, CTX_MOVE},
    .context_count = 3,
    .filter = &filter_help,
    .lacks = {ACT_FOLLOW},
    .create = create,
    .destroy = destroy,
    .draw = draw,
    .show = show,
    .hide = hide,
    .action = action,
    .mouse = mouse,
    .changed = changed,
    .status = status,
    .state = state,
    .condition = condition,
};

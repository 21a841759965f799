#include "tui/analysis/v_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/vec.h"
#include "decode/trace/stats.h"
#include "tui/trace/source_edit.h"
#include "tui/ui/bar.h"
#include "tui/ui/line.h"
#include "tui/analysis/function_pane.h"
#include "tui/analysis/call_rows.h"
#include "tui/ui/list.h"
#include "tui/ui/model.h"
#include "tui/timeline/ruler.h"
#include "tui/ui/table.h"
#include "tui/ui/worker.h"

#define CALLS_MAX     100000 /* sorted again within a frame */
#define PANE_ROWS     12
#define PANE_MIN_ROWS 20

struct calls_view {
    struct model *m;
    struct list *list;
    struct table table;
    struct source_edit *source;
    const struct trace *trace; /* NULL: no function was chosen */
    fn_id fn;
    struct stats_options options;
    bool one_thread, shown;
    struct worker *worker;
    bool busy;
    struct stats_calls calls, made;
    int rc;
    struct err err;
    struct call_rows *rows;
    /* To be selected, and marked, again once they are counted anew; duration 0: none. */
    struct stats_call keep;
    VEC(struct stats_call) keep_marks;
};

static const struct stats_call *call_at(const struct calls_view *v, size_t row)
{
    return call_rows_at(v->rows, row);
}

/* ---- The rows, for the list ---- */

static size_t row_count(void *arg)
{
    return call_rows_count(((struct calls_view *)arg)->rows);
}

static uint64_t row_identity(void *arg, size_t row)
{
    const struct calls_view *v = arg;
    return call_identity(v->trace, call_at(v, row));
}

static void row_cell(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    call_rows_cell(((struct calls_view *)arg)->rows, row, (enum call_column)column, cell);
}

static void row_plain(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    call_rows_plain(((struct calls_view *)arg)->rows, row, (enum call_column)column, cell);
}

static const struct list_rows list_rows = {
    .count = row_count, .identity = row_identity, .cell = row_cell, .plain = row_plain, .fields = call_fields};

static void arrange(void *arg)
{
    struct calls_view *v = arg;
    call_rows_sort(v->rows, (enum call_column)list_sort_column(v->list), list_sort_inverted(v->list));
    list_refresh(v->list, false);
}

static void set_filter(void *arg, const char *text)
{
    struct calls_view *v = arg;
    struct err err = {0};
    if (call_rows_filter(v->rows, v->trace, text, &err) < 0)
        model_error(v->m, "%s", err.text);
    list_refresh(v->list, false);
}

/* ---- Counting ---- */

static void run(void *arg, const atomic_bool *cancel)
{
    struct calls_view *v = arg;
    struct stats_options options = v->options;
    options.cancel = cancel;
    v->rc = stats_calls_new(&v->made, v->trace, v->fn, &options, CALLS_MAX, &v->err);
}

/* In another stage of a growing trace calls stand elsewhere. */
static bool same_call(const struct stats_call *a, const struct stats_call *b)
{
    return a->start_ns == b->start_ns && a->duration_ns == b->duration_ns && a->thread == b->thread;
}

/* To find them again: the selected call and those that are marked. */
static void keep_rows(struct calls_view *v)
{
    const struct stats_call *c = call_at(v, list_selected(v->list));
    if (!c) /* they are being counted: what was kept before still holds */
        return;
    v->keep = *c;
    v->keep_marks.len = 0;
    for (size_t i = 0; i < v->calls.n && list_mark_count(v->list); i++)
        if (list_is_marked(v->list, call_identity(v->trace, &v->calls.longest[i])))
            vec_push(&v->keep_marks, v->calls.longest[i]);
}

static void mark_again(struct calls_view *v)
{
    for (size_t k = 0; k < v->keep_marks.len; k++)
        for (size_t i = 0; i < v->calls.n; i++)
            if (same_call(&v->calls.longest[i], &v->keep_marks.data[k]))
                list_set_mark(v->list, call_identity(v->trace, &v->calls.longest[i]), true);
}

static void forget_kept(struct calls_view *v)
{
    v->keep.duration_ns = 0;
    v->keep_marks.len = 0;
    list_clear_marks(v->list);
}

/* The call that was selected before counting began anew, else the first row. */
static void select_again(struct calls_view *v)
{
    size_t row = 0;
    while (row < call_rows_count(v->rows) && !same_call(call_at(v, row), &v->keep))
        row++;
    list_select(v->list, v->keep.duration_ns && row < call_rows_count(v->rows) ? row : 0);
    v->keep.duration_ns = 0;
}

static void done(void *arg)
{
    struct calls_view *v = arg;
    worker_stop(v->worker);
    v->worker = NULL;
    v->busy = false;
    if (v->rc < 0) {
        model_error(v->m, "%s", v->err.text);
        return;
    }
    v->calls = v->made;
    v->made = (struct stats_calls){0};
    mark_again(v);
    call_rows_set(v->rows, v->trace, &v->calls);
    arrange(v);
    select_again(v);
    model_redraw(v->m);
}

static void forget(struct calls_view *v)
{
    worker_stop(v->worker);
    v->worker = NULL;
    v->busy = false;
    call_rows_set(v->rows, v->trace, NULL);
    list_refresh(v->list, false);
    stats_calls_free(&v->calls);
    stats_calls_free(&v->made);
}

static void count(struct calls_view *v)
{
    forget(v);
    if (!v->trace)
        return;
    bool range = v->m->range_end_ns > v->m->range_start_ns;
    v->options = (struct stats_options){.from_ns = range ? v->m->range_start_ns : 0,
                                        .to_ns = range ? v->m->range_end_ns : 0,
                                        .thread = v->one_thread
                                                      ? trace_find_thread(v->trace, v->m->cursor_tid)
                                                      : -1};
    v->busy = true;
    v->worker = worker_start(v->m->loop, run, done, v);
}

static bool answer(struct calls_view *v)
{
    struct model_subject subject;
    if (!v->m->trace || !model_take_subject(v->m, &subject))
        return false;
    bool other = v->trace != v->m->trace || v->fn != subject.fn;
    forget(v);
    v->trace = v->m->trace;
    v->fn = subject.fn;
    call_rows_filter(v->rows, v->trace, NULL, NULL);
    if (other)
        forget_kept(v);
    v->keep.duration_ns = 0;
    list_set_sort(v->list, CALL_DURATION, false);
    count(v);
    model_go(v->m, "calls");
    return true;
}

static void open_call(void *arg)
{
    struct calls_view *v = arg;
    const struct stats_call *c = call_at(v, list_selected(v->list));
    if (!c)
        return;
    model_set_cursor_call(v->m, trace_thread(v->trace, c->thread)->tid, c->start_ns, c->depth);
    model_go(v->m, "timeline");
}

static const char *filter_text(void *arg)
{
    return call_rows_filter_text(((const struct calls_view *)arg)->rows);
}

static const struct table_ops table_ops = {.row = "call",
                                           .sort = "duration, start or tid",
                                           .file = "calls.tsv",
                                           .arrange = arrange,
                                           .filter = set_filter,
                                           .filter_text = filter_text,
                                           .open = open_call,
                                           .count = row_count};

/* ---- A view's members ---- */

static void *create(struct model *m)
{
    struct calls_view *v = xcalloc(1, sizeof *v);
    v->m = m;
    v->source = source_edit_new(m);
    v->rows = call_rows_new(m->names);
    v->list = list_new(call_columns, CALL_COLUMNS, &list_rows, v);
    v->table = (struct table){m, v->list, call_columns, &table_ops, v};
    list_set_sort(v->list, CALL_DURATION, false);
    return v;
}

static void destroy(void *view)
{
    struct calls_view *v = view;
    forget(v);
    source_edit_free(v->source);
    list_free(v->list);
    call_rows_free(v->rows);
    vec_free(&v->keep_marks);
    free(v);
}

static void show(void *view)
{
    ((struct calls_view *)view)->shown = true;
}

static void hide(void *view)
{
    ((struct calls_view *)view)->shown = false;
}

static void changed(void *view, enum model_change what)
{
    struct calls_view *v = view;
    if (v->trace && v->trace != v->m->trace) {
        /* Another trace; or more of the same, in which functions keep their numbers. */
        keep_rows(v);
        forget(v);
        list_clear_marks(v->list);
        if (what == MODEL_TRACE)
            forget_kept(v);
        v->trace = what == MODEL_TRACE ? NULL : v->m->trace;
        count(v);
    } else if (what == MODEL_CURSOR && v->trace && v->shown &&
               (v->options.from_ns != v->m->range_start_ns || v->options.to_ns != v->m->range_end_ns)) {
        count(v);
    }
}

static void draw_head(struct calls_view *v, struct surface *s, struct rect r)
{
    const struct function_stats *f = &v->calls.all;
    const bool insn = trace_info(v->trace)->instructions;
    char n[FMT_MAX], min[FMT_MAX], p50[FMT_MAX], mean[FMT_MAX], p99[FMT_MAX], max[FMT_MAX], rows[FMT_MAX];
    char left[300], right[120] = "";
    if (f->calls > v->calls.n)
        snprintf(right, sizeof right, "the longest %s of %s ", fmt_count(rows, call_rows_count(v->rows)),
                 fmt_count(n, f->calls));
    else
        snprintf(right, sizeof right, "%s of %s call%s ", fmt_count(rows, call_rows_count(v->rows)),
                 fmt_count(n, f->calls), f->calls == 1 ? "" : "s");
    const char *about = trace_info(v->trace)->sampled ? "~" : "";
    snprintf(left, sizeof left, " %s%s call%s   min %s  p50 %s  mean %s  p99 %s  max %s", about,
             fmt_count(n, f->calls), f->calls == 1 ? "" : "s", ruler_duration(min, f->min_ns, insn),
             ruler_duration(p50, f->p50_ns, insn), ruler_mean(mean, f->sum_ns, f->calls, insn),
             ruler_duration(p99, f->p99_ns, insn), ruler_duration(max, f->max_ns, insn));
    line_draw(s, r.row, r.col, r.cols, left, (struct style){0}, v->m->glyphs);
    snprintf(left, sizeof left, "%s%s", v->options.to_ns ? "   range A-B" : "",
             v->options.thread >= 0 ? "   one thread" : "");
    table_draw_scope(&v->table, s, (struct rect){r.row + 1, r.col, 1, r.cols}, left, right);
}

/* The histogram and its title; no more rows than it has powers of two. */
static int pane_rows(const struct function_stats *f)
{
    int rows = 1 + function_pane_buckets(f);
    return rows < PANE_ROWS ? rows : PANE_ROWS;
}

static void draw(void *view, struct surface *s, struct rect r)
{
    struct calls_view *v = view;
    char title[400], name[256];
    if (r.rows < 4)
        return;
    if (!v->trace) {
        surface_text(s, r.row + 1, r.col + 1, r.cols - 1,
                     "No function was chosen: L in the Timeline or in Functions brings its calls here.",
                     SIZE_MAX, (struct style){.ink = ROLE_DIM});
        return;
    }
    function_names_fit_in_module(v->m->names, v->fn, name, sizeof name, r.cols > 40 ? r.cols - 30 : 10, v->m->glyphs);
    snprintf(title, sizeof title, "calls of %s   %s", name, function_names_module(v->m->names, v->fn));
    bar_draw_rule(s, r.row, r.col, r.cols, title, "", v->m->glyphs);
    if (v->busy || v->calls.all.calls == 0) {
        surface_text(s, r.row + 2, r.col + 1, r.cols - 1, v->busy ? "counting...   ^C stops" : "No calls in here.",
                     SIZE_MAX, (struct style){.ink = ROLE_DIM});
        return;
    }
    int pane = r.rows >= PANE_MIN_ROWS ? pane_rows(&v->calls.all) : 0;
    draw_head(v, s, (struct rect){r.row + 1, r.col, 2, r.cols});
    list_draw(v->list, s, (struct rect){r.row + 3, r.col, r.rows - 3 - pane, r.cols}, v->m->glyphs);
    const struct stats_call *c = call_at(v, list_selected(v->list));
    if (pane)
        function_pane_histogram(s, (struct rect){r.row + r.rows - pane, r.col, pane, r.cols}, &v->calls.all,
                                c ? c->duration_ns : UINT64_MAX, trace_info(v->trace)->instructions,
                                v->m->glyphs);
}

/* The selected call. */
static struct model_subject subject_of(const struct calls_view *v)
{
    const struct stats_call *c = call_at(v, list_selected(v->list));
    if (!c)
        return (struct model_subject){0};
    return (struct model_subject){.valid = true,
                                  .call = true,
                                  .fn = v->fn,
                                  .thread = c->thread,
                                  .depth = c->depth,
                                  .index = c->index};
}

static bool own_action(struct calls_view *v, enum action act, const char *arg)
{
    switch ((int)act) {
    case ACT_OPTIONS:
        v->one_thread = !v->one_thread;
        model_say(v->m, v->one_thread ? "the thread of the timeline's cursor alone" : "all threads");
        keep_rows(v);
        count(v);
        return true;
    case ACT_SOURCE:
        source_edit_subject(v->source, v->trace, subject_of(v), arg);
        return true;
    case ACT_COPY:
        model_copy(v->m, function_names_in_module(v->m->names, v->fn));
        return true;
    case ACT_RELOAD:
        keep_rows(v);
        count(v);
        return true;
    case ACT_INTERRUPT:
    case ACT_CANCEL:
        if (!v->busy)
            return table_action(&v->table, ACT_CANCEL, NULL);
        forget(v);
        return true;
    default:
        return table_action(&v->table, act, arg);
    }
}

static bool action(void *view, enum action act, const char *arg)
{
    struct calls_view *v = view;
    if (act == ACT_CALLS)
        return answer(v);
    if (act == ACT_COMPARE && v->shown && subject_of(v).valid)
        model_name_subject(v->m, subject_of(v)); /* the screen that answers comes next */
    if (act == ACT_COMPARE || !v->trace || !v->shown || !own_action(v, act, arg))
        return false;
    model_redraw(v->m);
    return true;
}

static bool mouse(void *view, const struct mouse *m, struct rect r)
{
    struct calls_view *v = view;
    (void)r;
    enum list_hit hit = v->trace && call_rows_count(v->rows) ? table_mouse(&v->table, m) : LIST_MISS;
    model_redraw(v->m);
    return hit != LIST_MISS;
}

static void state(void *view, char *out, size_t size)
{
    struct calls_view *v = view;
    if (v->trace)
        snprintf(out, size, "calls  %s%s", v->m->trace_label, v->options.to_ns ? "  A-B" : "");
}

static void status(void *view, char *out, size_t size)
{
    struct calls_view *v = view;
    if (v->trace)
        snprintf(out, size, "Whole durations, gaps inside them included; %s; o: %s",
                 v->options.thread >= 0 ? "one thread" : "all threads",
                 v->options.thread >= 0 ? "all threads" : "one thread");
}

/* "calls": they are there. */
static int condition(void *view, const char *name, const char *arg)
{
    struct calls_view *v = view;
    (void)arg;
    return strcmp(name, "calls") == 0 ? v->trace && !v->busy : -1;
}

static const struct filter_help filter_help = {
    .brief = ">=1us  <2ms  TEXT of the caller  tid=4713  duration  start  caller=TEXT  (> >= < <= =)",
    .lines = {{">=1us", "how long it took; > >= < <= ="},
              {"duration<2ms", "the same"},
              {"start>1ms", "since the trace's beginning"},
              {"tid=4713", "the thread"},
              {"TEXT", "in the caller's name, or pattern"},
              {"caller=TEXT", "TEXT that looks like the above"}},
};

const struct view_ops view_calls = {
    .name = "calls",
    .title = "Calls",
    .apart = true,
    .contexts = {CTX_CALLS, CTX_LIST, CTX_MOVE},
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

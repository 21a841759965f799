#include "tui/analysis/v_calls.h"

#include <inttypes.h>
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
#include "tui/analysis/row_filter.h"
#include "tui/ui/list.h"
#include "tui/ui/model.h"
#include "tui/ui/name.h"
#include "tui/timeline/ruler.h"
#include "tui/ui/table.h"
#include "tui/ui/worker.h"

#define CALLS_MAX     100000 /* sorted again within a frame */
#define PANE_ROWS     12
#define PANE_MIN_ROWS 20

enum column { COL_DURATION, COL_TIMES, COL_START, COL_TID, COL_NOTE, COL_CALLER, COL_COUNT };

static const struct list_column columns[COL_COUNT] = {
    [COL_DURATION] = {.title = "DURATION", .cols = 12, .priority = 0, .right = true},
    [COL_TIMES] = {.title = "xP50", .cols = 9, .priority = 2, .right = true, .fixed = true},
    [COL_START] = {.title = "START", .cols = 16, .priority = 0, .right = true, .rising = true},
    [COL_TID] = {.title = "TID", .cols = 8, .priority = 1, .right = true, .rising = true},
    [COL_NOTE] = {.title = "NOTE", .cols = 14, .priority = 3, .fixed = true},
    [COL_CALLER] = {.title = "CALLER", .cols = 20, .priority = 0, .stretch = true, .fixed = true},
};

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
    struct row_filter *filter; /* NULL: none */
    VEC(uint32_t) rows; /* of calls.longest */
    /* To be selected, and marked, again once they are counted anew; duration 0: none. */
    struct stats_call keep;
    VEC(struct stats_call) keep_marks;
};

static const struct stats_call *call_at(const struct calls_view *v, size_t row)
{
    return row < v->rows.len ? &v->calls.longest[v->rows.data[row]] : NULL;
}

static const struct function *function_of(const struct calls_view *v)
{
    return functions_get(trace_functions(v->trace), v->fn);
}

/* The caller's name, "" for the outermost. */
static const char *caller_of(const struct calls_view *v, const struct stats_call *c)
{
    const struct span *up = c->depth ? trace_row_at(v->trace, c->thread, c->depth - 1, c->start_ns) : NULL;
    return up ? functions_get(trace_functions(v->trace), up->fn)->name : "";
}

/* ---- The rows, for the list ---- */

static size_t row_count(void *arg)
{
    return ((struct calls_view *)arg)->rows.len;
}

static const struct span *span_of(const struct calls_view *v, const struct stats_call *c)
{
    size_t n = 0;
    return &trace_row(v->trace, c->thread, c->depth, &n)[c->index];
}

/* The call itself, whatever is counted around it, as long as the trace is there. */
static uint64_t row_identity(void *arg, size_t row)
{
    return (uint64_t)(uintptr_t)span_of(arg, call_at(arg, row));
}

static const char *note_of(const struct calls_view *v, const struct stats_call *c)
{
    unsigned flags = span_of(v, c)->flags;
    return flags & SPAN_INFERRED_START ? "start inferred"
           : flags & SPAN_INFERRED_END ? "end inferred"
           : flags & SPAN_GAP_END      ? "ended by a gap"
           : flags & SPAN_SAMPLED      ? "sampled"
                                       : "";
}

static void row_cell(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    const struct calls_view *v = arg;
    const struct stats_call *c = call_at(v, row);
    const struct trace_info *info = trace_info(v->trace);
    char text[FMT_MAX];
    switch ((enum column)column) {
    case COL_DURATION:
        /* To the instruction: calls are told apart by it. */
        snprintf(cell->text, LIST_CELL_MAX, "%s",
                 info->instructions ? fmt_count(text, c->duration_ns) : fmt_duration(text, c->duration_ns));
        break;
    case COL_TIMES:
        if (v->calls.all.p50_ns)
            snprintf(cell->text, LIST_CELL_MAX, "%.2f",
                     (double)c->duration_ns / (double)v->calls.all.p50_ns);
        break;
    case COL_START:
        snprintf(cell->text, LIST_CELL_MAX, "%s",
                 ruler_time(text, (int64_t)(c->start_ns - info->first_ns), 1, info->instructions));
        break;
    case COL_TID:
        snprintf(cell->text, LIST_CELL_MAX, "%d", (int)trace_thread(v->trace, c->thread)->tid);
        break;
    case COL_NOTE:
        snprintf(cell->text, LIST_CELL_MAX, "%s", note_of(v, c));
        break;
    case COL_CALLER:
        snprintf(cell->text, LIST_CELL_MAX, "%s", c->depth ? caller_of(v, c) : "(outermost)");
        break;
    case COL_COUNT:
        break;
    }
}

/* Times as in the other exports: not since the trace's start. */
static void row_plain(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    const struct calls_view *v = arg;
    const struct stats_call *c = call_at(v, row);
    if (column == COL_DURATION)
        snprintf(cell->text, LIST_CELL_MAX, "%" PRIu64, c->duration_ns);
    else if (column == COL_START)
        snprintf(cell->text, LIST_CELL_MAX, "%" PRIu64, c->start_ns);
    else if (column == COL_CALLER)
        snprintf(cell->text, LIST_CELL_MAX, "%s", caller_of(v, c));
    else
        row_cell(arg, row, column, cell);
}

static const char *const fields[COL_COUNT] = {"duration_ns", "times_p50", "start_ns", "tid", "note", "caller"};

static const struct list_rows list_rows = {
    .count = row_count, .identity = row_identity, .cell = row_cell, .plain = row_plain, .fields = fields};

static const struct filter_field filter_fields[] = {
    {"caller", COL_CALLER, FILTER_NAME}, {"duration", COL_DURATION, FILTER_DURATION},
    {"", COL_DURATION, FILTER_DURATION}, {"start", COL_START, FILTER_DURATION},
    {"tid", COL_TID, FILTER_COUNT},
};

static uint64_t filter_number(const void *arg, const void *row, int id)
{
    const struct calls_view *v = arg;
    const struct stats_call *c = row;
    return id == COL_DURATION ? c->duration_ns
           : id == COL_START  ? c->start_ns - trace_info(v->trace)->first_ns
                              : (uint64_t)trace_thread(v->trace, c->thread)->tid;
}

static const char *filter_string(const void *arg, const void *row, int id)
{
    (void)id;
    return caller_of(arg, row);
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct calls_view *v = arg;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct stats_call *x = &v->calls.longest[i], *y = &v->calls.longest[j];
    size_t column = list_sort_column(v->list);
    int order = 0;
    if (column == COL_START)
        order = (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
    else if (column == COL_TID)
        order = (x->thread > y->thread) - (x->thread < y->thread);
    else
        order = (x->duration_ns < y->duration_ns) - (x->duration_ns > y->duration_ns);
    if (list_sort_inverted(v->list))
        order = -order;
    return order ? order : (i > j) - (i < j);
}

static void arrange(void *arg)
{
    struct calls_view *v = arg;
    const struct filter_values values = {filter_number, filter_string, v};
    v->rows.len = 0;
    for (size_t i = 0; i < v->calls.n; i++)
        if (row_filter_passes(v->filter, &values, &v->calls.longest[i]))
            vec_push(&v->rows, (uint32_t)i);
    if (v->rows.len)
        qsort_r(v->rows.data, v->rows.len, sizeof *v->rows.data, compare, v);
    list_refresh(v->list, false);
}

/* ---- Filter ---- */

static void use_filter(struct calls_view *v, struct row_filter *f)
{
    row_filter_free(v->filter);
    v->filter = f;
}

static void set_filter(void *arg, const char *text)
{
    struct calls_view *v = arg;
    struct row_filter *f = NULL;
    struct err err = {0};
    if (text && *text && row_filter_new(&f, text, filter_fields, sizeof filter_fields / sizeof *filter_fields,
                                        v->trace, &err) < 0) {
        model_error(v->m, "%s", err.text);
        return;
    }
    use_filter(v, f);
    arrange(v);
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
        if (list_is_marked(v->list, (uint64_t)(uintptr_t)span_of(v, &v->calls.longest[i])))
            vec_push(&v->keep_marks, v->calls.longest[i]);
}

static void mark_again(struct calls_view *v)
{
    for (size_t k = 0; k < v->keep_marks.len; k++)
        for (size_t i = 0; i < v->calls.n; i++)
            if (same_call(&v->calls.longest[i], &v->keep_marks.data[k]))
                list_set_mark(v->list, (uint64_t)(uintptr_t)span_of(v, &v->calls.longest[i]), true);
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
    while (row < v->rows.len && !same_call(call_at(v, row), &v->keep))
        row++;
    list_select(v->list, v->keep.duration_ns && row < v->rows.len ? row : 0);
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
    arrange(v);
    select_again(v);
    model_redraw(v->m);
}

static void forget(struct calls_view *v)
{
    worker_stop(v->worker);
    v->worker = NULL;
    v->busy = false;
    v->rows.len = 0;
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
    use_filter(v, NULL);
    if (other)
        forget_kept(v);
    v->keep.duration_ns = 0;
    list_set_sort(v->list, COL_DURATION, false);
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
    return row_filter_text(((const struct calls_view *)arg)->filter);
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
    v->list = list_new(columns, COL_COUNT, &list_rows, v);
    v->table = (struct table){m, v->list, columns, &table_ops, v};
    list_set_sort(v->list, COL_DURATION, false);
    return v;
}

static void destroy(void *view)
{
    struct calls_view *v = view;
    forget(v);
    source_edit_free(v->source);
    use_filter(v, NULL);
    list_free(v->list);
    vec_free(&v->rows);
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
        snprintf(right, sizeof right, "the longest %s of %s ", fmt_count(rows, v->rows.len),
                 fmt_count(n, f->calls));
    else
        snprintf(right, sizeof right, "%s of %s call%s ", fmt_count(rows, v->rows.len),
                 fmt_count(n, f->calls), f->calls == 1 ? "" : "s");
    const char *about = trace_info(v->trace)->sampled ? "~" : "";
    snprintf(left, sizeof left, " %s%s call%s   min %s  p50 %s  mean %s  p99 %s  max %s", about,
             fmt_count(n, f->calls), f->calls == 1 ? "" : "s", ruler_duration(min, f->min_ns, insn),
             ruler_duration(p50, f->p50_ns, insn), ruler_duration(mean, f->mean_ns, insn),
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
    const struct function *f = function_of(v);
    const char *module = strrchr(f->module, '/');
    name_fit(name, sizeof name, f->name, (size_t)(r.cols > 40 ? r.cols - 30 : 10));
    snprintf(title, sizeof title, "calls of %s   %s", name, module ? module + 1 : f->module);
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
        model_copy(v->m, function_of(v)->name);
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
    enum list_hit hit = v->trace && v->rows.len ? table_mouse(&v->table, m) : LIST_MISS;
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

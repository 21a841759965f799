#include "tui/analysis/v_compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "tui/trace/source_edit.h"
#include "tui/ui/bar.h"
#include "tui/ui/line.h"
#include "tui/analysis/compare_rows.h"
#include "tui/ui/list.h"
#include "tui/ui/model.h"
#include "tui/timeline/ruler.h"
#include "tui/ui/table.h"
#include "tui/ui/worker.h"

#define PANE_ROWS     3
#define PANE_MIN_ROWS 16

struct compare_view {
    struct model *m;
    struct list *list;
    struct table table;
    struct compare_rows *rows;
    struct source_edit *source;
    const struct trace *trace; /* NULL: no call was chosen */
    fn_id fn;
    struct stats_call call[2]; /* this one, the median */
    pid_t tid;                 /* of this one */
    uint64_t calls;            /* that it is the median of */
    uint64_t keep;             /* identity of the row to be selected again; 0: the first */
    int side;                  /* that Enter goes to */
    bool shown, ready;
    struct worker *worker;
    bool busy;
    struct comparison made;
    int rc;
    struct err err;
};

/* ---- The rows, for the list ---- */

static size_t row_count(void *arg)
{
    return compare_rows_count(((struct compare_view *)arg)->rows);
}

static uint64_t row_identity(void *arg, size_t row)
{
    return (uint64_t)compare_rows_at(((struct compare_view *)arg)->rows, row)->fn + 1;
}

static void row_cell(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    compare_rows_cell(((struct compare_view *)arg)->rows, row, (enum compare_column)column, cell);
}

static void row_plain(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    compare_rows_plain(((struct compare_view *)arg)->rows, row, (enum compare_column)column, cell);
}

static const struct list_rows list_rows = {
    .count = row_count, .identity = row_identity, .cell = row_cell, .plain = row_plain,
    .fields = compare_fields};

static void arrange(void *arg)
{
    struct compare_view *v = arg;
    compare_rows_sort(v->rows, (enum compare_column)list_sort_column(v->list), list_sort_inverted(v->list));
    list_refresh(v->list, false);
}

/* ---- Comparing ---- */

/* The median is that of the whole trace, as the statistics have it. */
static void run(void *arg, const atomic_bool *cancel)
{
    struct compare_view *v = arg;
    const struct stats_options all = {.thread = -1, .cancel = cancel};
    v->rc = stats_median(v->trace, v->fn, &all, &v->call[1], &v->calls, &v->err);
    if (v->rc == 0)
        v->rc = compare_calls(&v->made, v->trace, &v->call[0], &v->call[1], cancel, &v->err);
}

static void done(void *arg)
{
    struct compare_view *v = arg;
    worker_stop(v->worker);
    v->worker = NULL;
    v->busy = false;
    if (v->rc < 0) {
        model_error(v->m, "%s", v->err.text);
        return;
    }
    v->ready = true;
    compare_rows_set(v->rows, v->trace, v->made);
    v->made = (struct comparison){0};
    arrange(v);
    if (!v->keep || !list_select_identity(v->list, v->keep))
        list_select(v->list, 0);
    v->keep = 0;
    model_redraw(v->m);
}

static void forget(struct compare_view *v)
{
    worker_stop(v->worker);
    v->worker = NULL;
    v->busy = v->ready = false;
    comparison_free(&v->made);
    compare_rows_set(v->rows, NULL, (struct comparison){0});
    list_refresh(v->list, false);
}

static void start(struct compare_view *v)
{
    v->tid = trace_thread(v->trace, v->call[0].thread)->tid;
    v->busy = true;
    v->worker = worker_start(v->m->loop, run, done, v);
}

/* More of the same trace: the call is there again, perhaps deeper. */
static void grow(struct compare_view *v)
{
    const struct trace *t = v->m->trace;
    struct stats_call c = v->call[0];
    ssize_t thread = t ? trace_find_thread(t, v->tid) : -1;
    uint64_t keep = list_selected_identity(v->list);
    forget(v);
    v->trace = NULL;
    for (size_t d = c.depth; thread >= 0 && d < trace_thread(t, (size_t)thread)->depths; d++) {
        size_t n = 0;
        const struct span *row = trace_row(t, (size_t)thread, d, &n);
        const struct span *s = trace_row_at(t, (size_t)thread, d, c.start_ns);
        if (!s || s->fn != v->fn || s->start_ns != c.start_ns || s->end_ns != c.start_ns + c.duration_ns)
            continue;
        v->trace = t;
        v->call[0] = (struct stats_call){(size_t)thread, d, (size_t)(s - row), c.duration_ns, c.start_ns};
        v->keep = keep;
        start(v);
        return;
    }
}

static bool answer(struct compare_view *v)
{
    struct model_subject sub;
    size_t n = 0;
    if (!v->m->trace || !model_take_subject(v->m, &sub))
        return false;
    const struct span *row = sub.call ? trace_row(v->m->trace, sub.thread, sub.depth, &n) : NULL;
    if (sub.index >= n)
        return false;
    forget(v);
    compare_rows_filter(v->rows, NULL, NULL);
    list_set_sort(v->list, CMP_SELF_DIFF, false);
    v->trace = v->m->trace;
    v->fn = sub.fn;
    v->side = 0;
    const struct span *s = &row[sub.index];
    v->call[0] = (struct stats_call){sub.thread, sub.depth, sub.index, s->end_ns - s->start_ns, s->start_ns};
    v->keep = 0;
    model_go(v->m, "compare");
    start(v);
    return true;
}

/* To the function's longest call inside the call of the chosen side. */
static void open_call(void *arg)
{
    struct compare_view *v = arg;
    const struct compare_row *row = compare_rows_at(v->rows, list_selected(v->list));
    if (!row)
        return;
    const struct compare_side *c = &row->side[v->side];
    if (c->calls == 0) {
        model_say(v->m, "%s does not call it; Tab: the other one", v->side ? "the median call" : "this call");
        return;
    }
    model_set_cursor_call(v->m, trace_thread(v->trace, c->longest.thread)->tid, c->longest.start_ns,
                          c->longest.depth);
    model_go(v->m, "timeline");
}

static void filter(void *arg, const char *text)
{
    struct compare_view *v = arg;
    struct err err;
    if (compare_rows_filter(v->rows, text, &err))
        model_error(v->m, "%s", err.text);
    list_refresh(v->list, false);
}

static const char *filter_text(void *arg)
{
    return compare_rows_filter_text(((struct compare_view *)arg)->rows);
}

static const char *row_name(void *arg, size_t row)
{
    struct compare_view *v = arg;
    return function_names_get(v->m->names, compare_rows_at(v->rows, row)->fn);
}

static const struct table_ops table_ops = {.row = "function",
                                           .sort = "self diff, self, med.self, call diff, ..., function",
                                           .file = "compare.tsv",
                                           .arrange = arrange,
                                           .filter = filter,
                                           .filter_text = filter_text,
                                           .open = open_call,
                                           .count = row_count,
                                           .name = row_name};

/* ---- A view's members ---- */

static void *create(struct model *m)
{
    struct compare_view *v = xcalloc(1, sizeof *v);
    v->m = m;
    v->source = source_edit_new(m);
    v->rows = compare_rows_new(m->names);
    v->list = list_new(compare_columns, CMP_COUNT, &list_rows, v);
    v->table = (struct table){m, v->list, compare_columns, &table_ops, v};
    list_set_sort(v->list, CMP_SELF_DIFF, false);
    return v;
}

static void destroy(void *view)
{
    struct compare_view *v = view;
    forget(v);
    source_edit_free(v->source);
    list_free(v->list);
    compare_rows_free(v->rows);
    free(v);
}

static void show(void *view)
{
    ((struct compare_view *)view)->shown = true;
}

static void hide(void *view)
{
    ((struct compare_view *)view)->shown = false;
}

static void changed(void *view, enum model_change what)
{
    struct compare_view *v = view;
    if (what == MODEL_SETTINGS && v->ready)
        arrange(v); /* names are others now */
    if (!v->trace || v->trace == v->m->trace)
        return;
    if (what == MODEL_TRACE) {
        list_clear_marks(v->list);
        forget(v);
        v->trace = NULL;
    } else {
        grow(v);
    }
}

static const char *note_of(const struct compare_view *v, const struct stats_call *c)
{
    size_t n = 0;
    unsigned flags = trace_row(v->trace, c->thread, c->depth, &n)[c->index].flags;
    return flags & SPAN_INFERRED_START ? "   start inferred"
           : flags & SPAN_INFERRED_END ? "   end inferred"
           : flags & SPAN_GAP_END      ? "   ended by a gap"
                                       : "";
}

static bool same_call(const struct compare_view *v)
{
    return v->call[0].thread == v->call[1].thread && v->call[0].depth == v->call[1].depth &&
           v->call[0].index == v->call[1].index;
}

/* One line a side: its call; the one that Enter goes to is marked. */
static void draw_side(struct compare_view *v, struct surface *s, struct rect r, int side)
{
    const struct trace_info *info = trace_info(v->trace);
    const struct stats_call *c = &v->call[side];
    char dur[FMT_MAX], at[FMT_MAX], n[FMT_MAX], text[300], of[FMT_MAX + 60] = "";
    if (side == 1)
        snprintf(of, sizeof of, "   of %s%s call%s%s", info->sampled ? "~" : "", fmt_count(n, v->calls),
                 v->calls == 1 ? "" : "s", same_call(v) ? ": this very call" : "");
    snprintf(text, sizeof text, "%-6s  %9s  at %s  tid %d%s%s", side ? "median" : "this",
             ruler_duration(dur, c->duration_ns, info->instructions),
             ruler_time(at, (int64_t)(c->start_ns - info->first_ns), 1, info->instructions),
             (int)trace_thread(v->trace, c->thread)->tid, of, note_of(v, c));
    const bool here = v->side == side;
    const struct style style = {.ink = here ? ROLE_SELECT : ROLE_DEFAULT,
                                .paper = here ? ROLE_SELECT : ROLE_DEFAULT};
    surface_put(s, r.row, r.col, here ? glyph(v->m->glyphs, GLYPH_POINTER) : ' ', style);
    line_draw(s, r.row, r.col + 1, r.cols - 1, text, style, v->m->glyphs);
}

static void draw_pane(struct compare_view *v, struct surface *s, struct rect r)
{
    const struct compare_row *row = compare_rows_at(v->rows, list_selected(v->list));
    const struct trace_info *info = trace_info(v->trace);
    char title[400], name[256], text[300], n[FMT_MAX], total[FMT_MAX], self[FMT_MAX], d[FMT_MAX], at[FMT_MAX];
    if (!row)
        return;
    function_names_fit_in_module(v->m->names, row->fn, name, sizeof name, r.cols > 40 ? r.cols - 30 : 10, v->m->glyphs);
    snprintf(title, sizeof title, "%s   %s", name, function_names_module(v->m->names, row->fn));
    bar_draw_rule(s, r.row, r.col, r.cols, title, "", v->m->glyphs);
    for (int side = 0; side < 2; side++) {
        const struct compare_side *c = &row->side[side];
        if (c->calls == 0)
            snprintf(text, sizeof text, "%-6s  not called", side ? "median" : "this");
        else
            snprintf(text, sizeof text, "%-6s  %s call%s  total %s  self %s  longest %s at %s",
                     side ? "median" : "this", fmt_count(n, c->calls), c->calls == 1 ? "" : "s",
                     ruler_duration(total, c->total_ns, info->instructions),
                     ruler_duration(self, c->self_ns, info->instructions),
                     ruler_duration(d, c->longest.duration_ns, info->instructions),
                     ruler_time(at, (int64_t)(c->longest.start_ns - info->first_ns), 1,
                                info->instructions));
        line_draw(s, r.row + 1 + side, r.col + 1, r.cols - 1, text, (struct style){0}, v->m->glyphs);
    }
}

static void draw(void *view, struct surface *s, struct rect r)
{
    struct compare_view *v = view;
    char title[400], name[256], scope[160];
    if (r.rows < 6)
        return;
    if (!v->trace) {
        surface_text(s, r.row + 1, r.col + 1, r.cols - 1,
                     "No call was chosen: M in the Timeline compares the selected one.", SIZE_MAX,
                     (struct style){.ink = ROLE_DIM});
        return;
    }
    function_names_fit(v->m->names, v->fn, name, sizeof name, r.cols > 50 ? r.cols - 40 : 10, v->m->glyphs);
    snprintf(title, sizeof title, "%s: this call and the median one", name);
    bar_draw_rule(s, r.row, r.col, r.cols, title, "", v->m->glyphs);
    if (!v->ready) {
        surface_text(s, r.row + 2, r.col + 1, r.cols - 1, v->busy ? "comparing...   ^C stops" : "Not compared.",
                     SIZE_MAX, (struct style){.ink = ROLE_DIM});
        return;
    }
    for (int side = 0; side < 2; side++)
        draw_side(v, s, (struct rect){r.row + 1 + side, r.col, 1, r.cols}, side);
    table_scope_text(&v->table, scope, sizeof scope, compare_rows_total(v->rows));
    table_draw_scope(&v->table, s, (struct rect){r.row + 3, r.col, 1, r.cols}, "", scope);
    int pane = r.rows >= PANE_MIN_ROWS ? PANE_ROWS : 0;
    list_draw(v->list, s, (struct rect){r.row + 4, r.col, r.rows - 4 - pane, r.cols}, v->m->glyphs);
    if (pane)
        draw_pane(v, s, (struct rect){r.row + r.rows - pane, r.col, pane, r.cols});
}

/* The chosen row's function. */
static struct model_subject subject_of(const struct compare_view *v)
{
    const struct compare_row *row = compare_rows_at(v->rows, list_selected(v->list));
    return row ? (struct model_subject){.valid = true, .fn = row->fn} : (struct model_subject){0};
}

static bool own_action(struct compare_view *v, enum action act, const char *arg)
{
    switch ((int)act) {
    case ACT_PANE_NEXT:
    case ACT_PANE_PREV:
        v->side = !v->side;
        return true;
    case ACT_SOURCE:
        source_edit_subject(v->source, v->trace, subject_of(v), arg);
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
    struct compare_view *v = view;
    if (act == ACT_COMPARE)
        return answer(v);
    if (act == ACT_CALLS && v->shown && subject_of(v).valid)
        model_name_subject(v->m, subject_of(v)); /* the screen that answers comes next */
    if (act == ACT_CALLS || !v->trace || !v->shown || !own_action(v, act, arg))
        return false;
    model_redraw(v->m);
    return true;
}

static bool mouse(void *view, const struct mouse *m, struct rect r)
{
    struct compare_view *v = view;
    model_redraw(v->m);
    if (!v->ready)
        return false;
    if (m->kind == MOUSE_DOWN && m->row > r.row && m->row <= r.row + 2) {
        v->side = m->row - r.row - 1;
        return true;
    }
    return table_mouse(&v->table, m) != LIST_MISS;
}

static void state(void *view, char *out, size_t size)
{
    struct compare_view *v = view;
    if (v->trace)
        snprintf(out, size, "compare  %s", v->m->trace_label);
}

static void status(void *view, char *out, size_t size)
{
    struct compare_view *v = view;
    if (v->ready)
        snprintf(out, size, "+ more than in the median call, - less; gaps are left out of self   Enter goes to %s",
                 v->side ? "the median call" : "this call");
}

/* "compare": it is done. */
static int condition(void *view, const char *name, const char *arg)
{
    struct compare_view *v = view;
    (void)arg;
    return strcmp(name, "compare") == 0 ? v->ready : -1;
}

static const struct filter_help filter_help = {
    .brief = "TEXT  selfdiff>1us  calls=0  (self med.self calls calldiff med.call total totaldiff; > >= < <= =)",
    .lines = {{"TEXT", "in the name, or a pattern of it"},
              {"selfdiff>1us", "selfdiff totaldiff: the amount"},
              {"self>=1us", "self total med.self med.total"},
              {"calls=0", "calls med.call calldiff"},
              {"name=TEXT", "TEXT that looks like the above"}},
};

const struct view_ops view_compare = {
    .name = "compare",
    .title = "Compare",
    .apart = true,
    .contexts = {CTX_COMPARE, CTX_LIST, CTX_MOVE},
    .context_count = 3,
    .filter = &filter_help,
    .lacks = {ACT_FOLLOW, ACT_OPTIONS},
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

/* Screen 1, Processes: what runs here, and which of it to trace. */
#include "tui/choose/v_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/loop.h"
#include "core/machine/proc.h"
#include "core/base/vec.h"
#include "tui/ui/bar.h"
#include "tui/ui/list.h"
#include "tui/ui/list_export.h"
#include "tui/ui/model.h"
#include "tui/choose/process_detail.h"
#include "tui/choose/process_rows.h"
#include "tui/ui/settings.h"

#define DETAIL_MIN_ROWS 20 /* below so many rows the panes fold away */

struct process_view {
    struct model *m;
    struct proc_table *table;
    struct process_rows *rows;
    struct list *list;
    struct process_detail *detail;
    bool shown, paused;
    uint64_t described; /* identity that detail tells of */
    int timer;
    struct err trouble; /* code 0, or why /proc cannot be read */
};

static void refresh(struct process_view *v);

static void on_timer(void *arg)
{
    struct process_view *v = arg;
    v->timer = 0;
    if (!v->paused)
        refresh(v);
    if (v->shown)
        v->timer = loop_add_timer(v->m->loop,
                                  loop_now_ns(v->m->loop) +
                                      settings_number(v->m->settings, SET_REFRESH),
                                  on_timer, v);
    model_redraw(v->m);
}

static const struct proc *selected(const struct process_view *v)
{
    size_t row = list_selected(v->list);
    return row < process_rows_count(v->rows) ? process_rows_at(v->rows, row) : NULL;
}

static void describe(struct process_view *v)
{
    const struct proc *p = selected(v);
    process_detail_read(v->detail, p, settings_bool(v->m->settings, SET_THREADS));
    v->described = p ? process_identity(p) : 0;
}

/* Filters and sorts what the table holds. */
static void rearrange(struct process_view *v)
{
    process_rows_update(v->rows, list_sort_column(v->list), list_sort_inverted(v->list));
    size_t row = list_selected(v->list);
    list_refresh(v->list, false);
    if (!settings_bool(v->m->settings, SET_FOLLOW))
        list_select(v->list, row);
    describe(v);
    model_redraw(v->m);
}

/* Marks outlive a filter that hides their process, but not the process. */
static void forget_marks_of_the_dead(struct process_view *v)
{
    VEC(uint64_t) alive = {0};
    size_t n = list_mark_count(v->list) ? proc_table_count(v->table) : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t id = process_identity(proc_table_at(v->table, i));
        if (list_is_marked(v->list, id))
            vec_push(&alive, id);
    }
    list_clear_marks(v->list);
    for (size_t i = 0; i < alive.len; i++)
        list_set_mark(v->list, alive.data[i], true);
    vec_free(&alive);
}

static void refresh(struct process_view *v)
{
    v->trouble.code = 0;
    proc_table_refresh(v->table, loop_now_ns(v->m->loop), &v->trouble);
    forget_marks_of_the_dead(v);
    rearrange(v);
}

void *process_view_new(struct model *m, const char *proc_root)
{
    struct process_view *v = xcalloc(1, sizeof *v);
    struct list_rows callbacks = process_rows_callbacks();
    v->m = m;
    v->table = proc_table_new(proc_root);
    v->rows = process_rows_new(v->table);
    v->list = list_new(process_columns, PROCESS_COLUMNS, &callbacks, v->rows);
    v->detail = process_detail_new();
    process_rows_kernel(v->rows, settings_bool(m->settings, SET_KERNEL_THREADS));
    list_set_sort(v->list, PROCESS_CPU, false);
    return v;
}

static void *create(struct model *m)
{
    return process_view_new(m, "/proc");
}

static void destroy(void *view)
{
    struct process_view *v = view;
    loop_remove(v->m->loop, v->timer);
    process_detail_free(v->detail);
    list_free(v->list);
    process_rows_free(v->rows);
    proc_table_free(v->table);
    free(v);
}

static void show(void *view)
{
    struct process_view *v = view;
    v->shown = true;
    if (!v->timer)
        on_timer(v);
}

static void hide(void *view)
{
    struct process_view *v = view;
    v->shown = false;
    loop_remove(v->m->loop, v->timer);
    v->timer = 0;
}

/* ---- drawing ---- */

static void draw_filter_row(const struct process_view *v, struct surface *s, struct rect r)
{
    char note[80] = "", right[128];
    const char *user = process_rows_get_user(v->rows);
    if (*user)
        snprintf(note, sizeof note, "   user %s", user);
    bool down = list_sort_column(v->list) >= PROCESS_CPU && list_sort_column(v->list) <= PROCESS_SYMS;
    snprintf(right, sizeof right, "%zu of %zu    sort: %s %s ", process_rows_count(v->rows),
             proc_table_count(v->table), process_columns[list_sort_column(v->list)].title,
             down != list_sort_inverted(v->list) ? "desc" : "asc");
    bar_draw_filter(s, (struct rect){r.row, r.col, 1, r.cols}, process_rows_get_filter(v->rows), note, right,
                    v->m->glyphs);
}

static void draw(void *view, struct surface *s, struct rect r)
{
    struct process_view *v = view;
    if (r.rows < 2 || r.cols < 1)
        return;
    const struct proc *p = selected(v);
    if ((p ? process_identity(p) : 0) != v->described)
        describe(v);
    draw_filter_row(v, s, r);
    if (v->trouble.code) {
        surface_text(s, r.row + 2, r.col + 1, r.cols - 2, v->trouble.text, SIZE_MAX,
                     (struct style){ROLE_ERROR, ROLE_DEFAULT, 0});
        return;
    }
    int below = 0;
    if (r.rows >= DETAIL_MIN_ROWS && settings_bool(v->m->settings, SET_DETAILS)) {
        int detail = process_detail_rows(v->detail), half = r.rows / 2;
        detail = detail > half ? half : detail;
        below = detail + CAPABILITY_PANE_ROWS;
        struct rect d = {r.row + r.rows - below, r.col, detail, r.cols};
        process_detail_draw(v->detail, p, s, d, v->m->glyphs);
        d.row += detail;
        d.rows = CAPABILITY_PANE_ROWS;
        capability_pane_draw(v->m->caps, s, d, v->m->glyphs);
    }
    struct rect l = {r.row + 1, r.col, r.rows - 1 - below, r.cols};
    list_draw(v->list, s, l, v->m->glyphs);
    if (!process_rows_count(v->rows) && l.rows > 1)
        surface_text(s, l.row + 1, l.col + 2, l.cols - 2,
                     "no process matches; Esc clears the filter", SIZE_MAX,
                     (struct style){ROLE_DIM, ROLE_DEFAULT, 0});
}

/* ---- actions ---- */

static bool can_be_traced(struct process_view *v, const struct proc *p)
{
    char reason[200];
    if (p->trace == PROC_TRACE_OK)
        return true;
    proc_trace_reason(p, reason, sizeof reason);
    model_warn(v->m, "process %d: %s", (int)p->stat.pid, reason);
    return false;
}

static bool is_marked(const struct process_view *v, const struct proc *p)
{
    return list_is_marked(v->list, process_identity(p));
}

/* The marked processes, or without marks the selected one, become the targets; the selected one comes
 * first when it is among them. False, with the reason said, when one of them cannot be traced. */
static bool choose(struct process_view *v)
{
    const struct proc *first = selected(v);
    size_t n = list_mark_count(v->list) ? proc_table_count(v->table) : 0;
    for (size_t i = n; i-- > 0;) {
        const struct proc *p = proc_table_at(v->table, i);
        if (!is_marked(v, p))
            continue;
        if (!can_be_traced(v, p))
            return false;
        if (!first || !is_marked(v, first))
            first = p;
    }
    if (!first || !can_be_traced(v, first))
        return false;
    model_set_target(v->m, first->stat.pid, first->stat.start_ticks, first->stat.comm);
    for (size_t i = 0; i < n; i++) {
        const struct proc *p = proc_table_at(v->table, i);
        if (p->stat.pid != first->stat.pid && is_marked(v, p))
            model_add_target(v->m, p->stat.pid, p->stat.start_ticks, p->stat.comm);
    }
    return true;
}

/* `:target PID`, from any screen. */
static bool choose_pid(struct process_view *v, const char *arg)
{
    uint64_t pid;
    struct err err;
    if (!arg || fmt_parse_u64(arg, 1, 0x7fffffff, &pid, NULL) < 0) {
        model_error(v->m, "target takes the number of a process");
        return true;
    }
    if (proc_table_refresh(v->table, loop_now_ns(v->m->loop), &err) < 0) {
        model_error(v->m, "%s", err.text);
        return true;
    }
    const struct proc *p = proc_table_find(v->table, (pid_t)pid);
    char reason[200];
    if (!p) {
        model_error(v->m, "there is no process %s", arg);
    } else if (p->trace != PROC_TRACE_OK) {
        proc_trace_reason(p, reason, sizeof reason);
        model_warn(v->m, "process %s: %s", arg, reason);
    } else {
        model_set_target(v->m, p->stat.pid, p->stat.start_ticks, p->stat.comm);
    }
    rearrange(v);
    return true;
}

static void choose_user(struct process_view *v, const char *arg)
{
    const struct proc *p = selected(v);
    const char *now = process_rows_get_user(v->rows);
    process_rows_user(v->rows, arg ? arg : *now ? "" : p ? p->user : "");
    now = process_rows_get_user(v->rows);
    rearrange(v);
    model_say(v->m, *now ? "processes of %s; u again for all" : "processes of all users%s", now);
}

static void toggle_kernel(struct process_view *v)
{
    bool on = !process_rows_get_kernel(v->rows);
    process_rows_kernel(v->rows, on);
    rearrange(v);
    model_say(v->m, "kernel threads %s", on ? "shown" : "hidden");
}

static void toggle_threads(struct process_view *v)
{
    settings_set(v->m->settings, SET_THREADS, NULL, NULL); /* no value: toggles */
    describe(v);
    model_redraw(v->m);
}

static void set_filter(struct process_view *v, const char *words)
{
    process_rows_filter(v->rows, words);
    rearrange(v);
    list_select(v->list, 0);
}

static bool sort_by(struct process_view *v, const char *title)
{
    size_t column = title ? list_find_column(v->list, title) : SIZE_MAX;
    if (column == SIZE_MAX)
        return false;
    list_set_sort(v->list, column, false);
    rearrange(v);
    return true;
}

static void toggle_follow(struct process_view *v)
{
    settings_set(v->m->settings, SET_FOLLOW, NULL, NULL);
    model_say(v->m, settings_bool(v->m->settings, SET_FOLLOW)
                        ? "the selection stays on its process"
                        : "the selection stays on its row");
}

static void on_columns(void *arg, const char *text)
{
    struct process_view *v = arg;
    struct err err;
    if (text && list_show_columns(v->list, text, &err) < 0)
        model_error(v->m, "%s", err.text);
}

static void on_export(void *arg, const char *text)
{
    struct process_view *v = arg;
    if (text && *text)
        list_export(v->m, v->list, text, process_rows_count(v->rows), "processes");
}

static void choose_columns(struct process_view *v, const char *arg)
{
    char titles[200];
    list_column_titles(v->list, titles, sizeof titles);
    if (arg)
        on_columns(v, arg);
    else
        model_prompt(v->m, "Columns: ", titles, on_columns, v);
}

static bool cancel(struct process_view *v)
{
    bool had = *list_pattern(v->list) || *process_rows_get_filter(v->rows);
    list_search(v->list, NULL);
    if (*process_rows_get_filter(v->rows))
        set_filter(v, NULL);
    return had;
}

static bool action(void *view, enum action act, const char *arg)
{
    struct process_view *v = view;
    switch ((int)act) {
    case ACT_OPEN:
        if (choose(v))
            model_go(v->m, "symbols");
        return true;
    case ACT_TO_RECORD:
        if (choose(v))
            model_go(v->m, "record");
        return true;
    case ACT_TARGET:
        return choose_pid(v, arg);
    case ACT_FILTER:
        set_filter(v, arg);
        return true;
    case ACT_SEARCH:
        if (!list_search(v->list, arg) && arg && *arg)
            model_say(v->m, "no process matches '%s'", arg);
        return true;
    case ACT_CANCEL:
        return cancel(v);
    case ACT_USER:
        choose_user(v, arg);
        return true;
    case ACT_KERNEL_THREADS:
        toggle_kernel(v);
        return true;
    case ACT_THREADS:
        toggle_threads(v);
        return true;
    case ACT_PAUSE:
        v->paused = !v->paused;
        model_say(v->m, v->paused ? "refreshing is paused; Z goes on" : "refreshing");
        return true;
    case ACT_RELOAD:
        refresh(v);
        return true;
    case ACT_FOLLOW:
        toggle_follow(v);
        return true;
    case ACT_OPTIONS:
        choose_columns(v, arg);
        return true;
    case ACT_EXPORT:
        if (arg)
            on_export(v, arg);
        else
            model_prompt(v->m, "Export to: ", "processes.tsv", on_export, v);
        return true;
    case ACT_SORT:
        return sort_by(v, arg);
    case ACT_DETAILS:
        settings_set(v->m->settings, SET_DETAILS, NULL, NULL);
        return true;
    case ACT_COPY: {
        const struct proc *p = selected(v);
        if (p)
            model_copy(v->m, p->command);
        return true;
    }
    case ACT_SORT_PREV:
    case ACT_SORT_NEXT:
    case ACT_SORT_INVERT:
        list_action(v->list, act);
        rearrange(v);
        return true;
    default:
        return list_action(v->list, act);
    }
}

static bool mouse(void *view, const struct mouse *m, struct rect r)
{
    struct process_view *v = view;
    (void)r;
    switch (list_mouse(v->list, m)) {
    case LIST_OPENED:
        return action(v, ACT_OPEN, NULL);
    case LIST_SORTED:
        rearrange(v);
        return true;
    case LIST_SELECTED:
        return true;
    case LIST_MISS:
    default:
        return false;
    }
}

static void changed(void *view, enum model_change what)
{
    if (what == MODEL_SETTINGS)
        describe(((struct process_view *)view));
}

static void status(void *view, char *out, size_t size)
{
    struct process_view *v = view;
    char every[FMT_MAX];
    size_t marked = list_mark_count(v->list);
    int n = snprintf(out, size, "Refresh %s%s",
                     fmt_duration(every, settings_number(v->m->settings, SET_REFRESH)),
                     v->paused ? " (paused)" : "");
    if (marked && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, "   %zu process%s marked: Enter and r take %s", marked,
                 marked == 1 ? "" : "es", marked == 1 ? "it" : "them all");
}

static void state(void *view, char *out, size_t size)
{
    capability_summary(((struct process_view *)view)->m->caps, out, size);
}

static const struct filter_help filter_help = {
    .brief = "words, all of which stand in the command line, the name or the user, or are the pid",
    .lines = {{"WORD", "in command line, name or user"}, {"4713", "the pid as a whole"}},
};

const struct view_ops view_process = {
    .name = "processes",
    .title = "Processes",
    .contexts = {CTX_PROCESSES, CTX_LIST, CTX_MOVE},
    .context_count = 3,
    .filter = &filter_help,
    .create = create,
    .destroy = destroy,
    .draw = draw,
    .show = show,
    .hide = hide,
    .action = action,
    .search_live = true,
    .mouse = mouse,
    .changed = changed,
    .status = status,
    .state = state,
};

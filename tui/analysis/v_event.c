#include "tui/analysis/v_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "tui/analysis/event_draw.h"
#include "tui/analysis/event_list.h"
#include "tui/analysis/row_filter.h"
#include "tui/trace/source_edit.h"
#include "tui/ui/bar.h"
#include "tui/ui/model.h"
#include "tui/timeline/ruler.h"
#include "tui/trace/trace_export.h"

#define PANE_MIN_ROWS 18
#define ALL_KINDS ((1u << EVENT_KINDS) - 1)

struct event_view {
    struct model *m;
    const struct trace *trace; /* what list and src read */
    struct flame_source *src;
    struct event_list list;
    struct trace_export *export;
    struct source_edit *source;
    bool all_threads, follow;
    char *filter;        /* as typed */
    char *name;          /* of it, the part of a function's name; NULL: none */
    unsigned kinds, marks; /* as in struct events_filter */
    uint8_t *fn;         /* NULL: every function */
    pid_t tid;           /* of the list, 0: all */
    size_t rows;         /* of the last draw */
    int head;            /* the first of them, for the mouse */
    bool moving;         /* we set the cursor ourselves */
};

static void restart(struct event_view *v, uint64_t at_ns)
{
    const struct trace *t = v->m->trace;
    if (!t) {
        event_list_set(&v->list, NULL);
        return;
    }
    ssize_t thread = trace_find_thread(t, v->m->cursor_tid);
    if (thread < 0 && trace_thread_count(t) > 0)
        thread = 0;
    struct events_filter filter = {
        .thread = v->all_threads || thread < 0 ? EVENTS_ALL_THREADS : (size_t)thread,
        .kinds = v->kinds,
        .marks = v->marks,
        .fn = v->fn};
    v->tid = filter.thread == EVENTS_ALL_THREADS ? 0 : trace_thread(t, (size_t)thread)->tid;
    event_list_set(&v->list, events_new(t, v->src, filter));
    event_list_goto(&v->list, at_ns, v->rows ? v->rows : 20);
}

/* At the cursor that screens share, on the call that they mean, if they mean one. */
static void restart_at_cursor(struct event_view *v)
{
    const struct model *m = v->m;
    restart(v, m->cursor_ns);
    ssize_t thread = m->trace && m->cursor_depth != SIZE_MAX ? trace_find_thread(m->trace, m->cursor_tid) : -1;
    if (thread >= 0)
        event_list_goto_call(&v->list, m->cursor_ns, (size_t)thread, m->cursor_depth, v->rows ? v->rows : 20);
}

static void new_trace(struct event_view *v)
{
    event_list_set(&v->list, NULL);
    flame_source_free(v->src);
    v->trace = v->m->trace;
    v->src = v->m->trace ? flame_source_new(v->m->trace, NULL) : NULL;
    free(v->fn);
    free(v->filter);
    free(v->name);
    v->fn = NULL;
    v->filter = v->name = NULL;
    v->kinds = ALL_KINDS;
    v->marks = 0;
    restart_at_cursor(v);
}

static void *create(struct model *m)
{
    struct event_view *v = xcalloc(1, sizeof *v);
    v->m = m;
    v->follow = true;
    v->export = trace_export_new(m, "spans");
    v->source = source_edit_new(m);
    new_trace(v);
    return v;
}

static void destroy(void *view)
{
    struct event_view *v = view;
    trace_export_free(v->export);
    source_edit_free(v->source);
    event_list_free(&v->list);
    flame_source_free(v->src);
    free(v->filter);
    free(v->name);
    free(v->fn);
    free(v);
}

static uint8_t *functions_named(const struct model *m, const char *name)
{
    size_t n = functions_count(trace_functions(m->trace));
    uint8_t *set = xcalloc(n / 8 + 1, 1);
    const char *form;
    for (fn_id fn = 0; fn < n; fn++)
        for (int i = 0; (form = function_names_form(m->names, fn, i)); i++)
            if (strcasestr(form, name))
                set[fn / 8] |= (uint8_t)(1u << fn % 8);
    return set;
}

static bool same_event(const struct event *a, const struct event *b)
{
    fn_id fa = a->span ? a->span->fn : FN_NONE, fb = b->span ? b->span->fn : FN_NONE;
    return a->kind == b->kind && a->time_ns == b->time_ns && fa == fb;
}

/* More of the same trace: the rows stay where they are, with new ones in between only where decoding had
 * not come to. */
static void grow(struct event_view *v)
{
    const struct event *first = v->list.rows.len ? &v->list.rows.data[0] : NULL;
    const struct event *here = event_list_chosen(&v->list);
    const struct span none = {.fn = FN_NONE}, span = here && here->span ? *here->span : none;
    struct event chosen = here ? *here : (struct event){0};
    uint64_t from_ns = first ? first->time_ns : v->m->cursor_ns;
    size_t row = v->list.chosen;
    struct flame_source *old = v->src;
    chosen.span = here && here->span ? &span : NULL;
    v->trace = v->m->trace;
    v->src = flame_source_new(v->m->trace, NULL);
    free(v->fn);
    v->fn = v->name ? functions_named(v->m, v->name) : NULL;
    restart(v, from_ns);
    flame_source_free(old);
    if (!first)
        return;
    event_list_stand(&v->list, from_ns, v->rows ? v->rows : 20);
    v->list.chosen = row < v->list.rows.len ? row : 0;
    for (size_t i = 0; i < v->list.rows.len; i++)
        if (same_event(&v->list.rows.data[i], &chosen)) {
            v->list.chosen = i;
            break;
        }
}

static void changed(void *view, enum model_change what)
{
    struct event_view *v = view;
    if (what == MODEL_TRACE) {
        trace_export_finish(v->export);
        new_trace(v);
    } else if (what == MODEL_TRACE_GREW) {
        trace_export_finish(v->export);
        if (v->trace && v->m->trace)
            grow(v);
        else
            new_trace(v);
    } else if (what == MODEL_CURSOR && v->follow && !v->moving && v->trace &&
             v->trace == v->m->trace) /* else the news of another trace is still on its way */
        restart_at_cursor(v);
}

/* ---- Filter: "kind=call,gap", "tid=4713", "tid=all", "name=TEXT", else part of a function's name ---- */

struct event_filter {
    unsigned kinds, marks;
    bool all;
    pid_t tid; /* 0: as it was */
    char *name;
};

/* Also the kinds of marks, by their own names. */
static int parse_kinds(const char *list, struct event_filter *f, struct err *err)
{
    char *copy = xstrdup(list), *save = NULL;
    int rc = 0;
    f->kinds = f->marks = 0;
    for (char *w = strtok_r(copy, ",", &save); w && rc == 0; w = strtok_r(NULL, ",", &save)) {
        int k = 0, m = 0;
        while (k < EVENT_KINDS && strcmp(w, event_kind_name((enum event_kind)k)) != 0)
            k++;
        while (k == EVENT_KINDS && m <= MARK_NOTE && strcmp(w, mark_kind_name((enum mark_kind)m)) != 0)
            m++;
        if (k == EVENT_MARK)
            f->marks = (1u << (MARK_NOTE + 1)) - 1;
        if (k < EVENT_KINDS)
            f->kinds |= 1u << k;
        else if (m <= MARK_NOTE)
            f->kinds |= 1u << EVENT_MARK, f->marks |= 1u << m;
        else
            rc = err_set(err, MTUI_E_INVAL,
                         "kinds are call ret gap mark trigger hit frequency ptwrite migration snapshot note, not %s",
                         w);
    }
    free(copy);
    return rc;
}

static int parse_tid(const struct event_view *v, const char *value, struct event_filter *f, struct err *err)
{
    uint64_t n;
    f->all = strcmp(value, "all") == 0;
    if (f->all)
        return 0;
    int rc = fmt_parse_u64(value, 1, INT32_MAX, &n, err);
    if (rc < 0)
        return rc;
    f->tid = (pid_t)n;
    return trace_find_thread(v->m->trace, f->tid) < 0
               ? err_set(err, MTUI_E_NOENT, "no thread %d in this trace", (int)f->tid)
               : 0;
}

static int parse_word(const struct event_view *v, const char *word, struct event_filter *f, struct err *err)
{
    struct filter_word w;
    const char *name = word;
    bool known = false;
    if (filter_word_split(word, &w)) {
        known = !strcmp(w.name, "kind") || !strcmp(w.name, "tid") || !strcmp(w.name, "name");
        if (known && !*w.value)
            return err_set(err, MTUI_E_INVAL, "%s what?", word);
        if (known && w.op != FILTER_EQUAL)
            return err_set(err, MTUI_E_INVAL, "%s takes = only", w.name);
        if (strcmp(w.name, "kind") == 0)
            return parse_kinds(w.value, f, err);
        if (strcmp(w.name, "tid") == 0)
            return parse_tid(v, w.value, f, err);
        if (!known && *w.name && *w.value && !function_names_occur(v->m->names, word))
            return err_set(err, MTUI_E_INVAL,
                           "%s is none of kind tid name; name=TEXT takes any text", w.name);
        name = known ? w.value : word;
    }
    char *joined = f->name ? xasprintf("%s %s", f->name, name) : xstrdup(name);
    free(f->name);
    f->name = joined;
    return 0;
}

static uint64_t here_ns(const struct event_view *v)
{
    const struct event *here = event_list_chosen(&v->list);
    return here ? here->time_ns : v->m->cursor_ns;
}

static int set_filter(struct event_view *v, const char *text, struct err *err)
{
    char *copy = xstrdup(text ? text : ""), *save = NULL;
    struct event_filter f = {.kinds = ALL_KINDS, .all = v->all_threads};
    int rc = 0;
    for (char *w = strtok_r(copy, " ", &save); w && rc == 0; w = strtok_r(NULL, " ", &save))
        rc = parse_word(v, w, &f, err);
    free(copy);
    if (rc == 0) {
        free(v->fn);
        free(v->filter);
        free(v->name);
        v->name = f.name;
        v->fn = f.name ? functions_named(v->m, f.name) : NULL;
        f.name = NULL;
        v->filter = text && *text ? xstrdup(text) : NULL;
        v->kinds = f.kinds;
        v->marks = f.marks;
        v->all_threads = f.tid ? false : f.all;
        uint64_t at = here_ns(v);
        v->moving = true;
        if (f.tid)
            model_set_cursor(v->m, f.tid, at);
        v->moving = false;
        restart(v, at);
    }
    free(f.name);
    return rc;
}

/* ---- Drawing ---- */

static const char *why_empty(const struct event_view *v)
{
    return !v->m->trace     ? "No trace is open: 4 says how to get one."
           : v->list.tired ? "Two million events here do not pass the filter."
                           : "No events.";
}

static void draw(void *view, struct surface *s, struct rect r)
{
    struct event_view *v = view;
    if (r.rows < 3)
        return;
    int pane = r.rows >= PANE_MIN_ROWS ? EVENT_PANE_ROWS : 0;
    size_t rows = (size_t)(r.rows - 2 - pane);
    if (rows != v->rows) {
        v->rows = rows;
        event_list_move(&v->list, 0, rows);
    }
    bar_draw_filter(s, (struct rect){r.row, r.col, 1, r.cols}, v->filter ? v->filter : "",
                    v->follow ? "   following the timeline's cursor" : "", "", v->m->glyphs);
    v->head = r.row + 2;
    if (v->list.rows.len == 0) {
        surface_text(s, v->head, r.col + 1, r.cols - 1, why_empty(v), SIZE_MAX,
                     (struct style){.ink = ROLE_DIM});
        return;
    }
    event_draw_rows(&v->list, v->trace, v->m->names, s, (struct rect){r.row + 1, r.col, (int)rows + 1, r.cols},
                    v->m->glyphs);
    if (pane)
        event_draw_pane(&v->list, v->trace, v->m->names, s,
                        (struct rect){r.row + r.rows - pane, r.col, pane, r.cols}, v->m->glyphs);
}

/* ---- Actions ---- */

/* The cursor that screens share goes where the chosen event is. */
static void share(struct event_view *v)
{
    const struct event *ev = event_list_chosen(&v->list);
    if (!ev || !v->follow)
        return;
    pid_t tid = ev->thread != SIZE_MAX ? trace_thread(v->m->trace, ev->thread)->tid : v->m->cursor_tid;
    v->moving = true;
    model_set_cursor_call(v->m, tid, ev->time_ns, ev->kind == EVENT_CALL ? ev->depth : SIZE_MAX);
    v->moving = false;
}

static bool move(struct event_view *v, long delta)
{
    event_list_move(&v->list, delta, v->rows);
    share(v);
    return true;
}

/* To the next event that is wanted, in the list's own filter. */
static bool seek_event(struct event_view *v, int delta, bool gap)
{
    const struct event *here = event_list_chosen(&v->list);
    if (!here)
        return true;
    const fn_id fn = here->span ? here->span->fn : FN_NONE;
    struct events *e = events_new(v->m->trace, v->src,
                                  (struct events_filter){.thread = v->tid ? (size_t)trace_find_thread(v->m->trace, v->tid) : EVENTS_ALL_THREADS,
                                                         .kinds = gap ? 1u << EVENT_GAP : 1u << EVENT_CALL});
    struct event ev;
    bool found = false;
    events_seek(e, delta > 0 ? here->time_ns + 1 : here->time_ns);
    for (int tries = 0; tries < 3000000 && !found; tries++) {
        if (!(delta > 0 ? events_next(e, &ev) : events_prev(e, &ev)))
            break;
        found = gap || (ev.span && ev.span->fn == fn);
    }
    events_free(e);
    if (found) {
        event_list_goto(&v->list, ev.time_ns, v->rows);
        /* Of the events of that instant, the very one. */
        for (size_t i = v->list.chosen; i < v->list.rows.len; i++)
            if (v->list.rows.data[i].kind == ev.kind && v->list.rows.data[i].span == ev.span &&
                v->list.rows.data[i].gap == ev.gap) {
                v->list.chosen = i;
                break;
            }
        share(v);
    } else {
        model_say(v->m, "no %s %s here", delta > 0 ? "further" : "earlier",
                  gap ? "gap" : "call of this function");
    }
    return true;
}

static bool go_to(struct event_view *v, const char *arg)
{
    struct err err;
    uint64_t n;
    const struct trace_info *info = trace_info(v->m->trace);
    if (!arg || !*arg)
        model_error(v->m, "goto needs a time: goto %s", ruler_example(info->instructions));
    else if (fmt_parse_u64(arg + (*arg == '+'), 0, UINT64_MAX, &n, NULL) &&
             ruler_parse(arg + (*arg == '+'), info->instructions, &n, &err))
        model_error(v->m, "%s", err.text);
    else
        event_list_goto(&v->list, n >= info->first_ns && n <= info->last_ns && *arg != '+' ? n : info->first_ns + n,
                        v->rows);
    share(v);
    return true;
}

static bool open_here(struct event_view *v)
{
    const struct event *ev = event_list_chosen(&v->list);
    if (!ev)
        return true;
    pid_t tid = ev->thread != SIZE_MAX ? trace_thread(v->m->trace, ev->thread)->tid : v->m->cursor_tid;
    v->moving = true;
    if (ev->span)
        model_set_cursor_call(v->m, tid, ev->span->start_ns, ev->depth);
    else
        model_set_cursor(v->m, tid, ev->time_ns);
    v->moving = false;
    model_go(v->m, "timeline");
    return true;
}

/* The call that the chosen event belongs to; of gaps and marks none. */
static struct model_subject subject_of(const struct event_view *v)
{
    const struct event *ev = event_list_chosen(&v->list);
    if (!ev || !ev->span)
        return (struct model_subject){0};
    return (struct model_subject){.valid = true,
                                  .call = true,
                                  .fn = ev->span->fn,
                                  .thread = ev->thread,
                                  .depth = ev->depth,
                                  .index = ev->index};
}

static bool copy(struct event_view *v)
{
    const struct event *ev = event_list_chosen(&v->list);
    if (ev && ev->span)
        model_copy(v->m, function_names_in_module(v->m->names, ev->span->fn));
    else
        model_say(v->m, "no function to copy here");
    return true;
}

/* A search leaves its matches alone: the next one is the next row. */
static bool next_match(struct event_view *v, int delta)
{
    if (v->filter)
        return move(v, delta);
    model_say(v->m, "no search: / leaves the events that you name, n goes to the next of them");
    return true;
}

static bool cancel(struct event_view *v)
{
    if (!v->filter)
        return false;
    set_filter(v, NULL, NULL);
    return true;
}

static bool act(struct event_view *v, enum action action, const char *arg)
{
    struct err err;
    long page = v->rows > 1 ? (long)v->rows - 1 : 1;
    const struct trace_info *info = trace_info(v->m->trace);
    switch ((int)action) {
    case ACT_UP:
        return move(v, -1);
    case ACT_DOWN:
        return move(v, 1);
    case ACT_PAGE_UP:
        return move(v, -page);
    case ACT_PAGE_DOWN:
        return move(v, page);
    case ACT_HALF_UP:
        return move(v, -page / 2);
    case ACT_HALF_DOWN:
        return move(v, page / 2);
    case ACT_FIRST:
    case ACT_LAST:
        event_list_goto(&v->list, action == ACT_FIRST ? info->first_ns : info->last_ns + 1, v->rows);
        share(v);
        return true;
    case ACT_FOLLOW:
        v->follow = !v->follow;
        if (v->follow)
            restart_at_cursor(v);
        return true;
    case ACT_OPEN:
        return open_here(v);
    case ACT_CALL_PREV:
    case ACT_CALL_NEXT:
        return seek_event(v, action == ACT_CALL_NEXT ? 1 : -1, false);
    case ACT_GAP_PREV:
    case ACT_GAP_NEXT:
        return seek_event(v, action == ACT_GAP_NEXT ? 1 : -1, true);
    case ACT_FILTER:
    case ACT_SEARCH:
        if (set_filter(v, arg, &err))
            model_error(v->m, "%s", err.text);
        return true;
    case ACT_SEARCH_NEXT:
    case ACT_SEARCH_PREV:
        return next_match(v, action == ACT_SEARCH_NEXT ? 1 : -1);
    case ACT_THREADS:
    case ACT_OPTIONS:
        v->all_threads = !v->all_threads;
        restart(v, here_ns(v));
        return true;
    case ACT_GOTO:
        return go_to(v, arg);
    case ACT_COMPARE:
    case ACT_CALLS:
        if (subject_of(v).valid)
            model_name_subject(v->m, subject_of(v)); /* the screens that answer come next */
        return false;
    case ACT_SOURCE:
        source_edit_subject(v->source, v->trace, subject_of(v), arg);
        return true;
    case ACT_COPY:
        return copy(v);
    case ACT_EXPORT:
        trace_export_action(v->export, arg);
        return true;
    case ACT_CANCEL:
        return cancel(v);
    default:
        return false;
    }
}

static bool action(void *view, enum action a, const char *arg)
{
    struct event_view *v = view;
    if (!v->m->trace || !act(v, a, arg))
        return false;
    model_redraw(v->m);
    return true;
}

static bool mouse(void *view, const struct mouse *m, struct rect r)
{
    struct event_view *v = view;
    (void)r;
    if (!v->m->trace)
        return false;
    model_redraw(v->m);
    if (m->kind == MOUSE_WHEEL_UP || m->kind == MOUSE_WHEEL_DOWN)
        return move(v, m->kind == MOUSE_WHEEL_UP ? -3 : 3);
    size_t row = m->row >= v->head ? (size_t)(m->row - v->head) : SIZE_MAX;
    if ((m->kind != MOUSE_DOWN && m->kind != MOUSE_DOUBLE) || row >= v->list.rows.len)
        return false;
    v->list.chosen = row;
    share(v);
    return m->kind == MOUSE_DOUBLE ? open_here(v) : true;
}

static void state(void *view, char *out, size_t size)
{
    struct event_view *v = view;
    if (!v->m->trace)
        return;
    if (v->tid)
        snprintf(out, size, "%s  tid %d", v->m->trace_label, (int)v->tid);
    else
        snprintf(out, size, "%s  all threads", v->m->trace_label);
}

static void status(void *view, char *out, size_t size)
{
    struct event_view *v = view;
    if (v->m->trace)
        snprintf(out, size, "Gaps and lost data are listed unless kind= leaves them out; o: all threads");
}

static const struct filter_help filter_help = {
    .brief = "TEXT of the function  kind=call,ret,gap,mark,trigger  tid=4713  tid=all  name=TEXT",
    .lines = {{"TEXT", "in the function's name"},
              {"kind=call,gap", "call ret gap mark"},
              {"kind=trigger", "of marks: also hit note snapshot"},
              {"tid=4713", "one thread; tid=all: every one"},
              {"name=TEXT", "TEXT that looks like the above"}},
};

const struct view_ops view_event = {
    .name = "events",
    .title = "Events",
    .contexts = {CTX_EVENTS, CTX_LIST, CTX_MOVE},
    .context_count = 3,
    .filter = &filter_help,
    .lacks = {ACT_MARK, ACT_SORT_PREV, ACT_SORT_NEXT, ACT_SORT_INVERT, ACT_SORT},
    .create = create,
    .destroy = destroy,
    .draw = draw,
    .action = action,
    .mouse = mouse,
    .changed = changed,
    .status = status,
    .state = state,
};

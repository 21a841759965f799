/* Actions of the Timeline screen that do not move the selection. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fmt.h"
#include "tui/timeline/ruler.h"
#include "tui/timeline/timeline.h"
#include "tui/trace/trace_export.h"

static bool zoom(struct timeline *tl, bool in)
{
    int col = viewport_col_of(&tl->view, tl->cursor_ns);
    /* A cursor that has left the screen gives way to the middle of it. */
    if (col < 0 || col >= tl->view.cols)
        col = tl->view.cols / 2;
    if (in && !viewport_zoom_in(&tl->view, col))
        model_say(tl->m, "1 %s takes 8 columns: as near as it gets", tl_instructions(tl) ? "insn" : "ns");
    if (!in && !viewport_zoom_out(&tl->view, col))
        model_say(tl->m, "the whole trace is in view");
    return true;
}

/* An aggregate: its longest call to a third of the width; a span, or the one that is meant of an aggregate: all of it. */
static bool fit(struct timeline *tl)
{
    const struct span *s = selection_span(tl->src, &tl->sel);
    struct tl_aggregate a;
    if (!s)
        return true;
    if (!tl->sel_alone && tl_aggregate(tl, &a)) {
        struct selection sel = tl->sel;
        sel.index = a.longest;
        s = selection_span(tl->src, &sel);
        viewport_fit(&tl->view, s->start_ns, s->end_ns, 3);
        tl_select(tl, sel);
    } else {
        viewport_fit(&tl->view, s->start_ns, s->end_ns, 1);
    }
    return true;
}

static bool fit_range(struct timeline *tl)
{
    if (tl->m->range_end_ns > tl->m->range_start_ns)
        viewport_fit(&tl->view, tl->m->range_start_ns, tl->m->range_end_ns, 1);
    else
        model_say(tl->m, "no range: v starts one, v again ends it");
    return true;
}

/* ---- Times as typed ---- */

/* "5ms" and "+5ms" count from the start of the trace; a bare number is an absolute time of the
 * recording's clock, or, if the trace does not hold it, one from the start too; "a" is a mark. */
static int parse_time(const struct timeline *tl, const char *text, uint64_t *t_ns, struct err *err)
{
    uint64_t v;
    const char *s = *text == '+' ? text + 1 : text;
    if (text[0] >= 'a' && text[0] <= 'z' && !text[1] && (tl->marks_set >> (text[0] - 'a') & 1)) {
        *t_ns = tl->marks[text[0] - 'a'];
        return 0;
    }
    if (fmt_parse_u64(s, 0, UINT64_MAX, &v, NULL) == 0) {
        bool absolute = s == text && v >= tl->view.first_ns && v <= tl->view.last_ns;
        *t_ns = absolute ? v : tl->view.first_ns + v;
    } else if (ruler_parse(s, tl_instructions(tl), &v, err) == 0) {
        *t_ns = tl->view.first_ns + v;
    } else {
        return MTUI_E_INVAL;
    }
    if (*t_ns < tl->view.first_ns || *t_ns > tl->view.last_ns) {
        char a[FMT_MAX];
        return err_set(err, MTUI_E_INVAL, "%s lies outside of the trace, which is %s long", text,
                       tl_duration(tl, a, tl->view.last_ns - tl->view.first_ns));
    }
    return 0;
}

static bool go_to_time(struct timeline *tl, const char *arg)
{
    struct err err;
    uint64_t t;
    if (!arg || !*arg)
        model_error(tl->m, "goto needs a time: goto %s", ruler_example(tl_instructions(tl)));
    else if (parse_time(tl, arg, &t, &err))
        model_error(tl->m, "%s", err.text);
    else
        tl_goto(tl, t);
    return true;
}

void tl_set_range(struct timeline *tl, uint64_t a, uint64_t b)
{
    tl->ranging = false;
    if (a != b) {
        model_set_range(tl->m, a < b ? a : b, a < b ? b : a);
    } else {
        model_set_range(tl->m, 0, 0);
        model_say(tl->m, "A and B are the same time: no range is set");
    }
}

static bool range(struct timeline *tl, const char *arg)
{
    char from[64], to[64];
    int used = 0;
    struct err err;
    uint64_t a, b;
    if (arg && *arg) {
        if (sscanf(arg, " %63s %63s %n", from, to, &used) != 2 || arg[used])
            model_error(tl->m, "range needs two times: range %s %s", ruler_example(tl_instructions(tl)),
                        ruler_example_longer(tl_instructions(tl)));
        else if (parse_time(tl, from, &a, &err) || parse_time(tl, to, &b, &err))
            model_error(tl->m, "%s", err.text);
        else
            tl_set_range(tl, a, b);
        return true;
    }
    if (!tl->ranging) {
        tl->ranging = true;
        tl->range_from_ns = tl->cursor_ns;
        model_set_range(tl->m, 0, 0);
        model_say(tl->m, "range: move the cursor, v again ends it, Esc drops it");
    } else {
        tl_set_range(tl, tl->range_from_ns, tl->cursor_ns);
    }
    return true;
}

bool tl_end_range(struct timeline *tl)
{
    if (tl->ranging && tl->range_from_ns == tl->cursor_ns) {
        model_error(tl->m, "the range has no length yet: move the cursor, or drop it with Esc");
        return false;
    }
    if (tl->ranging)
        tl_set_range(tl, tl->range_from_ns, tl->cursor_ns);
    return true;
}

static void set_mark(struct timeline *tl, int i)
{
    char at[FMT_MAX], d[FMT_MAX];
    const uint64_t now = tl->cursor_ns;
    if (tl->last_mark >= 0 && tl->last_mark != i) {
        const uint64_t last = tl->marks[tl->last_mark];
        model_say(tl->m, "mark %c at %s, %s %s %c", 'a' + i, tl_time_exact(tl, at, now),
                  tl_duration(tl, d, now < last ? last - now : now - last), now < last ? "before" : "after",
                  'a' + tl->last_mark);
    } else {
        model_say(tl->m, "mark %c at %s", 'a' + i, tl_time_exact(tl, at, now));
    }
    tl->marks[i] = now;
    tl->marks_set |= 1u << i;
    tl->last_mark = i;
}

static bool mark(struct timeline *tl, enum action act, const char *arg)
{
    int i = arg && arg[0] >= 'a' && arg[0] <= 'z' && !arg[1] ? arg[0] - 'a' : -1;
    if (i < 0) {
        model_error(tl->m, "a mark is a letter from a to z");
    } else if (act == ACT_MARK_SET) {
        set_mark(tl, i);
    } else if (!(tl->marks_set >> i & 1)) {
        model_say(tl->m, "mark %c is not set", 'a' + i);
    } else {
        tl->last_mark = i;
        tl_goto(tl, tl->marks[i]);
    }
    return true;
}

/* ---- Looks ---- */

static const char *const color_names[] = {"function", "module", "kernel"};

static bool color_by(struct timeline *tl, const char *arg)
{
    int next = ((int)tl->color + 1) % 3;
    if (arg && *arg) {
        for (next = 0; next < 3 && strcmp(arg, color_names[next]) != 0; next++)
            ;
        if (next == 3) {
            model_error(tl->m, "color-by takes nothing, function, module or kernel");
            return true;
        }
    }
    tl->color = (enum tl_color)next;
    tl_forget_roles(tl);
    model_say(tl->m, "colour by %s", color_names[next]);
    return true;
}

static bool looks(struct timeline *tl, enum action act, const char *arg)
{
    switch ((int)act) {
    case ACT_COMPACT:
        tl->compact = !tl->compact;
        tl_layout(tl);
        tl_scroll_to_selection(tl);
        return true;
    case ACT_RECURSION:
        tl_set_fold(tl, !tl->fold);
        return true;
    case ACT_COLOR_BY:
        return color_by(tl, arg);
    case ACT_DETAILS:
        tl_step_details(tl);
        return true;
    case ACT_OPTIONS:
        model_say(tl->m, "c compact: %s   r recursion: %s   C colour by: %s   i details: %s",
                  tl->compact ? "on" : "off", tl->fold ? "folded" : "shown", color_names[tl->color],
                  tl->details ? "on" : "off");
        return true;
    default:
        return false;
    }
}

static bool window(struct timeline *tl, enum action act)
{
    int cols = tl->view.cols;
    switch ((int)act) {
    case ACT_ZOOM_IN:
    case ACT_ZOOM_OUT:
        return zoom(tl, act == ACT_ZOOM_IN);
    case ACT_PAN_LEFT:
    case ACT_PAN_RIGHT:
        viewport_pan(&tl->view, (act == ACT_PAN_LEFT ? -1 : 1) * (cols / 4 > 0 ? cols / 4 : 1));
        return true;
    case ACT_PAN_LEFT_PAGE:
    case ACT_PAN_RIGHT_PAGE:
        viewport_pan(&tl->view, act == ACT_PAN_LEFT_PAGE ? -cols : cols);
        return true;
    case ACT_ZOOM_FIT:
    case ACT_OPEN:
        return fit(tl);
    case ACT_ZOOM_RANGE:
        return fit_range(tl);
    case ACT_ZOOM_ALL:
        viewport_whole(&tl->view);
        return true;
    case ACT_VIEW_BACK:
    case ACT_VIEW_FORWARD:
        if (act == ACT_VIEW_BACK ? !viewport_back(&tl->view) : !viewport_forward(&tl->view))
            model_say(tl->m, act == ACT_VIEW_BACK ? "no earlier window" : "no later window");
        return true;
    default:
        return false;
    }
}

static bool cancel(struct timeline *tl)
{
    if (tl_fold_cancel(tl))
        return true;
    if (tl->ranging) {
        tl->ranging = false;
    } else if (tl->m->range_end_ns > tl->m->range_start_ns) {
        model_set_range(tl->m, 0, 0);
    } else if (tl->search) {
        tl_search_clear(tl);
    } else {
        return false;
    }
    return true;
}

static bool copy(struct timeline *tl)
{
    const struct span *s = selection_span(tl->src, &tl->sel);
    if (s) {
        const char *name = function_names_in_module(tl->m->names, s->fn);
        model_copy(tl->m, name);
        model_say(tl->m, "copied: %s", name);
    }
    return true;
}

bool tl_action(struct timeline *tl, enum action act, const char *arg)
{
    if (!tl->trace)
        return false;
    if (window(tl, act) || tl_move(tl, act) || looks(tl, act, arg) || tl_thread_action(tl, act, arg))
        return true;
    switch ((int)act) {
    case ACT_RANGE:
        return range(tl, arg);
    case ACT_MARK_SET:
    case ACT_MARK_GOTO:
        return mark(tl, act, arg);
    case ACT_GOTO:
        return go_to_time(tl, arg);
    case ACT_SEARCH:
        tl_search(tl, arg);
        return true;
    case ACT_SEARCH_NEXT:
    case ACT_SEARCH_PREV:
        tl_search_step(tl, act == ACT_SEARCH_NEXT ? 1 : -1);
        return true;
    case ACT_SEARCH_FUNCTION:
        tl_search_function(tl);
        return true;
    case ACT_CALL_NEXT:
    case ACT_CALL_PREV:
        tl_call_step(tl, act == ACT_CALL_NEXT ? 1 : -1, false);
        return true;
    case ACT_CALL_NEXT_ANY:
    case ACT_CALL_PREV_ANY:
        tl_call_step(tl, act == ACT_CALL_NEXT_ANY ? 1 : -1, true);
        return true;
    case ACT_LONGEST_CALL:
        tl_longest_call(tl);
        return true;
    case ACT_COMPARE:
    case ACT_CALLS:
        tl_name_subject(tl); /* the screens that answer come next */
        return false;
    case ACT_INTERRUPT:
        return tl_fold_cancel(tl);
    case ACT_CANCEL:
        return cancel(tl);
    case ACT_COPY:
        return copy(tl);
    case ACT_EXPORT:
        trace_export_action(tl->export, arg);
        return true;
    case ACT_SOURCE:
        tl_edit_source(tl, arg);
        return true;
    default:
        return false;
    }
}

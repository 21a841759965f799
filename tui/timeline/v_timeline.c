#include "tui/timeline/v_timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/session/session.h"
#include "core/base/fmt.h"
#include "tui/term/glyph.h"
#include "tui/ui/settings.h"
#include "tui/term/theme.h"
#include "tui/timeline/timeline.h"
#include "tui/trace/trace_export.h"

static void news(void *arg)
{
    model_redraw(arg);
}

static void *create(struct model *m)
{
    struct timeline *tl = xcalloc(1, sizeof *tl);
    tl->m = m;
    tl->details = !m->settings || settings_bool(m->settings, SET_DETAILS);
    tl->stats = trace_stats_new(m->loop, news, m);
    tl->finder = source_finder_new(m->loop, news, m);
    tl->last_mark = -1;
    tl->export = trace_export_new(m, "json");
    tl->calls_fn = FN_NONE;
    tl_set_trace(tl);
    return tl;
}

static void destroy(void *view)
{
    struct timeline *tl = view;
    tl_merged_free(tl);
    tl_free_trace(tl);
    trace_stats_free(tl->stats);
    trace_export_free(tl->export);
    source_finder_free(tl->finder);
    vec_free(&tl->lines);
    free(tl);
}

/* ---- Without a trace ---- */

static void put_centered(struct surface *s, struct rect r, int row, const char *text, enum role ink)
{
    int len = (int)strlen(text);
    int col = len < r.cols ? r.col + (r.cols - len) / 2 : r.col;
    if (row >= r.row && row < r.row + r.rows)
        surface_text(s, row, col, r.cols, text, SIZE_MAX, (struct style){.ink = (uint16_t)ink});
}

static void draw_loading(struct timeline *tl, struct surface *s, struct rect r)
{
    const struct model_loading *l = &tl->m->loading;
    const struct glyphs *g = tl->m->glyphs;
    char text[200], far[FMT_MAX];
    const bool measured = !l->endless && !l->finishing;
    int middle = r.row + r.rows / 2, cols = r.cols < 44 ? r.cols - 4 : 40;
    model_loading_far(l, far);
    snprintf(text, sizeof text, "%s %s%s%s%s", l->finishing ? "finishing" : "decoding", l->what, far[0] ? "  " : "", far,
             far[0] && l->endless ? " read" : "");
    put_centered(s, r, middle - 1, text, ROLE_DEFAULT);
    for (int i = 0; measured && i < cols; i++)
        surface_put(s, middle, r.col + (r.cols - cols) / 2 + i,
                    glyph(g, i * 100 < cols * (int)l->percent ? GLYPH_PROGRESS : GLYPH_PROGRESS_LEFT),
                    (struct style){.ink = ROLE_OK});
    if (l->cancel)
        put_centered(s, r, middle + 1, l->stopping ? "stopping" : "^C stops", ROLE_DIM);
}

static void draw_nothing(struct timeline *tl, struct surface *s, struct rect r)
{
    int row = r.row + r.rows / 2 - 2;
    if (tl->m->loading.active) {
        draw_loading(tl, s, r);
        return;
    }
    if (tl->m->loading.failed[0]) {
        put_centered(s, r, row, tl->m->loading.failed, ROLE_ERROR);
        row++;
    } else {
        put_centered(s, r, row, "No trace is open.", ROLE_DEFAULT);
    }
    if (tl->m->session && session_snapshot_count(tl->m->session) > 0) {
        put_centered(s, r, row + 2, "Snapshots are kept: 3 shows them, Enter on one opens it here", ROLE_DEFAULT);
        return;
    }
    put_centered(s, r, row + 2, "Record one: 1 choose a process, 2 a function, 3 start", ROLE_DIM);
    put_centered(s, r, row + 3, "or open a recording:  :open PATH", ROLE_DIM);
}

/* ---- Drawing ---- */

static void draw(void *view, struct surface *s, struct rect r)
{
    struct timeline *tl = view;
    tl->at = (struct tl_places){0};
    if (r.rows <= 0 || r.cols <= 0)
        return;
    if (!tl->trace) {
        draw_nothing(tl, s, r);
        return;
    }
    if (tl_merged_shown(tl)) {
        tl_merged_draw(tl, s, r);
        return;
    }
    if (tl->view.cols != r.cols)
        viewport_set_cols(&tl->view, r.cols);
    tl->at.body = r.rows;
    int head = tl_head_rows(r), detail = tl_detail_rows(tl, r);
    tl->at.rows = (struct rect){r.row + head, r.col, r.rows - head - detail, r.cols};
    tl->at.visible = tl->at.rows.rows;
    if (tl->at.visible != tl->last_visible)
        tl_scroll_to_selection(tl);
    tl->last_visible = tl->at.visible;
    tl_draw_head(tl, s, r);
    tl_draw_rows(tl, s, tl->at.rows);
    if (tl_is_folding(tl)) /* its progress is on the screen */
        model_redraw(tl->m);
    if (detail > 0)
        tl_draw_detail(tl, s, (struct rect){r.row + r.rows - detail, r.col, detail, r.cols});
}

/* ---- The rest of a view ---- */

/* What is done with the range that the details show, also while it is open. */
static bool takes_range(enum action action)
{
    return action == ACT_EXPORT || action == ACT_MERGED || action == ACT_CALLS || action == ACT_ZOOM_RANGE;
}

static bool act(void *view, enum action action, const char *arg)
{
    struct timeline *tl = view;
    if (!tl->trace) {
        return (action == ACT_INTERRUPT || action == ACT_CANCEL) && model_stop_loading(tl->m);
    }
    tl_find_finish(tl);
    bool used = (takes_range(action) && !tl_end_range(tl)) || tl_merged_action(tl, action, arg) ||
                (!tl_merged_shown(tl) && tl_action(tl, action, arg));
    tl->touched |= used;
    if (!used && action == ACT_CANCEL && model_is_growing(tl->m))
        used = model_stop_loading(tl->m);
    if (used)
        model_redraw(tl->m);
    return used;
}

static bool mouse(void *view, const struct mouse *m, struct rect r)
{
    struct timeline *tl = view;
    tl_find_finish(tl);
    bool used = tl_merged_shown(tl) ? tl_merged_mouse(tl, m, r) : tl_mouse(tl, m);
    tl->touched |= used;
    if (used)
        model_redraw(tl->m);
    return used;
}

/* Another screen points at a time, perhaps at the call of a certain depth. */
static void follow_cursor(struct timeline *tl)
{
    struct model *m = tl->m;
    ssize_t thread = trace_find_thread(tl->trace, m->cursor_tid);
    bool same_thread = tl->sel.valid && tl->sel.thread == (size_t)thread;
    if (thread < 0 || (m->cursor_ns == tl->cursor_ns && same_thread &&
                       (m->cursor_depth == SIZE_MAX || m->cursor_depth == tl->sel.depth)))
        return;
    struct selection best = {0};
    size_t depths = trace_thread(tl->trace, (size_t)thread)->depths;
    uint64_t at = m->cursor_ns;
    bool known = m->cursor_depth < depths && !tl->folded; /* folded rows have other depths */
    if (known ? !selection_at(tl->src, (size_t)thread, m->cursor_depth, at, &best)
              : !selection_innermost(tl->src, (size_t)thread, depths, at, &best))
        return;
    const struct span *s = selection_span(tl->src, &best);
    int cols = viewport_col_of(&tl->view, s->end_ns) - viewport_col_of(&tl->view, s->start_ns);
    tl->cursor_ns = at;
    if (cols < 3)
        viewport_fit(&tl->view, s->start_ns, s->end_ns, 3);
    if (known)
        tl_select_call(tl, best);
    else
        tl_select(tl, best);
}

static void changed(void *view, enum model_change what)
{
    struct timeline *tl = view;
    tl_merged_changed(tl, what);
    if (what == MODEL_TRACE) {
        trace_export_finish(tl->export);
        tl_set_trace(tl);
    } else if (what == MODEL_TRACE_GREW) {
        trace_export_finish(tl->export);
        tl_grow_trace(tl);
    } else if (what == MODEL_SETTINGS && tl->trace)
        tl_forget_roles(tl);
    else if (what == MODEL_CURSOR && tl->trace)
        follow_cursor(tl);
}

static void status(void *view, char *out, size_t size)
{
    struct timeline *tl = view;
    char a[FMT_MAX], b[FMT_MAX], c[FMT_MAX], d[FMT_MAX], mark[80] = "", way[40] = "";
    if (!tl->trace)
        return;
    if (tl_merged_shown(tl)) {
        tl_merged_status(tl, out, size);
        return;
    }
    uint64_t col = viewport_col_ns(&tl->view);
    if (tl->last_mark >= 0)
        snprintf(mark, sizeof mark, "   mark %c %s", 'a' + tl->last_mark,
                 tl_time(tl, d, tl->marks[tl->last_mark]));
    if (tl->view.back.len)
        snprintf(way, sizeof way, "   [history %zu]", tl->view.back.len);
    snprintf(out, size, "%s across   %s/col   cursor %s%s   zoom level %d%s",
             tl_duration(tl, a, viewport_length_ns(&tl->view)),
             tl->view.place.col_fp < ((flame_u128)1 << FLAME_FRACTION_BITS) ? tl_instructions(tl) ? "< 1 insn" : "< 1 ns"
                                                                           : tl_duration(tl, b, col),
             tl_time(tl, c, tl->cursor_ns), mark, viewport_zoom_level(&tl->view), way);
}

static void state(void *view, char *out, size_t size)
{
    struct timeline *tl = view;
    char d[FMT_MAX];
    if (!tl->trace) {
        if (tl->m->loading.active)
            model_loading_short(tl->m, out, size);
        return;
    }
    if (tl_merged_shown(tl)) {
        tl_merged_state(tl, out, size);
        return;
    }
    const struct trace_info *info = trace_info(tl->trace);
    /* What matters most comes first: the tab row cuts at the right. */
    if (tl_is_folding(tl)) {
        snprintf(out, size, "folding %u %%, ^C stops", tl_fold_percent(tl));
        return;
    }
    tl_duration(tl, d, info->last_ns - info->first_ns);
    if (model_is_growing(tl->m)) {
        model_loading_short(tl->m, d, sizeof d);
        snprintf(out, size, "%s%s  %s", info->sampled ? "SAMPLED " : "", d, tl->m->trace_label);
    } else if (info->sampled || info->partial)
        snprintf(out, size, "%s%s%s  %s", info->sampled ? "SAMPLED " : "",
                 info->partial ? "PARTIAL " : "", tl->m->trace_label, d);
    else
        snprintf(out, size, "%s  %s", tl->m->trace_label, d);
}

/* "trace": one is open, all of it; "part": some of it. "selection NAME": the selected function. "merged": the
 * merged flame graph is shown. */
static int condition(void *view, const char *name, const char *arg)
{
    struct timeline *tl = view;
    if (strcmp(name, "trace") == 0)
        return tl->trace != NULL && !model_is_growing(tl->m);
    if (strcmp(name, "part") == 0)
        return tl->trace != NULL;
    if (strcmp(name, "merged") == 0)
        return tl_merged_condition(tl, NULL);
    if (strcmp(name, "selection") == 0 && tl_merged_shown(tl))
        return tl_merged_condition(tl, arg);
    if (strcmp(name, "selection") == 0) {
        const struct span *s = tl->trace ? selection_span(tl->src, &tl->sel) : NULL;
        return s && strcmp(functions_get(trace_functions(tl->trace), s->fn)->name, arg) == 0;
    }
    return -1;
}

static const struct filter_help filter_help = {
    .brief = "TEXT in the name or id of a thread or process; others are hidden",
    .lines = {{"TEXT", "in name or id of thread, process"}},
};

const struct view_ops view_timeline = {
    .name = "timeline",
    .title = "Timeline",
    .contexts = {CTX_TIMELINE},
    .context_count = 1,
    .filter = &filter_help,
    .create = create,
    .destroy = destroy,
    .draw = draw,
    .action = act,
    .mouse = mouse,
    .changed = changed,
    .status = status,
    .state = state,
    .condition = condition,
};

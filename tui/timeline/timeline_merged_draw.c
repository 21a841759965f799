/* What the merged flame graph shows: stacks, where a timeline shows calls. */
#include <stdio.h>
#include <string.h>

#include "core/base/fmt.h"
#include "tui/ui/bar.h"
#include "tui/ui/line.h"
#include "tui/term/glyph.h"
#include "tui/timeline/ruler.h"
#include "tui/timeline/timeline_merged.h"
#include "tui/timeline/v_timeline.h"

static void put_centered(struct surface *s, struct rect r, int row, const char *text, enum role ink)
{
    int len = (int)strlen(text);
    if (row >= r.row && row < r.row + r.rows)
        surface_text(s, row, len < r.cols ? r.col + (r.cols - len) / 2 : r.col, r.cols, text, SIZE_MAX,
                     (struct style){.ink = (uint16_t)ink});
}

static void draw_progress(struct tl_merged *g, struct surface *s, struct rect r)
{
    char text[100];
    uint64_t done = atomic_load_explicit(&g->done, memory_order_relaxed);
    unsigned percent = g->spans ? (unsigned)((done < g->spans ? done : g->spans) * 100 / g->spans) : 0;
    snprintf(text, sizeof text, "merging the calls of equal stacks  %u %%", percent);
    put_centered(s, r, r.row + r.rows / 2, text, ROLE_DEFAULT);
    put_centered(s, r, r.row + r.rows / 2 + 1, "^C stops", ROLE_DIM);
    model_redraw(g->m);
}

void tl_merged_draw(struct timeline *tl, struct surface *s, struct rect r)
{
    struct tl_merged *g = tl->merged;
    if (g->busy)
        draw_progress(g, s, r);
    else if (!g->tl->trace || trace_thread_count(g->tl->trace) == 0)
        put_centered(s, r, r.row + r.rows / 2, "No calls in here.", ROLE_DIM);
    else
        view_timeline.draw(g->tl, s, r);
}

/* "all threads" or "4713 worker-0". */
static void scope_text(const struct tl_merged *g, char *out, size_t size)
{
    if (g->scope.thread < 0) {
        snprintf(out, size, "all threads");
        return;
    }
    const struct trace_thread *th = trace_thread(g->of->m->trace, (size_t)g->scope.thread);
    snprintf(out, size, "%d %s", (int)th->tid, th->comm);
}

void tl_merged_header(const struct timeline *tl, char *out, size_t size, int cols)
{
    const struct tl_merged *g = tl->inside;
    const struct trace_thread *th = trace_thread(tl->trace, 0);
    char of[120], scope[100], stacks[FMT_MAX + 16], all[FMT_MAX + 16], n[FMT_MAX];
    scope_text(g, scope, sizeof scope);
    snprintf(of, sizeof of, "merged: %s", scope);
    snprintf(stacks, sizeof stacks, "%s stack%s", fmt_count(n, th->spans), th->spans == 1 ? "" : "s");
    snprintf(all, sizeof all, "%s in all", tl_duration(tl, n, th->last_ns - th->first_ns));
    const struct line_fact facts[] = {{of, 0},
                                      {g->scope.to_ns ? "range A-B" : "", 0},
                                      {g->scope.to_ns ? "" : "whole trace", 3},
                                      {stacks, 2},
                                      {all, 1},
                                      {g->scope.fold ? "recursion folded" : "", 0},
                                      {tl->threads[0].collapsed ? "(collapsed)" : "", 1}};
    line_join(out, size, cols, "   ", facts, sizeof facts / sizeof *facts);
}

void tl_merged_status(struct timeline *tl, char *out, size_t size)
{
    struct tl_merged *g = tl->merged;
    char a[FMT_MAX], b[FMT_MAX], share[FMT_MAX];
    if (g->busy || !g->tl->trace)
        return;
    const struct timeline *in = g->tl;
    const uint64_t all = in->view.last_ns - in->view.first_ns, across = viewport_length_ns(&in->view);
    snprintf(out, size, "%s across (%s %%)   %s/col   by width, not time   F: back",
             tl_duration(in, a, across), fmt_percent(share, across, all),
             tl_duration(in, b, viewport_col_ns(&in->view)));
}

void tl_merged_state(struct timeline *tl, char *out, size_t size)
{
    struct tl_merged *g = tl->merged;
    const char *range = g->scope.to_ns ? "  A-B" : "";
    snprintf(out, size, "%smerged  %s%s", trace_info(tl->trace)->sampled ? "SAMPLED " : "",
             tl->m->trace_label, range);
}

/* ---- Details ---- */

static void put(struct surface *s, struct rect *r, const char *text, enum role ink, const struct glyphs *g)
{
    if (r->rows-- > 0)
        line_draw(s, r->row++, r->col + 1, r->cols - 1, text, (struct style){.ink = (uint16_t)ink}, g);
}

/* A sum of time or instructions; where room is short, of instructions the number alone, rounded. */
static const char *figure(const struct timeline *tl, char *out, uint64_t n, bool brief)
{
    return brief ? ruler_duration_short(out, n, tl_instructions(tl)) : tl_duration(tl, out, n);
}

static void put_figures(struct timeline *tl, struct surface *s, struct rect *r,
                        const struct merged_node *n)
{
    char total[FMT_MAX], self[FMT_MAX], calls[FMT_MAX], mean[FMT_MAX], text[400];
    char of_all[FMT_MAX], of_total[FMT_MAX];
    const struct trace_thread *th = trace_thread(tl->trace, 0);
    bool brief = r->cols < 96;
    const char *about = trace_info(tl->trace)->sampled ? "~" : "", *between = brief ? "  " : "   ";
    snprintf(text, sizeof text,
             "total %s%s%s (%s %%%s)%sself %s%s (%s %%)%s%s%s call%s%s%s%s each", about,
             figure(tl, total, n->total_ns, brief), brief && tl_instructions(tl) ? " insn" : "",
             fmt_percent(of_all, n->total_ns, th->last_ns - th->first_ns), brief ? "" : " of all", between, about,
             figure(tl, self, n->self_ns, brief), fmt_percent(of_total, n->self_ns, n->total_ns), between, about,
             fmt_count(calls, n->calls), n->calls == 1 ? "" : "s", between, about,
             figure(tl, mean, n->total_ns / n->calls, brief));
    put(s, r, text, ROLE_DEFAULT, tl->m->glyphs);
}

static void put_longest(struct timeline *tl, struct surface *s, struct rect *r,
                        const struct merged_node *n)
{
    const struct tl_merged *g = tl->inside;
    char d[FMT_MAX], at[FMT_MAX], text[300];
    const struct trace *t = g->of->m->trace;
    snprintf(text, sizeof text, "longest call %s at %s, tid %d: F goes there",
             tl_duration(tl, d, n->longest->end_ns - n->longest->start_ns),
             ruler_time(at, (int64_t)(n->longest->start_ns - trace_info(t)->first_ns), 1, tl_instructions(tl)),
             (int)trace_thread(t, n->thread)->tid);
    put(s, r, text, ROLE_DEFAULT, tl->m->glyphs);
}

/* A range on this axis is a width; else the way from a mark, else what stands in the selection's column. */
static void put_range(struct timeline *tl, struct surface *s, struct rect *r)
{
    char d[FMT_MAX], n[FMT_MAX], share[FMT_MAX], text[400], width[2 * FMT_MAX + 40], stacks[FMT_MAX + 16];
    uint64_t from, to;
    struct tl_aggregate a;
    const struct trace_thread *th = trace_thread(tl->trace, 0);
    if (tl_range(tl, &from, &to)) {
        snprintf(width, sizeof width, "width %s (%s %% of all)", tl_duration(tl, d, to - from),
                 fmt_percent(share, to - from, th->last_ns - th->first_ns));
        uint64_t count = tl_range_spans(tl, from, to);
        snprintf(stacks, sizeof stacks, "%s stack%s", fmt_count(n, count), count == 1 ? "" : "s");
        struct line_fact facts[] = {{"A-B", 0}, {width, 0}, {stacks, 1}};
        line_join(text, sizeof text, r->cols - 1, "  ", facts, 3);
    } else if (!tl_mark_text(tl, text, sizeof text)) {
        if (!tl_aggregate(tl, &a))
            return;
        snprintf(text, sizeof text, "in this column: %s stack%s; Enter zooms to the widest",
                 fmt_count(n, a.calls + a.waits), a.calls + a.waits == 1 ? "" : "s");
    }
    put(s, r, text, ROLE_DEFAULT, tl->m->glyphs);
}

void tl_merged_detail(struct timeline *tl, struct surface *s, struct rect r)
{
    const struct span *span = selection_span(tl->src, &tl->sel);
    char title[512], right[40], name[256], text[1024];
    if (!span) {
        bar_draw_rule(s, r.row, r.col, r.cols, "nothing selected", "", tl->m->glyphs);
        return;
    }
    const struct merged_node node = merged_node(tl->inside->merged, tl->sel.depth, tl->sel.index);
    function_names_fit_in_module(tl->m->names, span->fn, name, sizeof name, r.cols > 50 ? r.cols - 40 : 10, tl->m->glyphs);
    snprintf(title, sizeof title, "%s   %s", name, function_names_module(tl->m->names, span->fn));
    snprintf(right, sizeof right, "depth %zu", tl->sel.depth);
    bar_draw_rule(s, r.row, r.col, r.cols, title, right, tl->m->glyphs);
    r.row++;
    r.rows--;
    put_figures(tl, s, &r, &node);
    tl_stack_text(tl, text, sizeof text, r.cols);
    put(s, &r, text, ROLE_DEFAULT, tl->m->glyphs);
    put_longest(tl, s, &r, &node);
    put(s, &r,
        trace_info(tl->trace)->sampled
            ? "Width is estimated time; folded weighs samples.  t: thread  r: recursion"
            : "Gaps are left out; the order is by width, not by time.  t: thread  r: recursion",
        ROLE_DIM, tl->m->glyphs);
    put_range(tl, s, &r);
}

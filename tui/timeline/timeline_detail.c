/* The details pane: the selected span, its function, the range A–B, the search. */
#include <stdio.h>
#include <string.h>

#include "core/base/fmt.h"
#include "tui/ui/bar.h"
#include "tui/ui/line.h"
#include "tui/term/glyph.h"
#include "tui/ui/name.h"
#include "tui/ui/stack_line.h"
#include "tui/timeline/timeline.h"

#define DETAIL_ROWS 6 /* the title and five lines */

#define RANGE_COLS 132 /* of which a range with exact ends and its totals fit on one line */

/* What is kept below the notes for the range, or the way from a mark. */
static int range_rows(const struct timeline *tl, int cols)
{
    uint64_t from, to;
    return tl_range(tl, &from, &to) ? (cols < RANGE_COLS ? 2 : 1) : tl->last_mark >= 0 ? 1 : 0;
}

/* Folds away on low screens. The search has a row of its own while there is one. */
int tl_detail_rows(const struct timeline *tl, struct rect r)
{
    if (!tl->details || r.rows < 21)
        return 0;
    bool two_lines = !tl->inside && range_rows(tl, r.cols) > 1;
    return DETAIL_ROWS + (two_lines ? 1 : 0) + (tl->search ? 1 : 0) + tl_source_rows(tl, r.rows);
}

struct pane {
    struct timeline *tl;
    struct surface *s;
    struct rect r;
    int row;
};

static void put_line(struct pane *p, const char *text, enum role ink)
{
    if (p->row < p->r.row + p->r.rows)
        line_draw(p->s, p->row++, p->r.col + 1, p->r.cols - 1, text, (struct style){.ink = (uint16_t)ink},
                  p->tl->m->glyphs);
}

/* Spans of all rows below the selected one that lie in it. */
static uint64_t calls_below(struct timeline *tl, const struct span *s)
{
    uint64_t n = 0;
    size_t depths = trace_thread(tl->trace, tl->sel.thread)->depths;
    for (size_t d = tl->sel.depth + 1; tl->pyramid && d < depths; d++) {
        uint64_t row = pyramid_range(tl->pyramid, tl->sel.thread, d, s->start_ns, s->end_ns).count;
        if (row == 0)
            break;
        n += row;
    }
    return n;
}

static void draw_times(struct pane *p, const struct span *s)
{
    struct timeline *tl = p->tl;
    char start[FMT_MAX + 8], dur[FMT_MAX + 8], self_text[FMT_MAX + 8], kids[FMT_MAX + 16];
    char below[FMT_MAX + 16], self_share[2 * FMT_MAX + 16], n[FMT_MAX], text[512];
    uint64_t length = s->end_ns - s->start_ns;
    uint64_t in_children = selection_child_time(tl->src, tl->pyramid, &tl->sel);
    uint64_t self = length > in_children ? length - in_children : 0;
    size_t from, to;
    selection_children(tl->src, &tl->sel, &from, &to);
    /* ~ stands before what was not seen but inferred, or seen in samples only. */
    bool about = s->flags & (SPAN_INFERRED_START | SPAN_INFERRED_END | SPAN_SAMPLED);
    snprintf(start, sizeof start, "start %s", tl_time_exact(tl, n, s->start_ns));
    snprintf(dur, sizeof dur, "dur %s%s", about ? "~" : "", tl_duration(tl, n, length));
    snprintf(self_text, sizeof self_text, "self %s", tl_duration(tl, n, self));
    snprintf(self_share, sizeof self_share, "%s (%s %%)", self_text, fmt_percent(n, self, length));
    snprintf(kids, sizeof kids, "children %s", fmt_count(n, to - from));
    snprintf(below, sizeof below, "calls below %s", fmt_count(n, calls_below(tl, s)));
    struct line_fact facts[] = {{start, 0}, {dur, 1}, {self_share, 2}, {kids, 3}, {below, 4}};
    const char *between = p->r.cols >= 96 ? "   " : "  ";
    if (!line_join(text, sizeof text, p->r.cols - 1, between, facts, sizeof facts / sizeof *facts)) {
        facts[2].text = self_text;
        line_join(text, sizeof text, p->r.cols - 1, between, facts, sizeof facts / sizeof *facts);
    }
    put_line(p, text, ROLE_DEFAULT);
}

static size_t append(char *out, size_t size, size_t len, const char *text)
{
    size_t n = strlen(text);
    if (n >= size - len)
        n = size - len - 1;
    memcpy(out + len, text, n);
    out[len + n] = '\0';
    return len + n;
}

void tl_stack_text(struct timeline *tl, char *out, size_t size, int cols)
{
    fn_id calls[STACK_LINE_MAX];
    size_t n = 0;
    struct selection sel = tl->sel;
    do
        calls[n++] = selection_span(tl->src, &sel)->fn;
    while (n < STACK_LINE_MAX && selection_caller(tl->src, &sel));
    stack_line_write(out, size, tl->m->names, calls, n, tl->sel.depth + 1 == n, true, cols, tl->m->glyphs);
}

static void draw_stack(struct pane *p)
{
    char text[1024];
    tl_stack_text(p->tl, text, sizeof text, p->r.cols);
    put_line(p, text, ROLE_DEFAULT);
}

/* The selected span's function in the whole trace. */
static void draw_function(struct pane *p, const struct span *s)
{
    struct timeline *tl = p->tl;
    char n[FMT_MAX], total[FMT_MAX], min[FMT_MAX], p50[FMT_MAX], p99[FMT_MAX];
    char max[FMT_MAX], text[512];
    const struct stats *stats = trace_stats_get(tl->stats);
    const struct function_stats *f = stats ? stats_find(stats, s->fn) : NULL;
    if (!f) {
        put_line(p,
                 trace_stats_busy(tl->stats)  ? "this function: counting..."
                 : model_is_growing(tl->m) ? "this function: counted when decoding is done"
                                           : "",
                 ROLE_DIM);
        return;
    }
    const char *about = stats_estimated(stats) ? "~" : "";
    fmt_count(n, f->calls);
    tl_duration(tl, total, f->total_ns);
    tl_duration(tl, min, f->min_ns);
    tl_duration(tl, p50, f->p50_ns);
    tl_duration(tl, p99, f->p99_ns);
    tl_duration(tl, max, f->max_ns);
    int len = snprintf(text, sizeof text,
                       "this function: %s%s call%s  total %s  min %s  p50 %s  p99 %s  max %s", about,
                       n, f->calls == 1 ? "" : "s", total, min, p50, p99, max);
    if (len > p->r.cols - 1)
        snprintf(text, sizeof text, "all calls: %s%s  total %s  min %s  p50 %s  max %s", about, n,
                 total, min, p50, max);
    put_line(p, text, ROLE_DEFAULT);
}

/* Notes side by side; on a second line what does not fit, when the line of the range is not needed. */
static void put_notes(struct pane *p, const char *const *notes, size_t n)
{
    char text[512] = "";
    size_t len = 0;
    bool may_break = range_rows(p->tl, p->r.cols) == 0;
    for (size_t i = 0; i < n; i++) {
        if (len && may_break && len + 2 + strlen(notes[i]) > (size_t)p->r.cols - 2) {
            put_line(p, text, ROLE_WARN);
            len = 0;
            may_break = false;
        }
        len = append(text, sizeof text, len, len ? "  " : "");
        len = append(text, sizeof text, len, notes[i]);
    }
    if (len)
        put_line(p, text, ROLE_WARN);
}

/* What a call whose start was not seen ran before: a gap, if the thread did nothing between the two, or the
 * first that was seen of the thread. */
static const char *start_note(const struct timeline *tl, const struct span *s)
{
    const struct tl_thread *th = &tl->threads[tl->sel.thread];
    const struct gap *hard = flame_gaps_before(&th->hard, s->start_ns), *gap = flame_gaps_before(&th->soft, s->start_ns);
    struct flame_row outermost = flame_source_row(tl->src, tl->sel.thread, 0);
    size_t lo = 0, hi = outermost.n; /* the first that ends behind the start */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (outermost.spans[mid].end_ns <= s->start_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!gap || (hard && hard->end_ns > gap->end_ns))
        gap = hard;
    if (gap && (lo == 0 || outermost.spans[lo - 1].end_ns <= gap->end_ns))
        return "start inferred: began in the gap before, or ran before that.";
    return lo ? "start inferred: it ran before that." : "start inferred: ran before the trace.";
}

/* What the picture cannot say by itself. */
static void draw_notes(struct pane *p, const struct span *s)
{
    struct timeline *tl = p->tl;
    char text[512] = "", d[FMT_MAX], n[FMT_MAX], w[FMT_MAX], name[160];
    char calls[FMT_MAX + 32], off[FMT_MAX + 32] = "", part[FMT_MAX], share[FMT_MAX + 8], most[200 + FMT_MAX];
    struct tl_aggregate a;
    if (tl_aggregate(tl, &a)) {
        struct flame_row row = flame_source_row(tl->src, tl->sel.thread, tl->sel.depth);
        const struct span *longest = &row.spans[a.longest];
        function_names_fit(tl->m->names, longest->fn, name, sizeof name, p->r.cols > 84 ? p->r.cols - 64 : 20, tl->m->glyphs);
        snprintf(calls, sizeof calls, "in this column: %s call%s", fmt_count(n, a.calls), a.calls == 1 ? "" : "s");
        if (a.waits)
            snprintf(off, sizeof off, "%s time%s off the CPU", fmt_count(w, a.waits), a.waits == 1 ? "" : "s");
        snprintf(share, sizeof share, "%s %% busy", fmt_percent(part, a.busy_ns, a.to_ns - a.from_ns));
        snprintf(most, sizeof most, "longest %s %s", name, tl_duration(tl, d, longest->end_ns - longest->start_ns));
        const struct line_fact facts[] = {{calls, 0}, {off, 2}, {share, 1}, {most, 3},
                                          {tl->sel_alone ? "Enter fits this call" : "Enter zooms there", 4}};
        line_join(text, sizeof text, p->r.cols - 1, ", ", facts, sizeof facts / sizeof *facts);
        put_line(p, text, ROLE_WARN);
        return;
    }
    char edges[48 + FMT_MAX], end[300];
    const char *notes[6];
    size_t k = 0;
    if (s->flags & SPAN_OFF_CPU)
        notes[k++] = "not running: off the CPU.";
    if (s->flags & SPAN_SAMPLED) {
        tl_duration(tl, d, trace_info(tl->trace)->period_ns);
        snprintf(edges, sizeof edges, "sampled: edges are known to about %s.", d);
        notes[k++] = edges;
    }
    if (s->flags & SPAN_INFERRED_START)
        notes[k++] = start_note(tl, s);
    if (s->flags & SPAN_INFERRED_END) {
        const char *why = trace_note_at(tl->trace, trace_thread(tl->trace, tl->sel.thread)->tid, s->end_ns);
        snprintf(end, sizeof end, "end inferred: %.280s.", why ? why : "ran on after it");
        notes[k++] = end;
    }
    if (s->flags & SPAN_GAP_END)
        notes[k++] = "ended by a gap.";
    if (s->flags & SPAN_TAIL_CALL)
        notes[k++] = "tail call.";
    put_notes(p, notes, k);
}

/* The gap of the selected thread, or of all, that the cursor stands in: one that hides calls, or NULL. */
static const struct gap *gap_at_cursor(const struct timeline *tl)
{
    size_t thread = tl->sel.valid ? tl->sel.thread : 0;
    return thread < tl->nthreads ? flame_gaps_at(&tl->threads[thread].hard, tl->cursor_ns) : NULL;
}

/* Why nothing is known there, over all lines but that of the range. */
static void draw_gap(struct pane *p, const struct gap *gap)
{
    char d[FMT_MAX], text[1200];
    int rows = p->r.row + p->r.rows - p->row - range_rows(p->tl, p->r.cols);
    snprintf(text, sizeof text, "gap: %s, %s%s%.1000s", gap_cause_name(gap->cause),
             tl_duration(p->tl, d, gap->end_ns - gap->start_ns), gap->detail[0] ? ": " : "", gap->detail);
    line_wrap(p->s, (struct rect){p->row, p->r.col + 1, rows, p->r.cols - 2}, text,
              (struct style){.ink = ROLE_WARN}, p->tl->m->glyphs);
    p->row += rows;
}

bool tl_mark_text(const struct timeline *tl, char *out, size_t size)
{
    char a[FMT_MAX], d[FMT_MAX];
    if (tl->last_mark < 0)
        return false;
    uint64_t mark = tl->marks[tl->last_mark];
    bool before = tl->cursor_ns < mark;
    snprintf(out, size, "mark %c  %s   cursor %s%s", 'a' + tl->last_mark, tl_time_exact(tl, a, mark), before ? "-" : "+",
             tl_duration(tl, d, before ? mark - tl->cursor_ns : tl->cursor_ns - mark));
    return true;
}

bool tl_range(const struct timeline *tl, uint64_t *from, uint64_t *to)
{
    *from = tl->m->range_start_ns;
    *to = tl->m->range_end_ns;
    if (tl->ranging) {
        *from = tl->range_from_ns < tl->cursor_ns ? tl->range_from_ns : tl->cursor_ns;
        *to = tl->range_from_ns < tl->cursor_ns ? tl->cursor_ns : tl->range_from_ns;
    }
    return tl->ranging || *to > *from;
}

uint64_t tl_range_spans(struct timeline *tl, uint64_t from, uint64_t to)
{
    uint64_t spans = 0;
    size_t depths = trace_thread(tl->trace, tl->sel.thread)->depths;
    for (size_t depth = 0; tl->pyramid && depth < depths; depth++)
        spans += pyramid_range(tl->pyramid, tl->sel.thread, depth, from, to).count;
    return spans;
}

static size_t gaps_between(const struct tl_thread *th, uint64_t from, uint64_t to)
{
    size_t n = 0;
    for (int hard = 0; hard < 2; hard++) {
        const struct flame_gaps *g = hard ? &th->hard : &th->soft;
        for (size_t i = 0; i < g->n && g->gaps[i]->start_ns < to; i++)
            n += gap_touches(g->gaps[i], from, to);
    }
    return n;
}

/* Its exact ends and the totals of the selected thread in it, on one line or two. Where there is room for less, the
 * gaps stay: with one in it the totals are not all of it. */
static void draw_totals(struct pane *p, uint64_t from, uint64_t to)
{
    struct timeline *tl = p->tl;
    char a[FMT_MAX], b[FMT_MAX], d[FMT_MAX], n[FMT_MAX], w[FMT_MAX], text[512];
    char ends[2 * FMT_MAX + 8], delta[FMT_MAX + 8], calls[FMT_MAX + 32], part[FMT_MAX],
        share[FMT_MAX + 8], switches[FMT_MAX + 16] = "",
        gaps[32];
    const struct tl_busy busy = tl_busy(tl, tl->sel.thread, 0, from, to);
    snprintf(ends, sizeof ends, "A %s  B %s", tl_time_exact(tl, a, from), tl_time_exact(tl, b, to));
    snprintf(delta, sizeof delta, "delta %s", tl_duration(tl, d, to - from));
    const uint64_t spans = tl_range_spans(tl, from, to);
    snprintf(calls, sizeof calls, "thread %d: %s span%s", (int)trace_thread(tl->trace, tl->sel.thread)->tid,
             fmt_count(n, spans), spans == 1 ? "" : "s");
    snprintf(share, sizeof share, "busy %s %%", fmt_percent(part, busy.ns, to - from));
    if (tl_knows_switches(tl))
        snprintf(switches, sizeof switches, "switches %s", fmt_count(w, busy.switches));
    snprintf(gaps, sizeof gaps, "gaps %zu", gaps_between(&tl->threads[tl->sel.thread], from, to));
    struct line_fact facts[] = {{"A-B", 0},   {ends, 1},  {delta, 2},    {calls, 4},
                                {share, 3}, {switches, 5}, {gaps, 0}};
    size_t nfacts = sizeof facts / sizeof facts[0];
    if (!line_join(text, sizeof text, p->r.cols - 1, "  ", facts, nfacts) && p->row + 1 < p->r.row + p->r.rows) {
        struct line_fact above[] = {{"A-B", 0}, {ends, 0}, {delta, 0}};
        line_join(text, sizeof text, p->r.cols - 1, "  ", above, 3);
        put_line(p, text, ROLE_DEFAULT);
        struct line_fact below[] = {{"   ", 0}, {calls, 2}, {share, 1}, {switches, 3}, {gaps, 0}};
        line_join(text, sizeof text, p->r.cols - 1, "  ", below, 5);
    }
    put_line(p, text, ROLE_DEFAULT);
}

static void draw_range(struct pane *p)
{
    uint64_t from, to;
    char text[512];
    if (tl_range(p->tl, &from, &to))
        draw_totals(p, from, to);
    else if (tl_mark_text(p->tl, text, sizeof text))
        put_line(p, text, ROLE_DEFAULT);
}

static void draw_search(struct timeline *tl, struct surface *s, int row, struct rect r)
{
    char title[300], text[256], right[160], k[FMT_MAX], n[FMT_MAX];
    uint64_t rank;
    const struct span *here = selection_span(tl->src, &tl->sel);
    if (!search_complete(tl->search))
        snprintf(right, sizeof right, "counting %u %%", search_percent(tl->search));
    else if (here && search_has(tl->search, here->fn) && tl_match_rank(tl, &rank))
        snprintf(right, sizeof right, "match %s of %s", fmt_count(k, rank),
                 fmt_count(n, search_count(tl->search)));
    else
        snprintf(right, sizeof right, "%s match%s", fmt_count(n, search_count(tl->search)),
                 search_count(tl->search) == 1 ? "" : "es");
    const int taken = (int)strlen(right) + 10 + (int)strlen("Search //"); /* 10: what bar_draw_rule keeps around them */
    name_cut(text, sizeof text, search_text(tl->search), r.cols > taken + 4 ? (size_t)(r.cols - taken) : 4,
             glyph(tl->m->glyphs, GLYPH_ELLIPSIS));
    snprintf(title, sizeof title, "Search /%s/", text);
    bar_draw_rule(s, row, r.col, r.cols, title, right, tl->m->glyphs);
}

void tl_draw_detail(struct timeline *tl, struct surface *s, struct rect r)
{
    const struct span *span = selection_span(tl->src, &tl->sel);
    const struct gap *gap = gap_at_cursor(tl);
    int source_rows = tl_source_rows(tl, tl->at.body);
    if (source_rows > 0)
        tl_draw_source(tl, s, (struct rect){r.row + r.rows - source_rows, r.col, source_rows, r.cols});
    r.rows -= source_rows;
    struct pane p = {.tl = tl, .s = s, .r = r, .row = r.row + 1};
    char title[512], right[300], name[256];
    if (tl->search) {
        draw_search(tl, s, r.row + r.rows - 1, r);
        p.r.rows--;
    }
    if (tl->inside) {
        tl_merged_detail(tl, s, p.r);
        return;
    }
    if (!span) {
        bar_draw_rule(s, r.row, r.col, r.cols, "nothing selected", "", tl->m->glyphs);
        if (gap)
            draw_gap(&p, gap);
        return;
    }
    function_names_fit_in_module(tl->m->names, span->fn, name, sizeof name, r.cols > 50 ? r.cols - 40 : 10, tl->m->glyphs);
    snprintf(title, sizeof title, "%s   %s", name, function_names_module(tl->m->names, span->fn));
    const struct source_answer *source = tl_source(tl);
    const struct source_text *place = source ? &source->function : NULL;
    const char *file = place && place->path ? strrchr(place->path, '/') : NULL;
    file = file ? file + 1 : place ? place->path : NULL;
    int cpu = trace_cpu_at(tl->trace, tl->sel.thread, span->start_ns);
    size_t len = 0;
    if (file && functions_get(trace_functions(tl->trace), span->fn)->kind != FN_PSEUDO)
        len += (size_t)snprintf(right, sizeof right, "%.200s:%d   ", file, place->line);
    if (cpu >= 0)
        len += (size_t)snprintf(right + len, sizeof right - len, "cpu %d   ", cpu);
    snprintf(right + len, sizeof right - len, "depth %zu", tl->sel.depth);
    bar_draw_rule(s, r.row, r.col, r.cols, title, right, tl->m->glyphs);
    draw_times(&p, span);
    draw_stack(&p);
    if (gap) {
        draw_gap(&p, gap);
    } else {
        draw_function(&p, span);
        draw_notes(&p, span);
    }
    draw_range(&p);
}

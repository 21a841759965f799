#include "tui/analysis/event_draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fmt.h"
#include "tui/ui/bar.h"
#include "tui/ui/line.h"
#include "tui/ui/stack_line.h"
#include "tui/timeline/ruler.h"

#define GUTTER       2 /* for the pointer */
#define TIME_LEAST   12
#define DELTA_COLS   10
#define KIND_COLS    9
#define CPU_COLS     4
#define CPU_MIN_COLS 90 /* narrower screens do without it */
#define DETAIL_COLS  26

/* Columns from the left edge. */
struct places {
    int time_cols, cpu_cols, symbol, detail; /* cpu_cols 0: none; detail 0: none */
};

struct event_text {
    char name[400], detail[400];
};

/* The columns that there are for them. */
struct event_room {
    int indent, name, detail;
};

static const char *kind_text(const struct event *ev)
{
    if (ev->kind == EVENT_GAP)
        return "GAP";
    if (ev->kind == EVENT_MARK)
        return ev->mark->kind == MARK_TRIGGER ? "TRIGGER" : mark_kind_name(ev->mark->kind);
    if (ev->kind == EVENT_CALL && (ev->span->flags & SPAN_TAIL_CALL))
        return "jump";
    return event_kind_name(ev->kind);
}

/* Who called it; FN_NONE: it is outermost. */
static fn_id caller_of(const struct trace *t, const struct event *ev)
{
    const struct span *up = ev->depth > 0 ? trace_row_at(t, ev->thread, ev->depth - 1, ev->span->start_ns) : NULL;
    return up ? up->fn : FN_NONE;
}

/* Calls that are open in the event's thread where it is a gap or a mark. */
static size_t open_calls(const struct trace *t, const struct event *ev)
{
    size_t d = 0;
    const struct span *s;
    while ((s = trace_row_at(t, ev->thread, d, ev->time_ns)) && s->end_ns > ev->time_ns)
        d++;
    return d;
}

static void span_text(const struct trace *t, struct function_names *names, const struct event *ev,
                      struct event_room room, const struct glyphs *g, struct event_text *out)
{
    char plain[300], d[FMT_MAX];
    const struct span *s = ev->span;
    function_names_fit(names, s->fn, plain, sizeof plain, room.name - room.indent, g);
    snprintf(out->name, sizeof out->name, "%*s%s", room.indent, "", plain);
    if (ev->kind == EVENT_RETURN)
        snprintf(out->detail, sizeof out->detail, "%s%s",
                 ruler_duration(d, s->end_ns - s->start_ns, trace_info(t)->instructions),
                 s->flags & SPAN_INFERRED_END ? "  end inferred"
                 : s->flags & SPAN_GAP_END    ? "  ended by a gap"
                                              : "");
    else if (s->flags & SPAN_INFERRED_START)
        snprintf(out->detail, sizeof out->detail, "start inferred");
    else if (caller_of(t, ev) != FN_NONE) {
        function_names_fit(names, caller_of(t, ev), plain, sizeof plain, room.detail - (int)strlen("from "), g);
        snprintf(out->detail, sizeof out->detail, "from %s", plain);
    }
}

/* The bytes of a gap, and where they stand in the trace data. */
static void gap_bytes(const struct gap *g, char *out, size_t size)
{
    char n[FMT_MAX];
    *out = '\0';
    if (g->end_byte)
        snprintf(out, size, "  %s B at 0x%" PRIx64, fmt_count(n, g->bytes), g->end_byte - g->bytes);
    else if (g->bytes)
        snprintf(out, size, "  %s B", fmt_count(n, g->bytes));
}

/* Length, why, bytes. */
static void gap_text(const struct trace *t, const struct gap *g, struct event_text *out)
{
    char d[FMT_MAX], bytes[100];
    gap_bytes(g, bytes, sizeof bytes);
    snprintf(out->name, sizeof out->name, "%s", gap_cause_name(g->cause));
    snprintf(out->detail, sizeof out->detail, "%s  %.250s%s",
             ruler_duration(d, g->end_ns - g->start_ns, trace_info(t)->instructions), g->detail, bytes);
}

static void text_of(const struct trace *t, struct function_names *names, const struct event *ev,
                    struct event_room room, const struct glyphs *g, struct event_text *out)
{
    out->name[0] = out->detail[0] = '\0';
    if (ev->span) {
        span_text(t, names, ev, room, g, out);
    } else if (ev->gap) {
        gap_text(t, ev->gap, out);
    } else {
        snprintf(out->name, sizeof out->name, "%s", ev->mark->detail);
    }
}

/* The calls that are open there, that of the event the last. */
static void stack_text(const struct trace *t, struct function_names *names, const struct event *ev, char *out,
                       size_t size, int cols, const struct glyphs *g)
{
    fn_id calls[STACK_LINE_MAX];
    size_t depth = ev->span ? ev->depth + 1 : ev->thread != SIZE_MAX ? open_calls(t, ev) : 0, n = 0;
    for (; depth > 0 && n < STACK_LINE_MAX; depth--) {
        const struct span *s = ev->span && depth == ev->depth + 1
                                   ? ev->span
                                   : trace_row_at(t, ev->thread, depth - 1, ev->span ? ev->span->start_ns : ev->time_ns);
        if (!s)
            break;
        calls[n++] = s->fn;
    }
    *out = '\0';
    if (n)
        stack_line_write(out, size, names, calls, n, depth == 0, false, cols, g);
}

static struct style style_of(const struct event *ev, bool chosen)
{
    enum role ink = ev->kind == EVENT_GAP ? ROLE_ERROR : ev->kind == EVENT_MARK ? ROLE_MARK : ROLE_DEFAULT;
    if (chosen)
        return (struct style){ROLE_SELECT, ROLE_SELECT, 0};
    return (struct style){.ink = (uint16_t)ink};
}

static bool knows_cpus(const struct trace *t)
{
    for (size_t i = 0; i < trace_thread_count(t); i++)
        if (trace_thread(t, i)->last_cpu >= 0)
            return true;
    return false;
}

/* TIME is as wide as the trace's last needs, so that columns stay where they are while rows scroll. */
static struct places place_columns(const struct trace *t, int cols)
{
    const struct trace_info *info = trace_info(t);
    char last[FMT_MAX];
    int time = (int)strlen(ruler_time(last, (int64_t)(info->last_ns - info->first_ns), 1, info->instructions));
    struct places p = {.time_cols = time > TIME_LEAST ? time : TIME_LEAST,
                       .cpu_cols = cols >= CPU_MIN_COLS && knows_cpus(t) ? CPU_COLS : 0};
    p.symbol = GUTTER + p.time_cols + 1 + DELTA_COLS + 1 + 7 + 1 + p.cpu_cols + KIND_COLS + 1 + 5 + 1;
    p.detail = cols - p.symbol > DETAIL_COLS + 6 ? cols - DETAIL_COLS + 1 : 0;
    return p;
}

/* What passed since the row before, in at most DELTA_COLS: many instructions are rounded. */
static void write_delta(char *out, uint64_t ns, bool instructions)
{
    char n[FMT_MAX];
    ruler_duration(out, ns, instructions);
    if (instructions && strlen(out) > DELTA_COLS)
        snprintf(out, FMT_MAX, "%.30s insn", fmt_count_short(n, ns));
}

static void draw_row(const struct event_list *l, const struct trace *t, struct function_names *names, struct surface *s,
                     int row, struct rect r, const struct places *p, size_t i, size_t shallowest, const struct glyphs *g)
{
    const struct event *ev = &l->rows.data[i];
    const bool instructions = trace_info(t)->instructions;
    uint64_t before = i > 0 ? l->rows.data[i - 1].time_ns : ev->time_ns;
    char time[FMT_MAX], delta[FMT_MAX], tid[24] = "-", depth[24] = "-", cpu_number[16] = "-", cpu[24] = "";
    struct event_text text;
    struct style style = style_of(ev, i == l->chosen);
    const bool detail = ev->kind != EVENT_MARK && p->detail; /* a mark is one sentence */
    const int wide = (detail ? p->detail - 1 : r.cols) - p->symbol;
    int indent = ev->span ? 2 * (int)(ev->depth - shallowest) : 0;
    text_of(t, names, ev, (struct event_room){indent > wide / 2 ? wide / 2 : indent, wide, DETAIL_COLS - 1}, g, &text);
    if (ev->thread != SIZE_MAX) {
        int at = trace_cpu_at(t, ev->thread, ev->time_ns);
        snprintf(tid, sizeof tid, "%d", (int)trace_thread(t, ev->thread)->tid);
        const size_t open = ev->span ? ev->depth + 1 : open_calls(t, ev);
        if (open > 0) /* the depth of the innermost: of a gap or a mark, of the call that it lies in */
            snprintf(depth, sizeof depth, "%zu", open - 1);
        if (at >= 0)
            snprintf(cpu_number, sizeof cpu_number, "%d", at);
    }
    if (p->cpu_cols)
        snprintf(cpu, sizeof cpu, "%*s ", p->cpu_cols - 1, cpu_number);
    write_delta(delta, ev->time_ns - before, instructions);
    surface_fill(s, (struct rect){row, r.col, 1, r.cols}, ' ', style);
    surface_printf(s, row, r.col + GUTTER, r.cols - GUTTER, style, "%*s %*s %7s %s%-*s %5s ", p->time_cols,
                   ruler_time(time, (int64_t)(ev->time_ns - trace_info(t)->first_ns), 1, instructions), DELTA_COLS,
                   delta, tid, cpu, KIND_COLS, kind_text(ev), depth);
    line_cut(s, row, r.col + p->symbol, wide, text.name, style, g);
    if (detail)
        line_cut(s, row, r.col + p->detail, DETAIL_COLS - 1, text.detail, style, g);
}

void event_draw_rows(const struct event_list *l, const struct trace *t, struct function_names *names,
                     struct surface *s, struct rect r, const struct glyphs *g)
{
    const struct style header = {ROLE_HEADER, ROLE_HEADER, 0};
    const struct places p = place_columns(t, r.cols);
    size_t shallowest = SIZE_MAX;
    surface_fill(s, (struct rect){r.row, r.col, 1, r.cols}, ' ', header);
    surface_printf(s, r.row, r.col + GUTTER, r.cols - GUTTER, header, "%*s %*s %7s %s%-*s %5s SYMBOL", p.time_cols, "TIME",
                   DELTA_COLS, "DELTA", "TID", p.cpu_cols ? "CPU " : "", KIND_COLS, "KIND", "DEPTH");
    if (p.detail)
        surface_text(s, r.row, r.col + p.detail, DETAIL_COLS - 1, "DETAIL", SIZE_MAX, header);
    for (size_t i = 0; i < l->rows.len; i++)
        if (l->rows.data[i].span && l->rows.data[i].depth < shallowest)
            shallowest = l->rows.data[i].depth;
    for (size_t i = 0; i < l->rows.len && (int)i < r.rows - 1; i++)
        draw_row(l, t, names, s, r.row + 1 + (int)i, r, &p, i, shallowest, g);
    if (event_list_chosen(l))
        surface_put(s, r.row + 1 + (int)l->chosen, r.col, glyph(g, GLYPH_POINTER),
                    style_of(event_list_chosen(l), true));
}

/* Why, over as many lines as it needs and two of others leave; how long; the stack while there is room. */
static void draw_gap_pane(const struct trace *t, struct function_names *names, const struct event *ev, struct surface *s,
                          struct rect r, const struct glyphs *g)
{
    char d[FMT_MAX], bytes[100], line[800];
    const struct gap *gap = ev->gap;
    const int wide = r.cols - 2;
    int why = line_rows(gap->detail, wide);
    why = why < r.rows - 1 ? why : r.rows - 2;
    line_wrap(s, (struct rect){r.row + 1, r.col + 1, why, wide}, gap->detail, (struct style){0}, g);
    gap_bytes(gap, bytes, sizeof bytes);
    snprintf(line, sizeof line, "%s%s   clock %" PRIu64,
             ruler_duration(d, gap->end_ns - gap->start_ns, trace_info(t)->instructions), bytes, ev->time_ns);
    line_draw(s, r.row + 1 + why, r.col + 1, r.cols - 1, line, (struct style){0}, g);
    if (r.rows - why < 3)
        return;
    stack_text(t, names, ev, line, sizeof line, wide, g);
    line_cut(s, r.row + 2 + why, r.col + 1, wide, line, (struct style){0}, g);
}

void event_draw_pane(const struct event_list *l, const struct trace *t, struct function_names *names,
                     struct surface *s, struct rect r, const struct glyphs *g)
{
    const struct event *ev = event_list_chosen(l);
    struct event_text text;
    if (!ev || r.rows < 3)
        return;
    text_of(t, names, ev, (struct event_room){0, r.cols, r.cols > 40 ? r.cols / 2 : 20}, g, &text);
    const struct span *call = ev->span;
    char line[sizeof text.detail + 400];
    bar_draw_rule(s, r.row, r.col, r.cols, call ? function_names_in_module(names, call->fn) : text.name, kind_text(ev),
                  g);
    if (ev->gap) {
        draw_gap_pane(t, names, ev, s, r, g);
        return;
    }
    snprintf(line, sizeof line, "%.300s%s%s   clock %" PRIu64, call ? function_names_module(names, call->fn) : "",
             call && text.detail[0] ? "   " : "", text.detail, ev->time_ns);
    line_draw(s, r.row + 1, r.col + 1, r.cols - 1, line + strspn(line, " "), (struct style){0}, g);
    stack_text(t, names, ev, line, sizeof line, r.cols - 2, g);
    line_cut(s, r.row + 2, r.col + 1, r.cols - 2, line, (struct style){0}, g);
}

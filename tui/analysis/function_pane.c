#include "tui/analysis/function_pane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "tui/ui/bar.h"
#include "tui/ui/line.h"
#include "tui/timeline/ruler.h"
#include "tui/ui/worker.h"

#define LONGEST_MAX 200

struct function_pane {
    struct loop *loop;
    void (*ready)(void *arg);
    void *arg;
    struct worker *worker;
    const struct trace *trace;
    fn_id fn;
    struct stats_options options;
    bool known;
    struct stats_edge *callers, *callees;
    size_t ncallers, ncallees, ncalls, chosen;
    struct stats_call calls[LONGEST_MAX];
};

struct function_pane *function_pane_new(struct loop *loop, void (*ready)(void *arg), void *arg)
{
    struct function_pane *p = xcalloc(1, sizeof *p);
    *p = (struct function_pane){.loop = loop, .ready = ready, .arg = arg, .fn = FN_NONE};
    return p;
}

void function_pane_clear(struct function_pane *p)
{
    worker_stop(p->worker);
    free(p->callers);
    free(p->callees);
    p->worker = NULL;
    p->callers = p->callees = NULL;
    p->ncallers = p->ncallees = p->ncalls = p->chosen = 0;
    p->known = false;
    p->fn = FN_NONE;
    p->trace = NULL;
}

void function_pane_free(struct function_pane *p)
{
    if (!p)
        return;
    function_pane_clear(p);
    free(p);
}

static void run(void *arg, const atomic_bool *cancel)
{
    struct function_pane *p = arg;
    struct stats_options options = p->options;
    options.cancel = cancel;
    p->ncalls = stats_longest(p->trace, p->fn, &options, p->calls, LONGEST_MAX);
    stats_edges(p->trace, p->fn, &options, &p->callers, &p->ncallers, &p->callees, &p->ncallees, NULL);
}

static void done(void *arg)
{
    struct function_pane *p = arg;
    worker_stop(p->worker);
    p->worker = NULL;
    p->known = true;
    p->ready(p->arg);
}

void function_pane_show(struct function_pane *p, const struct trace *t, fn_id fn,
                        const struct stats_options *options)
{
    if (p->trace == t && p->fn == fn && p->options.from_ns == options->from_ns &&
        p->options.to_ns == options->to_ns && p->options.thread == options->thread)
        return;
    function_pane_clear(p);
    p->trace = t;
    p->fn = fn;
    p->options = *options;
    p->worker = worker_start(p->loop, run, done, p);
}

const struct stats_call *function_pane_call(const struct function_pane *p)
{
    return p->known && p->chosen < p->ncalls ? &p->calls[p->chosen] : NULL;
}

void function_pane_step(struct function_pane *p, int delta)
{
    if (p->known && (delta < 0 ? p->chosen > 0 : p->chosen + 1 < p->ncalls))
        p->chosen = delta < 0 ? p->chosen - 1 : p->chosen + 1;
}

/* ---- Drawing ---- */

#define EDGE_NAME_COL 10 /* behind the share */

static void name_of(struct function_names *names, fn_id fn, int cols, const struct glyphs *g, char *out, size_t size)
{
    if (fn == FN_NONE)
        snprintf(out, size, "(outermost)");
    else
        function_names_fit(names, fn, out, size, cols, g);
}

static const char *edge_calls(const struct stats_edge *e, char count[FMT_MAX], char *out, size_t size)
{
    snprintf(out, size, "%s call%s", fmt_count_short(count, e->calls), e->calls == 1 ? " " : "s");
    return out;
}

static void draw_edges(struct function_pane *p, struct surface *s, struct rect r, const char *title,
                       const struct stats_edge *edges, size_t n, struct function_names *names,
                       const struct glyphs *g)
{
    char name[300], count[FMT_MAX], share[FMT_MAX], right[FMT_MAX + 8];
    uint64_t sum = 0;
    int right_cols = 0;
    surface_text(s, r.row, r.col, r.cols, title, SIZE_MAX, (struct style){.ink = ROLE_HEADER});
    for (size_t i = 0; i < n; i++)
        sum += edges[i].calls;
    for (size_t i = 0; i < n && (int)i < r.rows - 1; i++) {
        int len = (int)strlen(edge_calls(&edges[i], count, right, sizeof right));
        right_cols = len > right_cols ? len : right_cols;
    }
    for (size_t i = 0; i < n && (int)i < r.rows - 1; i++) {
        const int row = r.row + 1 + (int)i, room = r.cols - EDGE_NAME_COL - right_cols - 2;
        surface_printf(s, row, r.col + 1, r.cols - 1, (struct style){0}, "%5s %%",
                       fmt_percent(share, edges[i].calls, sum));
        name_of(names, edges[i].fn, room, g, name, sizeof name);
        line_cut(s, row, r.col + EDGE_NAME_COL, room, name, (struct style){0}, g);
        surface_printf(s, row, r.col + r.cols - right_cols - 1, right_cols, (struct style){0}, "%*s", right_cols,
                       edge_calls(&edges[i], count, right, sizeof right));
    }
    if (n == 0)
        surface_text(s, r.row + 1, r.col + 1, r.cols - 1, p->known ? "(none)" : "counting...", SIZE_MAX,
                     (struct style){.ink = ROLE_DIM});
}

/* The first and the last bucket that have calls (last < first: none); returns how many have. */
static int used_buckets(const struct function_stats *f, int *first, int *last)
{
    int used = 0;
    *first = STATS_BUCKETS;
    *last = -1;
    for (int i = 0; i < STATS_BUCKETS; i++)
        if (f->histogram[i]) {
            *first = i < *first ? i : *first;
            *last = i;
            used++;
        }
    return used;
}

int function_pane_buckets(const struct function_stats *f)
{
    int first, last;
    used_buckets(f, &first, &last);
    return last < first ? 0 : last - first + 1;
}

/* One row of the histogram: the calls of a bucket, or of all up to it. */
struct bar {
    int bucket;
    uint64_t calls;
    bool here; /* the duration that is pointed at is one of them */
};

/* The bars for at most `rows` rows; returns how many. `*folded`: the first has all that are shorter than the second.
 *
 * An axis without holes while there is room for it; then the buckets that hold something; then the longest
 * durations, which are what people look for. */
static int choose_bars(const struct function_stats *f, int rows, int at, struct bar *bars, bool *folded)
{
    int first, last, n = 0;
    const int used = used_buckets(f, &first, &last);
    const bool whole = last - first + 1 <= rows;
    int fold = whole || used <= rows ? 0 : used - rows; /* bars too many */
    *folded = fold > 0;
    for (int i = first; i <= last; i++) {
        if (!whole && !f->histogram[i])
            continue;
        const bool joins = n > 0 && fold > 0;
        struct bar *bar = &bars[joins ? n - 1 : n++];
        if (joins)
            fold--;
        else
            *bar = (struct bar){.bucket = i};
        bar->bucket = i;
        bar->calls += f->histogram[i];
        bar->here |= i == at;
    }
    return n;
}

void function_pane_histogram(struct surface *s, struct rect r, const struct function_stats *f,
                             uint64_t at_ns, bool instructions, const struct glyphs *g)
{
    const int at = at_ns == UINT64_MAX ? -1 : at_ns ? 63 - __builtin_clzll(at_ns) : 0;
    const int room = r.cols - 26 > 4 ? r.cols - 26 : 4;
    struct bar bars[STATS_BUCKETS];
    bool folded;
    char d[FMT_MAX], n[FMT_MAX], label[FMT_MAX + 1];
    uint64_t most = 0;
    surface_text(s, r.row, r.col, r.cols, "Duration (log2)", SIZE_MAX, (struct style){.ink = ROLE_HEADER});
    if (r.rows < 2)
        return;
    const int count = choose_bars(f, r.rows - 1, at, bars, &folded);
    for (int i = 0; i < count; i++)
        most = bars[i].calls > most ? bars[i].calls : most;
    for (int i = 0; i < count; i++) {
        const struct bar *bar = &bars[i];
        const bool below = folded && i == 0;
        const int row = r.row + 1 + i, edge = below ? bar->bucket + 1 : bar->bucket; /* below: what they are shorter than */
        const uint64_t ns = edge == 0 ? 0 : edge < STATS_BUCKETS ? UINT64_C(1) << edge : UINT64_MAX;
        const int len = (int)((double)bar->calls * room / (double)most + 0.999);
        snprintf(label, sizeof label, "%s%s", below ? "<" : "",
                 instructions ? fmt_count_short(d, ns) : fmt_duration(d, ns));
        surface_printf(s, row, r.col + 1, 11, (struct style){0}, "%9s", label);
        if (bar->here)
            surface_put(s, row, r.col, glyph(g, GLYPH_POINTER), (struct style){.ink = ROLE_SELECT});
        for (int c = 0; c < (bar->calls ? len : 0); c++)
            surface_put(s, row, r.col + 12 + c, glyph(g, GLYPH_PROGRESS),
                        (struct style){.ink = bar->here ? ROLE_RANGE : ROLE_MINIMAP});
        surface_printf(s, row, r.col + r.cols - 12, 11, (struct style){0}, "%11s", fmt_count(n, bar->calls));
    }
}

static void draw_longest(struct function_pane *p, struct surface *s, struct rect r, const struct glyphs *g)
{
    const bool instructions = trace_info(p->trace)->instructions;
    const uint64_t first_ns = trace_info(p->trace)->first_ns;
    char d[FMT_MAX], at[FMT_MAX], text[2 * FMT_MAX + 40];
    int longest_cols = 0;
    surface_text(s, r.row, r.col, r.cols, "Longest calls  [ ] choose", SIZE_MAX,
                 (struct style){.ink = ROLE_HEADER});
    size_t rows = r.rows > 1 ? (size_t)r.rows - 1 : 0;
    size_t top = p->chosen >= rows && rows > 0 ? p->chosen - rows + 1 : 0;
    size_t end = !p->known ? 0 : p->ncalls < top + rows ? p->ncalls : top + rows;
    for (size_t i = top; i < end; i++) {
        int cols = (int)strlen(ruler_duration(d, p->calls[i].duration_ns, instructions));
        longest_cols = cols > longest_cols ? cols : longest_cols;
    }
    for (size_t i = top; i < end; i++) {
        const struct stats_call *c = &p->calls[i];
        bool here = i == p->chosen;
        snprintf(text, sizeof text, "%s %*s  at %s  tid %d", here ? ">" : " ", longest_cols,
                 ruler_duration(d, c->duration_ns, instructions),
                 ruler_time(at, (int64_t)(c->start_ns - first_ns), 1, instructions),
                 (int)trace_thread(p->trace, c->thread)->tid);
        line_draw(s, r.row + 1 + (int)(i - top), r.col, r.cols, text,
                  (struct style){.ink = here ? ROLE_SELECT : ROLE_DEFAULT,
                                 .paper = here ? ROLE_SELECT : ROLE_DEFAULT},
                  g);
    }
}

void function_pane_draw(struct function_pane *p, struct surface *s, struct rect r,
                        const struct function_stats *f, struct function_names *names,
                        const struct glyphs *g)
{
    char title[400], name[256];
    if (!p->trace || r.rows < 4)
        return;
    function_names_fit_in_module(names, f->fn, name, sizeof name, r.cols > 40 ? r.cols - 30 : 10, g);
    snprintf(title, sizeof title, "%s   %s", name, function_names_module(names, f->fn));
    bar_draw_rule(s, r.row, r.col, r.cols, title, "", g);
    int half = r.cols / 2, upper = (r.rows - 1) / 2, lower = r.rows - 1 - upper;
    struct rect a = {r.row + 1, r.col + 1, upper, half - 2};
    struct rect b = {r.row + 1, r.col + half + 1, upper, r.cols - half - 2};
    for (int i = 0; i < r.rows - 1; i++)
        surface_put(s, r.row + 1 + i, r.col + half - 1, glyph(g, GLYPH_RULE_V),
                    (struct style){.ink = ROLE_TITLE});
    draw_edges(p, s, a, "Callers", p->callers, p->known ? p->ncallers : 0, names, g);
    draw_edges(p, s, b, "Callees", p->callees, p->known ? p->ncallees : 0, names, g);
    a.row = b.row = r.row + 1 + upper;
    a.rows = b.rows = lower;
    function_pane_histogram(s, a, f, UINT64_MAX, trace_info(p->trace)->instructions, g);
    draw_longest(p, s, b, g);
}

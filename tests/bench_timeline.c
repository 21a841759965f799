/* Frame times of the Timeline screen at 200×60 (its own draw, surface included, the terminal not): traces
 * of 10⁵ to 10⁸ spans in 64 threads (the last takes 4 GB and some minutes; MTUI_BENCH_SPANS=7 leaves it out),
 * and of 4·10⁶ spans in 2,000 threads with 10⁵ gaps and 10⁶ marks. Frames are panned and scrolled at every
 * zoom from the whole trace down to 1 ns on 8 columns; keys that look through the trace are pressed at places
 * all over it; functions are sorted by each column. Times are of the CPU, so that a busy machine does not
 * count. Percentiles of all of it come in one table at the end; what exceeds a frame of 16 ms at the 99th is
 * marked. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/loop.h"
#include "decode/trace/pyramid.h"
#include "decode/trace/stats.h"
#include "tests/lib_gentrace.h"
#include "tui/analysis/function_rows.h"
#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/timeline/timeline.h"
#include "tui/timeline/v_timeline.h"

#define COLS 200
#define ROWS 60
#define FRAMES 40
#define KEYS 40
#define FRAME_MS 16.0

static double cpu_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct bench {
    struct loop *loop;
    struct model *m;
    struct timeline *tl;
    struct surface *s;
    double ms[4000];
    size_t n;
};

static double frame(struct bench *b)
{
    double a = cpu_ms();
    surface_clear(b->s);
    view_timeline.draw(b->tl, b->s, (struct rect){1, 0, ROWS - 3, COLS});
    return cpu_ms() - a;
}

/* One line of the table that the run ends with. */
struct figures {
    char name[24], what[28];
    double p50, p90, p99, max;
    size_t n;
};

struct table {
    struct figures lines[64];
    size_t n;
};

static void add(struct table *t, const char *name, const char *what, double *ms, size_t n)
{
    qsort(ms, n, sizeof *ms, by_value);
    struct figures *f = &t->lines[t->n++];
    *f = (struct figures){.p50 = ms[n / 2], .p90 = ms[n * 9 / 10], .p99 = ms[n * 99 / 100], .max = ms[n - 1], .n = n};
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->what, sizeof f->what, "%s", what);
}

static void print_table(const struct table *t)
{
    printf("\nmilliseconds a frame of %d x %d cells\n", COLS, ROWS);
    printf("%-20s  %-26s %7s %7s %7s %7s %7s\n", "trace", "", "p50", "p90", "p99", "max", "frames");
    for (size_t i = 0; i < t->n; i++) {
        const struct figures *f = &t->lines[i];
        printf("%-20s  %-26s %7.2f %7.2f %7.2f %7.2f %7zu%s\n", f->name, f->what, f->p50, f->p90, f->p99, f->max,
               f->n, f->p99 > FRAME_MS ? "   TOO SLOW" : "");
    }
}

/* Frames at every zoom level. */
static void zoom_through(struct bench *b, const char *name, bool compact, struct table *table)
{
    uint64_t seed = 5;
    b->n = 0;
    if (compact != b->tl->compact)
        view_timeline.action(b->tl, ACT_COMPACT, NULL);
    viewport_whole(&b->tl->view);
    do {
        for (int i = 0; i < FRAMES; i++) {
            viewport_pan(&b->tl->view, (int)(gen_random(&seed) % 150) - 75);
            tl_scroll(b->tl, (int)(gen_random(&seed) % 400) - 200);
            b->ms[b->n++] = frame(b);
        }
    } while (viewport_zoom_in(&b->tl->view, (int)(gen_random(&seed) % COLS)));
    add(table, name, compact ? "frame, compact rows" : "frame", b->ms, b->n);
}

/* Goes round the loop until the screen has nothing left to do; the longest round, which is how long a key would
 * have to wait. */
static double settle(struct bench *b)
{
    double worst = 0;
    while (b->tl->job.timer || b->tl->indexer || trace_stats_busy(b->tl->stats)) {
        double a = cpu_ms();
        loop_run_once(b->loop, 20000000);
        double ms = cpu_ms() - a;
        worst = ms > worst ? ms : worst;
    }
    return worst;
}

/* What the user waits for: the key itself, the frame behind it, the work that goes on between frames, each
 * asked for from several places of the trace. */
static void keys(struct bench *b, const char *name, struct table *table)
{
    static const struct {
        enum action act;
        const char *arg, *what;
    } list[] = {{ACT_SEARCH, "handle_request", "search"},     {ACT_SEARCH_NEXT, NULL, "next match"},
                {ACT_SEARCH_PREV, NULL, "previous match"},    {ACT_CALL_NEXT_ANY, NULL, "next call, any thread"},
                {ACT_LONGEST_CALL, NULL, "longest call"},     {ACT_THREAD_NEXT, NULL, "next thread"},
                {ACT_LONGEST_CHILD, NULL, "longest child"},   {ACT_CALLER, NULL, "caller"},
                {ACT_GOTO, "50us", "go to a time"},           {ACT_ZOOM_ALL, NULL, "whole trace"}};
    uint64_t seed = 9;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        for (b->n = 0; b->n < KEYS;) {
            const struct trace_info *info = trace_info(b->m->trace);
            tl_goto(b->tl, info->first_ns + gen_random(&seed) % (info->last_ns - info->first_ns));
            settle(b);
            double a = cpu_ms();
            view_timeline.action(b->tl, list[i].act, list[i].arg);
            double key = cpu_ms() - a, drawn = frame(b), rest = settle(b);
            double most = key > drawn ? key : drawn;
            b->ms[b->n++] = rest > most ? rest : most;
        }
        add(table, name, list[i].what, b->ms, b->n);
    }
}

static void sort_functions(struct bench *b)
{
    struct stats *stats = NULL;
    struct stats_options options = {.thread = -1};
    double t0 = cpu_ms();
    if (stats_new(&stats, b->m->trace, &options, NULL)) {
        fprintf(stderr, "no memory for the statistics\n");
        exit(1);
    }
    struct function_rows *rows = function_rows_new(b->m->names);
    double t1 = cpu_ms(), worst = 0;
    function_rows_set(rows, b->m->trace, stats, b->m->glyphs);
    for (int c = 0; c < FCOL_COUNT; c++) {
        double a = cpu_ms();
        function_rows_sort(rows, (enum function_column)c, c % 2);
        double ms = cpu_ms() - a;
        worst = ms > worst ? ms : worst;
    }
    printf("  statistics of %zu functions %.0f ms; sorted by each column in at most %.2f ms\n",
           function_rows_count(rows), t1 - t0, worst);
    function_rows_free(rows);
    stats_free(stats);
}

static void run(const char *name, const struct gentrace *g, struct table *table)
{
    static struct bench b;
    double t0 = cpu_ms();
    struct trace *t = gentrace_random(g);
    double t1 = cpu_ms();
    b.loop = loop_new();
    b.m = model_new(b.loop, NULL);
    b.m->glyphs = glyphs_of(GLYPHS_UNICODE);
    b.s = surface_new(ROWS, COLS);
    b.tl = view_timeline.create(b.m);
    b.m->trace = t;
    model_changed(b.m, MODEL_TRACE);
    double t2 = cpu_ms();
    view_timeline.changed(b.tl, MODEL_TRACE);
    double opened = cpu_ms() - t2, first = frame(&b), rest = settle(&b);
    printf("%s: made in %.0f ms, opened in %.1f ms, first frame %.1f ms, then (overview, index) rounds of at most "
           "%.1f ms, %.1f bytes a span\n",
           name, t1 - t0, opened, first, rest, 24 + (double)pyramid_bytes(b.tl->pyramid) / (double)g->spans);
    zoom_through(&b, name, false, table);
    zoom_through(&b, name, true, table);
    keys(&b, name, table);
    sort_functions(&b);
    fflush(stdout);
    view_timeline.destroy(b.tl);
    model_free(b.m);
    surface_free(b.s);
    trace_free(t);
    loop_free(b.loop);
}

/* The largest power of ten: MTUI_BENCH_SPANS, 5 to 8. */
static int largest(void)
{
    const char *text = getenv("MTUI_BENCH_SPANS");
    int top = text ? atoi(text) : 8;
    return top < 5 ? 5 : top > 8 ? 8 : top;
}

int main(void)
{
    static struct table table;
    struct gentrace g = {.spans = 100000,
                         .threads = 64,
                         .depth = 24,
                         .functions = 3000,
                         .gaps = 500,
                         .marks = 100,
                         .base_ns = UINT64_C(1) << 40,
                         .step_ns = 50,
                         .seed = 12345};
    for (int e = 5, top = largest(); e <= top; e++, g.spans *= 10) {
        char name[32];
        snprintf(name, sizeof name, "10^%d spans", e);
        run(name, &g, &table);
    }
    g.spans = 4000000;
    g.threads = 2000;
    g.gaps = 100000;
    g.marks = 1000000;
    run("2,000 threads", &g, &table);
    print_table(&table);
    return 0;
}

/* Frame times of the Timeline screen at 200×60 (its own draw, surface included, the terminal not): traces
 * of 10⁵ to 10⁷ spans in 64 threads (10⁸ with the argument 8), and of 2,000 threads, panned and scrolled at
 * every zoom from the whole trace down to 1 ns on 8 columns; the keys that look through the trace; and the
 * functions sorted by each column. Times are of the CPU, so that a busy machine does not count. What exceeds
 * a frame of 16 ms at the 99th percentile is marked. */
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

/* Percentiles of the last n times. */
static void report(const char *what, double *ms, size_t n)
{
    qsort(ms, n, sizeof *ms, by_value);
    printf("  %-24s p50 %6.2f  p90 %6.2f  p99 %6.2f  max %6.2f ms   %zu frames%s\n", what, ms[n / 2],
           ms[n * 9 / 10], ms[n * 99 / 100], ms[n - 1], n, ms[n * 99 / 100] > FRAME_MS ? "   TOO SLOW" : "");
}

/* Every zoom level for itself, then all frames together. */
static void zoom_through(struct bench *b, bool compact, bool levels)
{
    uint64_t seed = 5;
    char what[80];
    b->n = 0;
    if (compact != b->tl->compact)
        view_timeline.action(b->tl, ACT_COMPACT, NULL);
    viewport_whole(&b->tl->view);
    do {
        double level[FRAMES];
        for (int i = 0; i < FRAMES; i++) {
            viewport_pan(&b->tl->view, (int)(gen_random(&seed) % 150) - 75);
            tl_scroll(b->tl, (int)(gen_random(&seed) % 400) - 200);
            b->ms[b->n++] = level[i] = frame(b);
        }
        char d[FMT_MAX];
        snprintf(what, sizeof what, "level %2d, %s/col", viewport_zoom_level(&b->tl->view),
                 tl_duration(b->tl, d, viewport_col_ns(&b->tl->view)));
        if (levels)
            report(what, level, FRAMES);
    } while (viewport_zoom_in(&b->tl->view, (int)(gen_random(&seed) % COLS)));
    report(compact ? "all levels, compact" : "all levels", b->ms, b->n);
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

static void keys(struct bench *b)
{
    static const struct {
        enum action act;
        const char *arg, *what;
    } list[] = {{ACT_SEARCH, "handle_request", "search"},     {ACT_SEARCH_NEXT, NULL, "next match"},
                {ACT_SEARCH_PREV, NULL, "previous match"},    {ACT_CALL_NEXT_ANY, NULL, "next call, any thread"},
                {ACT_LONGEST_CALL, NULL, "longest call"},     {ACT_THREAD_NEXT, NULL, "next thread"},
                {ACT_LONGEST_CHILD, NULL, "longest child"},   {ACT_CALLER, NULL, "caller"},
                {ACT_GOTO, "50us", "go to a time"},           {ACT_ZOOM_ALL, NULL, "whole trace"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        double a = cpu_ms();
        view_timeline.action(b->tl, list[i].act, list[i].arg);
        double key = cpu_ms() - a, drawn = frame(b), rest = settle(b);
        double most = key > drawn ? key : drawn;
        most = rest > most ? rest : most;
        printf("  %-24s %8.2f ms, its frame %6.2f ms, then rounds of at most %6.2f ms%s\n", list[i].what, key,
               drawn, rest, most > FRAME_MS ? "   TOO SLOW" : "");
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
    struct function_rows *rows = function_rows_new();
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

static void run(const char *name, const struct gentrace *g, bool levels)
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
    double t2 = cpu_ms();
    view_timeline.changed(b.tl, MODEL_TRACE);
    double opened = cpu_ms() - t2, first = frame(&b), rest = settle(&b);
    printf("%s: made in %.0f ms, opened in %.1f ms, first frame %.1f ms, then (overview, index) rounds of at most "
           "%.1f ms, %.1f bytes a span\n",
           name, t1 - t0, opened, first, rest, 24 + (double)pyramid_bytes(b.tl->pyramid) / (double)g->spans);
    zoom_through(&b, false, levels);
    zoom_through(&b, true, levels);
    keys(&b);
    sort_functions(&b);
    view_timeline.destroy(b.tl);
    model_free(b.m);
    surface_free(b.s);
    trace_free(t);
    loop_free(b.loop);
}

int main(int argc, char **argv)
{
    int top = argc > 1 ? atoi(argv[1]) : 7;
    struct gentrace g = {.spans = 100000,
                         .threads = 64,
                         .depth = 24,
                         .functions = 3000,
                         .gaps = 500,
                         .marks = 100,
                         .base_ns = UINT64_C(1) << 40,
                         .step_ns = 50,
                         .seed = 12345};
    for (int e = 5; e <= top; e++, g.spans *= 10) {
        char name[32];
        snprintf(name, sizeof name, "10^%d spans", e);
        run(name, &g, e == top);
    }
    g.spans = 4000000;
    g.threads = 2000;
    g.gaps = 100000;
    g.marks = 1000000;
    run("2,000 threads, 4 x 10^6 spans, 10^5 gaps, 10^6 marks", &g, false);
    return 0;
}

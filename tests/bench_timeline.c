/* Frame times of the Timeline screen at 200×60 (its own draw, surface included, the terminal not): traces
 * of 10⁵ to 10⁷ spans in 64 threads (10⁸ with the argument 8), panned and scrolled at every zoom from the
 * whole trace down to 1 ns on 8 columns; and the keys that look through the trace. Times are of the CPU, so
 * that a busy machine does not count. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/alloc.h"
#include "decode/pyramid.h"
#include "tests/lib_gentrace.h"
#include "tui/glyph.h"
#include "tui/model.h"
#include "tui/timeline.h"
#include "tui/v_timeline.h"

#define COLS 200
#define ROWS 60
#define FRAMES 20

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

static void zoom_through(struct bench *b, bool compact)
{
    uint64_t seed = 5;
    b->n = 0;
    if (compact != b->tl->compact)
        view_timeline.action(b->tl, ACT_COMPACT, NULL);
    viewport_whole(&b->tl->view);
    do
        for (int i = 0; i < FRAMES; i++) {
            viewport_pan(&b->tl->view, (int)(gen_random(&seed) % 150) - 75);
            tl_scroll(b->tl, (int)(gen_random(&seed) % 400) - 200);
            b->ms[b->n++] = frame(b);
        }
    while (viewport_zoom_in(&b->tl->view, (int)(gen_random(&seed) % COLS)));
    qsort(b->ms, b->n, sizeof *b->ms, by_value);
    printf("  %-16s p50 %6.2f  p90 %6.2f  p99 %6.2f  max %6.2f ms   %zu frames\n",
           compact ? "frames, compact" : "frames", b->ms[b->n / 2], b->ms[b->n * 9 / 10],
           b->ms[b->n * 99 / 100], b->ms[b->n - 1], b->n);
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
        double key = cpu_ms() - a;
        printf("  %-24s %8.2f ms, and its frame %.2f ms\n", list[i].what, key, frame(b));
    }
}

static void run(int exponent, uint64_t spans)
{
    static struct bench b;
    double t0 = cpu_ms();
    struct trace *t = gentrace_random(&(struct gentrace){.spans = spans,
                                                         .threads = 64,
                                                         .depth = 24,
                                                         .functions = 3000,
                                                         .gaps = 500,
                                                         .marks = 100,
                                                         .base_ns = UINT64_C(1) << 40,
                                                         .step_ns = 50,
                                                         .seed = 12345});
    double t1 = cpu_ms();
    b.m = model_new(NULL, NULL);
    b.m->glyphs = glyphs_of(GLYPHS_UNICODE);
    b.s = surface_new(ROWS, COLS);
    b.tl = view_timeline.create(b.m);
    b.m->trace = t;
    view_timeline.changed(b.tl, MODEL_TRACE);
    double t2 = cpu_ms(), first = frame(&b);
    printf("10^%d spans: made in %.0f ms, opened in %.0f ms (index and statistics at once), first frame %.1f ms, "
           "%.1f bytes a span\n",
           exponent, t1 - t0, t2 - t1, first,
           24 + (double)pyramid_bytes(b.tl->pyramid) / (double)spans);
    zoom_through(&b, false);
    zoom_through(&b, true);
    keys(&b);
    view_timeline.destroy(b.tl);
    model_free(b.m);
    surface_free(b.s);
    trace_free(t);
}

int main(int argc, char **argv)
{
    int top = argc > 1 ? atoi(argv[1]) : 7;
    uint64_t spans = 100000;
    for (int e = 5; e <= top; e++, spans *= 10)
        run(e, spans);
    return 0;
}

/* Frame times of the timeline at 200×60: traces of 10⁵ to 10⁷ spans (10⁸ with an argument "8"), from the
 * whole trace down to 1 ns on 8 columns. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/alloc.h"
#include "tests/lib_gentrace.h"
#include "tui/flame.h"
#include "tui/flame_source.h"
#include "tui/viewport.h"

#define COLS 200
#define ROWS 60

static double now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void frame(struct flame_source *src, const struct trace *t, const struct viewport *v)
{
    static struct flame_cell cells[COLS];
    struct flame_axis ax;
    flame_axis_init(&ax, viewport_window(v));
    int left = ROWS;
    for (size_t th = 0; th < trace_thread_count(t) && left > 0; th++)
        for (size_t d = 0; d < trace_thread(t, th)->depths && left > 0; d++, left--) {
            struct flame_row row = flame_source_row(src, th, d);
            flame_render_row(&ax, &row, cells);
        }
    flame_axis_free(&ax);
}

int main(int argc, char **argv)
{
    int top = argc > 1 ? atoi(argv[1]) : 7;
    uint64_t spans = 100000;
    for (int e = 5; e <= top; e++, spans *= 10) {
        double t0 = now_ms();
        struct trace *t = gentrace_random(&(struct gentrace){.spans = spans,
                                                             .threads = 64,
                                                             .depth = 24,
                                                             .functions = 3000,
                                                             .base_ns = UINT64_C(1) << 40,
                                                             .step_ns = 50,
                                                             .seed = 12345});
        double t1 = now_ms();
        struct pyramid *p = NULL;
        if (pyramid_new(&p, t, NULL, NULL))
            return 1;
        double t2 = now_ms();
        printf("10^%d spans: made in %.0f ms, index in %.0f ms, %.1f bytes a span\n", e, t1 - t0,
               t2 - t1, (double)pyramid_bytes(p) / (double)spans + 24);
        struct flame_source *src = flame_source_new(t, p);
        struct viewport v;
        viewport_init(&v, trace_info(t)->first_ns, trace_info(t)->last_ns, COLS);
        double all[4000];
        size_t n = 0;
        uint64_t seed = 5;
        do {
            double worst = 0;
            for (int i = 0; i < 20; i++) {
                viewport_pan(&v, (int)(gen_random(&seed) % 150) - 75);
                double a = now_ms();
                frame(src, t, &v);
                double ms = now_ms() - a;
                worst = ms > worst ? ms : worst;
                all[n++] = ms;
            }
            printf("  %12llu ns across: worst %.2f ms\n", (unsigned long long)viewport_length_ns(&v), worst);
        } while (viewport_zoom_in(&v, (int)(gen_random(&seed) % COLS)));
        qsort(all, n, sizeof *all, by_value);
        printf("  p50 %.2f  p90 %.2f  p99 %.2f  max %.2f ms over %zu frames\n", all[n / 2],
               all[n * 9 / 10], all[n * 99 / 100], all[n - 1], n);
        viewport_free(&v);
        flame_source_free(src);
        pyramid_free(p);
        trace_free(t);
    }
    return 0;
}

/* A trace of N spans in 64 threads: CPU time to build it and its pyramid, bytes a span, and what a frame of
 * 60 rows × 200 columns costs at zooms from the whole trace down to 1 ns a column, and its statistics.
 *   bench_pyramid [SPANS, default 10000000] */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "decode/trace/pyramid.h"
#include "decode/trace/stats.h"

enum { THREADS = 64, DEPTHS = 8, ROWS = 60, COLUMNS = 200 };

static uint64_t rnd(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Random calls with a few ns between events, depth 0 to DEPTHS. */
static void fill(struct trace_builder *b, pid_t tid, size_t spans)
{
    size_t th = trace_builder_thread(b, 1, tid), depth = 0;
    uint64_t t = 1000, r = (uint64_t)tid * 0x9e3779b97f4a7c15u;
    for (size_t done = 0; done < spans;) {
        uint64_t x = rnd(&r);
        t += x >> 59;
        if (depth < DEPTHS && (depth == 0 || x & 1)) {
            trace_builder_enter(b, th, t, (fn_id)(x >> 8 & 1023), 0);
            depth++;
            done++;
        } else {
            trace_builder_leave(b, th, t, 0);
            depth--;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void frames(const struct trace *t, const struct pyramid *p)
{
    const struct trace_info *info = trace_info(t);
    uint64_t len = info->last_ns - info->first_ns, r = 42;
    for (uint64_t w = len; w >= COLUMNS; w /= 8) {
        double ms[64];
        size_t items = 0;
        for (int i = 0; i < 64; i++) {
            uint64_t from = info->first_ns + rnd(&r) % (len - w + 1);
            double start = now_ms();
            for (size_t row = 0; row < ROWS; row++) {
                struct pyramid_iter it;
                struct pyramid_item item;
                pyramid_iter_init(&it, p, row % THREADS, row % DEPTHS, from, from + w,
                                  w / (8 * COLUMNS));
                while (pyramid_iter_next(&it, &item))
                    items++;
            }
            ms[i] = now_ms() - start;
        }
        qsort(ms, 64, sizeof *ms, by_value);
        printf("  window %14llu ns  %7zu items a frame  p50 %6.3f ms  p99 %6.3f ms\n",
               (unsigned long long)w, items / 64, ms[32], ms[63]);
    }
}

int main(int argc, char **argv)
{
    size_t spans = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    struct functions *f = functions_new();
    for (unsigned i = 0; i < 1024; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        functions_intern(f, "m", name, name, i, FN_USER);
    }
    struct trace_builder *b = trace_builder_new(f);
    double start = now_ms();
    for (pid_t tid = 1; tid <= THREADS; tid++)
        fill(b, tid, spans / THREADS);
    double filled = now_ms();
    struct trace *t = NULL;
    struct pyramid *p = NULL;
    if (trace_builder_finish(b, &t, NULL) < 0)
        return 1;
    trace_builder_free(b);
    double finished = now_ms();
    if (pyramid_new(&p, t, NULL, NULL) < 0)
        return 1;
    double indexed = now_ms();
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("%zu spans in %d threads: calls %.0f ms, rows %.0f ms, pyramid %.0f ms\n", spans, THREADS,
           filled - start, finished - filled, indexed - finished);
    printf("  %.1f bytes a span (spans and pyramid), peak RSS %ld MiB\n",
           24 + (double)pyramid_bytes(p) / (double)spans, use.ru_maxrss / 1024);
    frames(t, p);
    struct stats *stats = NULL;
    struct stats_options all = {.thread = -1};
    start = now_ms();
    if (stats_new(&stats, t, &all, NULL) < 0)
        return 1;
    printf("  statistics of all functions: %.0f ms\n", now_ms() - start);
    stats_free(stats);
    pyramid_free(p);
    trace_free(t);
    return 0;
}

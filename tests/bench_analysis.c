/* What people ask of a trace, on traces of 10⁵ to 10⁷ spans in 16 threads (10⁸ with the argument 8): the
 * merged flame graph, a call against the median one, all calls of the most called function. These run in a
 * worker, on one CPU; times are of the CPU, so that a busy machine does not count. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "decode/trace/compare.h"
#include "decode/trace/fold_recursion.h"
#include "decode/trace/merged.h"
#include "tests/lib_gentrace.h"

static double cpu_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double merge(const struct trace *t, size_t *stacks)
{
    struct merged *m;
    const struct call_tree_options o = {.thread = -1};
    double from = cpu_ms();
    if (merged_new(&m, t, &o, NULL) < 0)
        exit(1);
    double ms = cpu_ms() - from;
    *stacks = (size_t)trace_thread(merged_trace(m), 0)->spans;
    merged_free(m);
    return ms;
}

static double compare(const struct trace *t, fn_id fn)
{
    const struct stats_options all = {.thread = -1};
    struct stats_call longest, median;
    struct comparison c;
    uint64_t calls;
    double from = cpu_ms();
    if (stats_longest(t, fn, &all, &longest, 1) != 1 ||
        stats_median(t, fn, &all, &median, &calls, NULL) < 0 ||
        compare_calls(&c, t, &longest, &median, NULL, NULL) < 0)
        exit(1);
    double ms = cpu_ms() - from;
    comparison_free(&c);
    return ms;
}

static double list_calls(const struct trace *t, fn_id fn, uint64_t *n)
{
    const struct stats_options all = {.thread = -1};
    struct stats_calls c;
    double from = cpu_ms();
    if (stats_calls_new(&c, t, fn, &all, 100000, NULL) < 0)
        exit(1);
    double ms = cpu_ms() - from;
    *n = c.all.calls;
    stats_calls_free(&c);
    return ms;
}

static double fold(const struct trace *t)
{
    struct trace *folded;
    double from = cpu_ms();
    if (fold_recursion(t, NULL, &folded, NULL) < 0)
        exit(1);
    double ms = cpu_ms() - from;
    trace_free(folded);
    return ms;
}

/* deep: nearly every call has a stack of its own, the worst that can come. */
static void row(uint64_t spans, bool deep)
{
    const struct gentrace g = {.spans = spans, .threads = 16, .depth = deep ? 24 : 6,
                               .functions = deep ? 60 : 12, .gaps = 100, .base_ns = 1000, .step_ns = 20,
                               .seed = 3};
    struct trace *t = gentrace_random(&g);
    size_t stacks;
    uint64_t calls;
    double merge_ms = merge(t, &stacks), compare_ms = compare(t, 5), calls_ms = list_calls(t, 5, &calls);
    printf("%12llu %10zu %12.1f %12.1f %12llu %12.1f %12.1f\n", (unsigned long long)spans, stacks, merge_ms,
           compare_ms, (unsigned long long)calls, calls_ms, fold(t));
    fflush(stdout);
    trace_free(t);
}

int main(int argc, char **argv)
{
    uint64_t most = argc > 1 && atoi(argv[1]) >= 8 ? 100000000 : 10000000;
    printf("%12s %10s %12s %12s %12s %12s %12s\n", "spans", "stacks", "merge ms", "compare ms", "calls",
           "list ms", "fold ms");
    for (uint64_t spans = 100000; spans <= most; spans *= 10)
        row(spans, false);
    row(1000000, true);
    return 0;
}

/* Reading text of perf script: lines a second of CPU time, for branch lines and for call chains, parsing alone and
 * with the trace made of it; and, for a measure, how fast the ends of the same lines are found.
 *   bench_text [LINES, default 4000000] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/text/perf_text.h"
#include "decode/text/text_flow.h"
#include "decode/text/text_log.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int count(void *arg, const struct perf_text_event *ev)
{
    *(uint64_t *)arg += ev->u.branch.from.ip;
    return 0;
}

/* About a megabyte of text, repeated; times go on. */
static double run(perf_text_fn *fn, void *arg, const char *block, size_t block_lines, size_t lines)
{
    struct perf_text *p = perf_text_new(fn, arg);
    size_t len = strlen(block);
    double start = now_s();
    for (size_t done = 0; done < lines; done += block_lines)
        if (perf_text_feed(p, block, len) < 0)
            exit(1);
    perf_text_end(p);
    double s = now_s() - start;
    const struct perf_text_counts *c = perf_text_counts(p);
    printf("  %8llu events, %.2f M lines/s", (unsigned long long)(c->samples + c->branches),
           (double)c->lines / s / 1e6);
    perf_text_free(p);
    return s;
}

static char *repeat(size_t n, void (*line)(char *out, size_t size, size_t i))
{
    char *text = malloc(n * 400 + 1), *p = text;
    for (size_t i = 0; i < n; i++) {
        line(p, 400, i);
        p += strlen(p);
    }
    return text;
}

static void branch_line(char *out, size_t size, size_t i)
{
    snprintf(out, size,
             "demo 30549/30549 [001] %zu.938460812:   1    branches:uH:   %-15s     7ffff7ddc%03zx "
             "std::map<int, foo>::find(int const&)+0x%zx (/usr/lib64/ld-2.17.so) =>     7ffff7ddc850 "
             "_dl_start+0x0 (/usr/lib64/ld-2.17.so)\n",
             174427 + i, i % 3 ? "jcc" : "tr end  call", i % 4096, i % 64);
}

static void chain_line(char *out, size_t size, size_t i)
{
    if (i % 20 == 0)
        snprintf(out, size, "\ndemo 825432/825432 339457.%09zu:       1 cycles:u: \n", i * 1000);
    else
        snprintf(out, size, "\t    7f5c0c87%04zx _dl_relocate_object_%zu+0x12 (/usr/lib64/ld-2.28.so)\n",
                 i % 65536, i % 40);
}

/* A program that calls two functions from a loop, four branches a round, twenty nanoseconds apart. */
static void flow_line(char *out, size_t size, size_t i)
{
    static const char *const lines[] = {
        "call                       401156 work(std::map<int, foo>&)+0x16 (/usr/bin/demo) =>           401120 "
        "std::map<int, foo>::find(int const&)+0x0 (/usr/bin/demo)",
        "jcc                        401128 std::map<int, foo>::find(int const&)+0x8 (/usr/bin/demo) =>           "
        "401130 std::map<int, foo>::find(int const&)+0x10 (/usr/bin/demo)",
        "return                     40113f std::map<int, foo>::find(int const&)+0x1f (/usr/bin/demo) =>           "
        "40115b work(std::map<int, foo>&)+0x1b (/usr/bin/demo)",
        "jmp                        401170 work(std::map<int, foo>&)+0x30 (/usr/bin/demo) =>           401150 "
        "work(std::map<int, foo>&)+0x10 (/usr/bin/demo)"};
    snprintf(out, size, "demo 30549/30549 [001] %zu.%09zu:   1    branches:uH:   %s\n", 174427 + i * 20 / 1000000000,
             i * 20 % 1000000000, lines[i % 4]);
}

/* Into a trace: text whose time goes on, made in between and not counted. */
static void run_flow(size_t lines)
{
    struct functions *f = functions_new();
    struct trace_builder *b = trace_builder_new(f);
    struct text_flow *t = text_flow_new(b, f);
    struct perf_text *p = perf_text_new(text_flow_event, t);
    char *block = malloc(10000 * 400 + 1);
    double s = 0, ends = 0;
    size_t found = 0;
    for (size_t done = 0; done < lines; done += 10000) {
        char *at = block;
        for (size_t i = 0; i < 10000; i++, at += strlen(at))
            flow_line(at, 400, done + i);
        double start = now_s();
        for (const char *nl = block; (nl = memchr(nl, '\n', (size_t)(at - nl))) != NULL; nl++)
            found++;
        double middle = now_s();
        if (perf_text_feed(p, block, (size_t)(at - block)) < 0)
            exit(1);
        ends += middle - start;
        s += now_s() - middle;
    }
    perf_text_end(p);
    text_flow_end(t);
    printf("  %8llu events, %.2f M lines/s (finding the ends of lines alone: %.0f M lines/s)",
           (unsigned long long)perf_text_counts(p)->branches, (double)lines / s / 1e6, (double)found / ends / 1e6);
    perf_text_free(p);
    text_flow_free(t);
    trace_builder_free(b);
    free(block);
}

int main(int argc, char **argv)
{
    size_t lines = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000000;
    char *branches = repeat(5000, branch_line), *chains = repeat(10000, chain_line);
    uint64_t sum = 0;
    printf("branch lines, parsed:\n");
    run(count, &sum, branches, 5000, lines);
    printf("\nbranch lines, into a trace:\n");
    run_flow(lines);
    printf("\ncall chains, parsed:\n");
    run(count, &sum, chains, 10500, lines);
    printf("\ncall chains, into the log of samples:\n");
    struct functions *f = functions_new();
    struct sample_log *log = sample_log_new();
    struct text_log *t = text_log_new(f, log);
    run(text_log_event, t, chains, 10500, lines);
    printf("\n");
    text_log_free(t);
    sample_log_free(log);
    functions_free(f);
    free(branches);
    free(chains);
    return sum == 1;
}

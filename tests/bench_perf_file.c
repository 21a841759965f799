/* Reading a recording: a million call-chain samples of 24 frames, opened, put in order, walked through with
 * address spaces, and every frame named. Prints time and memory of each step, and what `perf script`
 * takes for the same file. */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "decode/image/callchain.h"
#include "tests/lib_perf.h"
#include "tests/lib_perfwriter.h"

#define SAMPLES 1000000
#define FRAMES 24

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long rss_mib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss >> 10;
}

/* Chunks of 1000 samples of two CPUs in turn, as perf drains its rings. */
static void make(const char *path, const char *program)
{
    struct perf_writer w = pw_file(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                   PERF_SAMPLE_CALLCHAIN);
    uint64_t clock[2] = {1000, 1500};
    pw_comm(&w, 1, 1, "bench", 0, 1);
    pw_mmap2(&w, 1, 0x555555555000, 0x1000, 0x1000, program, 2);
    for (unsigned i = 0; i < SAMPLES; i++) {
        uint64_t *t = &clock[i / 1000 % 2];
        pw_begin(&w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
        pw_u64(&w, 0x555555555200);
        pw_u64(&w, 1ull << 32 | 1);
        pw_u64(&w, *t += 1000);
        pw_u64(&w, FRAMES + 1);
        pw_u64(&w, (uint64_t)PERF_CONTEXT_USER);
        for (unsigned k = 0; k < FRAMES; k++)
            pw_u64(&w, 0x555555555100 + (i * 7 + k * 31) % 0x300);
        pw_end(&w);
    }
    pw_finish(&w);
    lib_write(path, w.data, w.len);
    pw_free(&w);
}

int main(void)
{
    char *dir = lib_mkdtemp(), path[4096];
    char *program = realpath(lib_tool("forker"), NULL);
    struct perf_file *f;
    struct perf_record rec;
    struct err err;
    snprintf(path, sizeof path, "%s/bench.data", dir);
    make(path, program);
    long before = rss_mib();

    double start = now();
    if (perf_file_open(&f, path, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double opened = now();
    struct addrspaces *as = addrspaces_new(NULL);
    struct functions *functions = functions_new();
    struct symbolizer *symbols = symbolizer_new(functions, as, &(struct symbolizer_options){0});
    struct callchain *chain = callchain_new(f, as, symbols);
    while (perf_file_next(f, &rec, NULL) > 0)
        continue;
    double walked = now();
    size_t frames = 0;
    perf_file_rewind(f);
    while (perf_file_next(f, &rec, NULL) > 0) {
        const struct callframe *fr;
        addrspaces_apply(as, &rec, NULL);
        size_t n = rec.kind == PERF_REC_SAMPLE ? callchain_frames(chain, &rec, &fr) : 0;
        for (size_t i = 0; i < n; i++, frames++)
            symbolizer_find(symbols, rec.pid, fr[i].lookup_ip, fr[i].mode);
    }
    double named = now();
    printf("%.0f MB, %d samples, %zu frames\n", (double)perf_file_info(f)->size_bytes / 1e6, SAMPLES,
           frames);
    printf("open and order   %6.2f s\nwalk             %6.2f s\nwalk and name    %6.2f s\n",
           opened - start, walked - opened, named - walked);
    printf("peak memory      %ld MiB more than before (the file itself, mapped, counts)\n",
           rss_mib() - before);
    start = now();
    free(lib_run(NULL, NULL, "%s script --no-inline -F time,ip,sym -i %s 2>/dev/null >/dev/null", lib_perf(),
                 path));
    printf("perf script      %6.2f s\n", now() - start);
    callchain_free(chain);
    symbolizer_free(symbols);
    addrspaces_free(as);
    functions_free(functions);
    perf_file_close(f);
    free(program);
    lib_rmdir(dir);
    return 0;
}

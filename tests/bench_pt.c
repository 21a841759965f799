/* Large Intel PT recordings, decoded by `perf script` and by mtui, side by side: whole processes, output
 * discarded. Stepped segments of a call-heavy C program and of python3 are encoded again and again with
 * advancing time. That both tools list the same branches is checked on a short recording of each segment,
 * and that the long one holds the same, so many times. Last, how long a snapshot of 4 MB takes from `mtui
 * open` to the screen that shows its calls.
 *   MTUI_BENCH_MB=N   megabytes of trace (64; python half of it): perf takes some four minutes for that
 *   MTUI_BENCH_RUNS=N runs of mtui, the least CPU time counts (5) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib_program.h"
#include "lib_pty.h"
#include "lib_step.h"
#include "lib_step_programs.h"

#define PERF_FIELDS "-F pid,tid,time,flags,ip,addr,sym,symoff"
#define SNAPSHOT_MB 4

struct cost {
    double cpu, wall;
    double peak_mb;
};

struct bench {
    const char *mtui; /* path */
    unsigned runs;
};

struct segment {
    const char *title, *program;
    double share;      /* of the megabytes */
};

static const struct segment segments[] = {
    {"call-heavy C", "calls", 1.0},
    {"python3", "python3", 0.5},
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Runs a shell command with its output discarded. */
static struct cost run(const char *command)
{
    struct rusage use;
    int status;
    double from = now();
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    wait4(pid, &status, 0, &use);
    double to = now();
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        printf("failed: %s\n", command);
    return (struct cost){(double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec / 1e6 +
                             (double)use.ru_stime.tv_sec + (double)use.ru_stime.tv_usec / 1e6,
                         to - from, (double)use.ru_maxrss / 1024};
}

static struct cost best_of(const char *command, unsigned n)
{
    struct cost best = run(command);
    while (n-- > 1) {
        struct cost c = run(command);
        if (c.cpu < best.cpu)
            best = c;
    }
    return best;
}

static void show(const char *name, struct cost c, struct cost measure)
{
    printf("  %-36s %8.3f s CPU %8.3f s wall %8.1f MB peak  %6.1f times perf by CPU, %6.1f by wall\n", name, c.cpu,
           c.wall, c.peak_mb, measure.cpu / c.cpu, measure.wall / c.wall);
    fflush(stdout);
}

static uint64_t number_from(const char *command)
{
    char line[64] = "";
    FILE *f = popen(command, "r");
    assert_non_null(f);
    if (!fgets(line, sizeof line, f))
        printf("  no answer from: %s\n", command);
    pclose(f);
    return strtoull(line, NULL, 10);
}

static uint64_t spans_of(const struct bench *b, const char *data)
{
    char command[900];
    snprintf(command, sizeof command, "%s export -f functions %s | awk -F'\\t' 'NR > 1 {n += $1} END {print n}'", b->mtui,
             data);
    return number_from(command);
}

/* Branches, and calls among them, in the lists of both. */
static void check_same(const struct bench *b, const char *data)
{
    char command[900];
    const char *calls = "awk '/ call / {c++} {n++} END {printf \"%.0f\\n\", n * 100000000 + c}'";
    snprintf(command, sizeof command, "perf script -i %s --itrace=be -F flags,ip,addr 2>/dev/null | %s", data, calls);
    uint64_t perf = number_from(command);
    snprintf(command, sizeof command, "%s export -f branches %s | tail -n +2 | tr '\\t' ' ' | %s", b->mtui, data, calls);
    uint64_t ours = number_from(command);
    printf("  %s: perf lists %" PRIu64 " branches with %" PRIu64 " calls, mtui %" PRIu64 " with %" PRIu64 "\n",
           perf == ours ? "the same work" : "NOT THE SAME WORK", perf / 100000000, perf % 100000000,
           ours / 100000000, ours % 100000000);
}

/* Encodes the segment so often that the file has about this size; returns how often. */
static unsigned encode(const struct step_rec *r, double mb, const char *path, double *got_mb)
{
    struct stat st;
    struct step_encoding e = step_encodings[1]; /* MTC, as perf's default is */
    e.repeat = 20;
    step_rec_encode(r, &e, path);
    assert_int_equal(stat(path, &st), 0);
    e.repeat = (unsigned)(mb * 1048576 / ((double)st.st_size / 20)) + 1;
    step_rec_encode(r, &e, path);
    assert_int_equal(stat(path, &st), 0);
    *got_mb = (double)st.st_size / 1048576;
    return e.repeat;
}

static void compare(const struct bench *b, const struct step_rec *r, double mb)
{
    char path[300], brief[300], command[900];
    double size, brief_size;
    snprintf(path, sizeof path, "%s/big.data", r->dir);
    snprintf(brief, sizeof brief, "%s/brief.data", r->dir);
    unsigned n_brief = encode(r, 0.5, brief, &brief_size);
    check_same(b, brief);
    unsigned n = encode(r, mb, path, &size);
    uint64_t spans = spans_of(b, path), brief_spans = spans_of(b, brief);
    printf("  %.1f MB of trace, the segment %u times; %" PRIu64 " spans, %.2f of them a segment (%.2f in the short "
           "recording of %u)\n",
           size, n, spans, (double)spans / n, (double)brief_spans / n_brief, n_brief);
    fflush(stdout);
    snprintf(command, sizeof command, "exec perf script -i %s --itrace=bep " PERF_FIELDS, path);
    struct cost perf = run(command);
    show("perf script", perf, perf);
    snprintf(command, sizeof command, "exec %s export -f functions --threads 1 %s", b->mtui, path);
    struct cost one = best_of(command, b->runs);
    show("mtui export -f functions --threads 1", one, perf);
    snprintf(command, sizeof command, "exec %s export -f functions %s", b->mtui, path);
    struct cost all = best_of(command, b->runs);
    show("mtui export -f functions", all, perf);
    snprintf(command, sizeof command, "exec %s export -f functions --decoder libipt %s", b->mtui, path);
    show("the same with --decoder libipt", run(command), perf);
    snprintf(command, sizeof command, "exec %s export -f gaps --threads 1 %s", b->mtui, path); /* a trace with all calls */
    struct cost kept = best_of(command, b->runs);
    show("every call kept, as for the screen", kept, perf);
    printf("  memory at its peak over the trace data: %.1f bytes a span, where every call is kept %.1f\n",
           (one.peak_mb - size) * 1048576 / (double)spans, (kept.peak_mb - size) * 1048576 / (double)spans);
    fflush(stdout);
}

/* From the start of `mtui open` to the picture of the calls, which a thread's line stands above. */
static double first_picture(const struct bench *b, const char *data)
{
    char *argv[] = {(char *)(uintptr_t)b->mtui, (char *)(uintptr_t)"open", (char *)(uintptr_t)data, NULL};
    const char *env[] = {"MTUI_BENCH=1", NULL};
    double from = now(), to = -1;
    struct pty *p = pty_start(env, argv, 40, 120);
    if (pty_wait(p, " spans ", 20000))
        to = now();
    pty_type(p, "q");
    pty_hang_up(p, 5000);
    pty_free(p);
    return to < 0 ? -1 : to - from;
}

static void snapshot(const struct bench *b, const struct step_rec *r)
{
    char path[300];
    double size, least = 1e9, most = 0;
    snprintf(path, sizeof path, "%s/snap.data", r->dir);
    encode(r, SNAPSHOT_MB, path, &size);
    for (unsigned i = 0; i < b->runs; i++) {
        double t = first_picture(b, path);
        if (t < 0)
            printf("  no picture came\n");
        least = t < least ? t : least;
        most = t > most ? t : most;
    }
    printf("  first picture of a snapshot of %.1f MB, with the start of mtui: %.3f s (the slowest of %u: %.3f s)\n", size,
           least, b->runs, most);
    fflush(stdout);
}

static const struct step_program *program_named(const char *name)
{
    const struct step_program *p = step_programs;
    while (p->name && strcmp(p->name, name) != 0)
        p++;
    return p->name ? p : NULL;
}

int main(void)
{
    static struct step_rec r;
    char mtui[300];
    const char *build = getenv("MTUI_BUILD"), *mb = getenv("MTUI_BENCH_MB"), *runs = getenv("MTUI_BENCH_RUNS");
    if (getuid() != 0 || !build || !program_have("perf")) {
        printf("needs root (uprobes) and perf\n");
        return 0;
    }
    snprintf(mtui, sizeof mtui, "%s/mtui", build);
    struct bench b = {.mtui = mtui, .runs = runs ? (unsigned)atoi(runs) : 5};
    for (size_t i = 0; i < sizeof segments / sizeof *segments; i++) {
        const struct segment *s = &segments[i];
        const struct step_program *p = program_named(s->program);
        printf("%s\n", s->title);
        if (!p)
            continue;
        fflush(stdout);
        step_rec_program(&r, p, 1);
        compare(&b, &r, (mb ? atof(mb) : 64) * s->share);
        snapshot(&b, &r);
        step_rec_free(&r);
    }
    return 0;
}

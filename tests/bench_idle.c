/* What mtui itself costs: the CPU time and the bytes it sends while it shows each screen and
 * nothing happens. bench_overhead tells what a target pays.
 *
 *   bench_idle [SECONDS, default 5] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tests/lib_pty.h"
#include "tests/lib_run.h"

#define SOON 60000 /* ms */

static char *mtui;

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* User and system time of a process, seconds (proc_pid_stat(5), fields 14 and 15). */
static double cpu_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    char *text = run_read_file(path, NULL), *p = text ? strrchr(text, ')') : NULL;
    unsigned long user = 0, system = 0;
    if (!p ||
        sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        exit(1);
    free(text);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* Reads what comes for so long. */
static void watch(struct pty *p, double seconds)
{
    for (double end = now_s() + seconds; now_s() < end;)
        pty_pump(p, 50);
}

static void idle(const char *what, struct pty *p, double seconds)
{
    watch(p, 2); /* what it does at first */
    double cpu = cpu_of(p->program);
    size_t bytes = p->raw_len;
    watch(p, seconds);
    cpu = (cpu_of(p->program) - cpu) / seconds * 100;
    printf("  %-34s %6.2f %% of a core   %7.0f bytes a second sent%s\n", what, cpu,
           (double)(p->raw_len - bytes) / seconds, cpu >= 1 ? "   TOO MUCH" : "");
}

static void screens(double seconds)
{
    static const struct {
        const char *keys, *what, *shows;
    } list[] = {{"1", "Processes, refreshed each second", "1 Processes"},
                {"2", "Symbols", "Symbols"},
                {"3", "Record, nothing recorded", "Record"}};
    char *argv[] = {mtui, NULL};
    struct pty *p = pty_start(NULL, argv, 30, 100);
    if (!pty_wait(p, "1 Processes", SOON))
        exit(1);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (i == 2)
            pty_type(p, "\0333"); /* Symbols takes digits as text */
        else if (i)
            pty_type(p, list[i].keys);
        idle(list[i].what, p, seconds);
    }
    pty_free(p);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    const char *build = getenv("MTUI_BUILD");
    mtui = xasprintf("%s/mtui", build ? build : "build/release");
    printf("Idle, %g s each:\n", seconds);
    screens(seconds);
    free(mtui);
    return 0;
}

/* A large Intel PT recording, decoded by `perf script` and by mtui, side by side: whole processes, output
 * discarded. A stepped call-heavy segment is encoded again and again with advancing time.
 *   MTUI_BENCH_MB=N  megabytes of trace (64); perf takes minutes for that */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib_program.h"
#include "lib_step.h"
#include "lib_step_programs.h"

struct cost {
    double user, wall;
    long peak_kb;
};

static double seconds(struct timespec t)
{
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Runs a shell command with its output discarded. */
static struct cost run(const char *command)
{
    struct timespec from, to;
    struct rusage use;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &from);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    wait4(pid, &status, 0, &use);
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        printf("failed: %s\n", command);
    return (struct cost){(double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec / 1e6 +
                             (double)use.ru_stime.tv_sec + (double)use.ru_stime.tv_usec / 1e6,
                         seconds(to) - seconds(from), use.ru_maxrss};
}

static void show(const char *name, struct cost c, struct cost measure)
{
    printf("%-34s %9.3f s CPU %9.3f s wall %9.1f MB peak %8.1f times perf (CPU) %8.1f (wall)\n", name, c.user, c.wall,
           (double)c.peak_kb / 1024, measure.user / c.user, measure.wall / c.wall);
}

static struct cost best_of(const char *command, unsigned n)
{
    struct cost best = run(command);
    while (--n) {
        struct cost c = run(command);
        if (c.user < best.user)
            best = c;
    }
    return best;
}

int main(void)
{
    static struct step_rec r;
    char path[300], command[900], *build = getenv("MTUI_BUILD");
    struct stat st;
    double mb = getenv("MTUI_BENCH_MB") ? atof(getenv("MTUI_BENCH_MB")) : 64;
    if (getuid() != 0 || !build || !program_have("perf")) {
        printf("needs root (uprobes) and perf\n");
        return 0;
    }
    step_rec_program(&r, &step_programs[0], 1);
    struct step_encoding e = step_encodings[1]; /* MTC, as perf's default is */
    snprintf(path, sizeof path, "%s/big.data", r.dir);
    e.repeat = 100;
    step_rec_encode(&r, &e, path);
    stat(path, &st);
    e.repeat = (unsigned)(mb * 1048576 / ((double)st.st_size / 100));
    step_rec_encode(&r, &e, path);
    stat(path, &st);
    printf("%.1f MB of trace\n", (double)st.st_size / 1048576);
    fflush(stdout);
    snprintf(command, sizeof command, "exec perf script -i %s --itrace=bep -F pid,tid,time,flags,ip,addr,sym,symoff", path);
    struct cost p = run(command);
    show("perf script", p, p);
    snprintf(command, sizeof command, "exec %s/mtui export -f functions --threads 1 %s", build, path);
    show("mtui export -f functions, 1 thread", best_of(command, 3), p);
    snprintf(command, sizeof command, "exec %s/mtui export -f functions %s", build, path);
    show("mtui export -f functions", best_of(command, 3), p);
    snprintf(command, sizeof command, "exec %s/mtui export -f functions --decoder libipt %s", build, path);
    show("the same by libipt", run(command), p);
    if (getenv("KEEP"))
        return 0;
    step_rec_free(&r);
    return 0;
}

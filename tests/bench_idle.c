/* What mtui itself costs: the CPU time and the bytes it sends while it shows each screen and
 * nothing happens, and what recording with the screen open takes from a target beyond what perf
 * alone takes.
 *
 *   bench_idle [SECONDS, default 5]
 *
 * The target counts the work that it gets done in a second of its own CPU time, in turns without a
 * recording, with `perf record` by the same command, and with mtui's screen; the medians of the
 * turns are compared. */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tests/lib_pty.h"
#include "tests/lib_run.h"

#define SOON  60000 /* ms */
#define TURNS 9

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

/* ---- The target ---- */

struct mtui_job {
    struct pty *p;
    char *state;
};

static struct mtui_job record_with_screen(pid_t target, const char *tmp)
{
    struct mtui_job j = {.state = xasprintf("XDG_STATE_HOME=%s", tmp)};
    char *pid = xasprintf("%ld", (long)target);
    const char *env[] = {j.state, NULL};
    char *argv[] = {
        mtui, (char[]){"attach"}, (char[]){"-r"}, (char[]){"sample"}, (char[]){"-p"}, pid, NULL};
    j.p = pty_start(env, argv, 30, 100);
    if (!pty_wait(j.p, "[ENABLED]", SOON))
        exit(1);
    free(pid);
    return j;
}

/* perf by the very command that mtui shows with --print. */
static pid_t record_with_perf(pid_t target, const char *tmp, int turn)
{
    char *command = xasprintf("%s attach -r sample -p %ld -o %s/perf-%d --print", mtui,
                              (long)target, tmp, turn);
    int status = 1;
    char *line = run_output(command, &status),
         *control = line ? strstr(line, " --control=fd:3,4") : NULL;
    if (status != 0)
        exit(1);
    if (control)
        memset(control, ' ', strlen(" --control=fd:3,4"));
    char *script = xasprintf("mkdir -p %s/perf-%d; exec %s", tmp, turn, line);
    fflush(NULL);
    pid_t perf = fork();
    if (perf == 0) {
        if (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout))
            _exit(1);
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    free(script);
    free(line);
    free(command);
    double end = now_s() + 1; /* it is recording long before */
    while (now_s() < end)
        poll(NULL, 0, 50);
    return perf;
}

/* Work done in a second of its CPU time, as the target says. */
static double rounds(struct run_child *target)
{
    char line[64];
    unsigned long n;
    if (write(target->in, "x", 1) != 1 || !fgets(line, sizeof line, target->out) ||
        sscanf(line, "%lu", &n) != 1)
        exit(1);
    return (double)n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v)
{
    qsort(v, TURNS, sizeof *v, by_value);
    return v[TURNS / 2];
}

static void overhead(void)
{
    char *tmp = run_temp_dir(), *tool = run_tool("counting_target");
    struct run_child target = run_start((char *[]){tool, NULL});
    double alone[TURNS], perf[TURNS], screen[TURNS], cpu = 0, wall = 0;
    rounds(&target); /* warm */
    for (int i = 0; i < TURNS; i++) {
        alone[i] = rounds(&target);
        pid_t p = record_with_perf(target.pid, tmp, i);
        perf[i] = rounds(&target);
        kill(p, SIGINT);
        waitpid(p, NULL, 0);
        struct mtui_job j = record_with_screen(target.pid, tmp);
        double before = cpu_of(j.p->program), from = now_s();
        screen[i] = rounds(&target);
        cpu += cpu_of(j.p->program) - before;
        wall += now_s() - from;
        kill(j.p->program, SIGTERM);
        pty_wait(j.p, "modes=", SOON);
        pty_free(j.p);
        free(j.state);
    }
    double a = median(alone), b = median(perf), c = median(screen);
    double spread = (perf[TURNS * 3 / 4] - perf[TURNS / 4]) / b * 100;
    printf("  target alone %.0f rounds a second; with perf %+.2f %%, with mtui's screen %+.2f %% "
           "(quartiles of the "
           "turns with perf: %.2f %% apart)\n",
           a, (b / a - 1) * 100, (c / a - 1) * 100, spread);
    printf("  mtui itself meanwhile: %.2f %% of a core\n", cpu / wall * 100);
    run_kill(&target);
    run_remove_tree(tmp);
    free(tmp);
    free(tool);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    const char *build = getenv("MTUI_BUILD");
    mtui = xasprintf("%s/mtui", build ? build : "build/release");
    printf("Idle, %g s each:\n", seconds);
    screens(seconds);
    printf("What recording takes, %d turns of a second each:\n", TURNS);
    overhead();
    free(mtui);
    return 0;
}

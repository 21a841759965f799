/* What recording with the screen open takes from a target beyond what perf alone takes.
 *
 *   bench_overhead [TURNS, default 12]
 *
 * The target counts the work that it gets done in a slice of its thread's own CPU time. Each turn has a slice without a
 * recording, one with `perf record` by the very command that mtui uses, and a recording with mtui's Record screen on
 * a pseudo-terminal, in an order that changes from turn to turn. While mtui records, slices in which it runs take
 * turns with slices in which it is stopped (SIGSTOP) and perf goes on: these lie next to one another, so that what else
 * the machine does falls on both alike.
 *
 * Compared are slices of one turn, or next to one another. Shown is the median of these ratios with its 95 % confidence
 * interval by the sign test: the order statistics between which the median lies with that probability, whatever the
 * distribution. An interval that holds 0 means that no difference was found. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tests/lib_pty.h"
#include "tests/lib_run.h"

#define SOON     60000 /* ms */
#define SETTLE_S 0.3   /* after the recording has begun: what is done only then is over */

#define SLICE_MS 400
#define SHORT_MS 150 /* of those next to one another */
#define SHORTS   6   /* pairs of them in a turn */

enum kind { ALONE, PERF, SCREEN, KINDS };

struct bench {
    char *mtui, *tmp;
    struct run_child target;
    int turn, turns;
    double *perf, *screen, *running; /* ratios: a turn each, a turn each, SHORTS a turn */
    double cpu_s, wall_s;            /* of mtui, in its slices */
};

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "bench_overhead: %s\n", what);
    exit(1);
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
        give_up("no /proc/PID/stat");
    free(text);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- One slice ---- */

/* What it is like to wait is the same in every slice: the terminal, if there is one, is read. */
static void wait_for(struct pty *p, int fd, double seconds)
{
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    for (double end = now_s() + seconds; now_s() < end && poll(&answer, fd >= 0, 0) == 0;) {
        if (p)
            pty_pump(p, 50);
        else
            poll(NULL, 0, 50);
    }
}

/* Work a second of the target's CPU time, as it says itself. */
static double slice(struct bench *b, struct pty *p, int ms)
{
    char line[64];
    double rounds;
    if (dprintf(b->target.in, "%d\n", ms) < 0)
        give_up("the target is gone");
    wait_for(p, fileno(b->target.out), 600);
    if (!fgets(line, sizeof line, b->target.out) || sscanf(line, "%lf", &rounds) != 1)
        give_up("the target says nothing");
    return rounds;
}

static double running(struct bench *b, struct pty *p)
{
    double cpu = cpu_of(p->program), from = now_s(), rounds = slice(b, p, SHORT_MS);
    b->cpu_s += cpu_of(p->program) - cpu;
    b->wall_s += now_s() - from;
    return rounds;
}

/* mtui stands still meanwhile, and its perf does not. */
static double standing(struct bench *b, struct pty *p)
{
    kill(p->program, SIGSTOP);
    if (!pty_wait(p, "<<STOPPED", SOON))
        give_up("mtui does not stop");
    double rounds = slice(b, p, SHORT_MS);
    pty_type(p, "\n"); /* the shell continues it */
    wait_for(p, -1, SETTLE_S / 3);
    return rounds;
}

static double with_screen(struct bench *b)
{
    char *state = xasprintf("XDG_STATE_HOME=%s", b->tmp), *pid = xasprintf("%ld", (long)b->target.pid);
    const char *env[] = {state, NULL};
    char *argv[] = {b->mtui, (char[]){"attach"}, (char[]){"-r"}, (char[]){"sample"}, (char[]){"-p"}, pid, NULL};
    struct pty *p = pty_start(env, argv, 30, 100);
    if (!pty_wait(p, "[ENABLED]", SOON))
        give_up("mtui does not record");
    wait_for(p, -1, SETTLE_S);
    double rounds = 0;
    for (int i = 0; i < SHORTS; i++) {
        double *ratio = &b->running[b->turn * SHORTS + i], runs = 0, stands = 0;
        if (i % 2 == 0)
            runs = running(b, p);
        stands = standing(b, p);
        if (i % 2)
            runs = running(b, p);
        *ratio = runs / stands;
        rounds += runs / SHORTS;
    }
    kill(p->program, SIGTERM);
    if (!pty_wait(p, "modes=", SOON))
        give_up("mtui does not end");
    pty_free(p);
    free(state);
    free(pid);
    return rounds;
}

/* The command that mtui shows with --print, in a directory that is there. */
static char *perf_script(struct bench *b)
{
    char *dir = xasprintf("%s/perf-%d", b->tmp, b->turn);
    char *command = xasprintf("%s attach -r sample -p %ld -o %s --print", b->mtui, (long)b->target.pid, dir);
    int status = 1;
    char *line = run_output(command, &status);
    if (status != 0 || !strstr(line, "--control=fd:3,4"))
        give_up("no command of perf");
    char *script = xasprintf("mkdir -p %s; exec %s", dir, line);
    free(line);
    free(command);
    free(dir);
    return script;
}

static double with_perf(struct bench *b)
{
    int command[2], answer[2];
    char *script = perf_script(b);
    if (pipe2(command, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0)
        give_up("no pipe");
    fflush(NULL);
    pid_t perf = fork();
    if (perf == 0) {
        int r = fcntl(command[0], F_DUPFD, 10), w = fcntl(answer[1], F_DUPFD, 10);
        if (dup2(r, 3) < 0 || dup2(w, 4) < 0 || !freopen("/dev/null", "w", stderr) ||
            !freopen("/dev/null", "w", stdout))
            _exit(1);
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    close(command[0]);
    close(answer[1]);
    char c = 0;
    if (write(command[1], "ping\n", 5) != 5 || read(answer[0], &c, 1) != 1 || c != 'a')
        give_up("perf does not record");
    wait_for(NULL, -1, SETTLE_S);
    double rounds = slice(b, NULL, SLICE_MS);
    kill(perf, SIGINT);
    waitpid(perf, NULL, 0);
    close(command[1]);
    close(answer[0]);
    free(script);
    return rounds;
}

/* On one CPU, and before others where that is permitted: what else runs on the machine adds noise only. */
static void steady(pid_t target)
{
    cpu_set_t cpus;
    size_t last = CPU_SETSIZE - 1;
    if (sched_getaffinity(target, sizeof cpus, &cpus) < 0)
        return;
    while (last > 0 && !CPU_ISSET(last, &cpus))
        last--;
    CPU_ZERO(&cpus);
    CPU_SET(last, &cpus);
    sched_setaffinity(target, sizeof cpus, &cpus);
    setpriority(PRIO_PROCESS, (id_t)target, -15);
}

/* ---- Statistics ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The rank, from 0, of the lower end: the largest one whose tail of the binomial distribution of n fair
 * coins is at most 2.5 %; the upper end is as far from the top. Hollander, Wolfe, Chicken, Nonparametric
 * Statistical Methods, 3.6. */
static int lower_rank(int n)
{
    double p = 1, tail = 0;
    for (int i = 0; i < n; i++)
        p /= 2;
    for (int k = 0; k < n / 2; k++) {
        tail += p;
        if (tail > 0.025)
            return k ? k - 1 : 0;
        p = p * (n - k) / (k + 1);
    }
    return 0;
}

static void report(const char *what, double *ratios, int n)
{
    qsort(ratios, (size_t)n, sizeof *ratios, by_value);
    int low = lower_rank(n);
    double median = n % 2 ? ratios[n / 2] : (ratios[n / 2 - 1] + ratios[n / 2]) / 2;
    printf("  %-34s %+6.2f %%   (95 %%: %+.2f to %+.2f %%)\n", what, (median - 1) * 100, (ratios[low] - 1) * 100,
           (ratios[n - 1 - low] - 1) * 100);
}

static double measure(struct bench *b, enum kind kind)
{
    return kind == ALONE ? slice(b, NULL, SLICE_MS) : kind == PERF ? with_perf(b) : with_screen(b);
}

static void take_turns(struct bench *b)
{
    static const enum kind orders[][KINDS] = {
        {ALONE, PERF, SCREEN}, {SCREEN, PERF, ALONE}, {PERF, SCREEN, ALONE}, {ALONE, SCREEN, PERF}};
    for (; b->turn < b->turns; b->turn++) {
        double rounds[KINDS] = {0};
        for (int i = 0; i < KINDS; i++) {
            enum kind kind = orders[b->turn % 4][i];
            rounds[kind] = measure(b, kind);
        }
        b->perf[b->turn] = rounds[PERF] / rounds[ALONE];
        b->screen[b->turn] = rounds[SCREEN] / rounds[PERF];
    }
}

int main(int argc, char **argv)
{
    const char *build = getenv("MTUI_BUILD");
    char *tool = run_tool("counting_target");
    struct bench b = {.turns = argc > 1 ? atoi(argv[1]) : 12};
    if (b.turns < 6)
        give_up("six turns at least");
    size_t n = (size_t)b.turns;
    b.mtui = xasprintf("%s/mtui", build ? build : "build/release");
    b.tmp = run_temp_dir();
    b.perf = xcalloc(n, sizeof *b.perf);
    b.screen = xcalloc(n, sizeof *b.screen);
    b.running = xcalloc(n * SHORTS, sizeof *b.running);
    b.target = run_start((char *[]){tool, NULL});
    steady(b.target.pid);
    slice(&b, NULL, SLICE_MS); /* warm */
    printf("What recording takes from a computing target, %d turns:\n", b.turns);
    take_turns(&b);
    report("perf alone, beside no recording", b.perf, b.turns);
    report("mtui recording, beside perf alone", b.screen, b.turns);
    report("mtui's screen, beside stopped", b.running, b.turns * SHORTS);
    printf("  mtui itself meanwhile: %.2f %% of a core\n", b.cpu_s / b.wall_s * 100);
    run_kill(&b.target);
    run_remove_tree(b.tmp);
    free(b.perf);
    free(b.screen);
    free(b.running);
    free(b.mtui);
    free(b.tmp);
    free(tool);
    return 0;
}

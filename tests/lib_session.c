#include "tests/lib_session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/proc_stat.h"

static size_t open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static bool has_exec(void *arg)
{
    struct bench *b = arg;
    char *path = xasprintf("/proc/%ld/comm", (long)b->target.pid);
    char *comm = run_read_file(path, NULL);
    bool yes = comm && !strcmp(comm, "target_busy\n");
    free(comm);
    free(path);
    return yes;
}

void bench_set_up(struct bench *b, const char *fake_modes)
{
    memset(b, 0, sizeof *b);
    char *fake = run_tool("fakeperf"), *busy = run_tool("target_busy");
    setenv("MTUI_PERF", fake_modes ? fake : "perf", 1);
    setenv("FAKEPERF", fake_modes ? fake_modes : "", 1);
    b->fds = open_fds();
    b->loop = loop_new();
    b->tmp = run_temp_dir();
    b->caps = xcalloc(1, sizeof *b->caps);
    b->caps->cpus_online = 1;
    b->version = (struct perf_version){.major = 6, .minor = 1, .text = "6.1.0"};
    b->machine = (struct session_machine){
        .caps = b->caps, .version = &b->version, .xdg_state_home = b->tmp, .interactive = true};
    b->target = run_start((char *[]){busy, NULL});
    assert_true(run_until(has_exec, b, SOON));
    b->setup.auto_recorder = true;
    b->setup.auto_mode = true;
    b->setup.pids = xmalloc(sizeof(pid_t));
    b->setup.pids[0] = b->target.pid;
    b->setup.n_pids = 1;
    free(fake);
    free(busy);
}

static void on_snapshot(void *arg, const struct session_snapshot *s)
{
    struct bench *b = arg;
    (void)s;
    b->snapshots++;
}

static void on_ended(void *arg)
{
    struct bench *b = arg;
    b->ends++;
}

int bench_start(struct bench *b, struct err *err)
{
    static const struct session_callbacks callbacks = {.snapshot = on_snapshot, .ended = on_ended};
    *err = (struct err){0};
    b->ends = b->snapshots = 0;
    return session_start(&b->session, b->loop, &b->setup, &b->machine, &callbacks, b, err);
}

struct session_status bench_status(struct bench *b)
{
    struct session_status s;
    session_get_status(b->session, &s);
    return s;
}

void bench_turn(struct bench *b)
{
    loop_run_once(b->loop, 10000000);
}

bool bench_is_armed(void *arg)
{
    bench_turn(arg);
    return bench_status(arg).state != SESSION_PREPARING;
}

bool bench_has_ended(void *arg)
{
    struct bench *b = arg;
    bench_turn(b);
    return b->ends > 0;
}

bool bench_has_snapshot(void *arg)
{
    struct bench *b = arg;
    bench_turn(b);
    return b->snapshots > 0 || b->ends > 0;
}

void bench_start_armed(struct bench *b)
{
    struct err err;
    if (bench_start(b, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(run_until(bench_is_armed, b, SOON));
    if (bench_status(b).state != SESSION_ARMED) {
        for (size_t i = 0; i < session_log_count(b->session); i++)
            print_error("%s\n", session_log_at(b->session, i).text);
        fail_msg("not armed");
    }
}

void bench_wait_end(struct bench *b)
{
    bool ended = run_until(bench_has_ended, b, SOON);
    if (!ended || getenv("SHOW"))
        for (size_t i = 0; i < session_log_count(b->session); i++)
            print_message("    %s\n", session_log_at(b->session, i).text);
    assert_true(ended);
    assert_int_equal(b->ends, 1);
}

static bool is_stopped(void *arg)
{
    char state[32];
    return proc_status_value("/proc", *(pid_t *)arg, "State", state, sizeof state) && state[0] == 'T';
}

struct work {
    struct bench *b;
    clockid_t clock;
    double until;
};

static bool has_worked(void *arg)
{
    struct work *w = arg;
    struct timespec now;
    bench_turn(w->b);
    assert_int_equal(clock_gettime(w->clock, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9 >= w->until;
}

void bench_let_work(struct bench *b, double seconds)
{
    struct work w = {.b = b};
    struct timespec now;
    assert_int_equal(clock_getcpuclockid(b->target.pid, &w.clock), 0);
    assert_int_equal(clock_gettime(w.clock, &now), 0);
    w.until = (double)now.tv_sec + (double)now.tv_nsec / 1e9 + seconds;
    assert_true(run_until(has_worked, &w, SOON));
}

void bench_hang(pid_t pid)
{
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_true(run_until(is_stopped, &pid, SOON));
}

/* The end of every test: nothing of ours is left, and the target, when it was not killed, runs on.
 */
void bench_tear_down(struct bench *b, bool target_lives)
{
    pid_t perf = 0;
    if (b->session) {
        perf = bench_status(b).rec.pid;
        session_free(b->session, TARGET_LEAVE);
    }
    if (perf > 0)
        assert_int_equal(kill(perf, 0), -1);
    loop_free(b->loop);
    fflush(stdout);
    if (target_lives) {
        assert_int_equal(waitpid(b->target.pid, NULL, WNOHANG), 0);
        assert_int_equal(is_stopped(&b->target.pid), b->target_hangs);
        run_kill(&b->target);
    } else {
        close(b->target.in);
        fclose(b->target.out);
    }
    assert_int_equal(open_fds(), b->fds);
    session_setup_free(&b->setup);
    free(b->caps);
    run_remove_tree(b->tmp);
    free(b->tmp);
}

/* ---- What targets do ---- */

const char *const bench_change_names[] = {"the target executes another program", "the target forks",
                                          "the target forks and is killed", "another has the target's pid"};

static bool sleeps(void *arg)
{
    struct bench *b = arg;
    char *path = xasprintf("/proc/%ld/comm", (long)b->target.pid);
    char *comm = run_read_file(path, NULL);
    bool yes = comm && !strcmp(comm, "sleep\n");
    free(comm);
    free(path);
    return yes;
}

static pid_t fork_target(struct bench *b)
{
    char line[32];
    kill(b->target.pid, SIGUSR2);
    assert_non_null(fgets(line, sizeof line, b->target.out));
    return (pid_t)strtol(line, NULL, 10);
}

static void kill_target(struct bench *b)
{
    kill(b->target.pid, SIGKILL);
    waitpid(b->target.pid, NULL, 0);
}

bool bench_change(struct bench *b, enum bench_change change, pid_t *other)
{
    *other = 0;
    if (change == BENCH_EXEC) {
        kill(b->target.pid, SIGUSR1);
        assert_true(run_until(sleeps, b, SOON));
        return true;
    }
    if (change != BENCH_REPLACED)
        *other = fork_target(b);
    if (change != BENCH_FORK)
        kill_target(b);
    if (change == BENCH_REPLACED) {
        *other = run_fork_as(b->target.pid);
        if (*other == 0)
            for (;;)
                pause();
    }
    return *other > 0 || change != BENCH_REPLACED;
}

void bench_end_other(pid_t other, bool ours)
{
    if (other <= 0)
        return;
    assert_int_equal(kill(other, 0), 0);
    if (ours)
        assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
    kill(other, SIGKILL);
    if (ours)
        waitpid(other, NULL, 0);
}

bool bench_log_has(struct bench *b, const char *text)
{
    for (size_t i = 0; i < session_log_count(b->session); i++)
        if (strstr(session_log_at(b->session, i).text, text))
            return true;
    return false;
}

struct snapshot_hit *bench_read_hits(struct bench *b, size_t *n)
{
    struct snapshot_hit *hits;
    size_t bad;
    assert_int_equal(snapshot_dir_read_hits(session_dir(b->session), &hits, n, &bad, NULL), 0);
    assert_int_equal(bad, 0);
    return hits;
}

bool bench_is_busy(void *arg)
{
    bench_turn(arg);
    return bench_status(arg).rec.snapshot_busy;
}

bool bench_is_idle(void *arg)
{
    bench_turn(arg);
    return !bench_status(arg).rec.snapshot_busy;
}

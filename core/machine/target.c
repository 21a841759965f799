#include "core/machine/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/proc.h"
#include "core/machine/proc_access.h"
#include "core/machine/pty_log.h"
#include "core/machine/spawn.h"

#define END_GRACE_MS 2000

struct target {
    struct loop *loop;
    struct target_callbacks callbacks;
    void *arg;
    enum target_state state;
    pid_t pid;
    uint64_t start_time;
    int pidfd, pid_source;
    bool ours, reaped, has_status;
    int status;
    char *executable;
    struct spawned spawned; /* −1 descriptors once used */
    int status_source;
    struct pty_log *pty;
    struct err error;
};

/* ---- Can it be traced ---- */

static int check(pid_t pid, bool by_perf, struct err *err)
{
    struct proc p = {0};
    struct proc_exe exe = {0};
    char reason[256] = "";
    if (pid <= 0)
        return err_set(err, MTUI_E_INVAL, "%d is no process id", (int)pid);
    int rc = proc_stat_read("/proc", pid, 0, &p.stat, err);
    if (rc < 0)
        return rc == MTUI_E_GONE || rc == MTUI_E_NOENT
                   ? err_set(err, MTUI_E_GONE, "there is no process %d", (int)pid)
                   : rc;
    proc_exe_look("/proc", &p.stat, &exe);
    p.trace = proc_access_check(true, &p.stat, &exe);
    bool by_kernel = p.trace == PROC_TRACE_NO_PERM || p.trace == PROC_TRACE_SECCOMP;
    if (p.trace == PROC_TRACE_OK || (by_kernel && !by_perf))
        return 0;
    proc_trace_reason(&p, reason, sizeof reason);
    int code = by_kernel                      ? MTUI_E_PERM
               : p.trace == PROC_TRACE_ZOMBIE ? MTUI_E_GONE
                                              : MTUI_E_NOTSUP;
    return err_set(err, code, "process %d cannot be traced: %s", (int)pid, reason);
}

int target_check(pid_t pid, struct err *err)
{
    return check(pid, false, err);
}

int target_check_perf(pid_t pid, struct err *err)
{
    return check(pid, true, err);
}

/* ---- Life ---- */

static void set_state(struct target *t, enum target_state state)
{
    if (t->state == state || t->state == TARGET_ENDED || t->state == TARGET_FAILED)
        return;
    t->state = state;
    if (t->callbacks.changed)
        t->callbacks.changed(t->arg, state);
}

/* A child of ours: takes its status. ECHILD (SIGCHLD ignored, or another waited): it is unknown. */
static void reap(struct target *t)
{
    int status = 0;
    pid_t rc;
    if (!t->ours || t->reaped)
        return;
    do
        rc = waitpid(t->pid, &status, WNOHANG);
    while (rc < 0 && errno == EINTR);
    if (rc == 0)
        return;
    t->reaped = true;
    if (rc == t->pid) {
        t->has_status = true;
        t->status = status;
    }
}

static void read_exec_status(struct target *t)
{
    int errno_value = 0;
    ssize_t n;
    if (t->spawned.status_fd < 0)
        return;
    do
        n = read(t->spawned.status_fd, &errno_value, sizeof errno_value);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return;
    loop_remove(t->loop, t->status_source);
    (void)close(t->spawned.status_fd);
    t->spawned.status_fd = -1;
    if (n == sizeof errno_value) {
        (void)spawn_explain(&t->error, errno_value, t->executable);
        set_state(t, TARGET_FAILED);
    } else {
        set_state(t, TARGET_RUNNING);
    }
}

static void on_exec_status(void *arg, int fd, short revents)
{
    (void)fd;
    (void)revents;
    read_exec_status(arg);
}

static void on_end(void *arg, int fd, short revents)
{
    struct target *t = arg;
    (void)fd;
    (void)revents;
    loop_remove(t->loop, t->pid_source);
    t->pid_source = 0;
    reap(t);
    if (t->pty)
        pty_log_drain(t->pty);
    read_exec_status(t);
    set_state(t, TARGET_ENDED);
}

static void on_pty(void *arg)
{
    struct target *t = arg;
    if (t->callbacks.output)
        t->callbacks.output(t->arg);
}

static struct target *new_target(struct loop *loop, const struct target_callbacks *callbacks,
                                 void *arg)
{
    struct target *t = xcalloc(1, sizeof *t);
    t->loop = loop;
    if (callbacks)
        t->callbacks = *callbacks;
    t->arg = arg;
    t->pidfd = -1;
    t->spawned = (struct spawned){.go_fd = -1, .status_fd = -1};
    return t;
}

/* The pidfd is opened first and the start time read after it: both are of the same process unless
 * the pidfd is readable by then. */
static int identify(struct target *t, pid_t pid, struct err *err)
{
    struct proc_stat st;
    struct pollfd p = {.events = POLLIN};
    t->pidfd = pidfd_open(pid, 0);
    if (t->pidfd < 0)
        return errno == ESRCH ? err_set(err, MTUI_E_GONE, "there is no process %d", (int)pid)
                              : err_errno(err, errno, "process %d", (int)pid);
    int rc = proc_stat_read("/proc", pid, 0, &st, err);
    if (rc < 0)
        return rc;
    p.fd = t->pidfd;
    if (poll(&p, 1, 0) == 1)
        return err_set(err, MTUI_E_GONE, "process %d has ended", (int)pid);
    t->pid = pid;
    t->start_time = st.start_ticks;
    t->pid_source = loop_add_fd(t->loop, t->pidfd, POLLIN, on_end, t);
    return 0;
}

int target_attach(struct loop *loop, pid_t pid, const struct target_callbacks *callbacks, void *arg,
                  struct target **out, struct err *err)
{
    int rc = target_check(pid, err);
    if (rc < 0)
        return rc;
    struct target *t = new_target(loop, callbacks, arg);
    t->state = TARGET_RUNNING;
    rc = identify(t, pid, err);
    if (rc < 0) {
        target_free(t, TARGET_LEAVE);
        return rc;
    }
    *out = t;
    return 0;
}

int target_run(struct loop *loop, const struct target_run_options *options,
               const struct target_callbacks *callbacks, void *arg, struct target **out,
               struct err *err)
{
    struct spawn_options spawn = {.argv = options->argv, .tty = -1};
    if (!proc_access_is_own())
        return err_set(err, MTUI_E_NOTSUP,
                       "/proc belongs to another pid namespace than mtui: mount a proc of this one "
                       "(unshare --mount-proc), or run mtui outside");
    struct target *t = new_target(loop, callbacks, arg);
    int rc = options->argv[0] ? spawn_find_program(options->argv[0], &t->executable, err)
                              : err_set(err, MTUI_E_INVAL, "no program given");
    if (rc == 0 && options->stdio == TARGET_PTY)
        rc = pty_log_new(loop, options->output_path, options->rows, options->cols, on_pty, t,
                         &t->pty, &spawn.tty, err);
    spawn.path = t->executable;
    if (rc == 0)
        rc = spawn_waiting(&spawn, &t->spawned, err);
    if (spawn.tty >= 0)
        (void)close(spawn.tty);
    if (rc == 0) {
        t->ours = true;
        t->pid = t->spawned.pid;
        rc = identify(t, t->pid, err);
    }
    if (rc < 0) {
        target_free(t, TARGET_END);
        return rc;
    }
    t->status_source = loop_add_fd(loop, t->spawned.status_fd, POLLIN, on_exec_status, t);
    *out = t;
    return 0;
}

int target_go(struct target *t, struct err *err)
{
    if (t->state != TARGET_WAITING || t->spawned.go_fd < 0)
        return err_set(err, MTUI_E_STATE, "the program is running already");
    ssize_t n = write(t->spawned.go_fd, "g", 1);
    int errno_value = errno;
    (void)close(t->spawned.go_fd);
    t->spawned.go_fd = -1;
    return n == 1 ? 0 : err_errno(err, errno_value, "starting %s", t->executable);
}

/* Waits on the pidfd; true when it has ended. */
static bool ended_within(const struct target *t, int ms)
{
    struct pollfd p = {.fd = t->pidfd, .events = POLLIN};
    int rc;
    do
        rc = poll(&p, 1, ms);
    while (rc < 0 && errno == EINTR);
    return rc == 1;
}

static void end_program(struct target *t)
{
    if (!t->ours || t->reaped || t->pidfd < 0)
        return;
    bool waiting = t->state == TARGET_WAITING && t->spawned.go_fd >= 0;
    if (!waiting)
        (void)pidfd_send_signal(t->pidfd, SIGTERM, NULL, 0);
    else
        (void)close(t->spawned.go_fd), t->spawned.go_fd = -1;
    if (!ended_within(t, END_GRACE_MS)) {
        (void)pidfd_send_signal(t->pidfd, SIGKILL, NULL, 0);
        (void)ended_within(t, END_GRACE_MS);
    }
    reap(t);
}

void target_free(struct target *t, enum target_leave leave)
{
    if (!t)
        return;
    loop_remove(t->loop, t->pid_source);
    loop_remove(t->loop, t->status_source);
    if (leave == TARGET_END || t->spawned.go_fd >= 0)
        end_program(t);
    reap(t);
    pty_log_free(t->pty, leave == TARGET_LEAVE && t->ours && !t->reaped);
    if (t->spawned.go_fd >= 0)
        (void)close(t->spawned.go_fd);
    if (t->spawned.status_fd >= 0)
        (void)close(t->spawned.status_fd);
    if (t->pidfd >= 0)
        (void)close(t->pidfd);
    free(t->executable);
    free(t);
}

/* ---- Asking ---- */

enum target_state target_state(const struct target *t)
{
    return t->state;
}

pid_t target_pid(const struct target *t)
{
    return t->pid;
}

uint64_t target_start_time(const struct target *t)
{
    return t->start_time;
}

bool target_is_ours(const struct target *t)
{
    return t->ours;
}

const char *target_executable(const struct target *t)
{
    return t->executable;
}

bool target_exit_status(const struct target *t, int *status)
{
    if (t->has_status)
        *status = t->status;
    return t->has_status;
}

char *target_describe(const struct target *t, char *out, size_t size)
{
    const char *signal_name = NULL;
    if (t->state == TARGET_WAITING)
        (void)snprintf(out, size, "waiting to start");
    else if (t->state == TARGET_RUNNING)
        (void)snprintf(out, size, "running");
    else if (t->state == TARGET_FAILED)
        (void)snprintf(out, size, "not started");
    else if (!t->has_status)
        (void)snprintf(out, size, "ended");
    else if (WIFEXITED(t->status))
        (void)snprintf(out, size, "exited with status %d", WEXITSTATUS(t->status));
    else if ((signal_name = sigabbrev_np(WTERMSIG(t->status))))
        (void)snprintf(out, size, "killed by SIG%s%s", signal_name,
                       WCOREDUMP(t->status) ? " (core dumped)" : "");
    else
        (void)snprintf(out, size, "killed by signal %d", WTERMSIG(t->status));
    return out;
}

const struct err *target_error(const struct target *t)
{
    return &t->error;
}

static int by_tid(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

size_t target_threads(const struct target *t, pid_t *tids, size_t max)
{
    char path[64];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)t->pid);
    DIR *dir = t->state == TARGET_ENDED ? NULL : opendir(path);
    struct dirent *d;
    while (dir && (d = readdir(dir))) {
        pid_t tid = (pid_t)strtol(d->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        if (n < max)
            tids[n] = tid;
        n++;
    }
    if (dir)
        (void)closedir(dir);
    qsort(tids, n < max ? n : max, sizeof *tids, by_tid);
    return n;
}

int target_signal(struct target *t, int sig, struct err *err)
{
    if (pidfd_send_signal(t->pidfd, sig, NULL, 0) == 0)
        return 0;
    return errno == ESRCH ? err_set(err, MTUI_E_GONE, "process %d has ended", (int)t->pid)
                          : err_errno(err, errno, "sending a signal to process %d", (int)t->pid);
}

const char *target_last_lines(const struct target *t, size_t lines, size_t *len)
{
    if (!t->pty) {
        *len = 0;
        return "";
    }
    return pty_log_last_lines(t->pty, lines, len);
}

const char *target_output_problem(const struct target *t)
{
    return t->pty ? pty_log_problem(t->pty) : NULL;
}

int target_input(struct target *t, const char *bytes, size_t n, struct err *err)
{
    if (!t->pty)
        return err_set(err, MTUI_E_STATE, "the program has no terminal of ours");
    return pty_log_input(t->pty, bytes, n, err);
}

void target_resize(struct target *t, unsigned short rows, unsigned short cols)
{
    if (t->pty)
        pty_log_resize(t->pty, rows, cols);
}

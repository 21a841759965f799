#include "core/machine/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

#define LINE_MAX_BYTES           8192
#define POLL_NS                  20000000 /* where there are no pidfds */
#define CLOSE_RANGE_CLOEXEC_FLAG 4        /* linux/close_range.h */

extern char **environ;

struct child {
    struct loop *loop;
    struct child_events events;
    pid_t pid;
    int pidfd; /* -1: this kernel has none */
    int out_fd;
    int pid_watch, out_watch, poll_timer;
    bool reaped, spare;
    struct child_end end;
    char line[LINE_MAX_BYTES];
    size_t line_len;
    bool line_cut; /* the rest of an overlong line is dropped */
};

static bool same_name(const char *assignment, const char *name)
{
    size_t len = strlen(name);
    return !strncmp(assignment, name, len) && assignment[len] == '=';
}

/* Our environment with what perf must not inherit replaced. The strings are environ's or literals;
 * the vector is the caller's. */
static char **make_environment(void)
{
    static const char *const ours[] = {"PAGER=cat", "PERF_PAGER=cat",
                                       "DEBUGINFOD_URLS=", "PERF_CONFIG=/dev/null"};
    static const char *const names[] = {"PAGER", "PERF_PAGER", "DEBUGINFOD_URLS", "PERF_CONFIG"};
    enum { N = sizeof ours / sizeof *ours };
    VEC(char *) env = {0};
    for (char **e = environ; *e; e++) {
        bool replaced = false;
        for (size_t i = 0; i < N; i++)
            replaced |= same_name(*e, names[i]);
        if (!replaced)
            vec_push(&env, *e);
    }
    for (size_t i = 0; i < N; i++)
        vec_push(&env, (char *)(uintptr_t)ours[i]);
    vec_push(&env, NULL);
    return env.data;
}

/* But for the limit on the size of files: what meets it is to fail, and to close what it has written. */
static void reset_signals(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
    for (int sig = 1; sig < NSIG; sig++)
        sigaction(sig, sig == SIGXFSZ ? &ignore : &dfl, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Moves each descriptor to its number. First all out of the way: a source may carry another one's
 * number. Everything else closes at the exec. */
static bool place_fds(const struct child_spec *spec, int out_fd)
{
    int high[8];
    if (spec->n_fds > sizeof high / sizeof *high)
        return false;
    for (size_t i = 0; i < spec->n_fds; i++)
        if ((high[i] = fcntl(spec->fds[i].from, F_DUPFD_CLOEXEC, 64)) < 0)
            return false;
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int out = fcntl(out_fd, F_DUPFD_CLOEXEC, 64);
    if (null_fd < 0 || out < 0 || dup2(null_fd, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        return false;
    syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC_FLAG); /* our own are CLOEXEC anyway */
    for (size_t i = 0; i < spec->n_fds; i++)
        if (dup2(high[i], spec->fds[i].to) < 0)
            return false;
    return true;
}

/* Between fork and exec: only async-signal-safe calls. */
static void run_child(const struct child_spec *spec, char **env, pid_t parent, int out_fd,
                      int report_fd)
{
    int report = fcntl(report_fd, F_DUPFD_CLOEXEC, 64);
    setpgid(0, 0);
    reset_signals();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it died before the line above */
        _exit(127);
    if (place_fds(spec, out_fd))
        execvpe(spec->argv[0], spec->argv, env);
    int e = errno;
    ssize_t n = write(report, &e, sizeof e);
    (void)n;
    _exit(127);
}

static void deliver(struct child *c)
{
    size_t len = c->line_len;
    c->line_len = 0;
    if (!c->line_cut && c->events.line)
        c->events.line(c->events.arg, c->line, len);
    c->line_cut = false;
}

static void take_output(struct child *c, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n') {
            deliver(c);
            continue;
        }
        if (c->line_len == sizeof c->line && !c->line_cut) {
            deliver(c);
            c->line_cut = true;
        }
        if (!c->line_cut)
            c->line[c->line_len++] = bytes[i];
    }
}

static void close_output(struct child *c)
{
    if (c->out_fd < 0)
        return;
    loop_remove(c->loop, c->out_watch);
    close(c->out_fd);
    c->out_fd = -1;
    if (c->line_len)
        deliver(c);
}

/* Reads what is there, at most max_reads pieces; false at the end of it. */
static bool drain(struct child *c, int max_reads)
{
    char buf[16384];
    for (int i = 0; i < max_reads; i++) {
        ssize_t n = read(c->out_fd, buf, sizeof buf);
        if (n > 0)
            take_output(c, buf, (size_t)n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return false;
        else if (errno == EAGAIN)
            return true;
    }
    return true;
}

void child_drain(struct child *c)
{
    if (c->out_fd >= 0 && !drain(c, 1 << 16))
        close_output(c);
}

static void output_readable(void *arg, int fd, short revents)
{
    struct child *c = arg;
    (void)fd;
    (void)revents;
    if (!drain(c, 8))
        close_output(c);
}

static bool reap(struct child *c)
{
    if (c->reaped)
        return true;
    int status = 0;
    pid_t got = waitpid(c->pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    c->reaped = true;
    c->end = (struct child_end){0};
    if (got > 0) {
        c->end.known = true;
        c->end.signaled = WIFSIGNALED(status);
        c->end.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    }
    return true;
}

static void finish_if_dead(struct child *c)
{
    if (!reap(c))
        return;
    loop_remove(c->loop, c->pid_watch);
    loop_remove(c->loop, c->poll_timer);
    c->pid_watch = c->poll_timer = 0;
    /* All that it wrote is in the pipe by now; a descendant that holds the pipe is not waited for.
     */
    if (c->out_fd >= 0)
        drain(c, 1 << 16);
    close_output(c);
    if (c->events.ended)
        c->events.ended(c->events.arg, &c->end);
}

static void pid_readable(void *arg, int fd, short revents)
{
    (void)fd;
    (void)revents;
    finish_if_dead(arg);
}

static void poll_pid(void *arg)
{
    struct child *c = arg;
    c->poll_timer = loop_add_timer(c->loop, loop_now_ns(c->loop) + POLL_NS, poll_pid, c);
    finish_if_dead(c);
}

static void watch(struct child *c)
{
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    if (c->pidfd >= 0) {
        fcntl(c->pidfd, F_SETFD, FD_CLOEXEC);
        c->pid_watch = loop_add_fd(c->loop, c->pidfd, POLLIN, pid_readable, c);
    } else {
        c->poll_timer = loop_add_timer(c->loop, loop_now_ns(c->loop) + POLL_NS, poll_pid, c);
    }
    fcntl(c->out_fd, F_SETFL, O_NONBLOCK);
    c->out_watch = loop_add_fd(c->loop, c->out_fd, POLLIN, output_readable, c);
}

static void close_pair(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Waits until the exec has happened (the pipe closes) or failed (its errno is in the pipe). */
static int exec_result(int fd)
{
    int e = 0;
    ssize_t n;
    do
        n = read(fd, &e, sizeof e);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof e ? e : 0;
}

int child_spawn(struct loop *loop, const struct child_spec *spec, const struct child_events *events,
                struct child **out, struct err *err)
{
    int output[2] = {-1, -1}, report[2] = {-1, -1};
    if (pipe2(output, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0) {
        int e = errno;
        close_pair(output);
        return err_errno(err, e, "no pipe for \"%s\"", spec->argv[0]);
    }
    char **env = make_environment();
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        run_child(spec, env, parent, output[1], report[1]);
    int e = pid < 0 ? errno : 0;
    free(env);
    close(output[1]);
    close(report[1]);
    if (!e)
        e = exec_result(report[0]);
    close(report[0]);
    if (e) {
        close(output[0]);
        if (pid > 0)
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        return err_errno(err, e, "\"%s\" cannot be started", spec->argv[0]);
    }
    setpgid(pid, pid); /* the child does it too: whoever comes first */
    struct child *c = xcalloc(1, sizeof *c);
    c->loop = loop;
    c->events = *events;
    c->spare = spec->spare;
    c->pid = pid;
    c->out_fd = output[0];
    watch(c);
    *out = c;
    return 0;
}

static bool wait_dead(struct child *c, int tries_10ms)
{
    for (int i = 0; i < tries_10ms && !reap(c); i++) {
        struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
        poll(&p, c->pidfd >= 0, 10);
    }
    return c->reaped;
}

void child_free(struct child *c)
{
    if (!c)
        return;
    if (!reap(c)) {
        close_output(c); /* or it may never get out of a write */
        child_signal(c, SIGTERM, NULL);
        child_signal(c, SIGCONT, NULL); /* or a stopped one never takes it */
        if (!wait_dead(c, c->spare ? 1000 : 100) && !c->spare) {
            child_signal(c, SIGKILL, NULL);
            wait_dead(c, 100);
        }
    }
    loop_remove(c->loop, c->pid_watch);
    loop_remove(c->loop, c->poll_timer);
    loop_remove(c->loop, c->out_watch);
    if (c->pidfd >= 0)
        close(c->pidfd);
    if (c->out_fd >= 0)
        close(c->out_fd);
    free(c);
}

pid_t child_pid(const struct child *c)
{
    return c->pid;
}

int child_signal(struct child *c, int sig, struct err *err)
{
    if (c->reaped)
        return err_set(err, MTUI_E_GONE, "process %d has ended", (int)c->pid);
    long rc =
        c->pidfd >= 0 ? syscall(SYS_pidfd_send_signal, c->pidfd, sig, NULL, 0) : kill(c->pid, sig);
    if (rc < 0)
        return err_errno(err, errno, "signal %d to process %d", sig, (int)c->pid);
    return 0;
}

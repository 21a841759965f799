#include "core/step_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fmt.h"
#include "core/step_file.h"
#include "core/utf8.h"
#include "core/vec.h"

#define STEPS_BETWEEN_LOOKS 256 /* stops handled between two looks at the control pipe: about 10 ms */

struct recorder {
    const struct step_recorder_options *opt;
    struct step_tracer *tracer;
    int signal_fd;
    char line[64];
    size_t line_len;
    bool wanted;            /* a snapshot was asked for and is not written yet */
    bool stopping, failed;
    unsigned dumps;
    struct err failure;
    VEC(struct step_packets) done; /* windows that no file has yet */
};

static void say(const struct recorder *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(const struct recorder *r, const char *fmt, ...)
{
    char raw[700], line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    size_t n = utf8_escape(line, sizeof line - 1, raw, strlen(raw));
    line[n++] = '\n';
    ssize_t w = write(r->opt->say_fd, line, n);
    (void)w; /* nobody listens any more: the pipe's end ends us by the control descriptor */
}

/* ---- files ---- */

static void forget_windows(struct recorder *r)
{
    for (size_t i = 0; i < r->done.len; i++)
        step_packets_free(&r->done.data[i]);
    r->done.len = 0;
}

static void take(void *arg, const struct step_window *w)
{
    struct recorder *r = arg;
    struct step_packets p;
    if (step_packets_take(&p, w))
        vec_push(&r->done, p);
    else
        say(r, "no memory to keep the window of thread %d", (int)w->tid);
}

static bool write_file(struct recorder *r, const char *path)
{
    struct err err;
    int rc = step_file_write(path, r->opt->tracer.pid, &r->opt->tracer.encoding,
                             step_tracer_sideband(r->tracer), r->done.data, r->done.len, &err);
    if (rc < 0) {
        say(r, "%s", err.text);
        r->failure = err;
        r->failed = true;
    }
    forget_windows(r);
    return rc == 0;
}

static void write_snapshot(struct recorder *r)
{
    char *path = xasprintf("%s.%u", r->opt->output, ++r->dumps);
    r->wanted = false;
    if (write_file(r, path))
        say(r, "[ perf record: Dump %s ]", path);
    free(path);
}

/* A snapshot is due when it was asked for and there is something that will not grow any more; without
 * sites, whatever has been stepped so far. */
static void snapshot_if_due(struct recorder *r)
{
    if (!r->wanted || r->opt->one_file)
        return;
    if (!r->opt->tracer.n_sites && !r->done.len)
        step_tracer_each_window(r->tracer, take, r);
    if (r->done.len)
        write_snapshot(r);
}

/* ---- what the tracer reports ---- */

static void on_hit(void *arg, pid_t tid, size_t site, uint64_t clock)
{
    struct recorder *r = arg;
    say(r, "stepping thread %d from site %zu at instruction %" PRIu64, (int)tid, site,
        clock - STEP_CLOCK_START);
}

static void on_window(void *arg, const struct step_window *w)
{
    struct recorder *r = arg;
    char count[FMT_MAX], time[FMT_MAX];
    if (r->opt->tracer.n_sites && !r->opt->one_file && !r->wanted)
        forget_windows(r); /* only the latest call is kept for a snapshot that is asked for later */
    take(r, w);
    say(r, "stepped thread %d: %s instructions in %s, ended: %s", (int)w->tid,
        fmt_count(count, step_thread_instructions(w->thread)), fmt_duration(time, w->wall_ns),
        step_end_name(w->end));
}

static void on_message(void *arg, const char *sentence)
{
    say(arg, "%s", sentence);
}

/* ---- control ---- */

static void acknowledge(const struct recorder *r)
{
    ssize_t n = write(r->opt->ack_fd, "ack\n", 5); /* with its NUL, as perf does */
    (void)n;
}

static void obey(struct recorder *r, const char *command)
{
    struct err err = {0};
    if (strcmp(command, "enable") == 0 || strcmp(command, "disable") == 0) {
        if (step_tracer_enable(r->tracer, command[0] == 'e', &err) < 0)
            say(r, "%s", err.text);
    } else if (strcmp(command, "snapshot") == 0) {
        r->wanted = true;
    } else if (strcmp(command, "stop") == 0) {
        r->stopping = true;
    } else if (strcmp(command, "ping") != 0) {
        say(r, "unknown command '%s'", command);
        return;
    }
    acknowledge(r);
}

static void read_commands(struct recorder *r)
{
    char got[64];
    ssize_t n = read(r->opt->ctl_fd, got, sizeof got);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) { /* mtui is gone */
        r->stopping = true;
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        if (got[i] == '\n') {
            r->line[r->line_len] = '\0';
            obey(r, r->line);
            r->line_len = 0;
        } else if (r->line_len + 1 < sizeof r->line) {
            r->line[r->line_len++] = got[i];
        }
    }
}

static void read_signals(struct recorder *r)
{
    struct signalfd_siginfo info;
    while (read(r->signal_fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            r->stopping = true;
}

/* Looks at the pipe and the signals; waits for them when no thread is being stepped. */
static void look(struct recorder *r, bool wait)
{
    struct pollfd p[] = {{.fd = r->signal_fd, .events = POLLIN},
                         {.fd = r->opt->ctl_fd, .events = POLLIN}}; /* a negative fd is ignored */
    if (poll(p, 2, wait ? -1 : 0) <= 0)
        return;
    if (p[0].revents)
        read_signals(r);
    if (p[1].revents)
        read_commands(r);
}

static int block_signals(struct recorder *r, struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD); /* a thread has stopped */
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    signal(SIGCHLD, SIG_DFL); /* ignored, the kernel would reap for us */
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    r->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return r->signal_fd < 0 ? err_errno(err, errno, "signalfd") : 0;
}

static void record(struct recorder *r)
{
    while (!r->stopping && step_tracer_threads(r->tracer)) {
        bool busy = step_tracer_run(r->tracer, STEPS_BETWEEN_LOOKS);
        snapshot_if_due(r);
        look(r, !busy && step_tracer_threads(r->tracer));
    }
}

/* The windows in progress end; what was asked for, or the one file, is written. */
static void finish(struct recorder *r)
{
    struct err err;
    step_tracer_enable(r->tracer, false, &err);
    step_tracer_release(r->tracer);
    if (r->opt->one_file)
        write_file(r, r->opt->output);
    else if (r->wanted && r->done.len)
        write_snapshot(r);
}

int step_recorder_run(const struct step_recorder_options *options, struct err *err)
{
    struct recorder r = {.opt = options};
    struct step_tracer_callbacks cb = {
        .hit = on_hit, .window = on_window, .message = on_message, .arg = &r};
    int rc = block_signals(&r, err);
    if (rc == 0)
        rc = step_tracer_new(&r.tracer, &options->tracer, &cb, err);
    if (rc < 0)
        return rc;
    if (options->ctl_fd < 0)
        rc = step_tracer_enable(r.tracer, true, err);
    if (rc == 0)
        record(&r);
    finish(&r);
    step_tracer_free(r.tracer);
    forget_windows(&r);
    vec_free(&r.done);
    close(r.signal_fd);
    if (r.failed && err)
        *err = r.failure;
    return rc < 0 ? rc : r.failed ? MTUI_E_IO : 0;
}

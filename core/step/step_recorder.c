#include "core/step/step_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/trigger/perf_clock.h"
#include "core/step/step_anchors.h"
#include "core/step/step_file.h"
#include "core/record/step_message.h"
#include "core/step/step_orphan.h"
#include "core/step/step_say.h"
#include "core/step/step_signals.h"
#include "core/step/step_sites.h"
#include "core/base/vec.h"

#define STEPS_BETWEEN_LOOKS 256 /* stops handled between two looks at the control pipe: about 10 ms */
#define LOOK_US             100000 /* and a look is taken at least that often, whatever the target does */
#define UNASKED_NS          2000000000u /* a call that was stepped waits that long to be asked for */

struct recorder {
    const struct step_recorder_options *opt;
    struct step_tracer *tracer;
    struct step_say *say;
    struct perf_clock *clock;
    FILE *anchors;
    struct step_signals signals;
    char line[64];
    size_t line_len;
    VEC(struct trigger_policy) policies; /* by trigger */
    bool wanted;                         /* a snapshot was asked for and is not written yet */
    bool fired;                          /* a hit was reported whose call is not written yet */
    uint64_t fired_until_ns;             /* when it is over and nobody asks; wall clock */
    pid_t parent;
    bool stopping, failed, progressed;
    bool ended;    /* by a signal: nobody will ask for what there is */
    bool orphaned; /* mtui is gone: nobody asks for anything or takes the files any more */
    uint64_t unsaid; /* hits that were not reported */
    unsigned dumps;
    struct err failure;
    VEC(struct step_packets) done; /* windows that no file has yet */
    uint64_t dropped, dropped_bytes; /* of them, those for which the ring had no room, and their packets */
};

static void tell(struct recorder *r, const struct step_message *m)
{
    char text[STEP_MESSAGE_MAX];
    step_message_format(m, text);
    bool must = m->kind == STEP_MESSAGE_AT || m->kind == STEP_MESSAGE_DROPPED;
    if (!step_say_line(r->say, must, "%s", text))
        r->unsaid++;
}

/* ---- files ---- */

static void forget_windows(struct recorder *r)
{
    for (size_t i = 0; i < r->done.len; i++)
        step_packets_free(&r->done.data[i]);
    r->done.len = 0;
    r->dropped = r->dropped_bytes = 0;
}

static void take(void *arg, const struct step_window *w)
{
    struct recorder *r = arg;
    struct step_packets p;
    if (step_packets_take(&p, w))
        vec_push(&r->done, p);
    else
        step_say_line(r->say, true, "no memory to keep the window of thread %d", (int)w->tid);
}

/* A file that cannot be written is the end: the next would fare no better, and whoever asked waits for
 * it. */
static void fail(struct recorder *r, const struct err *why)
{
    if (!r->failed)
        r->failure = *why;
    r->failed = r->stopping = true;
}

/* True when there is a file; it may lack what did not fit. */
static bool write_file(struct recorder *r, const char *path)
{
    struct err err;
    bool newest = !r->opt->tracer.at_sites; /* of a call its beginning tells most */
    if (r->dropped)
        tell(r, &(struct step_message){.kind = STEP_MESSAGE_DROPPED, .threads = r->dropped, .bytes = r->dropped_bytes});
    int rc = step_file_write(path, r->opt->tracer.pid, &r->opt->tracer.encoding, newest,
                             step_tracer_sideband(r->tracer), r->done.data, r->done.len, &err);
    if (rc < 0)
        fail(r, &err);
    forget_windows(r);
    return rc == 0 || access(path, F_OK) == 0;
}

static void write_snapshot(struct recorder *r)
{
    char *path = xasprintf("%s.%u", r->opt->output, ++r->dumps);
    r->wanted = r->fired = false;
    tell(r, &(struct step_message){.kind = STEP_MESSAGE_AT,
                                   .clock = step_tracer_clock(r->tracer),
                                   .perf_ns = perf_clock_now_ns(r->clock)});
    if (write_file(r, path))
        step_say_line(r->say, true, "[ perf record: Dump %s ]", path);
    free(path);
}

/* A snapshot is due when it was asked for and there is something that will not grow any more; when
 * everything is stepped, whatever has been stepped so far. */
static void snapshot_if_due(struct recorder *r)
{
    if (!r->wanted || r->opt->one_file)
        return;
    if (!r->opt->tracer.at_sites)
        step_tracer_each_window(r->tracer, take, r);
    if (r->done.len)
        write_snapshot(r);
}

/* Threads that came and went leave their packets: the newest of a ring's size are kept. */
static void trim_done(struct recorder *r)
{
    size_t keep = r->opt->tracer.ring_bytes, bytes = 0, first = r->done.len;
    while (first > 0 && bytes < keep)
        bytes += r->done.data[--first].len;
    for (size_t i = 0; i < first; i++) {
        r->dropped_bytes += r->done.data[i].len;
        step_packets_free(&r->done.data[i]);
    }
    r->dropped += first;
    memmove(r->done.data, r->done.data + first, (r->done.len - first) * sizeof *r->done.data);
    r->done.len -= first;
}

static struct step_anchor anchor(const struct recorder *r, uint64_t clock, pid_t tid, uint64_t wall_ns)
{
    return (struct step_anchor){clock, perf_clock_now_ns(r->clock), tid, wall_ns};
}

/* ---- what the tracer reports ---- */

/* From a hit that fires to the file with its call, other hits are busy; in one file there is room for
 * all of them. */
static bool is_busy(const struct recorder *r)
{
    return r->fired && !r->opt->one_file &&
           (r->wanted || step_tracer_stepping(r->tracer) ||
            step_tracer_wall_ns() < r->fired_until_ns);
}

static bool on_hit(void *arg, const struct step_hit *hit)
{
    struct recorder *r = arg;
    uint64_t now = perf_clock_now_ns(r->clock);
    while (r->policies.len <= hit->trigger) {
        struct trigger_policy p;
        trigger_policy_init(&p, &r->opt->when, now);
        vec_push(&r->policies, p);
    }
    struct step_message m = {.kind = STEP_MESSAGE_HIT,
                             .tid = hit->tid,
                             .trigger = hit->trigger,
                             .member = hit->member,
                             .address = hit->address,
                             .arg1 = hit->arg1,
                             .arg2 = hit->arg2,
                             .clock = hit->clock,
                             .perf_ns = now};
    m.verdict = trigger_policy_hit(&r->policies.data[hit->trigger], now, false, 0, is_busy(r));
    tell(r, &m);
    if (m.verdict != TRIGGER_FIRE)
        return false;
    r->fired = true;
    struct step_anchor a = anchor(r, hit->clock, hit->tid, 0);
    step_anchors_begin(r->anchors, &a);
    return true;
}

static void on_window(void *arg, const struct step_window *w)
{
    struct recorder *r = arg;
    char count[FMT_MAX], time[FMT_MAX];
    struct err why;
    bool sites = r->opt->tracer.at_sites;
    if (sites && !r->opt->one_file && !r->wanted)
        forget_windows(r); /* only the latest call is kept for a snapshot that is asked for later */
    take(r, w);
    if (step_thread_status(w->thread, &why) < 0)
        fail(r, &why);
    if (!sites && r->opt->tracer.ring_bytes)
        trim_done(r);
    uint64_t dropped;
    size_t kept;
    bool abandoned = r->orphaned && w->end == STEP_END_STOPPED;
    enum step_end end = abandoned ? STEP_END_ABANDONED : w->end;
    struct step_anchor a = anchor(r, w->end_clock, w->tid, w->wall_ns);
    step_thread_packets(w->thread, &kept, &dropped);
    r->fired_until_ns = step_tracer_wall_ns() + UNASKED_NS;
    step_anchors_end(r->anchors, &a, end);
    step_say_line(r->say, true, "stepped thread %d: %s in %s, ended: %s", (int)w->tid,
                  fmt_counted(count, step_thread_instructions(w->thread), "instruction", "instructions"),
                  fmt_duration(time, w->wall_ns), step_end_name(end));
    tell(r, &(struct step_message){.kind = STEP_MESSAGE_ENDED,
                                   .tid = w->tid,
                                   .instructions = step_thread_instructions(w->thread),
                                   .wall_ns = w->wall_ns,
                                   .end = end,
                                   .cut = dropped > 0});
}

static void on_syscall(void *arg, pid_t tid, uint64_t number, uint64_t clock, uint64_t wall_ns)
{
    struct recorder *r = arg;
    struct step_anchor a = anchor(r, clock, tid, wall_ns);
    step_anchors_syscall(r->anchors, &a, number);
}

static void on_message(void *arg, const char *sentence)
{
    struct recorder *r = arg;
    step_say_line(r->say, true, STEP_MESSAGE_NOTE "%s", sentence);
}

/* No thread can be stopped: a recording that would never get anything ends with the reason. */
static void on_refused(void *arg, const struct err *why)
{
    fail(arg, why);
}

/* ---- progress ---- */

static void report_window(void *arg, const struct step_window *w)
{
    struct recorder *r = arg;
    r->progressed = true;
    tell(r, &(struct step_message){.kind = STEP_MESSAGE_WINDOW,
                                   .tid = w->tid,
                                   .instructions = step_thread_instructions(w->thread),
                                   .wall_ns = w->wall_ns});
}

/* Some times a second. */
static void on_timer(struct recorder *r)
{
    char unsaid[FMT_MAX];
    bool before = r->progressed;
    r->progressed = false;
    step_tracer_arm_late(r->tracer);
    step_tracer_end_windows(r->tracer, false);
    step_tracer_each_window(r->tracer, report_window, r);
    if (before && !r->progressed)
        tell(r, &(struct step_message){.kind = STEP_MESSAGE_WINDOW});
    if (r->unsaid && step_say_flush(r->say)) {
        step_say_line(r->say, true, "%s left out: nobody read them", 
                      fmt_counted(unsaid, r->unsaid, "line was", "lines were"));
        r->unsaid = 0;
    }
}

/* ---- control ---- */

static void acknowledge(const struct recorder *r)
{
    ssize_t n = write(r->opt->ack_fd, "ack\n", 5); /* with its NUL, as perf does */
    (void)n;
}

static int enable(struct recorder *r, struct err *err)
{
    struct step_site *list = NULL;
    size_t n = 0;
    if (r->opt->tracer.at_sites) {
        int rc = step_sites_read(r->opt->sites, &list, &n, err);
        if (rc == 0)
            rc = step_tracer_set_sites(r->tracer, list, n, err);
        step_sites_free(list, n);
        if (rc < 0)
            return rc;
    }
    if (step_tracer_enable(r->tracer, true, err) < 0)
        on_refused(r, err);
    return 0;
}

static void want_snapshot(struct recorder *r)
{
    if (r->wanted && r->opt->tracer.at_sites)
        step_tracer_end_windows(r->tracer, true); /* asked twice: what there is will do */
    r->wanted = true;
}

static void obey(struct recorder *r, const char *command)
{
    struct err err = {0};
    int rc = 0;
    if (strcmp(command, "enable") == 0) {
        rc = enable(r, &err);
    } else if (strcmp(command, "disable") == 0) {
        rc = step_tracer_enable(r->tracer, false, &err);
    } else if (strcmp(command, "snapshot") == 0) {
        want_snapshot(r);
    } else if (strcmp(command, "stop") == 0) {
        r->stopping = true;
    } else if (strcmp(command, "ping") != 0) {
        step_say_line(r->say, true, "unknown command '%s'", command);
        return;
    }
    if (rc < 0)
        step_say_line(r->say, true, "%s", err.text);
    acknowledge(r);
}

static void read_commands(struct recorder *r)
{
    char got[64];
    ssize_t n = read(r->opt->ctl_fd, got, sizeof got);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) { /* mtui is gone */
        r->stopping = r->orphaned = true;
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

/* Whatever ends this process has to let go of the target first; PR_SET_PDEATHSIG is among it. */
static void read_signals(struct recorder *r)
{
    if (step_signals_end_asked(&r->signals))
        r->stopping = r->ended = true;
    r->orphaned |= step_orphan_are_we(r->parent, r->opt->ctl_fd);
}

/* Looks at the pipe and the signals; waits for them when no thread is being stepped. */
static void look(struct recorder *r, bool wait)
{
    struct pollfd p[] = {{.fd = r->signals.fd, .events = POLLIN},
                         {.fd = r->opt->ctl_fd, .events = POLLIN}}; /* a negative fd is ignored */
    int n = poll(p, 2, wait ? LOOK_US / 1000 : 0);
    if (n > 0 && p[0].revents)
        read_signals(r);
    if (n > 0 && p[1].revents)
        read_commands(r);
    step_say_flush(r->say);
    if (step_signals_timer_fired()) {
        read_signals(r);
        on_timer(r);
    }
}

static void record(struct recorder *r)
{
    while (!r->stopping && step_tracer_threads(r->tracer)) {
        bool busy = step_tracer_run(r->tracer, STEPS_BETWEEN_LOOKS);
        snapshot_if_due(r);
        look(r, !busy && step_tracer_threads(r->tracer));
    }
}

/* The windows in progress end; what was asked for, or the one file, is written. The call of a hit that fired is about
 * to be asked for, if the target had not ended with it. Without mtui, or by a signal, that is everything there is. */
static void finish(struct recorder *r)
{
    struct err err;
    step_tracer_enable(r->tracer, false, &err);
    step_tracer_release(r->tracer);
    if (r->opt->one_file)
        write_file(r, r->opt->output);
    else if ((r->wanted || r->fired || r->ended || r->failed || r->orphaned) && r->done.len)
        write_snapshot(r);
    if (r->orphaned || step_orphan_are_we(r->parent, r->opt->ctl_fd)) /* perhaps only now */
        step_orphan_keep(r->opt->output, r->dumps);
}

static int open_files(struct recorder *r, struct err *err)
{
    const char *path = r->opt->anchors;
    perf_clock_new(&r->clock, NULL); /* without it the times of anchors are 0 */
    return path ? step_anchors_create(&r->anchors, path, err) : 0;
}

int step_recorder_run(const struct step_recorder_options *options, struct err *err)
{
    struct recorder r = {.opt = options, .say = step_say_new(options->say_fd), .parent = getppid()};
    struct step_tracer_callbacks cb = {.hit = on_hit,
                                       .window = on_window,
                                       .syscall = on_syscall,
                                       .message = on_message,
                                       .refused = on_refused,
                                       .arg = &r};
    int rc = step_signals_open(&r.signals, LOOK_US, err);
    if (rc == 0)
        rc = open_files(&r, err);
    if (rc == 0)
        rc = step_tracer_new(&r.tracer, &options->tracer, &cb, err);
    step_signals_guard(r.tracer);
    if (rc == 0 && options->ctl_fd < 0)
        rc = enable(&r, err);
    if (rc == 0)
        record(&r);
    if (r.tracer)
        finish(&r);
    step_signals_guard(NULL);
    step_tracer_free(r.tracer);
    step_say_free(r.say);
    forget_windows(&r);
    vec_free(&r.done);
    vec_free(&r.policies);
    perf_clock_free(r.clock);
    if (r.anchors)
        fclose(r.anchors);
    step_signals_close(&r.signals);
    if (r.failed && err)
        *err = r.failure;
    return rc < 0 ? rc : r.failed ? MTUI_E_IO : 0;
}

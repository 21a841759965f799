#include "core/record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/record/perf_message.h"
#include "core/record/perf_ready.h"
#include "core/record/recorder_impl.h"
#include "core/base/utf8.h"

#define READY_CHECK_NS      5000000u /* how often an unready perf is looked at */
#define UNANSWERED_CHECKS   200 /* idle in its main loop for that many checks, and no answer: 1 s */
#define COMMAND_DEADLINE_NS 1000000000u /* then a command is shown as overdue */
#define TAIL_LINES          RECORDER_TAIL_LINES

const char *recorder_state_name(enum recorder_state s)
{
    static const char *const names[] = {"spawned",  "pinged",   "enabled", "disabled",
                                        "snapshot", "stopping", "ended",   "failed"};
    return names[s];
}

void recorder_log(struct recorder *r, const char *fmt, ...)
{
    if (!r->events.log)
        return;
    char text[1024], safe[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    utf8_escape(safe, sizeof safe, text, strlen(text));
    r->events.log(r->events.arg, safe);
}

void recorder_set_state(struct recorder *r, enum recorder_state state)
{
    if (r->state == state)
        return;
    r->state = state;
    if (r->events.state)
        r->events.state(r->events.arg, state);
}

bool recorder_is_ready(const struct recorder *r)
{
    return r->state == RECORDER_ENABLED || r->state == RECORDER_DISABLED ||
           r->state == RECORDER_SNAPSHOT;
}

int recorder_signal(struct recorder *r, int sig, struct err *err)
{
    int rc = child_signal(r->child, sig, err);
    if (rc == 0) {
        const char *name = sig == SIGUSR2   ? "SIGUSR2"
                           : sig == SIGINT  ? "SIGINT"
                           : sig == SIGTERM ? "SIGTERM"
                                            : "SIGKILL";
        recorder_note_sent(r, name, loop_now_ns(r->loop));
        recorder_log(r, "%s sent", name);
    }
    return rc;
}

/* ---- commands ---- */

/* Writes the next command if none is outstanding. Without answers (fallen back) none is sent. */
static void pump(struct recorder *r)
{
    struct err err;
    if (!r->active.ctlfd || !r->queue.len || control_outstanding(r->control, NULL, NULL))
        return;
    enum control_command c = r->queue.data[0];
    vec_remove(&r->queue, 0);
    if (control_send(r->control, c, COMMAND_DEADLINE_NS, &err) < 0) {
        recorder_log(r, "%s", err.text);
        return;
    }
    uint64_t sent_ns;
    control_outstanding(r->control, NULL, &sent_ns);
    recorder_note_sent(r, control_command_name(c), sent_ns);
    if (c == CONTROL_SNAPSHOT)
        recorder_snapshot_sent(r, sent_ns);
    if (c == CONTROL_STOP)
        r->finish_sent = true;
}

void recorder_queue(struct recorder *r, enum control_command c, bool first)
{
    for (size_t i = 0; i < r->queue.len; i++)
        if (r->queue.data[i] == c)
            return;
    vec_push(&r->queue, c);
    if (first) {
        memmove(r->queue.data + 1, r->queue.data, (r->queue.len - 1) * sizeof *r->queue.data);
        r->queue.data[0] = c;
    }
    pump(r);
}

static void set_mechanism(struct recorder *r)
{
    static const char *const signals[] = {
        [SIGINT] = "SIGINT", [SIGUSR2] = "SIGUSR2", [SIGTERM] = "SIGTERM"};
    const struct control_row *row = &r->active;
    const char *finish = row->finish.signal ? signals[row->finish.signal]
                                            : control_command_name(row->finish.command);
    const char *snap = row->snapshot.signal ? signals[row->snapshot.signal]
                                            : control_command_name(row->snapshot.command);
    free(r->mechanism);
    if (row->can_snapshot)
        r->mechanism = xasprintf("%s for each snapshot, %s to finish", snap, finish);
    else
        r->mechanism = xasprintf("%s to finish, one file at the end", finish);
}

static void become_enabled(struct recorder *r)
{
    r->enabled = r->was_ready = true;
    recorder_set_state(r, RECORDER_ENABLED);
    recorder_start_heartbeat(r);
}

static void answer_to_ping(struct recorder *r, uint64_t took_ns, bool late)
{
    char took[FMT_MAX];
    if (r->state == RECORDER_SPAWNED) {
        recorder_log(r, "ping      ack +%s: %s is ready", fmt_duration(took, took_ns), r->who);
        recorder_set_state(r, RECORDER_PINGED);
        recorder_queue(r, CONTROL_ENABLE, false);
        return;
    }
    if (!r->active.ctlfd) {
        /* Had fallen back, but it does answer. */
        r->active = r->row;
        snprintf(r->active.why, sizeof r->active.why,
                 "control fd: `ping` was answered late, after %s", fmt_duration(took, took_ns));
        set_mechanism(r);
        recorder_log(r, "%s", r->active.why);
    }
    recorder_note_heartbeat(r, took_ns, late);
    recorder_snapshot_ping_acked(r);
}

static void on_ack(void *arg, enum control_command c, uint64_t took_ns, bool late)
{
    struct recorder *r = arg;
    char took[FMT_MAX];
    r->last_acked = true;
    r->last_overdue = late;
    r->last_ack_ns = took_ns;
    if (c != CONTROL_PING || r->ping_asked)
        recorder_log(r, "%-9s ack +%s%s", control_command_name(c), fmt_duration(took, took_ns),
                     late ? " (late)" : "");
    switch (c) {
    case CONTROL_PING:
        r->ping_asked = false;
        answer_to_ping(r, took_ns, late);
        break;
    case CONTROL_ENABLE:
        if (r->state == RECORDER_PINGED || r->state == RECORDER_DISABLED)
            become_enabled(r);
        break;
    case CONTROL_DISABLE:
        r->enabled = false;
        if (r->state == RECORDER_ENABLED)
            recorder_set_state(r, RECORDER_DISABLED);
        break;
    case CONTROL_SNAPSHOT:
        recorder_snapshot_acked(r);
        break;
    case CONTROL_STOP:
    case CONTROL_COMMANDS:
        break;
    }
    pump(r);
}

static void on_overdue(void *arg, enum control_command c, uint64_t deadline_ns)
{
    struct recorder *r = arg;
    char text[FMT_MAX];
    r->last_overdue = true;
    if (r->state == RECORDER_SPAWNED)
        return; /* perf may be slow to start; check_ready tells that from a deaf one */
    recorder_log(r, "%-9s no answer for %s", control_command_name(c),
                 fmt_duration(text, deadline_ns));
    if (c == CONTROL_PING)
        recorder_note_heartbeat(r, UINT64_MAX, true);
    if (c == CONTROL_STOP)
        recorder_finish_overdue(r);
}

static void on_gone(void *arg)
{
    struct recorder *r = arg;
    r->queue.len = 0;
    if (r->state == RECORDER_STOPPING) {
        recorder_log(r, "%s has closed its side and writes its last data", r->who);
        return;
    }
    control_fall_back(&r->row, "perf has closed its side of the control pipes", &r->active);
    recorder_log(r, "%s", r->active.why);
}

/* ---- readiness ---- */

bool recorder_perf_is_idle(const struct recorder *r)
{
    struct perf_ready ready;
    struct stat st;
    perf_ready_check("/proc", child_pid(r->child), &ready);
    /* perf writes the header of its file after it has opened and mapped its events: what sleeps
     * after that sleeps in the main loop. */
    if (ready.coarse && (stat(r->data, &st) < 0 || !st.st_size))
        return false;
    return perf_ready_is_idle(&ready);
}

/* A signal-driven perf is ready when it is seen idle in its main loop; one with a control
 * descriptor that is idle there and yet does not answer is deaf: fall back to signals. */
static void check_ready(void *arg)
{
    struct recorder *r = arg;
    r->ready_timer = 0;
    if (r->state != RECORDER_SPAWNED && r->state != RECORDER_PINGED)
        return;
    bool idle = recorder_perf_is_idle(r);
    if (r->active.ctlfd) {
        r->idle_unanswered = idle ? r->idle_unanswered + 1 : 0;
        if (r->idle_unanswered >= UNANSWERED_CHECKS) {
            enum control_command c = CONTROL_PING;
            char reason[120];
            control_outstanding(r->control, &c, NULL);
            snprintf(reason, sizeof reason,
                     "perf waits for events but does not answer `%s` on the control fd",
                     control_command_name(c));
            control_fall_back(&r->row, reason, &r->active);
            r->queue.len = 0;
            set_mechanism(r);
            recorder_log(r, "falling back to %s", r->active.why);
        }
    }
    if (!r->active.ctlfd && idle) {
        recorder_log(r, "perf waits for events: it is ready for signals");
        recorder_set_state(r, RECORDER_PINGED);
        become_enabled(r);
        return;
    }
    r->ready_timer = loop_add_timer(r->loop, loop_now_ns(r->loop) + READY_CHECK_NS, check_ready, r);
}

/* ---- the child ---- */

static void on_line(void *arg, const char *line, size_t len)
{
    struct recorder *r = arg;
    char suffix[64];
    struct step_message m;
    if (r->kind == PLAN_STEP && step_message_parse(line, len, &m)) {
        if (m.kind == STEP_MESSAGE_WINDOW)
            r->window = m;
        if (r->events.step)
            r->events.step(r->events.arg, &m);
        return;
    }
    bool fresh = tail_add(r->tail, line, len);
    const char *text = tail_count(r->tail) ? tail_line(r->tail, tail_count(r->tail) - 1) : "";
    if (fresh)
        recorder_log(r, "%s: %s", r->kind == PLAN_STEP ? "step" : "perf", text);
    /* The stepper's own sentences need no explanation. */
    int complaint = fresh && r->kind != PLAN_STEP ? perf_message_find(text) : -1;
    if (complaint >= 0 && (r->complaint < 0 || complaint < r->complaint))
        r->complaint = complaint;
    if (perf_message_is_dump(line, len, r->base, suffix, sizeof suffix)) {
        char *path = xasprintf("%s%s", r->base, suffix);
        recorder_snapshot_dump(r, path);
        free(path);
    }
}

static void on_ended(void *arg, const struct child_end *end)
{
    struct recorder *r = arg;
    r->end = *end;
    recorder_child_ended(r);
}

/* ---- start ---- */

static int check_directory(struct recorder *r, uint64_t ring_bytes, struct err *err)
{
    struct stat st;
    struct statvfs fs;
    char free_text[FMT_MAX], ring_text[FMT_MAX];
    if (access(r->dir, W_OK | X_OK) < 0)
        return err_errno(err, errno, "\"%s\" cannot be recorded into", r->dir);
    if (lstat(r->base, &st) == 0)
        return err_set(err, MTUI_E_STATE, "\"%s\" is there already: record into another directory",
                       r->base);
    if (statvfs(r->dir, &fs) == 0) {
        uint64_t space = (uint64_t)fs.f_bavail * fs.f_frsize;
        if (!space)
            return err_set(err, MTUI_E_IO, "no space left on the disk of \"%s\"", r->dir);
        if (space < ring_bytes)
            recorder_log(r, "only %s free on the disk of \"%s\": less than one ring of %s",
                         fmt_size(free_text, space), r->dir, fmt_size(ring_text, ring_bytes));
    }
    return 0;
}

static int spawn(struct recorder *r, const struct plan_argv *argv, struct err *err)
{
    int ctl[2] = {-1, -1}, ack[2] = {-1, -1};
    if (r->row.ctlfd && (pipe2(ctl, O_CLOEXEC) < 0 || pipe2(ack, O_CLOEXEC) < 0)) {
        int e = errno;
        if (ctl[0] >= 0) {
            close(ctl[0]);
            close(ctl[1]);
        }
        return err_errno(err, e, "no control pipes");
    }
    struct child_fd fds[] = {{ctl[0], CONTROL_CHILD_CTL_FD}, {ack[1], CONTROL_CHILD_ACK_FD}};
    struct child_spec spec = {.argv = argv->data,
                              .fds = fds,
                              .n_fds = r->row.ctlfd ? 2 : 0,
                              .spare = r->kind == PLAN_STEP};
    struct child_events events = {.line = on_line, .ended = on_ended, .arg = r};
    int rc = child_spawn(r->loop, &spec, &events, &r->child, err);
    if (r->row.ctlfd) {
        close(ctl[0]);
        close(ack[1]);
        if (rc < 0) {
            close(ctl[1]);
            close(ack[0]);
        }
    }
    if (rc == MTUI_E_NOENT)
        return err_set(
            err, rc,
            "no program \"%s\" to record with (install linux-perf, or set MTUI_PERF to its "
            "path)",
            argv->data[0]);
    if (rc < 0)
        return rc;
    if (r->row.ctlfd) {
        struct control_events ce = {
            .ack = on_ack, .overdue = on_overdue, .gone = on_gone, .arg = r};
        r->control = control_new(r->loop, ctl[1], ack[0], &ce);
    }
    return 0;
}

static void free_all(struct recorder *r)
{
    free(r->dir);
    free(r->base);
    free(r->data);
    free(r->command);
    free(r->mechanism);
    free(r->loose_dump);
    free(r->snap.reason);
    vec_free(&r->queue);
    tail_free(r->tail);
    aux_file_free(r->aux);
    free(r);
}

static struct recorder *make(struct loop *loop, const struct record_plan *plan,
                             const struct recorder_events *events)
{
    struct recorder *r = xcalloc(1, sizeof *r);
    r->loop = loop;
    r->events = *events;
    r->state = RECORDER_SPAWNED;
    r->started_ns = loop_now_ns(loop);
    r->kind = plan->recorder;
    r->who = r->kind == PLAN_STEP ? "the recorder" : "perf";
    r->mode = plan->mode;
    r->target = plan->n_tids ? plan->tids[0] : plan->n_pids ? plan->pids[0] : 0;
    r->dir = xstrdup(plan->output_dir);
    r->base = xasprintf("%s/perf.data", plan->output_dir);
    /* --kcore makes a directory of it (perf.data-directory-format.txt). */
    bool directory = plan->recorder == PLAN_PT && plan->kernel;
    r->data = directory ? xasprintf("%s/data", r->base) : xstrdup(r->base);
    r->disk_free = UINT64_MAX;
    r->complaint = -1;
    r->tail = tail_new(TAIL_LINES);
    r->aux = aux_file_new();
    return r;
}

int recorder_new(struct loop *loop, const struct recorder_options *options,
                 const struct recorder_events *events, struct recorder **out, struct err *err)
{
    const struct record_plan *plan = options->plan;
    struct plan_argv own = {0};
    const struct plan_argv *argv = options->argv ? options->argv : &own;
    struct recorder *r = make(loop, plan, events);
    int rc = control_select(plan, options->version, &r->row, err);
    if (rc == 0 && !options->argv)
        rc = plan_perf_argv(plan, options->version, options->caps, &r->row, &own, err);
    if (rc == 0)
        rc = check_directory(r, plan_ring_bytes(plan, NULL), err);
    if (rc == 0) {
        r->active = r->row;
        r->command = plan_format_command(argv);
        set_mechanism(r);
        signal(SIGPIPE, SIG_IGN); /* a write to a perf that has ended is an answer, not our death */
        rc = spawn(r, argv, err);
    }
    plan_argv_free(&own);
    if (rc < 0) {
        free_all(r);
        return rc;
    }
    recorder_log(r, "started pid %d: %s", (int)child_pid(r->child), r->command);
    recorder_log(r, "%s: %s", r->mechanism, r->active.why);
    if (r->row.ctlfd)
        recorder_queue(r, CONTROL_PING, false);
    r->ready_timer = loop_add_timer(loop, loop_now_ns(loop) + READY_CHECK_NS, check_ready, r);
    *out = r;
    return 0;
}

void recorder_free(struct recorder *r)
{
    if (!r)
        return;
    r->events = (struct recorder_events){0};
    loop_remove(r->loop, r->ready_timer);
    loop_remove(r->loop, r->heartbeat_timer);
    loop_remove(r->loop, r->finish_timer);
    loop_remove(r->loop, r->snap.timer);
    child_free(r->child);
    control_free(r->control);
    recorder_abandon_carve(r);
    free_all(r);
}

/* ---- requests ---- */

static int not_ready(const struct recorder *r, const char *what, struct err *err)
{
    if (r->state == RECORDER_ENDED || r->state == RECORDER_FAILED)
        return err_set(err, MTUI_E_GONE, "%s: the recording has ended", what);
    if (r->state == RECORDER_STOPPING)
        return err_set(err, MTUI_E_STATE, "%s: the recording is being finished", what);
    if (!recorder_is_ready(r))
        return err_set(err, MTUI_E_STATE, "%s: not armed yet, %s has not answered", what, r->who);
    return 0;
}

void recorder_drain(struct recorder *r)
{
    if (!r->child_ended)
        child_drain(r->child);
}

int recorder_snapshot(struct recorder *r, const char *reason, struct err *err)
{
    int rc = not_ready(r, "no snapshot", err);
    if (rc < 0)
        return rc;
    if (!r->active.can_snapshot)
        return err_set(
            err, MTUI_E_NOTSUP,
            "no snapshot: in %s mode there is one file, written when the recording stops",
            plan_mode_name(r->mode));
    if (r->kind == PLAN_STEP && r->snap.stage == SNAP_SENT && !r->snap.given_up) {
        recorder_log(r, "snapshot  asked for again: the window in progress ends");
        recorder_queue(r, CONTROL_SNAPSHOT, false);
        return 0;
    }
    if (r->snap.stage != SNAP_NONE && r->snap.given_up)
        return err_set(err, MTUI_E_BUSY, "no snapshot: %s still writes the one that was given up",
                       r->who);
    if (r->snap.stage != SNAP_NONE)
        return err_set(err, MTUI_E_BUSY, "no snapshot: one is being written");
    if (r->stop_requested)
        return err_set(err, MTUI_E_STATE, "no snapshot: the recording is being finished");
    if (!r->enabled)
        return err_set(err, MTUI_E_STATE, "no snapshot: recording is paused, enable it first");
    return recorder_begin_snapshot(r, reason, false, err);
}

static int command(struct recorder *r, enum control_command c, struct err *err)
{
    int rc = not_ready(r, control_command_name(c), err);
    if (rc < 0)
        return rc;
    if (!r->active.ctlfd)
        return err_set(err, MTUI_E_NOTSUP, "%s: needs the control fd, but signals are in use",
                       control_command_name(c));
    recorder_queue(r, c, false);
    return 0;
}

int recorder_enable(struct recorder *r, struct err *err)
{
    return command(r, CONTROL_ENABLE, err);
}

int recorder_disable(struct recorder *r, struct err *err)
{
    if (r->snap.stage != SNAP_NONE && !r->snap.given_up)
        return err_set(err, MTUI_E_BUSY, "disable: a snapshot is being written");
    return command(r, CONTROL_DISABLE, err);
}

int recorder_ping(struct recorder *r, struct err *err)
{
    int rc = command(r, CONTROL_PING, err);
    r->ping_asked |= rc == 0;
    return rc;
}

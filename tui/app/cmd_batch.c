/* Recording without a screen. stdout carries the result alone; everything else goes to stderr. */
#include "tui/app/batch_json.h"
#include "tui/app/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/utf8.h"
#include "tui/app/cmd_signals.h"

#define PATIENCE_NS 3000000000u /* what is waited for that long is said, and again whenever that has doubled */
#define WAIT_NS 200000000 /* a signal between the look at the flag and the wait is seen after it   \
                           */

struct batch {
    struct loop *loop;
    struct session *session;
    enum batch_output output;
    bool quiet, done, armed, asked;
    int output_errno; /* why stdout takes no more; 0: it does */
    uint64_t said; /* log lines looked at */
    uint64_t stopping_ns; /* loop clock: it was seen to be stopping; 0: it is not */
    uint64_t waited_ns;   /* the wait that was said last; 0: none */
    size_t snapshots;
};

/* What was printed since errno was 0 has to be out. */
static int flush_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return errno ? errno : EIO;
}

static void on_snapshot(void *arg, const struct session_snapshot *s)
{
    struct batch *b = arg;
    if (s->number == 0)
        return;
    b->snapshots++;
    if (b->output == BATCH_DIRECTORY || b->output_errno)
        return;
    errno = 0;
    batch_json_snapshot(b->session, s);
    b->output_errno = flush_output();
}

static void on_ended(void *arg)
{
    struct batch *b = arg;
    b->done = true;
}

/* Warnings and errors as they come. The last line, how it ended, is said by finish(). */
static void say_new_lines(struct batch *b)
{
    uint64_t total = session_log_total(b->session);
    size_t kept = session_log_count(b->session);
    size_t fresh = total - b->said < kept ? (size_t)(total - b->said) : kept;
    for (size_t i = kept - fresh; i < kept; i++) {
        struct session_line line = session_log_at(b->session, i);
        if (line.level == SESSION_WARNING)
            fprintf(stderr, "mtui: %s\n", line.text);
    }
    b->said = total;
}

static void say_armed(struct batch *b, const struct session_status *status)
{
    const struct session_setup *setup = session_get_setup(b->session);
    if (b->armed || status->state != SESSION_ARMED)
        return;
    b->armed = true;
    if (b->quiet)
        return;
    fprintf(stderr, "mtui: recording with %s (%s)", plan_recorder_name(status->recorder),
            status->recorder_why);
    for (size_t i = 0; i < setup->n_triggers; i++) {
        char spec[256];
        utf8_escape(spec, sizeof spec, setup->triggers[i], strlen(setup->triggers[i]));
        fprintf(stderr, "%s%s", i ? ", " : ", waiting for ", spec);
    }
    fputc('\n', stderr);
    if (status->rate.seen.hits) {
        char cost[200];
        fprintf(stderr, "mtui: the trigger%s %s %s\n", setup->n_triggers > 1 ? "s" : "",
                setup->n_triggers > 1 ? "are" : "is",
                call_rate_text(&status->rate, cost, sizeof cost));
    }
}

/* What the recorder has not done yet. */
struct wait {
    char asked[64];
    const char *missing; /* NULL: nothing is waited for */
    uint64_t since_ns;   /* loop clock */
};

static struct wait find_wait(struct batch *b, const struct session_status *status)
{
    const struct recorder_status *rec = &status->rec;
    struct wait w = {.asked = "it was started", .missing = "is not ready yet", .since_ns = rec->started_ns};
    uint64_t now = loop_now_ns(b->loop);
    if (status->state == SESSION_STOPPING && !b->stopping_ns)
        b->stopping_ns = now;
    if (!status->has_recorder || status->state >= SESSION_ENDED) {
        w.missing = NULL;
    } else if (rec->snapshot_busy) {
        w = (struct wait){"a snapshot was asked for", "is not written yet", now - rec->snapshot_elapsed_ns};
    } else if (status->state == SESSION_STOPPING) {
        w = (struct wait){"it was asked to finish", "has not ended yet", b->stopping_ns};
    } else if (rec->ctlfd && rec->has_command && !rec->last_acked) {
        w = (struct wait){.missing = "is not answered yet", .since_ns = rec->last_sent_ns};
        snprintf(w.asked, sizeof w.asked, "`%s` was sent", rec->last_command);
    } else if (rec->state >= RECORDER_ENABLED) {
        w.missing = NULL;
    }
    return w;
}

static void say_wait(struct batch *b, const struct session_status *status)
{
    char took[FMT_MAX];
    struct wait w = find_wait(b, status);
    uint64_t now = loop_now_ns(b->loop), waited = w.missing && now > w.since_ns ? now - w.since_ns : 0;
    if (waited >= PATIENCE_NS && waited >= 2 * b->waited_ns) {
        fprintf(stderr, "mtui: waiting for %s (pid %d): %s %s ago and %s\n",
                status->recorder == PLAN_STEP ? "the recorder" : "perf", (int)status->rec.pid, w.asked,
                fmt_duration(took, waited), w.missing);
        b->waited_ns = waited;
    } else if (waited < PATIENCE_NS) {
        b->waited_ns = 0;
    }
}

/* A signal finishes the recording; a second one presses. A program that we started gets it too. */
static void pass_signal(struct batch *b)
{
    bool from_process;
    int sig = cmd_caught_signal(&from_process);
    if (!sig)
        return;
    struct target *t = session_target(b->session);
    if (target_is_ours(t) && from_process)
        target_signal(t, sig, NULL);
    if (b->asked)
        fprintf(stderr, "mtui: the recording is still being finished; whoever insists for more than two seconds "
                        "kills it, and loses what is not written\n");
    b->asked = true;
    session_stop(b->session, NULL);
}

/* Nobody gets to know of snapshots that are still to come. */
static void stop_without_output(struct batch *b)
{
    if (!b->output_errno || b->asked || b->done)
        return;
    b->asked = true;
    session_stop(b->session, NULL);
}

/* Nobody is there who could wait for a program that has none of the functions any more. */
static void stop_without_triggers(struct batch *b, const struct session_status *status)
{
    const struct trigger_set *t = session_triggers(b->session);
    size_t n = t && status->state == SESSION_ARMED && status->mode == PLAN_TRIGGER ? trigger_set_count(t) : 0;
    for (uint32_t i = 0; i < n; i++)
        if (trigger_set_status(t, i) != TRIGGER_DISARMED)
            return;
    /* A program that has ended ends its recording by itself, and says how. */
    if (n == 0 || b->asked || b->done || trigger_set_processes(t) == 0)
        return;
    fputs("mtui: no trigger is left that could fire: the recording ends\n", stderr);
    b->asked = true;
    session_stop_since(b->session, SESSION_END_REPLACED,
                       "ended, since the program was replaced (exec) by one that has none of the triggers",
                       NULL);
}

/* A signal as of any other program in a pipe says enough. */
static int fail_output(const struct batch *b, const char *path)
{
    if (b->output_errno != EPIPE)
        fprintf(stderr, "mtui: standard output: %s; the recording is in %s\n", strerror(b->output_errno), path);
    return 1;
}

/* Calls that were no hits tell another story than none at all. */
static void say_no_hit(const struct session_status *status, const struct session_setup *setup)
{
    char n[FMT_MAX], limit[FMT_MAX], spread[128];
    const struct trigger_calls *calls = &status->calls;
    if (status->fast)
        fprintf(stderr, "; none of %s call%s took longer than %s", fmt_count(n, status->fast),
                status->fast == 1 ? "" : "s", fmt_duration(limit, setup->when.slower_than_ns));
    if (status->fast && calls->durations.count)
        fprintf(stderr, " (%s)", call_histogram_text(&calls->durations, spread, sizeof spread));
    if (calls->left)
        fprintf(stderr, "; %s call%s left without a return (exception, longjmp)", fmt_count(n, calls->left),
                calls->left == 1 ? " was" : "s were");
    if (status->unmet)
        fprintf(stderr, "; %s call%s did not meet the condition", fmt_count(n, status->unmet),
                status->unmet == 1 ? "" : "s");
    if (status->early)
        fprintf(stderr, "; %s hit%s came too early (--not-before)", fmt_count(n, status->early),
                status->early == 1 ? "" : "s");
    if (status->not_nth)
        fprintf(stderr, "; %s hit%s not the one asked for (--hits)", fmt_count(n, status->not_nth),
                status->not_nth == 1 ? " was" : "s were");
    if (!status->fast && !status->unmet && !status->hits && !calls->left)
        fputs(calls->begun ? "; no call has returned" : "; the trigger was never hit", stderr);
}

static void say_end_file(struct session *session)
{
    const char *path = snapshot_dir_path(session_dir(session)), *remark;
    size_t n = session_snapshot_count(session);
    if (n == 0)
        return;
    remark = session_snapshot_at(session, n - 1)->remark;
    if (remark)
        fprintf(stderr, "; only a part of the state at the end is in %s (%s)", path, remark);
    else
        fprintf(stderr, "; the state at the end is in %s", path);
}

/* Success is a recording that left a snapshot, however it ended; with --truth, one that ended in order: who
 * compares with a truth must know that it is whole. */
static int finish(struct batch *b, char **dir)
{
    struct session_status status;
    session_get_status(b->session, &status);
    const char *path = snapshot_dir_path(session_dir(b->session));
    if (b->snapshots && dir)
        *dir = xstrdup(path);
    if (b->snapshots && !dir && b->output == BATCH_DIRECTORY) {
        errno = 0;
        puts(path);
        b->output_errno = flush_output();
    }
    if (b->output == BATCH_JSON_END && !b->output_errno) {
        errno = 0;
        batch_json_end(b->session, b->snapshots);
        b->output_errno = flush_output();
    }
    if (b->output_errno)
        return fail_output(b, path);
    if (b->snapshots && status.state == SESSION_ENDED)
        return 0;
    if (b->snapshots) {
        fprintf(stderr, "mtui: %s; what was written is kept\n", status.sentence);
        return session_get_setup(b->session)->truth != NULL;
    }
    fprintf(stderr, "mtui: no snapshot: %s", status.sentence);
    if (status.state == SESSION_ENDED && status.mode == PLAN_TRIGGER && status.fired == 0 &&
        session_get_setup(b->session)->n_triggers)
        say_no_hit(&status, session_get_setup(b->session));
    say_end_file(b->session);
    fputc('\n', stderr);
    return 1;
}

int cmd_batch(struct cmd_machine *m, const struct session_setup *setup, enum batch_output output, char **dir)
{
    static const struct session_callbacks callbacks = {.snapshot = on_snapshot, .ended = on_ended};
    struct batch b = {.loop = loop_new(), .output = output, .quiet = dir != NULL};
    struct err err;
    cmd_catch_signals();
    int rc = session_start(&b.session, b.loop, setup, &m->session, &callbacks, &b, &err);
    if (rc < 0) {
        loop_free(b.loop);
        if (output == BATCH_JSON_END)
            batch_json_refused(&err);
        return cmd_fail(&err);
    }
    while (!b.done) {
        struct session_status status;
        loop_run_once(b.loop, WAIT_NS);
        pass_signal(&b);
        stop_without_output(&b);
        session_get_status(b.session, &status);
        say_armed(&b, &status);
        say_new_lines(&b);
        say_wait(&b, &status);
        stop_without_triggers(&b, &status);
    }
    rc = finish(&b, dir);
    session_free(b.session, TARGET_LEAVE);
    loop_free(b.loop);
    if (b.output_errno == EPIPE)
        cmd_end_by_pipe();
    return rc;
}

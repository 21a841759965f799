/* The end of a recording: asking perf to finish, its end whatever the cause, the last files. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/record/perf_message.h"
#include "core/record/perf_ready.h"
#include "core/record/recorder_impl.h"

#define FINISH_CHECK_NS 100000000u
#define FINISH_DUE_NS   1000000000u

static void watch_finish(struct recorder *r);

/* Whoever is stopped takes no signal and answers nothing: it could never finish. */
static void continue_stopped(struct recorder *r)
{
    struct perf_ready ready;
    perf_ready_check("/proc", child_pid(r->child), &ready);
    if (!ready.stopped || child_signal(r->child, SIGCONT, NULL) < 0)
        return;
    if (!r->was_continued)
        recorder_log(r, "%s did not answer, someone has stopped it (SIGSTOP): continued, so that it can finish",
                     r->who);
    r->was_continued = true;
}

/* From the request to the end. A finishing signal can be noted by perf's handler just before it goes to sleep: when it
 * is seen idle with nothing pending, the signal is sent again. Also covers a `stop` that cannot be written because
 * another command is not answered. */
static void check_finish(void *arg)
{
    struct recorder *r = arg;
    r->finish_timer = 0;
    if (r->child_ended)
        return;
    continue_stopped(r);
    if (r->finish_signal && recorder_perf_is_idle(r))
        recorder_signal(r, r->finish_signal, NULL);
    if (r->finish_due_ns && !r->finish_sent && loop_now_ns(r->loop) >= r->finish_due_ns)
        recorder_finish_overdue(r);
    watch_finish(r);
}

static void watch_finish(struct recorder *r)
{
    r->finish_timer = loop_add_timer(r->loop, loop_now_ns(r->loop) + FINISH_CHECK_NS, check_finish, r);
}

static void ask_by_signal(struct recorder *r, int sig)
{
    r->finish_signal = sig;
    recorder_signal(r, sig, NULL);
}

void recorder_finish_overdue(struct recorder *r)
{
    if (r->active.finish.signal || r->child_ended)
        return;
    recorder_log(r, "`stop` is not answered: asking by signal");
    control_fall_back(&r->row, "`stop` is not answered", &r->active);
    ask_by_signal(r, r->active.finish.signal);
}

void recorder_finish(struct recorder *r)
{
    if (r->state == RECORDER_STOPPING || r->child_ended)
        return;
    bool ready = recorder_is_ready(r);
    recorder_set_state(r, RECORDER_STOPPING);
    if (!ready) {
        /* Nothing is recorded yet, and no handler may be there: SIGTERM ends it in any case. */
        ask_by_signal(r, SIGTERM);
    } else if (r->active.finish.signal) {
        ask_by_signal(r, r->active.finish.signal);
    } else {
        r->finish_due_ns = loop_now_ns(r->loop) + FINISH_DUE_NS;
        r->queue.len = 0;
        recorder_queue(r, CONTROL_STOP, true);
    }
}

/* Whoever presses again and again in a hurry must not lose what is being written: a signal that perf finishes on
 * first, and the one that it cannot answer only for someone who still asks a while later. A recorder that steps is
 * never killed, since its program would die with it. */
static int press(struct recorder *r, struct err *err)
{
    uint64_t now = loop_now_ns(r->loop);
    bool first = r->pressed_ns == 0;
    if (!first && now - r->pressed_ns < RECORDER_PRESS_NS)
        return 0;
    r->pressed_ns = now;
    if (first || r->kind == PLAN_STEP) {
        recorder_log(r, "asked again to stop: it still finishes");
        return recorder_signal(r, SIGTERM, err);
    }
    recorder_log(r, "asked once more to stop: killing the recorder");
    return recorder_signal(r, SIGKILL, err);
}

int recorder_stop(struct recorder *r, struct err *err)
{
    if (r->state == RECORDER_ENDED || r->state == RECORDER_FAILED)
        return err_set(err, MTUI_E_GONE, "the recording has ended");
    if (r->stop_requested) {
        if (r->snap.stage != SNAP_NONE && !r->snap.given_up && r->state != RECORDER_STOPPING)
            return recorder_give_up(r, err);
        return press(r, err);
    }
    r->stop_requested = true;
    watch_finish(r);
    if (r->snap.stage != SNAP_NONE && !r->snap.given_up) {
        recorder_log(r, "stopping as soon as the snapshot is written");
        return 0;
    }
    if (r->row.snapshot_before_finish && recorder_is_ready(r))
        return recorder_begin_snapshot(r, "end", true, err);
    recorder_finish(r);
    return 0;
}

/* ---- the end ---- */

/* A zombie counts: whoever started it has not asked yet. */
static bool target_is_gone(pid_t pid)
{
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return true;
    bool gone = false;
    while (fgets(line, sizeof line, f))
        gone |= !strncmp(line, "State:\tZ", 8) || !strncmp(line, "State:\tX", 8);
    fclose(f);
    return gone;
}

/* 143 and 130, or the signals themselves: perf ends so when it was told to by SIGTERM or SIGINT,
 * and after `stop` too when it has ended its workload. */
static bool is_success(const struct recorder *r)
{
    const struct child_end *e = &r->end;
    if (perf_message_is_loss(r->complaint))
        return false;
    if (!r->was_ready && !r->stop_requested && !target_is_gone(r->target))
        return false; /* whatever it says itself */
    if (!e->known)
        return r->complaint < 0;
    if (!e->signaled && e->code == 0)
        return true;
    if (!r->stop_requested)
        return false;
    if (e->signaled)
        return e->code == SIGTERM || e->code == SIGINT;
    return e->code == 128 + SIGTERM || e->code == 128 + SIGINT;
}

/* The last line of perf's that is more than news of its work, or NULL. */
static const char *last_words(const struct recorder *r)
{
    for (size_t i = tail_count(r->tail); i-- > 0;) {
        const char *line = tail_line(r->tail, i);
        if (strncmp(line, "[ perf record:", 14) != 0 && strncmp(line, "Events ", 7) != 0)
            return line;
    }
    return NULL;
}

static void compose_sentence(struct recorder *r, bool ok)
{
    const char *said = last_words(r);
    char end[128];
    perf_message_end(r->who, &r->end, end, sizeof end);
    bool gone = r->target_gone = target_is_gone(r->target);
    if (!ok && !r->was_ready && r->end.known && !r->end.signaled && r->end.code == 0)
        snprintf(end, sizeof end, "%s has ended before it recorded anything", r->who);
    if (ok && r->stop_requested)
        snprintf(r->sentence, sizeof r->sentence, "the recording was stopped");
    else if (ok && gone)
        snprintf(r->sentence, sizeof r->sentence,
                 "the target has ended, and the recording with it");
    else if (ok)
        snprintf(r->sentence, sizeof r->sentence, "%s has ended by itself", r->who);
    else if (r->complaint >= 0)
        snprintf(r->sentence, sizeof r->sentence, "%s (%s)", perf_message_sentence(r->complaint),
                 end);
    else if (said && r->kind == PLAN_STEP && r->end.known && !r->end.signaled)
        snprintf(r->sentence, sizeof r->sentence, "%s",
                 said + (strncmp(said, "mtui: ", 6) == 0 ? 6 : 0));
    else if (said)
        snprintf(r->sentence, sizeof r->sentence, "%s; it said: %.200s", end, said);
    else if (r->end.known && r->end.signaled)
        snprintf(r->sentence, sizeof r->sentence, "%s", end);
    else
        snprintf(r->sentence, sizeof r->sentence, "%s, without a word", end);
    size_t n = strlen(r->sentence);
    if (r->was_ready && r->end.known && r->end.signaled && !ok && r->mode != PLAN_WHOLE)
        snprintf(r->sentence + n, sizeof r->sentence - n,
                 r->end_written ? "; it has written its ring before" : "; what was in its ring is lost");
}

/* What perf record --kcore has made beside the data (perf.data-directory-format.txt). */
static void remove_kcore(struct recorder *r)
{
    static const char *const names[] = {"/kcore_dir/kcore", "/kcore_dir/kallsyms",
                                        "/kcore_dir/modules", "/kcore_dir", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = xasprintf("%s%s", r->base, names[i]);
        remove(path);
        free(path);
    }
}

/* Every AUX byte that was asked for has its own file by now. What perf wrote beyond (a snapshot
 * that was given up) is kept; a rest with sideband only is not worth a file. */
static void keep_aux_rest(struct recorder *r)
{
    struct err err;
    struct aux_snapshot got;
    char *probe = xasprintf("%s/rest", r->dir);
    int rc = aux_file_carve(r->aux, r->data, probe, &got, &err);
    if (rc == 0 && got.buffers) {
        unlink(r->data);
        recorder_keep_file(r, probe, true, NULL);
    } else if (rc == 0 && (is_success(r) || r->numbers)) {
        unlink(r->data);
        if (!r->numbers)
            remove_kcore(r); /* no snapshot shares it */
    } else if (access(r->data, F_OK) == 0) {
        recorder_keep_file(r, r->base, true, NULL);
    }
    free(probe);
}

static void keep_last_files(struct recorder *r)
{
    uint64_t bytes = 0;
    if (r->active.confirm == CONTROL_CONFIRM_AUX) {
        if (access(r->data, F_OK) == 0)
            keep_aux_rest(r);
        return;
    }
    if (r->loose_dump)
        recorder_keep_file(r, r->loose_dump, true, NULL);
    int health = perf_data_check(r->base, &bytes, NULL);
    if (health == PERF_DATA_EMPTY || (health == PERF_DATA_UNFINISHED && !r->was_ready))
        unlink(r->base);
    else if (health >= 0 && !(r->loose_dump && health == PERF_DATA_UNFINISHED))
        recorder_keep_file(r, r->base, true, NULL);
}

void recorder_finalize(struct recorder *r)
{
    if (r->finalized || recorder_snapshot_settle(r))
        return;
    r->finalized = true;
    bool ok = is_success(r);
    keep_last_files(r);
    recorder_measure(r);
    compose_sentence(r, ok);
    recorder_log(r, "%s: %s", ok ? "ended" : "failed", r->sentence);
    recorder_set_state(r, ok ? RECORDER_ENDED : RECORDER_FAILED);
    if (r->events.ended)
        r->events.ended(r->events.arg, ok, r->sentence);
}

void recorder_child_ended(struct recorder *r)
{
    r->child_ended = true;
    r->queue.len = 0;
    loop_remove(r->loop, r->ready_timer);
    loop_remove(r->loop, r->heartbeat_timer);
    loop_remove(r->loop, r->finish_timer);
    r->ready_timer = r->heartbeat_timer = r->finish_timer = 0;
    if (r->control)
        r->acks = *control_get_stats(r->control);
    control_free(r->control); /* only now: perf has been reaped */
    r->control = NULL;
    recorder_finalize(r);
}

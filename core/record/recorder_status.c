/* What is measured while it records, and what the screen shows of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "core/record/perf_message.h"
#include "core/record/recorder_impl.h"

#define HEARTBEAT_NS 1000000000u

static void beat(void *arg)
{
    struct recorder *r = arg;
    r->heartbeat_timer = loop_add_timer(r->loop, loop_now_ns(r->loop) + HEARTBEAT_NS, beat, r);
    if (r->active.ctlfd && r->state != RECORDER_STOPPING &&
        !control_outstanding(r->control, NULL, NULL))
        recorder_queue(r, CONTROL_PING, false);
    recorder_measure(r);
    if (r->events.measured)
        r->events.measured(r->events.arg);
}

void recorder_start_heartbeat(struct recorder *r)
{
    if (r->heartbeat_timer)
        return;
    r->rate_ns = loop_now_ns(r->loop);
    recorder_measure(r);
    r->heartbeat_timer = loop_add_timer(r->loop, loop_now_ns(r->loop) + HEARTBEAT_NS, beat, r);
}

void recorder_note_sent(struct recorder *r, const char *what, uint64_t sent_ns)
{
    snprintf(r->last_command, sizeof r->last_command, "%s", what);
    r->has_command = true;
    r->last_acked = r->last_overdue = false;
    r->last_sent_ns = sent_ns;
}

/* A ping that was late has an entry already when its answer comes. */
void recorder_note_heartbeat(struct recorder *r, uint64_t took_ns, bool late)
{
    if (!late || took_ns == UINT64_MAX)
        r->n_heartbeats++;
    if (r->n_heartbeats)
        r->heartbeats_ns[(r->n_heartbeats - 1) % RECORDER_HEARTBEATS] = late ? UINT64_MAX : took_ns;
}

void recorder_measure(struct recorder *r)
{
    struct stat st;
    struct statvfs fs;
    uint64_t now = loop_now_ns(r->loop);
    r->written_base = stat(r->data, &st) == 0 ? (uint64_t)st.st_size : 0;
    if (statvfs(r->dir, &fs) == 0)
        r->disk_free = (uint64_t)fs.f_bavail * fs.f_frsize;
    uint64_t bytes = r->written_files + r->written_base;
    if (now - r->rate_ns < HEARTBEAT_NS / 2)
        return;
    uint64_t grown = bytes > r->rate_bytes ? bytes - r->rate_bytes : 0;
    r->rate = (uint64_t)((double)grown * 1e9 / (double)(now - r->rate_ns));
    r->rate_bytes = bytes;
    r->rate_ns = now;
}

void recorder_get_status(const struct recorder *r, struct recorder_status *s)
{
    *s = (struct recorder_status){
        .state = r->state,
        .enabled = r->enabled,
        .pid = child_pid(r->child),
        .ctlfd = r->active.ctlfd,
        .mechanism = r->mechanism,
        .why = r->active.why,
        .command = r->command,
        .started_ns = r->started_ns,
        .has_command = r->has_command,
        .last_command = r->last_command,
        .last_sent_ns = r->last_sent_ns,
        .last_acked = r->last_acked,
        .last_overdue = r->last_overdue,
        .last_ack_ns = r->last_ack_ns,
        .snapshots = r->snapshots,
        .last_write_ns = r->last_write_ns,
        .bytes_written = r->written_files + r->written_base,
        .bytes_per_s = r->rate,
        .disk_free = r->disk_free,
        .disk_full = perf_message_is_full(r->complaint),
        .target_gone = r->target_gone,
        .sentence = r->finalized ? r->sentence : NULL,
    };
    s->acks = r->control ? *control_get_stats(r->control) : r->acks;
    size_t n = r->n_heartbeats < RECORDER_HEARTBEATS ? r->n_heartbeats : RECORDER_HEARTBEATS;
    for (size_t i = 0; i < n; i++)
        s->heartbeats_ns[i] = r->heartbeats_ns[(r->n_heartbeats - n + i) % RECORDER_HEARTBEATS];
    s->n_heartbeats = n;
    if (!r->child_ended) {
        s->step_tid = r->window.tid;
        s->step_instructions = r->window.instructions;
        s->step_wall_ns = r->window.wall_ns;
    }
    if (r->snap.stage != SNAP_NONE && !r->snap.given_up) {
        s->snapshot_busy = true;
        s->snapshot_reason = r->snap.reason;
        s->snapshot_elapsed_ns = loop_now_ns(r->loop) - r->snap.requested_ns;
    }
    for (size_t i = 0; i < tail_count(r->tail) && i < RECORDER_TAIL_LINES; i++)
        s->tail[s->n_tail++] = tail_line(r->tail, i);
}

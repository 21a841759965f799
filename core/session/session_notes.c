/* What a session remembers and writes: log, hits, snapshots, session.ini, captures of mappings. */
#include "core/session/session_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/machine/proc_stat.h"
#include "core/step/step_thread.h"
#include "core/base/utf8.h"

#define CAPTURE_INTERVAL_NS 50000000u /* between two captures that nobody waits for */

int64_t session_unix_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t session_unix_of(const struct session *s, uint64_t perf_ns)
{
    if (!s->anchor_perf_ns || !perf_ns)
        return session_unix_now();
    return s->anchor_unix_ns + (int64_t)(perf_ns - s->anchor_perf_ns);
}

/* ---- Log ---- */

void session_log(struct session *s, enum session_level level, const char *fmt, ...)
{
    char raw[1024], clean[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    utf8_escape(clean, sizeof clean, raw, strlen(raw));
    s->log_total++;
    struct log_line line = {session_unix_now(), level, xstrdup(clean)};
    if (s->log.len < SESSION_LOG_LINES) {
        vec_push(&s->log, line);
    } else {
        free(s->log.data[s->log_first].text);
        s->log.data[s->log_first] = line;
        s->log_first = (s->log_first + 1) % SESSION_LOG_LINES;
    }
    session_notify(s);
}

uint64_t session_log_total(const struct session *s)
{
    return s->log_total;
}

size_t session_log_count(const struct session *s)
{
    return s->log.len;
}

struct session_line session_log_at(const struct session *s, size_t i)
{
    const struct log_line *l = &s->log.data[(s->log_first + i) % s->log.len];
    return (struct session_line){l->unix_ns, l->level, l->text};
}

/* ---- Hits ---- */

struct session_member *session_member_of(struct session *s, uint32_t member)
{
    while (s->triggers && s->members.len < trigger_set_members(s->triggers)) {
        const struct trigger_member *m = trigger_set_member(s->triggers, s->members.len);
        vec_push(&s->members, ((struct session_member){.trigger = s->setup.triggers[m->trigger],
                                                       .function = m->function ? xstrdup(m->function) : NULL}));
    }
    return member < s->members.len ? &s->members.data[member] : NULL;
}

size_t session_member_count(const struct session *s)
{
    return s->members.len;
}

const struct session_member *session_member_at(const struct session *s, size_t i)
{
    return &s->members.data[i];
}

void session_note_hit(struct session *s, const struct session_hit *hit)
{
    if (s->hit_ring.len < SESSION_HITS) {
        vec_push(&s->hit_ring, *hit);
    } else {
        s->hit_ring.data[s->hit_first] = *hit;
        s->hit_first = (s->hit_first + 1) % SESSION_HITS;
    }
    session_notify(s);
}

size_t session_hit_count(const struct session *s)
{
    return s->hit_ring.len;
}

const struct session_hit *session_hit_at(const struct session *s, size_t i)
{
    return &s->hit_ring.data[(s->hit_first + i) % s->hit_ring.len];
}

void session_write_hit(struct session *s, const struct session_hit *hit)
{
    struct err err;
    char n[FMT_MAX];
    if (!hit->hit.snapshot && s->hit_lines++ >= SESSION_MAX_HIT_LINES) {
        if (s->hit_lines == SESSION_MAX_HIT_LINES + 1)
            session_log(s, SESSION_WARNING,
                        "hits.tsv holds %s hits without a snapshot; more are counted only",
                        fmt_count(n, SESSION_MAX_HIT_LINES));
        return;
    }
    if (hit == &s->pending)
        snapshot_dir_close_hit(s->dir);
    if (snapshot_dir_add_hit(s->dir, &hit->hit, &err) < 0)
        session_log(s, SESSION_ERROR, "%s", err.text);
}

/* ---- Snapshots ---- */

/* The hit in the ring that became this snapshot. */
static void number_hit(struct session *s, const struct session_hit *hit)
{
    for (size_t i = s->hit_ring.len; i-- > 0;) {
        struct session_hit *h = &s->hit_ring.data[(s->hit_first + i) % s->hit_ring.len];
        if (h->hit.time_ns == hit->hit.time_ns && h->hit.tid == hit->hit.tid) {
            h->hit.snapshot = hit->hit.snapshot;
            return;
        }
    }
}

pid_t session_only_pid(const struct session *s)
{
    return s->targets.len == 1 && !s->setup.children ? target_pid(s->targets.data[0]) : 0;
}

/* The name of the process now, or, of one that has ended, as it began. */
static char *comm_of(const struct session *s, pid_t pid)
{
    struct proc_stat stat;
    if (pid && proc_stat_read("/proc", pid, 0, &stat, NULL) == 0)
        return xstrdup(stat.comm);
    return pid && pid == target_pid(s->targets.data[0]) && s->info.comm ? xstrdup(s->info.comm) : NULL;
}

void session_add_snapshot(struct session *s, const struct recorder_snapshot *r)
{
    struct session_snapshot snap = {
        .number = r->number,
        .data = xstrdup(r->path),
        .unix_ns = session_unix_now(),
        .bytes = r->bytes,
        .remark = r->remark ? xstrdup(r->remark) : NULL,
        .est_fill_permille = -1,
    };
    session_take_window(s, &snap);
    if (s->firing && !r->is_end) {
        s->pending.hit.snapshot = r->number;
        snap.trigger = xstrdup(s->pending.hit.trigger);
        snap.function = s->pending.hit.function;
        snap.pid = s->pending.pid;
        snap.tid = s->pending.hit.tid;
        snap.has_args = s->pending.has_args;
        snap.arg1 = s->pending.hit.arg1;
        snap.arg2 = s->pending.hit.arg2;
        snap.has_ret = s->pending.has_ret;
        snap.ret = s->pending.ret;
        snap.time_ns = s->pending.hit.time_ns;
        snap.unix_ns = s->pending.unix_ns;
        snap.duration_ns = s->pending.hit.duration_ns;
        snap.has_duration = s->pending.has_duration;
        snap.still_running = s->pending.still_running;
        snap.est_fill_permille = s->pending_fill_permille;
        if (snap.tid && s->requested_perf_ns > s->pending_perf_ns && r->sent_ns >= r->requested_ns) {
            snap.hit_to_command_ns =
                s->requested_perf_ns - s->pending_perf_ns + (r->sent_ns - r->requested_ns);
            s->hit_to_command_ns = snap.hit_to_command_ns;
        }
        session_write_hit(s, &s->pending);
        number_hit(s, &s->pending);
    } else {
        snap.trigger = xstrdup("end");
        snap.pid = session_only_pid(s);
    }
    snap.comm = comm_of(s, snap.pid);
    vec_push(&s->snapshots, snap);
    char took[FMT_MAX], full[64] = "";
    if (snap.est_fill_permille >= 0)
        snprintf(full, sizeof full, "the ring was est. %d %% full", snap.est_fill_permille / 10);
    if (snap.hit_to_command_ns)
        session_log(s, SESSION_INFO, "snapshot %u: %s from the hit to the command%s%s", snap.number,
                    fmt_duration(took, snap.hit_to_command_ns), *full ? "; " : "", full);
    else if (*full)
        session_log(s, SESSION_INFO, "snapshot %u: %s", snap.number, full);
}

size_t session_snapshot_count(const struct session *s)
{
    return s->snapshots.len;
}

const struct session_snapshot *session_snapshot_at(const struct session *s, size_t i)
{
    return &s->snapshots.data[i];
}

/* Whether a snapshot is about what all rings hold. One that follows another closely has less: perf
 * writes only what is new. */
static bool had_full_rings(const struct session *s, unsigned number)
{
    size_t buffers = s->setup.n_tids ? s->setup.n_tids : s->machine.caps->cpus_online;
    for (size_t i = s->snapshots.len; i-- > 0;)
        if (s->snapshots.data[i].number == number)
            return s->snapshots.data[i].bytes >= s->ring_bytes / 4 * 3 * buffers;
    return false;
}

void session_note_span(struct session *s, unsigned number, uint64_t span_ns)
{
    bool full = had_full_rings(s, number);
    if (!full && s->est_lookback_ns && (!s->est_at_least || span_ns <= s->est_lookback_ns))
        return;
    s->est_at_least = !full;
    s->est_from = number;
    s->est_lookback_ns = span_ns;
    session_notify(s);
}

/* ---- session.ini ---- */

static void fill_target(struct session *s)
{
    struct session_info *info = &s->info;
    if (s->setup.argv) {
        const char *slash = strrchr(s->setup.argv[0], '/');
        struct plan_argv argv = {0};
        for (size_t i = 0; s->setup.argv[i]; i++)
            plan_argv_add(&argv, s->setup.argv[i]);
        info->comm = xstrdup(slash ? slash + 1 : s->setup.argv[0]);
        info->target_command = plan_format_command(&argv);
        plan_argv_free(&argv);
    } else {
        struct proc_stat stat;
        pid_t pid = target_pid(s->targets.data[0]);
        bool there = proc_stat_read("/proc", pid, 0, &stat, NULL) == 0;
        info->comm = xstrdup(there ? stat.comm : "");
        info->target_command = proc_command("/proc", pid, info->comm, 1024);
    }
    for (size_t i = 0; i < s->targets.len; i++) {
        info->pids = xrealloc(info->pids, (info->npids + 1) * sizeof *info->pids);
        info->pids[info->npids++] = target_pid(s->targets.data[i]);
    }
}

void session_fill_info(struct session *s)
{
    struct session_info *info = &s->info;
    struct utsname un;
    info->recorder = xstrdup(plan_recorder_name(s->recorder));
    info->mode = xstrdup(plan_mode_name(s->mode));
    info->command_line = s->setup.command_line ? xstrdup(s->setup.command_line) : NULL;
    info->mtui_version = xstrdup(MTUI_VERSION);
    info->perf_version = s->machine.version ? xstrdup(s->machine.version->text) : NULL;
    info->kernel = uname(&un) == 0 ? xstrdup(un.release) : NULL;
    info->clock = xstrdup(s->recorder == PLAN_STEP ? "instructions" : "perf");
    info->started = s->setup.argv != NULL;
    info->user_only = !s->setup.kernel;
    info->slower_than_ns = s->setup.when.slower_than_ns;
    info->ring_bytes = s->ring_bytes;
    info->frequency_hz = s->recorder == PLAN_SAMPLE
                             ? (s->setup.freq_hz ? s->setup.freq_hz : PLAN_DEFAULT_FREQ_HZ)
                             : 0;
    info->start_unix_ns = (uint64_t)s->started_unix_ns;
    info->start_ns = s->recorder == PLAN_STEP ? STEP_CLOCK_START : s->anchor_perf_ns;
    for (size_t i = 0; i < s->setup.n_triggers; i++) {
        info->triggers = xrealloc(info->triggers, (info->ntriggers + 1) * sizeof *info->triggers);
        info->triggers[info->ntriggers++] = xstrdup(s->setup.triggers[i]);
    }
    fill_target(s);
}

/* ---- Captures of mappings ---- */

/* On a clock of instructions the moment of a capture has no time: its mappings hold from the beginning,
 * and the recording itself says when each was made. */
static uint64_t capture_time(const struct session *s, uint64_t perf_ns)
{
    return s->recorder == PLAN_STEP ? 0 : perf_ns;
}

static void capture_due(void *arg)
{
    struct session *s = arg;
    s->maps_timer = 0;
    for (size_t i = 0; i < s->due.len; i++)
        maps_writer_capture(s->maps, s->due.data[i].pid, s->due.data[i].time_ns,
                            s->due.data[i].reason);
    s->due.len = 0;
    s->last_capture_ns = loop_now_ns(s->loop);
}

/* A program that makes threads and mappings all the time must not keep us reading its maps:
 * captures keep a distance, and one that waits covers those that come meanwhile. */
void session_capture(struct session *s, pid_t pid, uint64_t time_ns, const char *reason)
{
    uint64_t now = loop_now_ns(s->loop);
    if (!s->maps)
        return;
    time_ns = capture_time(s, time_ns);
    if (!s->maps_timer && now >= s->last_capture_ns + CAPTURE_INTERVAL_NS) {
        maps_writer_capture(s->maps, pid, time_ns, reason);
        s->last_capture_ns = now;
        return;
    }
    for (size_t i = 0; i < s->due.len; i++)
        if (s->due.data[i].pid == pid)
            return;
    vec_push(&s->due, ((struct capture_due){pid, time_ns, reason}));
    if (!s->maps_timer)
        s->maps_timer =
            loop_add_timer(s->loop, s->last_capture_ns + CAPTURE_INTERVAL_NS, capture_due, s);
}

void session_capture_all(struct session *s, uint64_t time_ns, const char *reason)
{
    time_ns = capture_time(s, time_ns);
    for (size_t i = 0; s->maps && i < s->targets.len; i++)
        maps_writer_capture(s->maps, target_pid(s->targets.data[i]), time_ns, reason);
}

void session_free_notes(struct session *s)
{
    for (size_t i = 0; i < s->log.len; i++)
        free(s->log.data[i].text);
    for (size_t i = 0; i < s->snapshots.len; i++) {
        free(s->snapshots.data[i].data);
        free(s->snapshots.data[i].trigger);
        free(s->snapshots.data[i].comm);
        free(s->snapshots.data[i].remark);
    }
    for (size_t i = 0; i < s->members.len; i++)
        free(s->members.data[i].function);
    vec_free(&s->members);
    vec_free(&s->log);
    vec_free(&s->snapshots);
    vec_free(&s->hit_ring);
    vec_free(&s->due);
    free(s->step_dropped);
    session_info_free(&s->info);
}

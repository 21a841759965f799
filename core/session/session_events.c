/* What recorder, triggers and target tell the session. */
#include "core/session/session_priv.h"

#include <stdio.h>
#include <string.h>

#include "core/base/fmt.h"
#include "core/record/step_message.h"

/* ---- Recorder ---- */

static void on_state(void *arg, enum recorder_state state)
{
    struct session *s = arg;
    if (state == RECORDER_ENABLED && s->state == SESSION_PREPARING) {
        s->enabled_perf_ns = perf_clock_now_ns(s->clock);
        session_on_recorder_ready(s);
    }
    session_notify(s);
}

static void on_log(void *arg, const char *line)
{
    static const char note[] = "step: " STEP_MESSAGE_NOTE;
    bool noted = strncmp(line, note, sizeof note - 1) == 0;
    session_log(arg, noted ? SESSION_WARNING : SESSION_INFO, "%s", noted ? line + sizeof note - 1 : line);
}

static void on_key_turn(void *arg)
{
    struct session *s = arg;
    struct err err;
    s->key_timer = 0;
    if (s->triggers)
        trigger_set_snapshot_done(s->triggers);
    if (s->state == SESSION_ARMED && session_snapshot(s, &err) < 0)
        session_log(s, SESSION_ERROR, "no snapshot: %s", err.text);
}

/* A key that waited has its turn in the next round, when the recorder is ready again; hits count as
 * busy until then. */
static void snapshot_over(struct session *s)
{
    s->firing = false;
    if (s->key_waits && s->state == SESSION_ARMED) {
        s->key_waits = false;
        s->key_timer = loop_add_timer(s->loop, loop_now_ns(s->loop), on_key_turn, s);
    } else if (s->triggers) {
        trigger_set_snapshot_done(s->triggers);
    }
}

static uint64_t numbered_snapshots(const struct session *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->snapshots.len; i++)
        n += s->snapshots.data[i].number != 0;
    return n;
}

static void on_snapshot(void *arg, const struct recorder_snapshot *r)
{
    struct session *s = arg;
    char sentence[80];
    session_capture_all(s, perf_clock_now_ns(s->clock), "snapshot");
    session_add_snapshot(s, r);
    if (!r->is_end)
        snapshot_over(s);
    if (s->cb.snapshot)
        s->cb.snapshot(s->arg, &s->snapshots.data[s->snapshots.len - 1]);
    uint64_t max = s->setup.when.max_snapshots;
    if (max && s->state == SESSION_ARMED && numbered_snapshots(s) >= max) {
        char n[FMT_MAX];
        snprintf(sentence, sizeof sentence, "%s snapshot%s taken, as asked for", fmt_count(n, max),
                 max == 1 ? "" : "s");
        session_begin_stop(s, SESSION_END_SNAPSHOTS, sentence);
    }
}

static void on_snapshot_failed(void *arg, const char *reason, const char *sentence)
{
    struct session *s = arg;
    (void)reason;
    session_log(s, SESSION_ERROR, "no snapshot: %s", sentence);
    if (s->firing)
        session_write_hit(s, &s->pending);
    snapshot_over(s);
    /* A trigger that fires no more has had its chance. */
    if (s->state == SESSION_ARMED && s->setup.n_triggers && trigger_set_exhausted(s->triggers)) {
        char end[600];
        snprintf(end, sizeof end, "the snapshot came to nothing: %s", sentence);
        session_begin_stop(s, SESSION_END_SNAPSHOT_FAILED, end);
    }
}

/* What is left on the disk when a recording of everything stops by itself: it has to be closed, and the machine
 * needs some. */
#define RESERVE_BYTES (UINT64_C(16) << 20)
#define RESERVE_S     3

uint64_t session_disk_reserve(uint64_t bytes_per_s)
{
    return bytes_per_s > RESERVE_BYTES / RESERVE_S ? bytes_per_s * RESERVE_S : RESERVE_BYTES;
}

static void on_measured(void *arg)
{
    struct session *s = arg;
    struct recorder_status rec;
    char sentence[160], left[FMT_MAX], rate[FMT_MAX];
    if (s->state != SESSION_ARMED || s->mode != PLAN_WHOLE)
        return;
    recorder_get_status(s->rec, &rec);
    if (rec.disk_free == UINT64_MAX || rec.disk_free >= session_disk_reserve(rec.bytes_per_s))
        return;
    snprintf(sentence, sizeof sentence, "stopped before the disk was full: %s left, %s a second written",
             fmt_size(left, rec.disk_free), fmt_size(rate, rec.bytes_per_s));
    session_begin_stop(s, SESSION_END_DISK_FULL, sentence);
}

static void on_ended(void *arg, bool ok, const char *sentence)
{
    struct session *s = arg;
    struct recorder_status rec;
    recorder_get_status(s->rec, &rec);
    session_finish_later(s, ok, rec.disk_full ? SESSION_END_DISK_FULL
                                : ok && rec.target_gone ? SESSION_END_TARGET_EXITED
                                                        : SESSION_END_RECORDER,
                         sentence);
}

const struct recorder_events session_recorder_events = {
    .state = on_state,
    .log = on_log,
    .snapshot = on_snapshot,
    .snapshot_failed = on_snapshot_failed,
    .measured = on_measured,
    .ended = on_ended,
    .step = session_on_step,
};

/* ---- Triggers ---- */

static char *text_of(char *out, size_t size, const struct session_hit *hit)
{
    return snapshot_hit_text(out, size, hit->hit.trigger, hit->hit.function);
}

void session_fire(struct session *s, const struct session_hit *hit, uint64_t perf_ns)
{
    struct err err;
    char what[600];
    s->requested_perf_ns = perf_clock_now_ns(s->clock);
    s->pending_perf_ns = perf_ns;
    s->pending = *hit;
    s->firing = true;
    int rc = recorder_snapshot(s->rec, text_of(what, sizeof what, hit), &err);
    if (rc == 0) {
        session_note_fill(s);
        s->fired++;
        session_capture_all(s, hit->hit.time_ns, "hit");
        return;
    }
    session_log(s, SESSION_WARNING, "hit of %s, but no snapshot: %s", what, err.text);
    session_write_hit(s, hit);
    s->counted++;
    snapshot_over(s);
}

/* Calls are matched while the recorder starts, so the slow one that runs already is caught, without its beginning. */
static void say_begun_before(struct session *s, const struct session_hit *hit)
{
    char text[FMT_MAX], what[600];
    uint64_t begun_ns = hit->hit.time_ns - hit->hit.duration_ns;
    if (hit->has_duration && begun_ns < s->enabled_perf_ns)
        session_log(s, SESSION_WARNING, "the call of %s had begun %s before the recording: the snapshot has the rest of it",
                    text_of(what, sizeof what, hit), fmt_duration(text, s->enabled_perf_ns - begun_ns));
}

static void on_hit(void *arg, const struct trigger_hit *t)
{
    struct session *s = arg;
    /* Of a recorder that steps, the stops decide; the probes only measured the rate. */
    if (s->state != SESSION_ARMED || s->disarmed || s->recorder == PLAN_STEP || t->trigger >= s->setup.n_triggers) {
        /* It began a snapshot that will not be asked for. */
        if (t->verdict == TRIGGER_FIRE && s->state != SESSION_PREPARING)
            trigger_set_snapshot_done(s->triggers);
        return;
    }
    struct session_member *member = session_member_of(s, t->probe.member);
    enum probe_role role = t->probe.role;
    struct session_hit hit = {
        .hit = {.time_ns = t->probe.time_ns,
                .tid = t->probe.tid,
                .trigger = s->setup.triggers[t->trigger],
                .function = member ? member->function : NULL,
                .address = t->probe.ip,
                .arg1 = t->probe.arg[0],
                .arg2 = t->probe.arg[1],
                .duration_ns = t->duration_ns,
                .still_running = t->still_running},
        .unix_ns = session_unix_of(s, t->probe.time_ns),
        .verdict = t->verdict,
        .has_duration = t->has_duration,
        .still_running = t->still_running,
        .pid = t->probe.pid,
        .has_args = t->has_duration || (role != PROBE_RETURN && role != PROBE_JUMP),
        .has_ret = role == PROBE_RETURN || role == PROBE_CALL,
        .ret = t->probe.result,
    };
    bool counts = t->verdict != TRIGGER_KNOWN; /* else it was counted while it was running */
    s->hits += counts;
    if (member)
        member->hits += counts;
    if (t->verdict != TRIGGER_FAST)
        session_note_hit(s, &hit);
    if (t->verdict == TRIGGER_FIRE) {
        say_begun_before(s, &hit);
        session_fire(s, &hit, t->probe.time_ns);
    } else {
        s->counted += counts;
        session_write_hit(s, &hit);
    }
}

/* Unless there are snapshots enough, which is then the reason of the end. */
void session_end_calls(struct session *s)
{
    uint64_t max = s->setup.when.max_snapshots;
    if (s->state == SESSION_ARMED && s->triggers && !(max && numbered_snapshots(s) >= max))
        trigger_set_end_calls(s->triggers, s->target_gone);
}

static void on_message(void *arg, const char *sentence)
{
    session_log(arg, SESSION_WARNING, "%s", sentence);
}

static bool is_target(const struct session *s, pid_t pid)
{
    for (size_t i = 0; i < s->targets.len; i++)
        if (target_pid(s->targets.data[i]) == pid)
            return true;
    return false;
}

static void say_exec(struct session *s, const struct probe_event *e)
{
    char n[FMT_MAX], so_far[80] = "";
    uint64_t nth = is_target(s, e->pid) ? 1 : ++s->child_execs;
    if (!fmt_is_told(nth))
        return;
    if (nth > 1)
        snprintf(so_far, sizeof so_far, " (%s times in children by now)", fmt_count(n, nth));
    session_log(s, SESSION_INFO, "process %ld now runs %s%s", (long)e->pid, e->name ? e->name : "another program", so_far);
}

static void on_event(void *arg, const struct probe_event *e)
{
    static const char *const reasons[] = {
        [PROBE_THREAD_BORN] = "thread",
        [PROBE_CHILD] = "child",
        [PROBE_EXEC] = "exec",
        [PROBE_MAPPED] = "mapped",
    };
    struct session *s = arg;
    if (e->change == PROBE_THREAD_ENDED || e->change == PROBE_PROCESS_ENDED)
        return;
    if (e->change == PROBE_CHILD && !s->setup.children)
        return;
    if (e->change == PROBE_EXEC && s->setup.n_triggers == 0) /* triggers tell of it themselves */
        say_exec(s, e);
    session_capture(s, e->pid, e->time_ns, reasons[e->change]);
}

const struct trigger_set_callbacks session_trigger_callbacks = {
    .hit = on_hit,
    .message = on_message,
    .event = on_event,
    .sites = session_hand_sites,
};

/* ---- Target ---- */

static bool all_ended(const struct session *s)
{
    for (size_t i = 0; i < s->targets.len; i++) {
        enum target_state state = target_state(s->targets.data[i]);
        if (state == TARGET_WAITING || state == TARGET_RUNNING)
            return false;
    }
    return true;
}

static void on_target(void *arg, enum target_state state)
{
    struct session *s = arg;
    char text[128], sentence[256];
    if (state == TARGET_RUNNING) {
        session_log(s, SESSION_INFO, "the program runs");
        return;
    }
    if (!all_ended(s) || s->target_gone)
        return;
    s->target_gone = true;
    struct target *t = s->targets.data[0];
    if (state == TARGET_FAILED) {
        session_log(s, SESSION_ERROR, "%s", target_error(t)->text);
        session_begin_stop(s, SESSION_END_NOT_STARTED, target_error(t)->text);
        return;
    }
    target_describe(t, text, sizeof text);
    bool killed = strncmp(text, "killed", 6) == 0;
    snprintf(sentence, sizeof sentence, "the traced program %s%s", killed ? "was " : "", text);
    session_log(s, SESSION_INFO, "%s", sentence);
    if (s->triggers)
        trigger_set_drain(s->triggers);
    if (s->rec) /* `step` tells of the hits */
        recorder_drain(s->rec);
    /* Children that are traced too may go on; the recorder ends with the last of them. */
    if (!s->setup.children)
        session_begin_stop(s, killed ? SESSION_END_TARGET_KILLED : SESSION_END_TARGET_EXITED, sentence);
}

static void on_output(void *arg)
{
    session_notify(arg);
}

const struct target_callbacks session_target_callbacks = {.changed = on_target,
                                                          .output = on_output};

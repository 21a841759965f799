/* What a session answers when it is asked how it stands. */
#include "core/session/session_priv.h"

const char *session_state_name(enum session_state s)
{
    static const char *const names[] = {"preparing", "armed", "stopping", "ended", "failed"};
    return names[s];
}

const char *session_end_name(enum session_end e)
{
    static const char *const names[] = {
        [SESSION_END_NONE] = "none",
        [SESSION_END_STOPPED] = "stopped",
        [SESSION_END_DURATION] = "duration",
        [SESSION_END_SNAPSHOTS] = "snapshots",
        [SESSION_END_SNAPSHOT_FAILED] = "snapshot-failed",
        [SESSION_END_TARGET_EXITED] = "target-exited",
        [SESSION_END_TARGET_KILLED] = "target-killed",
        [SESSION_END_NOT_STARTED] = "not-started",
        [SESSION_END_REPLACED] = "program-replaced",
        [SESSION_END_TOO_HOT] = "too-hot",
        [SESSION_END_DISK_FULL] = "disk-full",
        [SESSION_END_RECORDER] = "recorder-failed",
    };
    return names[e];
}

void session_get_status(struct session *s, struct session_status *out)
{
    (void)session_member_of(s, 0); /* all that were found so far, hit or not */
    *out = (struct session_status){
        .state = s->state,
        .sentence = s->state >= SESSION_ENDED ? s->sentence : NULL,
        .end = s->state >= SESSION_ENDED ? s->end : SESSION_END_NONE,
        .too_hot = s->too_hot,
        .recorder = s->recorder,
        .recorder_why = s->why,
        .mode = s->mode,
        .ring_bytes = s->ring_bytes,
        .started_ns = s->started_ns,
        .ended_ns = s->ended_ns,
        .started_unix_ns = s->started_unix_ns,
        .armed_ns = s->armed_ns,
        .disarmed = s->disarmed,
        .has_recorder = s->rec != NULL,
        .hits = s->hits,
        .fired = s->fired,
        .counted = s->counted,
        .unmet = s->unmet,
        .fast = s->fast,
        .early = s->early,
        .not_nth = s->not_nth,
        .calls = s->calls,
        .watches_calls = s->watches_calls,
        .hit_to_command_ns = s->hit_to_command_ns,
        .est_lookback_ns = s->est_lookback_ns,
        .est_from = s->est_from,
        .est_at_least = s->est_at_least,
        .hit_ns = s->hit_ns,
        .est_fill_permille = s->fill_permille,
        .rate = s->rate,
    };
    if (s->est_lookback_ns && !s->est_at_least && s->armed_ns)
        out->est_full_ns = s->armed_ns + s->est_lookback_ns;
    if (s->rec)
        recorder_get_status(s->rec, &out->rec);
    if (s->maps)
        maps_writer_stats(s->maps, &s->maps_stats);
    out->maps_left_out = s->maps_stats.left_out;
    out->maps_note = s->maps_stats.note;
}

const struct session_setup *session_get_setup(const struct session *s)
{
    return &s->setup;
}

struct snapshot_dir *session_dir(const struct session *s)
{
    return s->dir;
}

struct target *session_target(const struct session *s)
{
    return s->targets.data[0];
}

const struct trigger_set *session_triggers(const struct session *s)
{
    return s->triggers;
}

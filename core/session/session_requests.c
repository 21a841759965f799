/* What a user may ask of a session that records. */
#include "core/session/session_priv.h"

#include <stdlib.h>

static int recording(const struct session *s, struct err *err)
{
    static const char *const why[] = {
        "not yet: the recorder is getting ready",
        "",
        "the recording is being finished",
        "the recording has ended",
        "the recording has failed",
    };
    if (s->state == SESSION_ARMED)
        return 0;
    return err_set(err, s->state == SESSION_PREPARING ? MTUI_E_STATE : MTUI_E_GONE, "%s",
                   why[s->state]);
}

int session_snapshot(struct session *s, struct err *err)
{
    int rc = recording(s, err);
    if (rc < 0)
        return rc;
    uint64_t now = perf_clock_now_ns(s->clock);
    bool steps_calls = s->recorder == PLAN_STEP && s->setup.n_triggers;
    if (steps_calls && !s->firing)
        return err_set(err, MTUI_E_STATE,
                       "nothing is being stepped: the next hit of the trigger makes a snapshot");
    if (s->firing && s->recorder != PLAN_STEP && s->state == SESSION_ARMED) {
        s->key_waits = true;
        return 0;
    }
    rc = recorder_snapshot(s->rec, s->key, err);
    if (rc < 0 || steps_calls) /* the window in progress ends; its snapshot is on its way */
        return rc;
    trigger_set_snapshot_begin(s->triggers);
    session_note_fill(s);
    s->firing = true;
    s->requested_perf_ns = now;
    s->pending_perf_ns = 0;
    s->pending = (struct session_hit){
        .hit = {.time_ns = s->recorder == PLAN_STEP ? 0 : now, .trigger = s->key},
        .unix_ns = session_unix_now(),
        .verdict = TRIGGER_FIRE,
        .pid = session_only_pid(s),
    };
    session_capture_all(s, now, "snapshot");
    return 0;
}

int session_toggle_enabled(struct session *s, struct err *err)
{
    struct recorder_status rec;
    int rc = recording(s, err);
    if (rc < 0)
        return rc;
    recorder_get_status(s->rec, &rec);
    return rec.enabled ? recorder_disable(s->rec, err) : recorder_enable(s->rec, err);
}

int session_ping(struct session *s, struct err *err)
{
    if (!s->rec)
        return recording(s, err);
    return recorder_ping(s->rec, err);
}

int session_give_up(struct session *s, struct err *err)
{
    if (!s->rec)
        return recording(s, err);
    s->key_waits = false;
    return recorder_give_up(s->rec, err);
}

int session_stop(struct session *s, struct err *err)
{
    return session_stop_since(s, SESSION_END_STOPPED, "stopped, as asked for", err);
}

int session_stop_since(struct session *s, enum session_end end, const char *why, struct err *err)
{
    if (s->state >= SESSION_ENDED)
        return recording(s, err);
    if (s->state == SESSION_STOPPING)
        return s->rec ? recorder_stop(s->rec, err) : 0;
    session_begin_stop(s, end, s->stop_asked ? NULL : why);
    s->stop_asked = true;
    return 0;
}

int session_disarm(struct session *s, struct err *err)
{
    int rc = recording(s, err);
    if (rc < 0)
        return rc;
    if (s->setup.n_triggers == 0)
        return err_set(err, MTUI_E_STATE, "no trigger is armed");
    if (s->recorder == PLAN_STEP) /* the recorder holds the places */
        rc = s->disarmed ? recorder_enable(s->rec, err) : recorder_disable(s->rec, err);
    else if (s->disarmed)
        rc = trigger_set_put_back(s->triggers, err);
    else
        session_say_probes_left(s);
    if (rc < 0)
        return rc;
    if (!s->disarmed && s->recorder != PLAN_STEP)
        trigger_set_take_out(s->triggers);
    s->disarmed = !s->disarmed;
    session_log(s, SESSION_INFO, s->disarmed ? "triggers disarmed: their probes leave the program"
                                             : "triggers armed again");
    trigger_set_hold(s->triggers, s->disarmed);
    return 0;
}

int session_delete(struct session *s, unsigned number, struct err *err)
{
    for (size_t i = 0; i < s->snapshots.len; i++) {
        struct session_snapshot *snap = &s->snapshots.data[i];
        if (snap->number != number)
            continue;
        int rc = snapshot_dir_delete(s->dir, number, err);
        if (rc < 0)
            return rc;
        free(snap->data);
        snap->data = NULL;
        snap->bytes = 0;
        session_log(s, SESSION_INFO, "snapshot %u deleted", number);
        return 0;
    }
    return err_set(err, MTUI_E_NOENT, "there is no snapshot %u", number);
}

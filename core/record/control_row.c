#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/record/control.h"
#include "core/record/plan.h"

/* perf record knows --control=fd:R,W with `snapshot` since 5.10, --snapshot=e since 5.4. */
static void describe(struct control_row *row, const struct record_plan *plan,
                     const struct perf_version *version)
{
    const char *by = row->ctlfd                              ? "control fd"
                     : plan->control == PLAN_CONTROL_SIGNALS ? "signals as asked"
                                                             : "signals";
    const char *detail = "";
    if (row->ctlfd && plan->recorder == PLAN_SAMPLE && row->can_snapshot)
        detail = "; SIGUSR2 for snapshots: perf ignores `snapshot` without AUX data";
    else if (!row->ctlfd && plan->control != PLAN_CONTROL_SIGNALS)
        detail = ": the control fd came with perf 5.10";
    snprintf(row->why, sizeof row->why, "%s, perf %.40s%s", by, version->text, detail);
}

static struct control_action by_command(enum control_command c)
{
    return (struct control_action){.command = c};
}

static struct control_action by_signal(enum control_command c, int sig)
{
    return (struct control_action){.command = c, .signal = sig};
}

/* mtui's own stepper always speaks the protocol. */
static void step_row(struct control_row *row, const struct record_plan *plan)
{
    *row = (struct control_row){.ctlfd = true,
                                .can_snapshot = plan->mode == PLAN_TRIGGER,
                                .snapshot = by_command(CONTROL_SNAPSHOT),
                                .finish = by_command(CONTROL_STOP),
                                .fallback = by_signal(CONTROL_STOP, SIGTERM),
                                .confirm = plan->mode == PLAN_TRIGGER ? CONTROL_CONFIRM_DUMP
                                                                      : CONTROL_CONFIRM_END};
    snprintf(row->why, sizeof row->why, "control fd, the stepper is mtui's own");
}

int control_select(const struct record_plan *plan, const struct perf_version *version,
                   struct control_row *out, struct err *err)
{
    struct control_row row = {0};
    if (plan->recorder == PLAN_STEP) {
        step_row(out, plan);
        return 0;
    }
    bool has_ctlfd = perf_version_at_least(version, 5, 10);
    if (plan->control == PLAN_CONTROL_CTLFD && !has_ctlfd)
        return err_set(err, MTUI_E_NOTSUP,
                       "perf %s has no control fd (5.10 or later has): use --control signals",
                       version->text);
    row.ctlfd = has_ctlfd && plan->control != PLAN_CONTROL_SIGNALS;
    row.can_snapshot = plan->mode == PLAN_TRIGGER;
    bool pt = plan->recorder == PLAN_PT;
    bool at_exit = pt && plan->mode == PLAN_RING && perf_version_at_least(version, 5, 4);
    if (pt && plan->mode != PLAN_WHOLE)
        row.snapshot_option = at_exit ? "--snapshot=e" : "--snapshot";
    row.snapshot =
        row.ctlfd && pt ? by_command(CONTROL_SNAPSHOT) : by_signal(CONTROL_SNAPSHOT, SIGUSR2);
    if (row.ctlfd)
        row.finish = by_command(CONTROL_STOP);
    else
        row.finish = by_signal(CONTROL_STOP, at_exit ? SIGINT : SIGTERM);
    row.fallback = by_signal(CONTROL_STOP, row.ctlfd || at_exit ? SIGINT : SIGTERM);
    /* Before 5.4 perf has no snapshot at its exit: the ring is asked for first, then it is stopped.
     */
    row.snapshot_before_finish = pt && plan->mode == PLAN_RING && !at_exit;
    row.confirm = row.snapshot_before_finish   ? CONTROL_CONFIRM_AUX
                  : plan->mode != PLAN_TRIGGER ? CONTROL_CONFIRM_END
                  : pt                         ? CONTROL_CONFIRM_AUX
                                               : CONTROL_CONFIRM_DUMP;
    describe(&row, plan, version);
    *out = row;
    return 0;
}

void control_fall_back(const struct control_row *row, const char *reason, struct control_row *out)
{
    struct control_row r = *row;
    r.ctlfd = false;
    if (!r.snapshot.signal)
        r.snapshot.signal = SIGUSR2;
    if (!r.finish.signal)
        r.finish.signal = r.fallback.signal;
    snprintf(r.why, sizeof r.why, "signals: %s", reason);
    *out = r;
}

#include "core/session/session_setup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/record/control.h"
#include "core/step/step_args.h"

/* Stands for the pid of a program that does not run yet, in a command that is only shown. */
#define NO_PID INT_MAX

static char *copy_string(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static void *copy_bytes(const void *p, size_t n)
{
    return n ? memcpy(xmalloc(n), p, n) : NULL;
}

void session_setup_copy(struct session_setup *to, const struct session_setup *from)
{
    struct session_setup s = *from;
    s.pids = copy_bytes(from->pids, from->n_pids * sizeof *from->pids);
    s.tids = copy_bytes(from->tids, from->n_tids * sizeof *from->tids);
    s.triggers = NULL;
    s.n_triggers = 0;
    for (size_t i = 0; i < from->n_triggers; i++)
        session_setup_add_trigger(&s, from->triggers[i]);
    size_t argc = 0;
    while (from->argv && from->argv[argc])
        argc++;
    s.argv = from->argv ? xcalloc(argc + 1, sizeof *s.argv) : NULL;
    for (size_t i = 0; i < argc; i++)
        s.argv[i] = xstrdup(from->argv[i]);
    s.truth = copy_string(from->truth);
    s.output = copy_string(from->output);
    s.command_line = copy_string(from->command_line);
    *to = s;
}

void session_setup_free(struct session_setup *s)
{
    for (size_t i = 0; i < s->n_triggers; i++)
        free(s->triggers[i]);
    for (size_t i = 0; s->argv && s->argv[i]; i++)
        free(s->argv[i]);
    free(s->triggers);
    free(s->argv);
    free(s->pids);
    free(s->tids);
    free(s->truth);
    free(s->output);
    free(s->command_line);
    memset(s, 0, sizeof *s);
}

void session_setup_add_trigger(struct session_setup *s, const char *spec)
{
    for (size_t i = 0; i < s->n_triggers; i++)
        if (!strcmp(s->triggers[i], spec))
            return;
    s->triggers = xrealloc(s->triggers, (s->n_triggers + 1) * sizeof *s->triggers);
    s->triggers[s->n_triggers++] = xstrdup(spec);
}

bool session_setup_remove_trigger(struct session_setup *s, const char *spec)
{
    for (size_t i = 0; i < s->n_triggers; i++) {
        if (strcmp(s->triggers[i], spec) != 0)
            continue;
        free(s->triggers[i]);
        memmove(s->triggers + i, s->triggers + i + 1,
                (s->n_triggers - i - 1) * sizeof *s->triggers);
        s->n_triggers--;
        return true;
    }
    return false;
}

enum plan_recorder session_setup_recorder(const struct session_setup *s,
                                          const struct capabilities *caps, char *why, size_t size)
{
    const struct capability *pt = &caps->line[CAP_INTEL_PT];
    if (!s->auto_recorder) {
        snprintf(why, size, "chosen");
        return s->recorder;
    }
    if (caps->intel_pt.present) {
        snprintf(why, size, "Intel PT works here");
        return PLAN_PT;
    }
    /* The first clause: it has to fit a line of the screen, and `mtui doctor` says all of it. */
    if (pt->reason[0])
        snprintf(why, size, "no Intel PT: %.*s", (int)strcspn(pt->reason, ":,;"), pt->reason);
    else
        snprintf(why, size, "no Intel PT: no intel_pt PMU");
    return PLAN_SAMPLE;
}

enum plan_mode session_setup_mode(const struct session_setup *s, bool interactive)
{
    if (!s->auto_mode)
        return s->mode;
    return s->n_triggers || interactive ? PLAN_TRIGGER : PLAN_RING;
}

int session_setup_check(const struct session_setup *s, enum plan_recorder recorder, struct err *err)
{
    if (!s->argv && !s->n_pids)
        return err_set(err, MTUI_E_INVAL, "no process is chosen");
    if (s->n_triggers && !s->auto_mode && s->mode != PLAN_TRIGGER)
        return err_set(err, MTUI_E_INVAL,
                       "triggers make snapshots only in mode \"trigger\"; this is mode \"%s\"",
                       plan_mode_name(s->mode));
    if (s->when.slower_than_ns && !s->n_triggers)
        return err_set(err, MTUI_E_INVAL, "\"slower than\" needs a function to watch");
    if (recorder != PLAN_STEP && (s->budget || s->truth))
        return err_set(err, MTUI_E_INVAL, "a budget and a truth file are for the recorder step");
    if (recorder == PLAN_STEP && (s->freq_hz || s->timing != PLAN_TIMING_NORMAL))
        return err_set(err, MTUI_E_INVAL,
                       "step knows no frequency (of sample) and no timing (of pt): its clock is instructions");
    if (recorder == PLAN_STEP && s->n_pids > 1)
        return err_set(err, MTUI_E_NOTSUP, "step traces one process at a time");
    if (recorder == PLAN_STEP && s->when.not_before_full)
        return err_set(err, MTUI_E_NOTSUP,
                       "step fills its ring with the call itself: --not-before takes a duration there");
    if (recorder == PLAN_STEP && s->when.slower_than_ns)
        return err_set(err, MTUI_E_NOTSUP,
                       "step makes every call slow, so it cannot tell the slow ones: use sample");
    return 0;
}

void session_setup_plan(const struct session_setup *s, const struct capabilities *caps,
                        bool interactive, const pid_t *pids, size_t n_pids, const char *output_dir,
                        struct record_plan *plan)
{
    char why[256];
    *plan = (struct record_plan){
        .recorder = session_setup_recorder(s, caps, why, sizeof why),
        .mode = session_setup_mode(s, interactive),
        .timing = s->timing,
        .call_graph = s->call_graph,
        .control = s->control,
        .pids = pids,
        .n_pids = n_pids,
        .tids = s->tids,
        .n_tids = s->n_tids,
        .children = s->children,
        .kernel = s->kernel,
        .sample_by_clock = !caps->cycles_count,
        .ring_bytes = s->ring_bytes,
        .freq_hz = s->freq_hz,
        .budget = s->budget,
        .truth = s->truth,
        .output_dir = output_dir,
    };
}

static void name_the_pid(struct plan_argv *argv)
{
    char number[16];
    snprintf(number, sizeof number, "%d", NO_PID);
    for (size_t i = 0; i < argv->len; i++)
        if (!strcmp(argv->data[i], number))
            memcpy(argv->data[i], "PID", 4);
}

static int step_argv(const struct session_setup *s, const struct record_plan *plan,
                     struct plan_argv *argv, struct err *err)
{
    struct step_args_extra extra = {.program = "mtui",
                                    .at_sites = s->n_triggers > 0,
                                    .from_exec = s->argv != NULL,
                                    .when = &s->when};
    return step_args_build(plan, &extra, argv, err);
}

int session_setup_command(const struct session_setup *s, const struct capabilities *caps,
                          const struct perf_version *version, bool interactive, char **out,
                          struct err *err)
{
    const pid_t no_pid = NO_PID;
    struct record_plan plan;
    struct control_row row;
    struct plan_argv argv = {0};
    session_setup_plan(s, caps, interactive, s->argv ? &no_pid : s->pids, s->argv ? 1 : s->n_pids,
                       s->output ? s->output : "DIR", &plan);
    int rc = session_setup_check(s, plan.recorder, err);
    if (rc == 0)
        rc = control_select(&plan, version, &row, err);
    if (rc == 0)
        rc = plan.recorder == PLAN_STEP
                 ? step_argv(s, &plan, &argv, err)
                 : plan_perf_argv(&plan, version, &caps->intel_pt, &row, &argv, err);
    if (rc == 0) {
        name_the_pid(&argv);
        *out = plan_format_command(&argv);
    }
    plan_argv_free(&argv);
    return rc;
}

void session_setup_pace(struct session_setup *s)
{
    bool limited = s->when.hold_off_ns || s->when.max_snapshots;
    if (s->n_triggers && !limited && session_setup_mode(s, true) == PLAN_TRIGGER)
        s->when.hold_off_ns = SESSION_SETUP_PACE_NS;
}

/* ---- The command that repeats a setup ---- */

static void add_value(struct plan_argv *a, const char *option, const char *value)
{
    plan_argv_add(a, option);
    plan_argv_add(a, value);
}

static void add_number(struct plan_argv *a, const char *option, uint64_t n, const char *unit)
{
    char text[48];
    if (!n)
        return;
    snprintf(text, sizeof text, "%" PRIu64 "%s", n, unit);
    add_value(a, option, text);
}

/* In the largest unit that says it exactly. */
static void add_duration(struct plan_argv *a, const char *option, uint64_t ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    for (; ns && ns % 1000 == 0 && unit < 3; unit++)
        ns /= 1000;
    add_number(a, option, ns, units[unit]);
}

static void add_ids(struct plan_argv *a, const char *option, const pid_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_number(a, option, (uint64_t)ids[i], "");
}

char *session_setup_repeat(const struct session_setup *s)
{
    static const char *const timings[] = {"normal", "low", "high"};
    static const char *const graphs[] = {"fp", "dwarf", "lbr"};
    static const char *const controls[] = {"auto", "ctlfd", "signals"};
    struct plan_argv a = {0};
    plan_argv_add(&a, "mtui");
    plan_argv_add(&a, s->argv ? "run" : "attach");
    add_ids(&a, "-p", s->pids, s->n_pids);
    if (!s->auto_recorder)
        add_value(&a, "-r", plan_recorder_name(s->recorder));
    for (size_t i = 0; i < s->n_triggers; i++)
        add_value(&a, "-t", s->triggers[i]);
    add_duration(&a, "--slower-than", s->when.slower_than_ns);
    if (!s->auto_mode)
        add_value(&a, "--mode", plan_mode_name(s->mode));
    if (s->timing != PLAN_TIMING_NORMAL)
        add_value(&a, "--timing", timings[s->timing]);
    add_number(&a, "--hits", s->when.hits, "");
    add_duration(&a, "--hold-off", s->when.hold_off_ns);
    add_duration(&a, "--not-before", s->when.not_before_ns);
    if (s->when.not_before_full)
        add_value(&a, "--not-before", "full");
    add_number(&a, "--max-snapshots", s->when.max_snapshots, "");
    add_number(&a, "--size", s->ring_bytes, "");
    add_number(&a, "--freq", s->freq_hz, "");
    if (s->call_graph != PLAN_CALL_GRAPH_FP)
        add_value(&a, "--call-graph", graphs[s->call_graph]);
    add_duration(&a, "--duration", s->duration_ns);
    add_ids(&a, "--tid", s->tids, s->n_tids);
    if (s->children)
        plan_argv_add(&a, "--children");
    if (s->kernel)
        plan_argv_add(&a, "--kernel");
    if (s->force)
        plan_argv_add(&a, "--force");
    if (s->control != PLAN_CONTROL_AUTO)
        add_value(&a, "--control", controls[s->control]);
    if (s->output)
        add_value(&a, "-o", s->output);
    add_number(&a, "--budget", s->budget, "");
    if (s->truth)
        add_value(&a, "--truth", s->truth);
    if (s->argv)
        plan_argv_add(&a, "--");
    for (size_t i = 0; s->argv && s->argv[i]; i++)
        plan_argv_add(&a, s->argv[i]);
    char *text = plan_format_command(&a);
    plan_argv_free(&a);
    return text;
}

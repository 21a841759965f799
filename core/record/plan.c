#include "core/record/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

const char *plan_recorder_name(enum plan_recorder r)
{
    static const char *const names[] = {"pt", "step", "sample"};
    return names[r];
}

const char *plan_mode_name(enum plan_mode m)
{
    static const char *const names[] = {"trigger", "ring", "whole"};
    return names[m];
}

__attribute__((format(printf, 2, 3))) static void add(struct plan_argv *argv, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    plan_argv_add(argv, text ? text : "");
    free(text);
}

static void add_id_list(struct plan_argv *argv, const char *option, const pid_t *ids, size_t n)
{
    plan_argv_add(argv, option);
    char *list = xstrdup("");
    for (size_t i = 0; i < n; i++) {
        char *longer = xasprintf("%s%s%d", list, i ? "," : "", (int)ids[i]);
        free(list);
        list = longer;
    }
    plan_argv_add(argv, list);
    free(list);
}

/* The wanted value if the PMU has it, else the nearest below, else the lowest; -1: none known. */
static int nearest_value(uint32_t mask, int want)
{
    for (int v = want; v >= 0; v--)
        if (mask >> v & 1)
            return v;
    for (int v = want + 1; v < 32; v++)
        if (mask >> v & 1)
            return v;
    return -1;
}

struct terms {
    char text[160];
};

__attribute__((format(printf, 2, 3))) static void term(struct terms *t, const char *fmt, ...)
{
    size_t len = strlen(t->text);
    if (len && len + 1 < sizeof t->text)
        t->text[len++] = ',';
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->text + len, sizeof t->text - len, fmt, ap);
    va_end(ap);
}

/* Config terms of perf-intel-pt(1). TSC packets are on by default; MTC gives the time between two
 * of them, CYC the cycles between two branches. A PSB every 16 KiB (3) costs little and is where
 * decoding can start, in parallel and after a loss. */
static void add_pt_event(const struct record_plan *plan, const struct pmu_intel_pt *caps,
                         struct plan_argv *argv)
{
    struct terms t = {""};
    bool cycles = plan->timing != PLAN_TIMING_LOW;
    if (caps->psb_cyc && cycles)
        term(&t, "cyc=1");
    if (caps->psb_cyc && caps->cycle_thresholds && cycles)
        term(&t, "cyc_thresh=%d", nearest_value(caps->cycle_thresholds, 1));
    if (caps->mtc && !cycles)
        term(&t, "mtc=0");
    if (caps->mtc && cycles) {
        term(&t, "mtc=1");
        if (caps->mtc_periods)
            term(&t, "mtc_period=%d", nearest_value(caps->mtc_periods, 3));
    }
    if (caps->psb_cyc && caps->psb_periods)
        term(&t, "psb_period=%d", nearest_value(caps->psb_periods, 3));
    if (plan->timing == PLAN_TIMING_HIGH)
        term(&t, "noretcomp=1");
    if (caps->ptwrite)
        term(&t, "ptw=1");
    plan_argv_add(argv, "-e");
    add(argv, "intel_pt/%s/%s", t.text, plan->kernel ? "uk" : "u");
    plan_argv_add(argv, "-m");
    add(argv, ",%" PRIu64 "K", plan_ring_bytes(plan, NULL) / 1024);
    if (plan->kernel)
        plan_argv_add(argv, "--kcore");
}

static const char *call_graph_option(enum plan_call_graph g)
{
    static const char *const options[] = {"fp", "dwarf", "lbr"};
    return options[g];
}

/* No :u on the event: a sample taken inside a system call has the user stack that led there, and
 * leaving these out would tear a hole into every call that waits for the kernel. Where the kernel
 * may not be sampled, perf falls back to :u by itself. */
static void add_sample_event(const struct record_plan *plan, const struct perf_version *version,
                             struct plan_argv *argv)
{
    plan_argv_add(argv, "-e");
    plan_argv_add(argv, plan->sample_by_clock ? "cpu-clock" : "cycles");
    plan_argv_add(argv, "-F");
    add(argv, "%u", plan->freq_hz ? plan->freq_hz : PLAN_DEFAULT_FREQ_HZ);
    plan_argv_add(argv, "--call-graph");
    plan_argv_add(argv, call_graph_option(plan->call_graph));
    plan_argv_add(argv, "--switch-events");
    if (perf_version_at_least(version, 4, 9)) /* without it a sample tells its CPU with -a alone */
        plan_argv_add(argv, "--sample-cpu");
    plan_argv_add(argv, "-m");
    add(argv, "%" PRIu64 "K", plan_ring_bytes(plan, NULL) / 1024);
    if (plan->mode != PLAN_WHOLE)
        plan_argv_add(argv, "--overwrite");
    if (plan->mode == PLAN_TRIGGER)
        plan_argv_add(argv, "--switch-output=signal");
}

static int check(const struct record_plan *plan, const struct perf_version *version,
                 struct err *err)
{
    if (plan->recorder == PLAN_STEP)
        return err_set(err, MTUI_E_NOTSUP, "the step recorder does not run perf");
    if (!plan->n_pids && !plan->n_tids)
        return err_set(err, MTUI_E_INVAL, "no process to record");
    if (!plan->output_dir || !*plan->output_dir)
        return err_set(err, MTUI_E_INVAL, "no directory to record into");
    if (plan->recorder == PLAN_SAMPLE && plan->call_graph == PLAN_CALL_GRAPH_LBR &&
        plan->sample_by_clock)
        return err_set(err, MTUI_E_NOTSUP,
                       "--call-graph lbr needs hardware cycles, which do not count here: use fp or "
                       "dwarf");
    if (plan->recorder == PLAN_SAMPLE && plan->mode != PLAN_WHOLE &&
        !perf_version_at_least(version, 4, 11))
        return err_set(err, MTUI_E_NOTSUP,
                       "perf %s cannot write snapshots of samples (4.11 or later can): use --mode "
                       "whole",
                       version->text);
    return 0;
}

/* Threads born later are recorded too, by inheritance, which perf has on by default and which only
 * works with a buffer a CPU; so --per-thread is for --tid alone. Inheritance takes in forked
 * children as well: without --children they are left out when the recording is read. */
static void add_target(const struct record_plan *plan, struct plan_argv *argv)
{
    if (plan->n_tids) {
        plan_argv_add(argv, "--per-thread");
        add_id_list(argv, "-t", plan->tids, plan->n_tids);
    } else {
        add_id_list(argv, "-p", plan->pids, plan->n_pids);
    }
}

int plan_perf_argv(const struct record_plan *plan, const struct perf_version *version,
                   const struct pmu_intel_pt *caps, const struct control_row *row,
                   struct plan_argv *argv, struct err *err)
{
    static const struct pmu_intel_pt no_caps;
    int rc = check(plan, version, err);
    if (rc < 0)
        return rc;
    plan_argv_add(argv, perf_program());
    plan_argv_add(argv, "record");
    plan_argv_add(argv, "-o");
    add(argv, "%s/perf.data", plan->output_dir);
    if (row->ctlfd)
        add(argv, "--control=fd:%d,%d", CONTROL_CHILD_CTL_FD, CONTROL_CHILD_ACK_FD);
    if (row->snapshot_option)
        plan_argv_add(argv, row->snapshot_option);
    if (plan->recorder == PLAN_PT)
        add_pt_event(plan, caps ? caps : &no_caps, argv);
    else
        add_sample_event(plan, version, argv);
    plan_argv_add(argv, "-T");
    /* Copying binaries into ~/.debug takes seconds; the snapshot directory has its own copies. */
    plan_argv_add(argv, "--no-buildid-cache");
    if (perf_version_at_least(version, 5, 1))
        plan_argv_add(argv, "--no-bpf-event");
    add_target(plan, argv);
    return 0;
}

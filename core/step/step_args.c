#include "core/step/step_args.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/step/step_anchors.h"

char *step_args_sites_path(const char *output_dir)
{
    return xasprintf("%s/sites", output_dir);
}

/* ---- Writing ---- */

static void add(struct plan_argv *argv, const char *name, char *value)
{
    plan_argv_add(argv, name);
    plan_argv_add(argv, value);
    free(value);
}

static void add_number(struct plan_argv *argv, const char *name, uint64_t value)
{
    if (value)
        add(argv, name, xasprintf("%" PRIu64, value));
}

static int check(const struct record_plan *plan, struct err *err)
{
    if (plan->n_pids != 1)
        return err_set(err, MTUI_E_NOTSUP, "step traces one process at a time");
    if (plan->children)
        return err_set(err, MTUI_E_NOTSUP,
                       "step does not follow forked children: attach to the child, or use sample");
    if (plan->kernel)
        return err_set(err, MTUI_E_NOTSUP, "step sees user code only: the kernel needs pt or sample");
    return 0;
}

int step_args_build(const struct record_plan *plan, const struct step_args_extra *extra,
                    struct plan_argv *argv, struct err *err)
{
    const struct trigger_conditions *when = extra->when;
    int rc = check(plan, err);
    if (rc < 0)
        return rc;
    plan_argv_add(argv, extra->program);
    plan_argv_add(argv, STEP_ARGS_COMMAND);
    add_number(argv, "--pid", (uint64_t)plan->pids[0]);
    for (size_t i = 0; i < plan->n_tids; i++)
        add_number(argv, "--tid", (uint64_t)plan->tids[i]);
    add(argv, "--output", xasprintf("%s/perf.data", plan->output_dir));
    add(argv, "--anchors", xasprintf("%s/" STEP_ANCHORS_FILE, plan->output_dir));
    add(argv, "--maps", xasprintf("%s/maps", plan->output_dir));
    if (extra->at_sites)
        add(argv, "--sites", step_args_sites_path(plan->output_dir));
    if (extra->from_exec)
        plan_argv_add(argv, "--from-exec");
    if (plan->mode != PLAN_TRIGGER)
        plan_argv_add(argv, "--one-file");
    if (plan->mode != PLAN_WHOLE)
        add_number(argv, "--ring", plan_ring_bytes(plan, NULL));
    /* Without triggers nothing but the user says when enough has been stepped. */
    add_number(argv, "--budget",
               plan->budget || !extra->at_sites ? plan->budget : STEP_DEFAULT_BUDGET);
    add_number(argv, "--budget-ns", extra->at_sites ? STEP_DEFAULT_BUDGET_WALL_NS : 0);
    add_number(argv, "--hits", when->hits);
    add_number(argv, "--hold-off-ns", when->hold_off_ns);
    add_number(argv, "--not-before-ns", when->not_before_ns);
    add_number(argv, "--max-snapshots", when->max_snapshots);
    if (plan->truth)
        add(argv, "--truth", xstrdup(plan->truth));
    return 0;
}

/* ---- Reading ---- */

static int bad(struct err *err, const char *option, const char *why)
{
    return err_set(err, MTUI_E_INVAL, "%s: %s", option, why);
}

static int number(const char *option, const char *value, uint64_t *out, struct err *err)
{
    struct err e;
    return fmt_parse_u64(value, 0, UINT64_MAX, out, &e) < 0 ? bad(err, option, e.text) : 0;
}

static int open_file(const char *path, FILE **out, struct err *err)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return err_errno(err, errno, "cannot write %s", path);
    if (*out)
        fclose(*out);
    *out = f;
    return 0;
}

/* Options that stand alone. */
static bool take_flag(struct step_args *a, const char *option)
{
    if (strcmp(option, "--one-file") == 0)
        a->options.one_file = true;
    else if (strcmp(option, "--from-exec") == 0)
        a->options.tracer.from_exec = true;
    else
        return false;
    return true;
}

/* 1: taken. */
static int take_text(struct step_args *a, const char *option, const char *value, struct err *err)
{
    int rc = 0;
    if (strcmp(option, "--output") == 0)
        a->options.output = value;
    else if (strcmp(option, "--anchors") == 0)
        a->options.anchors = value;
    else if (strcmp(option, "--maps") == 0)
        a->options.tracer.maps = value;
    else if (strcmp(option, "--sites") == 0)
        a->options.sites = value;
    else if (strcmp(option, "--truth") == 0)
        rc = open_file(value, &a->truth, err);
    else
        return 0;
    return rc < 0 ? rc : 1;
}

static int take_number(struct step_args *a, const char *option, const char *value, struct err *err)
{
    struct step_recorder_options *o = &a->options;
    uint64_t n = 0;
    const struct {
        const char *name;
        uint64_t *to;
    } known[] = {
        {"--budget", &o->tracer.budget},
        {"--budget-ns", &o->tracer.budget_wall_ns},
        {"--hits", &o->when.hits},
        {"--hold-off-ns", &o->when.hold_off_ns},
        {"--not-before-ns", &o->when.not_before_ns},
        {"--max-snapshots", &o->when.max_snapshots},
    };
    int rc = number(option, value, &n, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(option, known[i].name) == 0) {
            *known[i].to = n;
            return 0;
        }
    if (strcmp(option, "--pid") == 0) {
        o->tracer.pid = (pid_t)n;
    } else if (strcmp(option, "--ring") == 0) {
        o->tracer.ring_bytes = (size_t)n;
    } else if (strcmp(option, "--tid") == 0) {
        a->tids = xrealloc(a->tids, (o->tracer.n_tids + 1) * sizeof *a->tids);
        a->tids[o->tracer.n_tids++] = (pid_t)n;
    } else {
        return bad(err, option, "no such option");
    }
    return 0;
}

int step_args_parse(int argc, char **argv, struct step_args *out, struct err *err)
{
    *out = (struct step_args){0};
    struct step_recorder_options *o = &out->options;
    o->ctl_fd = CONTROL_CHILD_CTL_FD;
    o->ack_fd = CONTROL_CHILD_ACK_FD;
    o->say_fd = 1;
    o->tracer.encoding = pt_encode_options_default();
    for (int i = 1; i < argc; i++) {
        if (take_flag(out, argv[i]))
            continue;
        if (i + 1 >= argc)
            return bad(err, argv[i], "needs a value");
        int rc = take_text(out, argv[i], argv[i + 1], err);
        if (rc == 0)
            rc = take_number(out, argv[i], argv[i + 1], err);
        if (rc < 0)
            return rc;
        i++;
    }
    if (o->tracer.pid <= 0 || !o->output)
        return err_set(err, MTUI_E_INVAL, "the step recorder is started by mtui itself (-r step)");
    o->tracer.tids = out->tids;
    o->tracer.at_sites = o->sites != NULL;
    o->tracer.truth = out->truth;
    return 0;
}

void step_args_free(struct step_args *a)
{
    free(a->tids);
    if (a->truth)
        fclose(a->truth);
    *a = (struct step_args){0};
}

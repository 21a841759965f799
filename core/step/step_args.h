/* The command line of the step recorder, both ways: mtui writes it to start its child, the child reads
 * it. `mtui step-recorder OPTIONS`, hidden; fds 3 and 4 are the control pipes (core/record/control.h). */
#ifndef MTUI_CORE_STEP_ARGS_H
#define MTUI_CORE_STEP_ARGS_H

#include "core/record/plan.h"
#include "core/step/step_recorder.h"
#include "core/trigger/trigger.h"

#define STEP_ARGS_COMMAND "step-recorder"

/* What the plan does not say. */
struct step_args_extra {
    const char *program; /* mtui itself */
    bool at_sites;       /* there are triggers: output_dir/sites lists their places */
    bool from_exec;      /* the target waits before its execve */
    const struct trigger_conditions *when;
};

/* The caller frees path. */
char *step_args_sites_path(const char *output_dir);

/* MTUI_E_INVAL, MTUI_E_NOTSUP: the plan asks for what this recorder cannot do. */
int step_args_build(const struct record_plan *plan, const struct step_args_extra *extra,
                    struct plan_argv *argv, struct err *err);

struct step_args {
    struct step_recorder_options options; /* points into argv and the below */
    pid_t *tids;
    FILE *truth;
};

/* argv[0] is skipped. Opens the files. MTUI_E_INVAL. Released in every case. */
int step_args_parse(int argc, char **argv, struct step_args *out, struct err *err);
void step_args_free(struct step_args *a);

#endif

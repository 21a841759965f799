/* The hidden subcommand under which mtui is its own recorder. */
#include "core/step/step_args.h"
#include "tui/app/cmd.h"

int cmd_step(int argc, char **argv)
{
    struct step_args args;
    struct err err = {0};
    int rc = step_args_parse(argc, argv, &args, &err);
    if (rc == 0)
        rc = step_recorder_run(&args.options, &err);
    step_args_free(&args);
    return rc < 0 ? cmd_fail(&err) : 0;
}

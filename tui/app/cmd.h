/* The commands behind the command line. Each returns the exit status of the program: 0 success,
 * 1 failure (a sentence went to stderr). */
#ifndef MTUI_TUI_CMD_H
#define MTUI_TUI_CMD_H

#include "core/doctor/capability.h"
#include "core/machine/perf_version.h"
#include "core/session/session.h"
#include "tui/cli/cli.h"

/* run and attach: --print, --batch, else the screen. */
int cmd_record(struct cli *c);
int cmd_open(struct cli *c);
int cmd_export(struct cli *c);
int cmd_doctor(struct cli *c);
int cmd_demo(struct cli *c);
/* The hidden recorder (core/step/step_args.h); argv[0] is the subcommand. */
int cmd_step(int argc, char **argv);

/* "mtui: SENTENCE" on stderr; returns 1. */
int cmd_fail(const struct err *err);

/* What commands that record need to know of the machine. */
struct cmd_machine {
    struct capabilities caps;
    struct perf_version perf;
    bool has_perf;
    struct session_machine session; /* points into this */
};
void cmd_probe_machine(struct cmd_machine *m, bool interactive);

/* What a batch prints on stdout. */
enum batch_output {
    BATCH_DIRECTORY, /* of the recording, when a snapshot was written */
    BATCH_JSON,      /* a line for each snapshot */
    BATCH_JSON_END   /* and one for the end */
};

/* Records without a screen until everything is done. When dir is not NULL it gets the path of the directory that
 * holds a snapshot (the caller frees), which is not printed then. */
int cmd_batch(struct cmd_machine *m, const struct session_setup *setup, enum batch_output output, char **dir);

/* True when both stdin and stdout are terminals. */
bool cmd_has_terminal(void);

#endif

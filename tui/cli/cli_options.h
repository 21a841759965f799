/* The table of options behind tui/cli/cli.h. */
#ifndef MTUI_TUI_CLI_OPTIONS_H
#define MTUI_TUI_CLI_OPTIONS_H

#include <stddef.h>

#include "tui/cli/cli.h"

struct cli_option {
    char letter;      /* or 0 */
    const char *name; /* without -- */
    const char *arg;  /* NULL for a flag */
    const char *help;
    unsigned commands; /* 1u << enum cli_command, any of them */
    int (*apply)(struct cli *c, const char *arg, struct err *err);
};

struct cli_command_info {
    const char *name;     /* NULL for CLI_HOME */
    const char *operands; /* as in the usage line */
    const char *help;
    bool hidden;
};

extern const struct cli_option cli_options[];
extern const size_t cli_option_count;
extern const struct cli_command_info cli_commands[CLI_COMMANDS];

/* The name of list (n of them) nearest to word, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *list, size_t n);

#endif

/* The command line: one table of options per command, from which parsing, the usage sentences, --help
 * and the manual page all come.
 *
 * A wrong command line is one sentence (and exit status 2), with the nearest name when an option, a
 * command or a value is misspelt. Options may stand before and after operands, except for `run`, whose
 * first operand begins the program's own command line; `--` ends them; `--name=VALUE`, `--name VALUE`,
 * `-xVALUE` and `-x VALUE` all work. */
#ifndef MTUI_TUI_CLI_H
#define MTUI_TUI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/session/session.h"

enum cli_command {
    CLI_HOME, /* no command: the home screen */
    CLI_RUN,
    CLI_ATTACH,
    CLI_OPEN,
    CLI_EXPORT,
    CLI_DOCTOR,
    CLI_DEMO,
    CLI_DEMO_PROGRAM, /* hidden: the program that `demo` traces */
    CLI_COMMANDS
};

enum cli_which { CLI_SNAPSHOT_LAST, CLI_SNAPSHOT_ALL, CLI_SNAPSHOT_NUMBER };
enum cli_decoder { CLI_DECODER_FLOW, CLI_DECODER_LIBIPT };

/* What was asked for. Strings point into argv. */
struct cli {
    enum cli_command command;
    bool help, version;
    /* run, attach */
    struct session_setup setup;
    bool batch, json, json_end, print;
    /* open, export; the hidden demo-program: how much work it does */
    const char *path;
    enum cli_which which;
    unsigned snapshot; /* CLI_SNAPSHOT_NUMBER */
    const char *symfs;
    enum cli_decoder decoder;
    unsigned threads; /* 0: as many as there are CPUs */
    /* export */
    const char *format, *output;
    pid_t tid; /* 0: all */
    const char *range;
    /* everywhere */
    const char *theme, *check_theme, *glyphs, *color, *script;
};

/* Fills *c, which cli_free releases (on failure too). MTUI_E_INVAL with a sentence. A request for help
 * or the version wins over what is missing. */
int cli_parse(struct cli *c, int argc, char **argv, struct err *err);
void cli_free(struct cli *c);

/* The text of --help: of one command, or, for CLI_HOME, of all. */
void cli_print_help(FILE *out, enum cli_command command);

/* SYNOPSIS and OPTIONS of the manual page, in man(7) macros. */
void cli_print_man(FILE *out);

#endif

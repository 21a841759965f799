#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/step/step_args.h"
#include "tui/app/cmd.h"
#include "tui/app/cmd_screen.h"
#include "tui/app/demo_program.h"
#include "tui/app/doc.h"
#include "tui/term/theme.h"

static int check_theme(const char *path)
{
    struct err err;
    int bad = theme_check(path, stdout, &err);
    if (bad < 0)
        return cmd_fail(&err);
    return bad != 0;
}

/* What session.ini will say that was typed. */
static char *quote_command_line(int argc, char **argv)
{
    struct plan_argv words = {0};
    for (int i = 0; i < argc; i++)
        plan_argv_add(&words, argv[i]);
    char *text = plan_format_command(&words);
    plan_argv_free(&words);
    return text;
}

static int run(struct cli *c)
{
    switch (c->command) {
    case CLI_RUN:
    case CLI_ATTACH:
        return cmd_record(c);
    case CLI_OPEN:
        return cmd_screen(c);
    case CLI_EXPORT:
        return cmd_export(c);
    case CLI_DOCTOR:
        return cmd_doctor(c);
    case CLI_DEMO:
        return cmd_demo(c);
    case CLI_DEMO_PROGRAM:
        return demo_program(DEMO_REQUESTS, c->path && !strcmp(c->path, DEMO_STEP_WORD)
                                               ? DEMO_SCALE_STEP
                                               : DEMO_SCALE_SAMPLE);
    case CLI_HOME:
    case CLI_COMMANDS:
        break;
    }
    return cmd_screen(c);
}

/* A standard file that is closed would be the next one opened here, and be written to. Its place is taken by
 * one that fails with EBADF, as the closed one does. */
static void hold_standard_files(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", modes[fd]) < 0)
            return;
}

int main(int argc, char **argv)
{
    struct cli c;
    struct err err;
    int status;
    hold_standard_files();
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files (ulimit -f) is an error as a full disk is */
    setlocale(LC_ALL, "");
    if (argc == 3 && strcmp(argv[1], "--doc") == 0) /* for `make doc` and `make check` */
        return doc_main(argv[2], cli_print_man);
    if (argc > 1 && strcmp(argv[1], STEP_ARGS_COMMAND) == 0) /* started by mtui itself */
        return cmd_step(argc - 1, argv + 1);
    if (cli_parse(&c, argc, argv, &err) < 0) {
        fprintf(stderr, "mtui: %s\n", err.text);
        status = 2;
    } else if (c.help) {
        cli_print_help(stdout, c.command);
        status = 0;
    } else if (c.version) {
        puts("mtui " MTUI_VERSION);
        status = 0;
    } else if (c.check_theme) {
        status = check_theme(c.check_theme);
    } else {
        c.setup.command_line = quote_command_line(argc, argv);
        status = run(&c);
    }
    cli_free(&c);
    return status;
}

#include "tui/cmd.h"

#include <stdlib.h>

#include "core/alloc.h"

static void print_line(const struct capability *c)
{
    printf("%-18s %-8s %s\n", c->name, c->present ? "present" : "absent", c->value);
    if (c->reason[0])
        printf("%27s %s\n", "", c->reason);
    if (c->remedy[0])
        printf("%27s to change it: %s\n", "", c->remedy);
}

static void print_recorders(const struct cmd_machine *m)
{
    struct session_setup setup = {.auto_recorder = true};
    char why[256];
    enum plan_recorder r = session_setup_recorder(&setup, &m->caps, why, sizeof why);
    printf("\nRecording here is done with \"%s\": %s.\n", plan_recorder_name(r), why);
}

int cmd_doctor(struct cli *c)
{
    (void)c;
    struct cmd_machine *m = xcalloc(1, sizeof *m);
    cmd_probe_machine(m, true);
    for (size_t i = 0; i < CAPABILITIES; i++)
        print_line(&m->caps.line[i]);
    print_recorders(m);
    free(m);
    return fflush(stdout) == 0 ? 0 : 1;
}

#include "tui/app/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/machine/perf_event.h"

static void print_lines(const struct capabilities *caps)
{
    int name = 0;
    for (size_t i = 0; i < CAPABILITIES; i++) {
        int n = (int)strlen(caps->line[i].name);
        name = n > name ? n : name;
    }
    for (size_t i = 0; i < CAPABILITIES; i++) {
        const struct capability *c = &caps->line[i];
        printf("%-*s  %-7s  %s\n", name, c->name, c->present ? "present" : "absent", c->value);
        if (c->reason[0])
            printf("%*s  %s\n", name + 9, "", c->reason);
        if (c->remedy[0])
            printf("%*s  to change it: %s\n", name + 9, "", c->remedy);
    }
}

static void print_recorders(const struct cmd_machine *m)
{
    struct session_setup setup = {.auto_recorder = true};
    char why[256];
    if (!m->has_perf) {
        printf("\nNothing can be recorded here with perf: %s.\n", m->caps.line[CAP_PERF].reason);
        return;
    }
    if (perf_event_is_filtered()) {
        bool step = m->caps.line[CAP_STEP].present;
        printf("\n%s: a seccomp filter refuses perf events (containers: allow perf_event_open).\n",
               step ? "Recording here is done with \"-r step\", without triggers" : "Nothing can be recorded here");
        return;
    }
    enum plan_recorder r = session_setup_recorder(&setup, &m->caps, why, sizeof why);
    printf("\nRecording here is done with \"%s\": %s.\n", plan_recorder_name(r), why);
}

int cmd_doctor(struct cli *c)
{
    (void)c;
    struct cmd_machine *m = xcalloc(1, sizeof *m);
    cmd_probe_machine(m, true);
    print_lines(&m->caps);
    print_recorders(m);
    free(m);
    return fflush(stdout) == 0 ? 0 : 1;
}

#include "tui/app/cmd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/record/plan.h"
#include "tui/app/cmd_screen.h"

int cmd_fail(const struct err *err)
{
    fprintf(stderr, "mtui: %s\n", err->text);
    return 1;
}

bool cmd_has_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

void cmd_probe_machine(struct cmd_machine *m, bool interactive)
{
    struct capability_paths paths = capability_paths_default();
    memset(m, 0, sizeof *m);
    capability_probe(&paths, &m->caps);
    m->has_perf = perf_version_probe(perf_program(), 5000, &m->perf, NULL) == 0;
    m->session = (struct session_machine){
        .caps = &m->caps,
        .version = m->has_perf ? &m->perf : NULL,
        .xdg_state_home = getenv("XDG_STATE_HOME"),
        .home = getenv("HOME"),
        .interactive = interactive,
    };
}

/* What was asked for that is in no recorder's command: mtui watches for it while the recorder runs. */
static void say_what_is_ours(const struct session_setup *s)
{
    const struct trigger_conditions *w = &s->when;
    const struct {
        bool given;
        const char *option;
    } ours[] = {
        {s->n_triggers > 0, "--trigger"},
        {w->slower_than_ns > 0, "--slower-than"},
        {w->hits > 1, "--hits"},
        {w->hold_off_ns > 0, "--hold-off"},
        {w->not_before_ns > 0 || w->not_before_full, "--not-before"},
        {w->max_snapshots > 0, "--max-snapshots"},
        {s->duration_ns > 0, "--duration"},
    };
    const char *before = "mtui: the command leaves out ";
    bool any = false;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (!ours[i].given)
            continue;
        fprintf(stderr, "%s%s", any ? ", " : before, ours[i].option);
        any = true;
    }
    if (any)
        fputs(": mtui does that itself, and tells the recorder when to take a snapshot or to stop\n", stderr);
}

static int print_command(const struct cli *c)
{
    struct cmd_machine *m = xcalloc(1, sizeof *m);
    struct err err;
    char *command;
    cmd_probe_machine(m, !c->batch);
    int rc = m->has_perf
                 ? session_setup_command(&c->setup, &m->caps, &m->perf, !c->batch, &command, &err)
                 : perf_version_probe(perf_program(), 5000, &m->perf, &err);
    free(m);
    if (rc < 0)
        return cmd_fail(&err);
    puts(command);
    say_what_is_ours(&c->setup);
    free(command);
    return 0;
}

int cmd_record(struct cli *c)
{
    if (c->print)
        return print_command(c);
    if (!c->batch)
        return cmd_screen(c);
    struct cmd_machine *m = xcalloc(1, sizeof *m);
    cmd_probe_machine(m, false);
    c->setup.inherit_stdio = true;
    if (!c->setup.when.max_snapshots)
        c->setup.when.max_snapshots = 1;
    int rc = cmd_batch(m, &c->setup, c->json_end ? BATCH_JSON_END : c->json ? BATCH_JSON : BATCH_DIRECTORY, NULL);
    free(m);
    return rc;
}

#include "tui/app/cmd_screen.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/loop.h"
#include "core/machine/proc_stat.h"
#include "decode/open/open.h"
#include "tui/app/app.h"
#include "tui/app/cmd.h"
#include "tui/cli/cmd_open.h"

#define FINISH_NS 1500000000u

struct screen {
    struct cli *c;
    struct loop *loop;
    struct model *m;
    struct capabilities *caps; /* the probing thread's until it is done */
    pthread_t prober;
    bool probing;
    struct cmd_opening *opening;
};

/* ---- What this machine can do, found out while the screen is up already ---- */

static void probed(void *arg)
{
    struct screen *s = arg;
    if (s->m) {
        s->m->caps = s->caps;
        model_redraw(s->m);
    }
}

static void *probe(void *arg)
{
    struct screen *s = arg;
    struct capability_paths paths = capability_paths_default();
    capability_probe(&paths, s->caps);
    loop_post(s->loop, probed, s);
    return NULL;
}

/* Signals belong to the main thread. */
static void start_probe(struct screen *s)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    s->probing = pthread_create(&s->prober, NULL, probe, s) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- Beginning and end ---- */

static bool records(const struct cli *c)
{
    return c->command == CLI_RUN || c->command == CLI_ATTACH || c->command == CLI_DEMO;
}

static void choose_target(struct screen *s)
{
    const struct session_setup *setup = &s->c->setup;
    struct proc_stat stat;
    if (setup->n_pids && proc_stat_read("/proc", setup->pids[0], 0, &stat, NULL) == 0)
        model_set_target(s->m, stat.pid, stat.start_ticks, stat.comm);
    s->m->preset = setup;
}

static int start(void *arg, struct model *m, struct err *err)
{
    struct screen *s = arg;
    s->m = m;
    start_probe(s);
    if (records(s->c))
        choose_target(s);
    if (s->c->command == CLI_OPEN)
        return cmd_open_begin(s->c, m, &s->opening, err);
    return 0;
}

/* However the screen goes away, a recording is finished first, if that does not take long. */
static void stop(void *arg, struct model *m)
{
    struct screen *s = arg;
    uint64_t until = loop_now_ns(s->loop) + FINISH_NS;
    if (m->recording)
        session_stop(m->session, NULL);
    while (m->recording && loop_now_ns(s->loop) < until)
        loop_run_once(s->loop, 50000000);
    s->m = NULL;
    cmd_open_end(s->opening);
}

int cmd_screen(struct cli *c)
{
    struct err err;
    if (c->command == CLI_OPEN && open_check_path(c->path, &err) < 0) /* whether there is a terminal or not */
        return cmd_fail(&err);
    struct screen s = {.c = c, .loop = loop_new(), .caps = xcalloc(1, sizeof *s.caps)};
    struct tui_options options = {
        .loop = s.loop,
        .theme = c->theme,
        .glyphs = c->glyphs,
        .color = c->color,
        .script = c->script,
        .screen = records(c)               ? "record"
                  : c->command == CLI_OPEN ? "timeline"
                                           : NULL,
        .start = start,
        .stop = stop,
        .arg = &s,
    };
    int rc = tui_main(&options);
    if (s.probing)
        pthread_join(s.prober, NULL);
    loop_free(s.loop);
    free(s.caps);
    return rc;
}

/* Starting, stopping, and editing the plan. */
#include "tui/record/v_record_priv.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/conf.h"
#include "core/base/fmt.h"
#include "core/base/vec.h"
#include "core/machine/proc_stat.h"
#include "core/machine/spawn.h"
#include "core/trigger/trigger_prepare.h"
#include "tui/cli/cli.h"
#include "tui/ui/worker.h"

bool v_record_is_running(const struct record *r)
{
    return r->session && r->status.state < SESSION_ENDED;
}

void v_record_effective_setup(const struct record *r, struct session_setup *out)
{
    session_setup_copy(out, &r->setup);
    if (!out->argv && !out->n_pids && r->m->target.pid) {
        size_t more = r->m->more_targets.len;
        out->pids = xmalloc((1 + more) * sizeof *out->pids);
        out->pids[0] = r->m->target.pid;
        for (size_t i = 0; i < more; i++)
            out->pids[1 + i] = r->m->more_targets.data[i].pid;
        out->n_pids = 1 + more;
    }
    for (size_t i = 0; i < r->m->triggers.len; i++)
        session_setup_add_trigger(out, r->m->triggers.data[i]);
    session_setup_pace(out);
}

void v_record_name_output(const struct record *r, struct session_setup *setup)
{
    if (!r->session || !setup->output)
        return;
    for (unsigned n = 2; access(setup->output, F_OK) == 0; n++) {
        free(setup->output);
        setup->output = xasprintf("%s-%u", r->setup.output, n);
    }
}

/* ---- The session's life ---- */

static void withdraw_leave(struct record *r);

static void on_changed(void *arg)
{
    struct record *r = arg;
    session_get_status(r->session, &r->status);
    withdraw_leave(r);
    model_changed(r->m, MODEL_SESSION);
}

static void on_snapshot(void *arg, const struct session_snapshot *snap)
{
    struct record *r = arg;
    size_t n = session_snapshot_count(r->session), row = list_selected(r->snapshots);
    decode_queue_add(r->decode, snapshot_dir_path(session_dir(r->session)), snap->number);
    list_refresh(r->snapshots, false);
    /* The one file of a recording that has just ended is what it was made for. */
    bool only = r->status.mode != PLAN_TRIGGER ||
                session_get_setup(r->session)->when.max_snapshots == 1;
    if (snap->number && only && r->preset_taken && !r->quitting)
        r->open_next = snap->number;
    if (snap->number && (n == 1 || row == n - 2)) /* the selection was on the newest */
        list_select(r->snapshots, n - 1);
}

/* ---- Leaving ---- */

static bool program_runs(const struct record *r)
{
    struct target *t = r->session ? session_target(r->session) : NULL;
    return t && target_is_ours(t) && target_state(t) == TARGET_RUNNING;
}

static void answer_leave(void *arg, bool yes)
{
    struct record *r = arg;
    r->leave = yes ? TARGET_LEAVE : TARGET_END;
    model_quit(r->m);
}

/* The program has ended while it was asked about: that leaves nothing to choose. */
static void withdraw_leave(struct record *r)
{
    if (!program_runs(r))
        model_withdraw(r->m, answer_leave, r);
}

static void quit_now(struct record *r)
{
    char question[160];
    if (!program_runs(r)) {
        model_quit(r->m);
        return;
    }
    snprintf(question, sizeof question, "Leave the program running? (pid %ld; n ends it)",
             (long)target_pid(session_target(r->session)));
    model_ask(r->m, question, answer_leave, r);
}

static void finish_and_quit(struct record *r)
{
    r->quitting = true;
    if (r->status.state < SESSION_STOPPING)
        session_stop(r->session, NULL);
    model_say(r->m, "finishing the recording; Q again leaves at once");
}

static void answer_stop(void *arg, bool yes)
{
    struct record *r = arg;
    if (!yes)
        return;
    if (!v_record_is_running(r) || r->quitting)
        quit_now(r);
    else
        finish_and_quit(r);
}

bool v_record_quit(struct record *r)
{
    /* Where it is on its way to its end already there is nothing to ask. */
    if (v_record_is_running(r) && r->status.state == SESSION_STOPPING && !r->quitting)
        finish_and_quit(r);
    else if (v_record_is_running(r))
        model_ask(r->m,
                  r->quitting ? "The recording is not finished. Leave all the same?"
                              : "A recording is running. Finish it and quit?",
                  answer_stop, r);
    else if (program_runs(r))
        quit_now(r);
    else
        return false;
    return true;
}

static void answer_force(void *arg, bool yes)
{
    struct record *r = arg;
    r->asks_force = false;
    if (!yes)
        return;
    r->setup.force = true;
    v_record_start(r);
    r->setup.force = false;
}

/* The triggers would cost too much: what they cost, and whether to arm them. */
static void ask_force(struct record *r)
{
    char cost[100], question[128];
    snprintf(question, sizeof question, "%s: arm all the same?", call_rate_brief(&r->status.rate, cost, sizeof cost));
    r->asks_force = true;
    model_ask(r->m, question, answer_force, r);
}

static void on_ended(void *arg)
{
    struct record *r = arg;
    session_get_status(r->session, &r->status);
    model_set_session(r->m, r->session, false);
    bool asked = model_withdraw(r->m, answer_stop, r);
    if (r->status.state == SESSION_ENDED)
        model_say(r->m, "%s", r->status.sentence);
    else if (r->status.too_hot && !r->quitting)
        ask_force(r);
    else
        model_error(r->m, "%s", r->status.sentence);
    if (r->quitting)
        quit_now(r);
    else if (asked && !r->asks_force) /* whoever was about to answer shall not press that key on something else */
        model_ask(r->m, "The recording has ended. Quit?", answer_stop, r);
}

void v_record_free_session(struct record *r)
{
    if (!r->session)
        return;
    model_set_session(r->m, NULL, false);
    decode_queue_clear(r->decode);
    session_free(r->session, r->leave);
    r->session = NULL;
    r->status = (struct session_status){0};
}

/* A pid that was chosen may be another process by now. */
static bool target_is_same(const struct model_target *t)
{
    struct proc_stat stat;
    return !t->start_time || (proc_stat_read("/proc", t->pid, 0, &stat, NULL) == 0 &&
                              stat.start_ticks == t->start_time);
}

/* The first chosen process that is gone, or 0. */
static pid_t gone_target(const struct record *r)
{
    if (r->setup.argv || r->setup.n_pids)
        return 0;
    if (!target_is_same(&r->m->target))
        return r->m->target.pid;
    for (size_t i = 0; i < r->m->more_targets.len; i++)
        if (!target_is_same(&r->m->more_targets.data[i]))
            return r->m->more_targets.data[i].pid;
    return 0;
}

/* False when there is a reason not to start, which is said. */
static bool is_startable(struct record *r)
{
    struct err err;
    if (!r->m->caps) {
        r->starting = true;
        model_say(r->m, "looking at the machine first");
        return false;
    }
    r->starting = false;
    if (!r->version_known && perf_version_probe(perf_program(), 2000, &r->version, &err) == 0)
        r->version_known = true;
    r->machine.caps = r->m->caps;
    r->machine.version = r->version_known ? &r->version : NULL;
    pid_t gone = gone_target(r);
    if (gone)
        model_error(r->m, "process %ld has ended; choose another", (long)gone);
    return !gone;
}

static void start_session(struct record *r, const struct session_setup *setup)
{
    static const struct session_callbacks callbacks = {on_changed, on_snapshot, on_ended};
    struct session *session;
    struct err err;
    int rc = session_start(&session, r->m->loop, setup, &r->machine, &callbacks, r, &err);
    if (rc < 0) {
        model_error(r->m, "%s", err.text);
        return;
    }
    r->session = session;
    r->log_up = 0;
    r->open_next = UINT_MAX;
    session_get_status(session, &r->status);
    list_refresh(r->snapshots, true);
    list_refresh(r->hits, true);
    model_set_session(r->m, session, true);
}

/* The names of triggers are resolved in a thread first: the symbols of a big program take their time. */
struct record_start {
    struct record *r;
    struct session_setup setup;
    struct worker *worker;
    struct trigger_prepared *prepared;
    struct err err;
    int rc;
};

static void prepare(void *arg, const atomic_bool *cancel)
{
    struct record_start *p = arg;
    const struct session_setup *s = &p->setup;
    if (s->argv && s->argv[0]) {
        char *path = NULL;
        p->rc = spawn_find_program(s->argv[0], &path, &p->err);
        if (p->rc == 0)
            p->rc = trigger_prepare_program(path, s->triggers, s->n_triggers, &s->when, cancel, &p->prepared, &p->err);
        free(path);
        return;
    }
    p->rc = trigger_prepare(s->pids, s->n_pids, s->triggers, s->n_triggers, &s->when, cancel,
                            &p->prepared, &p->err);
}

void v_record_end_start(struct record *r)
{
    struct record_start *p = r->start;
    if (!p)
        return;
    r->start = NULL;
    worker_stop(p->worker);
    trigger_prepared_free(p->prepared);
    session_setup_free(&p->setup);
    free(p);
}

static void on_prepared(void *arg)
{
    struct record_start *p = arg;
    struct record *r = p->r;
    if (p->rc < 0) {
        model_error(r->m, "%s", p->err.text);
    } else {
        if (p->worker)
            model_say(r->m, "%s", "");
        v_record_free_session(r);
        r->machine.prepared = p->prepared;
        start_session(r, &p->setup);
        r->machine.prepared = NULL;
    }
    v_record_end_start(r);
    model_redraw(r->m);
}

void v_record_start(struct record *r)
{
    if (r->start || !is_startable(r))
        return;
    struct record_start *p = xcalloc(1, sizeof *p);
    p->r = r;
    v_record_effective_setup(r, &p->setup);
    v_record_name_output(r, &p->setup);
    char *repeat = session_setup_repeat(&p->setup);
    free(p->setup.command_line);
    p->setup.command_line = repeat;
    r->start = p;
    if (!p->setup.n_triggers) {
        on_prepared(p);
        return;
    }
    model_say(r->m, "looking for the functions");
    struct worker *w = worker_start(r->m->loop, prepare, on_prepared, p);
    if (w)
        p->worker = w;
}

void v_record_start_stop(struct record *r)
{
    struct err err;
    if (r->start) {
        v_record_end_start(r);
        model_say(r->m, "not started");
        return;
    }
    if (v_record_is_running(r)) {
        if (session_stop(r->session, &err) < 0)
            model_error(r->m, "%s", err.text);
        session_get_status(r->session, &r->status);
        return;
    }
    v_record_start(r);
}

/* ---- Editing ---- */

bool v_record_may_edit(struct record *r)
{
    if (v_record_is_running(r))
        model_warn(r->m, "not while recording: Space stops it");
    return !v_record_is_running(r);
}

void v_record_set_mode(struct record *r, const char *mode)
{
    static const char *const names[] = {"trigger", "ring", "whole"};
    if (!v_record_may_edit(r))
        return;
    size_t i = 0;
    if (!mode) {
        i = ((size_t)session_setup_mode(&r->setup, true) + 1) % 3;
    } else {
        while (i < 3 && strcmp(mode, names[i]) != 0)
            i++;
        if (i == 3) {
            model_error(r->m, "mode takes nothing, trigger, ring or whole");
            return;
        }
    }
    r->setup.auto_mode = false;
    r->setup.mode = (enum plan_mode)i;
    if (i != PLAN_TRIGGER && r->m->triggers.len)
        model_warn(r->m, "triggers make snapshots only in mode \"trigger\"");
    else
        model_say(r->m, "the mode of the next recording: %s", names[i]);
}

void v_record_set_buffer(struct record *r, const char *size)
{
    struct err err = {.text = "a ring of no bytes holds nothing"};
    struct record_plan plan = {0};
    char text[FMT_MAX];
    bool rounded;
    if (!v_record_may_edit(r))
        return;
    if (fmt_parse_size(size, &plan.ring_bytes, &err) < 0 || plan.ring_bytes == 0) {
        model_error(r->m, "%s", err.text);
        return;
    }
    r->setup.ring_bytes = plan.ring_bytes;
    fmt_size(text, plan_ring_bytes(&plan, &rounded));
    model_say(r->m, "the ring of the next recording: %s%s", text, rounded ? " (rounded up)" : "");
}

char *v_record_triggers_text(const struct record *r)
{
    char *text = xstrdup(""), word[CONF_LINE_MAX];
    for (size_t i = 0; i < r->m->triggers.len; i++) {
        char *more = xasprintf("%s%s%s", text, i ? " " : "",
                               conf_quote(word, sizeof word, r->m->triggers.data[i]));
        free(text);
        text = more;
    }
    return text;
}

void v_record_set_triggers(struct record *r, const char *specs)
{
    struct conf_words *w = xcalloc(1, sizeof *w);
    struct err err;
    int rc = v_record_may_edit(r) ? conf_split(specs, w, &err) : 1;
    VEC(char *) list = {0};
    for (size_t i = 0, taken; rc == 0 && i < w->n; i += taken) {
        struct trigger t;
        vec_push(&list, trigger_join(w->word + i, w->n - i, &taken));
        rc = trigger_parse(&t, list.data[list.len - 1], NULL, &err);
        if (rc == 0)
            trigger_fini(&t);
    }
    if (rc < 0)
        model_error(r->m, "%s", err.text);
    if (rc == 0)
        model_clear_triggers(r->m);
    for (size_t i = 0; i < list.len; i++) {
        if (rc == 0)
            model_add_trigger(r->m, list.data[i]);
        free(list.data[i]);
    }
    vec_free(&list);
    free(w);
}

/* Only options: program, processes and triggers have places of their own on the screen. */
static void drop_target(struct session_setup *s)
{
    while (s->n_triggers)
        session_setup_remove_trigger(s, s->triggers[0]);
    for (size_t i = 0; s->argv && s->argv[i]; i++)
        free(s->argv[i]);
    free(s->argv);
    free(s->pids);
    s->argv = NULL;
    s->pids = NULL;
    s->n_pids = 0;
}

char *v_record_options_text(const struct record *r)
{
    static const char prefix[] = "mtui attach";
    struct session_setup s;
    session_setup_copy(&s, &r->setup);
    drop_target(&s);
    char *command = session_setup_repeat(&s);
    session_setup_free(&s);
    size_t skip = strlen(prefix) + (command[strlen(prefix)] == ' ');
    memmove(command, command + skip, strlen(command + skip) + 1);
    return command;
}

/* Takes the options of c, keeps program and processes. */
static void take_options(struct record *r, const struct session_setup *options)
{
    struct session_setup old = r->setup;
    session_setup_copy(&r->setup, options);
    drop_target(&r->setup);
    r->setup.argv = old.argv;
    r->setup.pids = old.pids;
    r->setup.n_pids = old.n_pids;
    old.argv = NULL;
    old.pids = NULL;
    session_setup_free(&old);
    for (size_t i = 0; i < options->n_triggers; i++)
        model_add_trigger(r->m, options->triggers[i]);
}

/* A mode that takes no triggers is among the options: those that are chosen do not belong to it. */
static bool names_other_mode(const struct conf_words *w)
{
    for (size_t i = 0; i + 1 < w->n; i++)
        if (!strcmp(w->word[i], "--mode") && strcmp(w->word[i + 1], "trigger") != 0)
            return true;
    return false;
}

void v_record_set_options(struct record *r, const char *text)
{
    struct conf_words *w = xcalloc(1, sizeof *w);
    struct err err;
    struct cli c = {0};
    /* A process is named, so that the rest is a whole command line. */
    static const char *const prefix[] = {"mtui", "attach", "-p1"};
    char *argv[CONF_WORDS_MAX + 6];
    size_t argc = 0;
    if (v_record_may_edit(r)) {
        int rc = conf_split(text, w, &err);
        for (size_t i = 0; i < 3; i++)
            argv[argc++] = xstrdup(prefix[i]);
        for (size_t i = 0; rc == 0 && i < w->n; i++)
            argv[argc++] = xstrdup(w->word[i]);
        if (rc == 0 && r->m->triggers.len && !names_other_mode(w)) { /* what --slower-than is about */
            argv[argc++] = xstrdup("-t");
            argv[argc++] = xstrdup(r->m->triggers.data[0]);
        }
        argv[argc] = NULL;
        if (rc == 0)
            rc = cli_parse(&c, (int)argc, argv, &err);
        if (rc == 0)
            take_options(r, &c.setup);
        else
            model_error(r->m, "%s", err.text);
    }
    cli_free(&c);
    while (argc > 0)
        free(argv[--argc]);
    free(w);
}

/* The session with the recorder that steps: it gets the places of the triggers, decides about each hit
 * itself, and counts time in instructions. */
#include "core/session/session_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/step/step_args.h"
#include "core/step/step_sites.h"

#define CUT "its beginning is lost, the ring is too small (-s)"

static int program_path(const struct session *s, char *path, size_t size, struct err *err)
{
    ssize_t n;
    if (s->machine.program) {
        snprintf(path, size, "%s", s->machine.program);
        return 0;
    }
    n = readlink("/proc/self/exe", path, size - 1);
    if (n < 0)
        return err_errno(err, errno, "cannot find the program file of mtui");
    path[n] = '\0';
    if (access(path, X_OK) != 0) /* replaced while it runs: the link still leads to it */
        snprintf(path, size, "/proc/self/exe");
    return 0;
}

int session_start_step(struct session *s, const struct record_plan *plan,
                       const struct recorder_events *events, struct err *err)
{
    char program[4096];
    struct plan_argv argv = {0};
    struct step_args_extra extra = {.program = program,
                                    .at_sites = s->setup.n_triggers > 0,
                                    .from_exec = s->setup.argv != NULL,
                                    .when = &s->setup.when};
    int rc = program_path(s, program, sizeof program, err);
    if (rc == 0)
        rc = step_args_build(plan, &extra, &argv, err);
    if (rc == 0) {
        struct recorder_options options = {
            .plan = plan, .version = s->machine.version, .argv = &argv};
        rc = recorder_new(s->loop, &options, events, &s->rec, err);
    }
    plan_argv_free(&argv);
    return rc;
}

/* ---- Places ---- */

struct list {
    VEC(struct step_site) sites;
};

static void add_site(void *arg, const struct probe_site *p)
{
    struct list *list = arg;
    struct step_site site = {.path = (char *)(uintptr_t)p->path,
                             .offset = p->offset,
                             .trigger = p->trigger,
                             .member = p->member,
                             .is_entry = p->role != PROBE_POINT,
                             .no_uprobe = p->refused != NULL};
    vec_push(&list->sites, site);
}

void session_hand_sites(void *session)
{
    struct session *s = session;
    struct list list = {0};
    struct err err;
    char *path = step_args_sites_path(snapshot_dir_path(s->dir));
    trigger_set_each_site(s->triggers, add_site, &list);
    int rc = step_sites_write(path, list.sites.data, list.sites.len, &err);
    if (rc == 0 && s->rec && s->state == SESSION_ARMED && !s->disarmed)
        rc = recorder_enable(s->rec, &err);
    if (rc < 0)
        session_log(s, SESSION_WARNING, "the triggers are not armed: %s", err.text);
    vec_free(&list.sites);
    free(path);
}

/* ---- Hits ---- */

static void on_hit(struct session *s, const struct step_message *m)
{
    struct err err;
    if (m->trigger >= s->setup.n_triggers)
        return;
    struct session_member *member = session_member_of(s, m->member);
    struct session_hit hit = {.hit = {.time_ns = m->clock,
                                      .tid = m->tid,
                                      .trigger = s->setup.triggers[m->trigger],
                                      .function = member ? member->function : NULL,
                                      .address = m->address,
                                      .arg1 = m->arg1,
                                      .arg2 = m->arg2},
                              .unix_ns = session_unix_of(s, m->perf_ns),
                              .verdict = m->verdict,
                              .pid = session_only_pid(s),
                              .has_args = true};
    s->hits++;
    if (member)
        member->hits++;
    trigger_set_count_hit(s->triggers, m->trigger, m->verdict, m->perf_ns);
    session_note_hit(s, &hit);
    if (m->verdict == TRIGGER_FIRE && s->state == SESSION_ARMED) {
        session_fire(s, &hit, m->perf_ns);
        if (s->firing && snapshot_dir_open_hit(s->dir, &hit.hit, &err) < 0)
            session_log(s, SESSION_WARNING, "%s", err.text);
    } else {
        s->counted++;
        session_write_hit(s, &hit);
    }
}

/* A window that ends with its call lacks nothing. */
static bool is_whole(enum step_end end)
{
    return end == STEP_END_RETURNED || end == STEP_END_LEFT;
}

/* Without triggers a window has no call: it ends on request, or with its thread, and the ring is meant to
 * wrap. */
static void on_window_end(struct session *s, const struct step_message *m)
{
    const char *why = is_whole(m->end) ? NULL : step_end_text(m->end);
    bool expected = m->end == STEP_END_STOPPED || m->end == STEP_END_EXITED || m->end == STEP_END_KILLED;
    bool cut = m->cut && s->setup.n_triggers;
    char n[FMT_MAX], took[FMT_MAX];
    if (!s->setup.n_triggers && expected)
        why = NULL;
    s->step_window = *m;
    s->step_short = why != NULL;
    s->step_cut = cut;
    if (why || cut)
        session_log(s, expected && !cut ? SESSION_INFO : SESSION_WARNING,
                    "the window of thread %ld is over after %s in %s, %s%s%s%s", (long)m->tid,
                    fmt_counted(n, m->instructions, "instruction", "instructions"), fmt_duration(took, m->wall_ns),
                    why ? "not whole: " : "", why ? why : "", why && cut ? "; " : "", cut ? CUT : "");
}

static void on_dropped(struct session *s, const struct step_message *m)
{
    char n[FMT_MAX], size[FMT_MAX];
    free(s->step_dropped);
    s->step_dropped = xasprintf("%s not in it (%s), the ring is too small (-s)",
                                fmt_counted(n, m->threads, "ended thread is", "ended threads are"),
                                fmt_size(size, m->bytes));
    session_log(s, SESSION_WARNING, "of what was stepped %s", s->step_dropped);
}

/* Part of a snapshot now. */
void session_take_window(struct session *s, struct session_snapshot *snap)
{
    if (s->step_dropped && !snap->remark) {
        snap->remark = s->step_dropped;
        s->step_dropped = NULL;
    }
    if (!s->step_window.tid)
        return;
    snap->window_end = step_end_name(s->step_window.end);
    snap->window_short = s->step_short;
    snap->window_instructions = s->step_window.instructions;
    snap->window_wall_ns = s->step_window.wall_ns;
    if (s->step_cut && !snap->remark)
        snap->remark = xstrdup(CUT);
    s->step_window = (struct step_message){0};
}

void session_on_step(void *session, const struct step_message *m)
{
    struct session *s = session;
    switch (m->kind) {
    case STEP_MESSAGE_HIT:
        if (s->triggers)
            on_hit(s, m);
        break;
    case STEP_MESSAGE_AT:
        if (s->firing && !s->pending.hit.tid) /* asked for by hand: this is when that was */
            s->pending.hit.time_ns = m->clock;
        break;
    case STEP_MESSAGE_WINDOW:
        session_notify(s);
        break;
    case STEP_MESSAGE_ENDED:
        on_window_end(s, m);
        break;
    case STEP_MESSAGE_DROPPED:
        on_dropped(s, m);
        break;
    }
}

/* Where threads are stopped: the sites, and arming threads at them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/descriptors.h"
#include "core/machine/slow_close.h"
#include "core/trigger/hwbreak.h"
#include "core/step/step_tracer_priv.h"

#define LOOKED_AT     32 /* armed threads at a time */
#define BLOCKED_LOOKS 10 /* in a row, some a second (step_tracer_arm_late) */

/* ---- Sites ---- */

void step_tracer_free_places(struct step_tracer *t)
{
    for (size_t i = 0; i < t->places.len; i++)
        free(t->places.data[i].site.path);
    vec_free(&t->places);
}

void step_tracer_close_files(struct step_tracer *t)
{
    for (size_t i = 0; i < t->files.len; i++)
        close(t->files.data[i].fd);
    vec_free(&t->files);
}

void step_tracer_forget_gone(struct step_tracer *t)
{
    size_t kept = 0, n = t->places.len;
    for (size_t i = 0; i < n; i++) {
        struct step_place *p = &t->places.data[i];
        if (access(p->site.path, F_OK) == 0)
            t->places.data[kept++] = *p;
        else
            free(p->site.path);
    }
    t->places.len = kept;
}

static bool same_place(const struct step_place *a, const struct step_place *b)
{
    return a->ino == b->ino && a->site.offset == b->site.offset &&
           a->site.trigger == b->site.trigger;
}

static bool has_place(const struct step_place *list, size_t n, const struct step_place *p)
{
    for (size_t i = 0; i < n; i++)
        if (same_place(&list[i], p))
            return true;
    return false;
}

static int open_place(struct step_tracer *t, const struct step_site *site, struct step_place *out, struct err *err)
{
    struct stat sb;
    int fd = -1;
    if (stat(site->path, &sb) != 0)
        return err_errno(err, errno, "cannot look at %s", site->path);
    for (size_t i = 0; i < t->files.len; i++)
        if (t->files.data[i].dev == sb.st_dev && t->files.data[i].ino == sb.st_ino)
            fd = t->files.data[i].fd;
    if (fd < 0) {
        fd = open(site->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return err_errno(err, errno, "cannot open %s", site->path);
        vec_push(&t->files, ((struct step_file){sb.st_dev, sb.st_ino, fd}));
    }
    *out = (struct step_place){.site = *site, .ino = sb.st_ino, .fd = fd};
    return 0;
}

int step_tracer_set_sites(struct step_tracer *t, const struct step_site *sites, size_t n,
                          struct err *err)
{
    struct step_place *list = xcalloc(n + 1, sizeof *list);
    bool all_kept = true;
    for (size_t i = 0; i < n; i++) {
        int rc = open_place(t, &sites[i], &list[i], err);
        if (rc < 0) {
            free(list);
            return rc;
        }
    }
    for (size_t i = 0; i < t->places.len; i++)
        all_kept &= has_place(list, n, &t->places.data[i]);
    if (!all_kept) {
        step_tracer_disarm_all(t);
        step_tracer_free_places(t);
    }
    for (size_t i = 0; i < n; i++) {
        if (has_place(t->places.data, t->places.len, &list[i]))
            continue;
        list[i].site.path = xstrdup(sites[i].path);
        vec_push(&t->places, list[i]);
    }
    free(list);
    return 0;
}

uint64_t step_tracer_site_address(const struct step_tracer *t, const struct step_place *p)
{
    const struct maps *maps = step_code_maps(t->code);
    for (size_t i = 0; i < maps_count(maps); i++) {
        const struct map *m = maps_at(maps, i);
        if ((m->prot & MAPS_X) && m->inode == p->ino && p->site.offset >= m->offset &&
            p->site.offset - m->offset < m->end - m->start)
            return m->start + (p->site.offset - m->offset);
    }
    return 0;
}

/* ---- Arming ---- */

static bool is_chosen(const struct step_tracer *t, pid_t tid)
{
    for (size_t i = 0; i < t->chosen.len; i++)
        if (t->chosen.data[i] == tid)
            return true;
    return t->chosen.len == 0;
}

/* False while a program that was started has not begun yet. */
static bool has_begun(const struct step_tracer *t)
{
    return !t->opt.from_exec || t->exec_seen;
}

bool step_tracer_wants_all(const struct step_tracer *t, const struct tracee *e)
{
    return t->enabled && !t->opt.at_sites && has_begun(t) && is_chosen(t, e->tid);
}

static int open_events(struct step_tracer *t, struct tracee *e, struct err *err)
{
    int rc = descriptors_make_room(t->places.len, err);
    if (rc < 0 && t->ended.len) {
        step_tracer_close_ended(t);
        rc = descriptors_make_room(t->places.len, err);
    }
    if (rc < 0)
        return rc;
    struct step_site *sites = xcalloc(t->places.len, sizeof *sites);
    int *files = xcalloc(t->places.len, sizeof *files);
    for (size_t i = 0; i < t->places.len; i++) {
        sites[i] = t->places.data[i].site;
        files[i] = t->places.data[i].fd;
        sites[i].address = step_tracer_site_address(t, &t->places.data[i]);
    }
    rc = step_events_arm(&e->events, e->tid, t->means, sites, files, t->places.len, err);
    free(sites);
    free(files);
    return rc;
}

/* Uprobes where they are allowed; else breakpoints, where the processor has them. */
static int arm_sites(struct step_tracer *t, struct tracee *e, struct err *err)
{
    struct err why;
    int rc = open_events(t, e, err);
    if (t->means != STEP_BY_UPROBE || t->means_tried || (rc != MTUI_E_PERM && rc != MTUI_E_NOTSUP))
        return rc;
    t->means_tried = true;
    int works = hwbreak_self_test(NULL, &why);
    if (works < 0) {
        struct err first = *err;
        return err_set(err, rc, "%.300s; nor by a breakpoint: %.150s", first.text, why.text);
    }
    step_tracer_say(t, "uprobes are not allowed here: the triggers are hardware breakpoints, four at most");
    t->means = STEP_BY_BREAKPOINT;
    return open_events(t, e, err);
}

static bool any_armed(const struct step_tracer *t)
{
    for (size_t i = 0; i < t->tracees.len; i++)
        if (t->tracees.data[i]->armed || t->tracees.data[i]->steps)
            return true;
    return false;
}

void step_tracer_arm(struct step_tracer *t, struct tracee *e)
{
    struct err err;
    int rc;
    bool whole = e->armed && (!t->opt.at_sites || step_events_complete(&e->events, t->places.len));
    if (!t->enabled || whole || e->steps || !is_chosen(t, e->tid) || !has_begun(t))
        return;
    if (!t->opt.at_sites)
        rc = step_events_arm_clock(&e->events, e->tid, &err);
    else if (t->places.len)
        rc = arm_sites(t, e, &err);
    else
        return;
    e->armed = rc == 0;
    if (rc == 0 || rc == MTUI_E_GONE)
        return;
    if (!t->refusal.code) /* the first says most: what was tried then is not tried again */
        t->refusal = err;
    if (!t->enabling && !any_armed(t) && t->cb.refused)
        t->cb.refused(t->cb.arg, &err);
    else if (!t->enabling)
        step_tracer_say(t, err.text);
}

void step_tracer_disarm(struct tracee *e)
{
    step_events_close(&e->events);
    e->armed = false;
}

/* Each makes a hit of the others 0.1 us slower, as measured, and takes the kernel about 80 ms of a lock that all uprobes
 * of the machine share when it is closed. */
#define ENDED_MAX 64

void step_tracer_close_ended(struct step_tracer *t)
{
    slow_close(t->ended.data, t->ended.len);
    t->ended.len = 0;
}

void step_tracer_keep_ended(struct step_tracer *t, struct tracee *e)
{
    for (size_t i = 0; i < e->events.n; i++)
        if (e->events.fds[i] >= 0)
            vec_push(&t->ended, e->events.fds[i]);
    e->events.n = 0;
    if (t->ended.len >= ENDED_MAX)
        step_tracer_close_ended(t);
}

static bool has_breakpoints(const struct step_tracer *t)
{
    for (size_t i = 0; i < t->places.len; i++)
        if (t->places.data[i].site.no_uprobe)
            return true;
    return t->means == STEP_BY_BREAKPOINT;
}

/* Silenced, they stop nothing any more, and the threads may be let go of: when they are so many that closing them takes
 * seconds, nobody here waits for it. Breakpoints are closed at once: there are few, and they may be wanted again. */
void step_tracer_disarm_all(struct step_tracer *t)
{
    char text[256];
    size_t n = 0;
    for (size_t i = 0; i < t->tracees.len; i++) {
        step_events_enable(&t->tracees.data[i]->events, false);
        n += t->tracees.data[i]->events.n;
    }
    bool slow = t->opt.at_sites && !has_breakpoints(t) && slow_close_text(text, sizeof text, n);
    for (size_t i = 0; i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        for (size_t k = 0; slow && k < e->events.n; k++)
            vec_push(&t->ended, e->events.fds[k]);
        e->events.n = slow ? 0 : e->events.n;
        step_tracer_disarm(e);
    }
    if (!slow)
        return;
    step_tracer_say(t, text);
    step_tracer_close_ended(t);
}

/* A thread that blocks SIGTRAP would only collect one, and of one that ignores it stepping would change that: it has
 * to wait (step_tracer_arm_late). One that is made while we trace is armed all the same: the C library blocks
 * everything until it has set it up. */
static bool can_be_stopped(struct step_tracer *t, struct tracee *e)
{
    e->blocked = !e->armed && !e->steps && is_chosen(t, e->tid) && has_begun(t) && tracee_unstoppable(e);
    return !e->blocked;
}

void step_tracer_say_blocked(struct step_tracer *t, struct tracee *e)
{
    struct err err;
    const char *why = e->blocked_said ? NULL : tracee_unstoppable(e);
    if (!why)
        return;
    e->blocked_said = true;
    err_set(&err, MTUI_E_NOTSUP, "thread %d %s: it is not stepped until it no longer does", (int)e->tid, why);
    step_tracer_say(t, err.text);
}

bool step_tracer_may_step(struct step_tracer *t, struct tracee *e)
{
    if (!tracee_ignores_trap(e))
        return true;
    step_tracer_say_blocked(t, e);
    if (!t->opt.at_sites) {
        step_tracer_disarm(e);
        e->blocked = true;
    }
    return false;
}

/* Once more a thread was found to block or ignore SIGTRAP, or not to. The C library blocks every signal for an instant
 * while it makes a thread, so a few such looks tell nothing. */
static void note_blocked(struct step_tracer *t, struct tracee *e, bool now)
{
    e->blocked_looks = now ? e->blocked_looks + 1 : 0;
    if (e->blocked_looks < BLOCKED_LOOKS)
        return;
    e->blocked_looks = 0;
    step_tracer_say_blocked(t, e);
}

/* Armed threads are looked at in turn, a few each time. */
static void look_at_armed(struct step_tracer *t)
{
    size_t n = t->tracees.len < LOOKED_AT ? t->tracees.len : LOOKED_AT;
    for (size_t i = 0; i < n; i++) {
        struct tracee *e = t->tracees.data[t->looked++ % t->tracees.len];
        if (e->armed)
            note_blocked(t, e, !e->steps && !e->blocked_said && tracee_unstoppable(e));
    }
}

void step_tracer_arm_late(struct step_tracer *t)
{
    for (size_t i = 0; t->enabled && i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        if (!e->blocked)
            continue;
        e->blocked = tracee_unstoppable(e) != NULL;
        note_blocked(t, e, e->blocked);
        if (!e->blocked)
            step_tracer_arm(t, e);
    }
    if (t->enabled)
        look_at_armed(t);
}

static const struct tracee *first_blocked(const struct step_tracer *t)
{
    for (size_t i = 0; i < t->tracees.len; i++)
        if (t->tracees.data[i]->blocked)
            return t->tracees.data[i];
    return NULL;
}

static int arm_all(struct step_tracer *t, struct err *err)
{
    size_t armed = 0, wanted = 0;
    bool can = has_begun(t) && (!t->opt.at_sites || t->places.len);
    t->refusal = (struct err){0};
    t->enabling = true;
    step_tracer_refresh(t);
    for (size_t i = 0; i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        if (can_be_stopped(t, e))
            step_tracer_arm(t, e);
        wanted += is_chosen(t, e->tid);
        armed += e->armed || e->steps;
    }
    t->enabling = false;
    const struct tracee *blocked = first_blocked(t);
    /* Perhaps for an instant only: step_tracer_arm_late says so if not. */
    bool waits = blocked && !t->refusal.code && !tracee_ignores_trap(blocked);
    if (!can || !wanted || armed || waits) {
        if (t->refusal.code && !blocked)
            step_tracer_say(t, t->refusal.text);
        return 0;
    }
    const char *why = blocked ? tracee_unstoppable(blocked) : NULL;
    if (!t->refusal.code && why)
        err_set(&t->refusal, MTUI_E_NOTSUP, "thread %d %s", (int)blocked->tid, why);
    if (!t->refusal.code)
        err_set(&t->refusal, MTUI_E_NOTSUP, "no thread of process %d could be armed",
                (int)t->opt.pid);
    *err = t->refusal;
    return err->code;
}

int step_tracer_enable(struct step_tracer *t, bool on, struct err *err)
{
    t->enabled = on;
    if (on)
        return arm_all(t, err);
    step_tracer_disarm_all(t);
    step_tracer_end_windows(t, true);
    return 0;
}

/* Names to places, armed: at the beginning, at an exec, at each new mapping while something pends. */
#include "core/trigger/trigger_set_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/alloc.h"
#include "core/machine/proc_stat.h"
#include "core/trigger/trigger_prepare.h"
#include "core/trigger/trigger_program.h"
#include "core/base/utf8.h"

/* After an exec, how long the new program has to map what a trigger names. */
#define EXEC_GRACE_NS 1000000000u

/* After the exec of a started program, how long it has to map its libraries before it is said what is not there. */
#define STARTUP_NS 1000000000u

#define LOOKS_MAX 4u /* at a time; programs that start others all the time must not fill the machine with them */

/* ---- Processes ---- */

/* A look in progress is waited for by nobody but the end of the set. */
static void drop_look(struct trigger_set *s, struct process *p)
{
    if (p->look)
        vec_push(&s->stale, p->look);
    p->look = NULL;
}

void trigger_set_process_free(struct trigger_set *s, struct process *p)
{
    drop_look(s, p);
    for (size_t i = 0; i < p->armed.len; i++)
        trigger_places_free(&p->armed.data[i].places);
    vec_free(&p->armed);
    modules_free(p->modules);
    free(p);
}

struct process *trigger_set_find_process(const struct trigger_set *s, pid_t pid)
{
    for (size_t i = 0; i < s->processes.len; i++)
        if (s->processes.data[i]->pid == pid)
            return s->processes.data[i];
    return NULL;
}

/* ---- Resolving and arming ---- */

static void set_where(struct entry *e, enum trigger_status status, char *where)
{
    free(e->where);
    e->where = where;
    e->status = status;
}

/* What a missing name may still become true for when new files are mapped. A name that exists in
 * the kernel, too, is refused only when the program is there. */
static bool may_come(int code)
{
    return code == MTUI_E_NOENT || code == MTUI_E_NOTSUP;
}

/* Resolves trigger i in the program that is to be started, whose files are opened when they are needed. */
static int resolve_in_program(const struct trigger_set *s, struct trigger_program **program, size_t i,
                              struct trigger_places *out, struct err *err)
{
    int rc;
    if (trigger_prepared_take_program(s->options.prepared, s->executable, i, s->entries.len, out, &rc, err))
        return rc;
    if (!*program)
        *program = trigger_program_open(s->executable);
    return trigger_program_resolve(*program, &s->entries.data[i].trigger, (uint32_t)i, out, err);
}

static const struct probe_site *find_refused(const struct trigger_set *s, const struct trigger_places *places)
{
    for (size_t i = 0; i < places->sites.len; i++) {
        const struct probe_site *site = &places->sites.data[i];
        if (site->refused && (s->options.handed_over || !site->only_to_stop))
            return site;
    }
    return NULL;
}

/* Of a program that does not run yet, with an instruction that takes no uprobe: a hardware breakpoint needs the
 * address. The places are freed. */
static int wait_for_address(struct trigger_set *s, struct process *p, size_t i, struct trigger_places *places,
                            const struct probe_site *refused, struct err *err)
{
    int rc = probe_can_break(s->probe, refused, places->sites.len, err);
    if (rc == 0) {
        p->armed.data[i].missing = true;
        set_where(&s->entries.data[i], TRIGGER_PENDING,
                  xasprintf("pending: a hardware breakpoint follows when %s is mapped", refused->label));
        trigger_set_say(s, xasprintf("%s: no uprobe can sit on the instruction \"%s\": a hardware breakpoint "
                                     "is set there once the program is mapped; its first calls may be missed",
                                     refused->label, refused->refused));
    }
    trigger_places_free(places);
    return rc;
}

static int resolve_one(struct trigger_set *s, struct process *p, struct trigger_program **program, size_t i,
                       struct err *err)
{
    struct entry *e = &s->entries.data[i];
    struct trigger_places places = {0};
    struct err why = {0};
    int rc = p->modules ? trigger_resolve(p->modules, &e->trigger, (uint32_t)i, &places, &why)
                        : resolve_in_program(s, program, i, &places, &why);
    if (rc < 0 && !((s->options.may_pend || s->options.shared) && may_come(rc)))
        return err_set(err, rc, "%s", why.text);
    const struct probe_site *refused = rc < 0 || p->modules || s->options.handed_over ? NULL : find_refused(s, &places);
    if (refused)
        return wait_for_address(s, p, i, &places, refused, err);
    struct armed *a = &p->armed.data[i];
    a->missing = rc < 0;
    if (rc < 0 && e->status != TRIGGER_ARMED)
        set_where(e, TRIGGER_PENDING, xasprintf("pending: %s", why.text));
    else if (rc == 0) {
        a->places = places;
        a->former = false;
    }
    return 0;
}

int trigger_set_check(struct trigger_set *s, struct err *err)
{
    for (size_t i = 0; s->options.shared && i < s->entries.len; i++) {
        const struct entry *e = &s->entries.data[i];
        const char *colon = strstr(e->where, ": ");
        if (e->status != TRIGGER_ARMED)
            return err_set(err, MTUI_E_NOENT, "trigger %s: none of the %zu processes has it: %s", e->trigger.text,
                           s->processes.len, colon ? colon + 2 : e->where);
    }
    for (size_t i = 0; s->options.shared && i < s->entries.len; i++)
        trigger_set_say_lacking(s, i);
    return 0;
}

int trigger_set_arm_process(struct trigger_set *s, struct process *p, struct err *err)
{
    trigger_set_number_members(s, p);
    if (s->options.handed_over)
        return trigger_set_tell_sites(s, p, err);
    if (s->out)
        return 0;
    VEC(struct probe_site) sites = {0};
    struct probe_stats stats;
    probe_stats(s->probe, &stats);
    for (size_t i = 0; i < p->armed.len; i++) {
        const struct armed *a = &p->armed.data[i];
        /* An address, unlike a file, means nothing in another program. */
        bool stale = a->missing && stats.mechanism != PROBE_UPROBE;
        for (size_t k = 0; !stale && k < a->places.sites.len; k++) {
            vec_push(&sites, a->places.sites.data[k]);
            sites.data[sites.len - 1].only_kept = armed_is_gone(a);
        }
    }
    int rc = probe_set_sites(s->probe, p->pid, sites.data, sites.len, err);
    vec_free(&sites);
    return rc;
}

/* A user without privileges may set no uprobes: in a program that does not run yet, hardware breakpoints must do,
 * where they suffice. */
static bool wait_for_addresses(struct trigger_set *s, struct process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->armed.len; i++)
        n += p->armed.data[i].places.sites.len;
    if (p->modules || !s->options.may_pend || n > probe_breakpoints(s->probe))
        return false;
    for (size_t i = 0; i < p->armed.len; i++) {
        trigger_places_free(&p->armed.data[i].places);
        p->armed.data[i].missing = true;
        set_where(&s->entries.data[i], TRIGGER_PENDING,
                  xstrdup("pending: a hardware breakpoint follows when the program is mapped"));
    }
    trigger_set_say(s, xstrdup("the kernel refuses probes in files to this user: hardware breakpoints are set once the "
                               "program is mapped; first calls may be missed"));
    return true;
}

/* Status and text of every trigger from what is armed in any process. */
static void update_entries(struct trigger_set *s)
{
    for (size_t i = 0; i < s->entries.len; i++) {
        struct entry *e = &s->entries.data[i];
        const struct trigger_places *armed = NULL;
        for (size_t k = 0; k < s->processes.len; k++)
            if (!process_pends(s->processes.data[k], i))
                armed = &s->processes.data[k]->armed.data[i].places;
        if (armed)
            set_where(e, TRIGGER_ARMED,
                      xasprintf("%s%s%s", armed->where, armed->note ? "; " : "",
                                armed->note ? armed->note : ""));
        else if (e->status == TRIGGER_ARMED)
            set_where(e, TRIGGER_PENDING, xstrdup("pending: its file is not mapped yet"));
    }
}

static void note_armed(struct trigger_set *s)
{
    uint64_t now = probe_now_ns(s->probe);
    for (size_t i = 0; i < s->entries.len; i++)
        if (s->entries.data[i].policy.armed_ns == 0 && s->entries.data[i].status == TRIGGER_ARMED)
            s->entries.data[i].policy.armed_ns = now;
}

/* What was looked for and found, or not; what fails otherwise stays as it was. True: something that was pending is
 * there now. */
static bool take_found(struct trigger_set *s, struct process *p, struct trigger_found *f)
{
    struct entry *e = &s->entries.data[f->number];
    struct armed *a = &p->armed.data[f->number];
    bool pending = process_pends(p, f->number);
    if (f->rc < 0 && !may_come(f->rc))
        return false;
    a->missing = f->rc < 0;
    if (f->rc < 0) {
        if (f->err.code && e->status == TRIGGER_PENDING)
            trigger_set_say_not_there(s, e, &f->err);
        if (e->status != TRIGGER_PENDING)
            set_where(e, TRIGGER_PENDING, xstrdup("pending: not in what is mapped now"));
        return false;
    }
    trigger_places_free(&a->places);
    a->places = f->places;
    a->former = false;
    f->places = (struct trigger_places){0};
    if (pending || p->replaced)
        trigger_set_say_of(s, p, &e->found_in_children,
                           xasprintf("trigger %s found%s: %s", e->trigger.text, p->replaced ? " again" : "",
                                     a->places.where));
    return pending;
}

/* What could not be armed must not count as armed, nor be in the way of the others. */
static void give_up_refused(struct trigger_set *s, struct process *p, const struct err *why)
{
    for (size_t i = 0; i < p->armed.len; i++) {
        if (!find_refused(s, &p->armed.data[i].places))
            continue;
        trigger_places_free(&p->armed.data[i].places);
        set_where(&s->entries.data[i], TRIGGER_PENDING, xasprintf("pending: %s", why->text));
    }
    if (why->code == MTUI_E_NOTSUP)
        (void)trigger_set_arm_process(s, p, NULL);
}

static void take_look(struct trigger_set *s, struct process *p, struct trigger_look *look)
{
    struct err err = {0};
    bool found = p->unread;
    p->look = NULL;
    if (trigger_look_rc(look) < 0) /* it has ended: that is told in its own way */
        return;
    p->modules = trigger_look_take_modules(look);
    p->unread = false;
    p->unseen = p->changed;
    for (size_t i = 0; i < trigger_look_count(look); i++)
        found |= take_found(s, p, trigger_look_at(look, i));
    p->replaced = false;
    int rc = found ? trigger_set_arm_process(s, p, &err) : 0;
    if (rc == MTUI_E_NOENT) { /* the thread has ended whose view of the files this is: the next look takes another's */
        modules_free(p->modules);
        p->modules = NULL;
        p->changed = true;
    } else if (rc < 0 && rc != MTUI_E_GONE) {
        trigger_set_say_of(s, p, &s->child_refusals, xstrdup(err.text));
        give_up_refused(s, p, &err);
    }
    trigger_set_tell_late(s);
    update_entries(s);
    note_armed(s);
}

static void plan_looks(struct trigger_set *s);

static void on_look_done(void *arg, struct trigger_look *look)
{
    struct trigger_set *s = arg;
    for (size_t i = 0; i < s->stale.len; i++)
        if (s->stale.data[i] == look)
            vec_remove(&s->stale, i--);
    for (size_t i = 0; i < s->processes.len; i++)
        if (s->processes.data[i]->look == look) {
            take_look(s, s->processes.data[i], look);
            break;
        }
    s->looks--;
    trigger_look_free(look);
    trigger_set_tell_lost(s);
    plan_looks(s);
}

/* Looks, in a thread, for what is pending; after an exec for everything. */
static void start_look(struct trigger_set *s, struct process *p)
{
    p->unread = p->unread || !p->modules;
    p->changed = false;
    p->look = trigger_look_new(p->pid, p->modules);
    p->modules = NULL;
    if (p->explain)
        trigger_look_ask_why(p->look);
    p->explain = false;
    for (uint32_t i = 0; i < s->entries.len; i++)
        if (p->unread || process_pends(p, i))
            trigger_look_add(p->look, &s->entries.data[i].trigger, i);
    s->looks++;
    trigger_look_start(p->look, s->loop, on_look_done, s);
}

static void on_look(void *arg)
{
    struct trigger_set *s = arg;
    s->look_timer = 0;
    for (size_t i = 0; i < s->processes.len && s->looks < LOOKS_MAX; i++)
        if (s->processes.data[i]->changed && !s->processes.data[i]->look)
            start_look(s, s->processes.data[i]);
    trigger_set_tell_lost(s);
}

/* Those that have changed meanwhile, or had to wait. */
static void plan_looks(struct trigger_set *s)
{
    for (size_t i = 0; i < s->processes.len && !s->look_timer && s->looks < LOOKS_MAX; i++)
        if (s->processes.data[i]->changed && !s->processes.data[i]->look)
            s->look_timer = loop_add_timer(s->loop, loop_now_ns(s->loop), on_look, s);
}

/* Many mappings come at once when a program starts: one look for all. */
static void plan_look(struct trigger_set *s, struct process *p)
{
    p->changed = p->unseen = true;
    plan_looks(s);
}

static bool is_looking(const struct trigger_set *s)
{
    for (size_t i = 0; i < s->processes.len; i++)
        if (s->processes.data[i]->look || s->processes.data[i]->changed)
            return true;
    return false;
}

static bool something_pends(const struct trigger_set *s, const struct process *p)
{
    for (size_t i = 0; i < s->entries.len; i++)
        if (process_pends(p, i))
            return true;
    return false;
}

void trigger_set_look_for_rest(struct trigger_set *s, struct process *p)
{
    if (something_pends(s, p))
        plan_look(s, p);
}

static void on_grace_over(void *arg)
{
    struct trigger_set *s = arg;
    s->grace_timer = 0;
    if (is_looking(s)) { /* at a big program */
        s->grace_timer = loop_add_timer(s->loop, loop_now_ns(s->loop) + EXEC_GRACE_NS, on_grace_over, s);
        return;
    }
    for (size_t i = 0; i < s->entries.len; i++) {
        struct entry *e = &s->entries.data[i];
        if (e->status != TRIGGER_PENDING)
            continue;
        set_where(e, TRIGGER_DISARMED, xstrdup("disarmed: the program that runs now lacks it"));
        trigger_set_say_gone(s, i);
    }
}

/* Whoever mistyped a name must not wait for it without a word. */
static void on_started(void *arg)
{
    struct trigger_set *s = arg;
    s->startup_timer = 0;
    if (is_looking(s)) {
        s->startup_timer = loop_add_timer(s->loop, loop_now_ns(s->loop) + STARTUP_NS, on_started, s);
        return;
    }
    for (size_t i = 0; i < s->processes.len; i++) {
        struct process *p = s->processes.data[i];
        p->explain = i == 0 && something_pends(s, p);
        if (p->explain)
            plan_look(s, p);
    }
}

static void on_exec(struct trigger_set *s, struct process *p, const char *name)
{
    char comm[128];
    bool started = !p->modules && !p->look; /* the exec that `run` waits for */
    (void)utf8_escape(comm, sizeof comm, name ? name : "", name ? strlen(name) : 0);
    drop_look(s, p);
    modules_free(p->modules);
    p->modules = NULL;
    plan_look(s, p);
    if (started && s->entries.len && !s->startup_timer)
        s->startup_timer = loop_add_timer(s->loop, loop_now_ns(s->loop) + STARTUP_NS, on_started, s);
    if (started || s->entries.len == 0)
        return;
    p->replaced = true;
    for (size_t i = 0; i < p->armed.len; i++)
        p->armed.data[i].former = true;
    trigger_set_say_of(s, p, &s->child_execs,
                       xasprintf("process %d runs another program now: %s%s", (int)p->pid, comm,
                                 s->options.may_pend ? "; triggers wait until it maps what they name" : ""));
    if (!s->options.may_pend && !s->grace_timer)
        s->grace_timer =
            loop_add_timer(s->loop, loop_now_ns(s->loop) + EXEC_GRACE_NS, on_grace_over, s);
}

static struct process *add_process(struct trigger_set *s, pid_t pid)
{
    struct process *p = xcalloc(1, sizeof *p);
    p->pid = pid;
    for (size_t i = 0; i < s->entries.len; i++) {
        struct armed none = {0};
        vec_push(&p->armed, none);
    }
    vec_push(&s->processes, p);
    return p;
}

static void remove_process(struct trigger_set *s, pid_t pid)
{
    for (size_t i = 0; i < s->processes.len; i++) {
        if (s->processes.data[i]->pid != pid)
            continue;
        trigger_set_process_free(s, s->processes.data[i]);
        vec_remove(&s->processes, i);
        return;
    }
}

static void on_process_ended(struct trigger_set *s, pid_t pid)
{
    remove_process(s, pid);
    for (size_t i = 0; s->processes.len == 0 && i < s->entries.len; i++) {
        struct entry *e = &s->entries.data[i];
        if (e->status != TRIGGER_PENDING) /* what never came stays pending: that is worth knowing */
            set_where(e, TRIGGER_DISARMED, xstrdup("disarmed: the target has ended"));
    }
}

static bool same_program(pid_t a, pid_t b)
{
    char path[64];
    struct stat x, y;
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)proc_living_thread("/proc", a));
    if (stat(path, &x) != 0)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)proc_living_thread("/proc", b));
    return stat(path, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The probes of its parent are armed in it already. An exec asks for a look of its own, but one
 * that came before the child was watched was not reported. */
static void on_child(struct trigger_set *s, const struct probe_event *event)
{
    struct process *p = add_process(s, event->pid);
    p->child = true;
    if (!same_program(event->pid, event->parent))
        plan_look(s, p);
}

void trigger_set_on_event(void *arg, const struct probe_event *event)
{
    struct trigger_set *s = arg;
    struct process *p = trigger_set_find_process(s, event->pid);
    switch (event->change) {
    case PROBE_THREAD_ENDED:
        trigger_set_on_thread_ended(s, event->pid, event->tid, event->time_ns);
        break;
    case PROBE_CHILD:
        if (!p && s->options.probe.children)
            on_child(s, event);
        break;
    case PROBE_EXEC:
        call_match_forget(s->calls, event->tid);
        if (p)
            on_exec(s, p, event->name);
        break;
    case PROBE_MAPPED:
        /* The first look after an exec may be at a program that is just being mapped. */
        if (p && (something_pends(s, p) || p->changed || (p->look && p->unread)))
            plan_look(s, p);
        break;
    case PROBE_PROCESS_ENDED:
        if (p) {
            trigger_set_fire_cut(s, p);
            trigger_set_note_unfound(s, p);
        }
        on_process_ended(s, event->pid);
        break;
    case PROBE_THREAD_BORN:
        break;
    }
    if (s->callbacks.event)
        s->callbacks.event(s->arg, event);
}

static void on_trouble(void *arg, const char *sentence)
{
    trigger_set_say(arg, xstrdup(sentence));
}

/* ---- Arming ---- */

/* What was resolved beforehand holds when the mappings are the same still; else at least the symbols are
 * read already. False: to be resolved. */
static bool take_prepared(struct trigger_set *s, struct process *p)
{
    size_t n = s->entries.len;
    struct trigger_places *places = xcalloc(n ? n : 1, sizeof *places);
    bool same = s->options.prepared &&
                trigger_prepared_take(s->options.prepared, p->pid, &p->modules, places, n) &&
                modules_refresh(p->modules, NULL) == 0;
    for (size_t i = 0; i < n; i++) {
        if (same)
            p->armed.data[i].places = places[i];
        else
            trigger_places_free(&places[i]);
    }
    free(places);
    return same;
}

static int resolve_all(struct trigger_set *s, struct process *p, struct err *err)
{
    struct trigger_program *program = NULL;
    int rc = 0;
    if (s->entries.len == 0 || take_prepared(s, p))
        return 0;
    if (!p->modules && !s->executable) /* a process that has not exec'ed yet is still a copy of this one */
        rc = modules_of_pid(NULL, p->pid, &p->modules, err);
    for (size_t i = 0; rc == 0 && i < s->entries.len; i++)
        rc = resolve_one(s, p, &program, i, err);
    trigger_program_free(program);
    return rc;
}

int trigger_set_arm(struct trigger_set *s, pid_t pid, struct err *err)
{
    static const struct probe_callbacks callbacks = {trigger_set_on_hit, trigger_set_on_event,
                                                    on_trouble};
    int rc = 0;
    if (trigger_set_find_process(s, pid))
        return 0;
    if (!s->probe)
        rc = probe_new(s->loop, &s->options.probe, &callbacks, s, &s->probe, err);
    if (rc < 0)
        return rc;
    struct process *p = add_process(s, pid);
    rc = probe_watch(s->probe, pid, err);
    if (rc == 0)
        rc = resolve_all(s, p, err);
    if (rc == 0 && s->entries.len > 0)
        rc = trigger_set_arm_process(s, p, err);
    if (rc == MTUI_E_PERM && wait_for_addresses(s, p))
        rc = 0;
    if (rc < 0) {
        remove_process(s, pid);
        return rc;
    }
    update_entries(s);
    note_armed(s);
    trigger_set_watch_open(s);
    return 0;
}


#include "core/trigger/trigger_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/alloc.h"
#include "core/trigger/call_match.h"
#include "core/symbols/modules.h"
#include "core/symbols/needed.h"
#include "core/trigger/trigger_resolve.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"

/* After an exec, how long the new program has to map what a trigger names. */
#define EXEC_GRACE_NS 1000000000u

/* Losses come with many hits: looked for once in so many. */
#define HITS_TO_LOOK 1024

struct entry {
    struct trigger trigger;
    struct trigger_policy policy;
    enum trigger_status status;
    char *where;
};

/* A trigger in one process. Places that a new program seems to lack stay armed (a uprobe sits in a
 * file, and its libraries may only not be mapped yet), but count as pending. */
struct armed {
    struct trigger_places places;
    bool missing;
};

struct process {
    pid_t pid;
    struct modules *modules; /* NULL: not exec'ed yet */
    bool changed;            /* mappings since the last look */
    VEC(struct armed) armed; /* by trigger */
};

struct trigger_set {
    struct loop *loop;
    struct trigger_set_options options;
    char *executable;
    struct trigger_set_callbacks callbacks;
    void *arg;
    struct probe *probe;
    struct call_match *calls;
    VEC(struct entry) entries;
    VEC(struct process *) processes;
    int look_timer, grace_timer;
    unsigned snapshots; /* outstanding */
    uint64_t hits, lost_told;
};

static void say(struct trigger_set *s, char *sentence)
{
    if (s->callbacks.message)
        s->callbacks.message(s->arg, sentence);
    free(sentence);
}

/* ---- Life ---- */

struct trigger_set *trigger_set_new(struct loop *loop, const struct trigger_set_options *options,
                                    const struct trigger_set_callbacks *callbacks, void *arg)
{
    struct trigger_set *s = xcalloc(1, sizeof *s);
    s->loop = loop;
    s->callbacks = *callbacks;
    s->arg = arg;
    if (options)
        s->options = *options;
    if (s->options.executable)
        s->executable = xstrdup(s->options.executable);
    s->calls = call_match_new();
    return s;
}

static void process_free(struct process *p)
{
    for (size_t i = 0; i < p->armed.len; i++)
        trigger_places_free(&p->armed.data[i].places);
    vec_free(&p->armed);
    modules_free(p->modules);
    free(p);
}

void trigger_set_free(struct trigger_set *s)
{
    if (!s)
        return;
    loop_remove(s->loop, s->look_timer);
    loop_remove(s->loop, s->grace_timer);
    probe_free(s->probe);
    for (size_t i = 0; i < s->processes.len; i++)
        process_free(s->processes.data[i]);
    vec_free(&s->processes);
    for (size_t i = 0; i < s->entries.len; i++) {
        trigger_fini(&s->entries.data[i].trigger);
        free(s->entries.data[i].where);
    }
    vec_free(&s->entries);
    call_match_free(s->calls);
    free(s->executable);
    free(s);
}

uint32_t trigger_set_add(struct trigger_set *s, struct trigger *t)
{
    struct entry e = {.trigger = *t, .status = TRIGGER_PENDING, .where = xstrdup("not armed yet")};
    trigger_policy_init(&e.policy, &t->when, 0);
    *t = (struct trigger){0};
    vec_push(&s->entries, e);
    return (uint32_t)(s->entries.len - 1);
}

static struct process *find_process(const struct trigger_set *s, pid_t pid)
{
    for (size_t i = 0; i < s->processes.len; i++)
        if (s->processes.data[i]->pid == pid)
            return s->processes.data[i];
    return NULL;
}

static bool pends(const struct process *p, size_t trigger)
{
    const struct armed *a = &p->armed.data[trigger];
    return a->missing || a->places.sites.len == 0;
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

/* Resolves trigger i, looking at the program file and the libraries that it needs. */
static int resolve_in_files(const struct trigger_set *s, const struct needed *needed, size_t i,
                            struct trigger_places *out, struct err *err)
{
    struct modules *m = NULL;
    struct err first = {0};
    int rc = MTUI_E_NOENT;
    for (size_t k = 0; k <= needed->n && rc < 0; k++) {
        struct err why = {0};
        const char *path = k == 0 ? s->executable : needed->paths[k - 1];
        rc = modules_of_file(path, &m, &why);
        if (rc < 0)
            continue;
        rc = trigger_resolve(m, &s->entries.data[i].trigger, (uint32_t)i, out, &why);
        modules_free(m);
        /* The most telling failure: that of the program, or one that is more than "not here". */
        if (rc < 0 && (first.code == 0 || (first.code == MTUI_E_NOENT && rc != MTUI_E_NOENT)))
            first = why;
    }
    return rc < 0 ? err_set(err, first.code ? first.code : MTUI_E_NOENT, "%s",
                            first.code ? first.text : "the program's file cannot be read")
                  : 0;
}

/* pend: what may come later is no failure. explain: a reason is wanted, which takes time. */
static int resolve_one(struct trigger_set *s, struct process *p, const struct needed *needed,
                       size_t i, bool pend, bool explain, struct err *err)
{
    struct entry *e = &s->entries.data[i];
    struct trigger_places places = {0};
    struct err why = {0};
    int rc = p->modules ? trigger_resolve(p->modules, &e->trigger, (uint32_t)i, &places,
                                          explain ? &why : NULL)
                        : resolve_in_files(s, needed, i, &places, &why);
    if (rc < 0 && !(pend && may_come(rc)))
        return err_set(err, rc, "%s", why.text);
    struct armed *a = &p->armed.data[i];
    a->missing = rc < 0;
    if (rc < 0) {
        if (explain || e->status != TRIGGER_PENDING)
            set_where(e, TRIGGER_PENDING,
                      xasprintf("pending: %s", explain ? why.text : "not in what is mapped now"));
        return 0;
    }
    trigger_places_free(&a->places);
    a->places = places;
    return 0;
}

static int arm_process(struct trigger_set *s, struct process *p, struct err *err)
{
    if (s->options.handed_over) {
        if (s->callbacks.sites)
            s->callbacks.sites(s->arg);
        return 0;
    }
    VEC(struct probe_site) sites = {0};
    struct probe_stats stats;
    probe_stats(s->probe, &stats);
    for (size_t i = 0; i < p->armed.len; i++) {
        const struct armed *a = &p->armed.data[i];
        /* An address, unlike a file, means nothing in another program. */
        bool stale = a->missing && stats.mechanism != PROBE_UPROBE;
        for (size_t k = 0; !stale && k < a->places.sites.len; k++)
            vec_push(&sites, a->places.sites.data[k]);
    }
    int rc = probe_set_sites(s->probe, p->pid, sites.data, sites.len, err);
    vec_free(&sites);
    return rc;
}

/* Status and text of every trigger from what is armed in any process. */
static void update_entries(struct trigger_set *s)
{
    for (size_t i = 0; i < s->entries.len; i++) {
        struct entry *e = &s->entries.data[i];
        const struct trigger_places *armed = NULL;
        for (size_t k = 0; k < s->processes.len; k++)
            if (!pends(s->processes.data[k], i))
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

/* ---- What probes report ---- */

/* Entry and return of a watched call. False: nothing for the policy. */
static bool match_call(struct trigger_set *s, struct trigger_hit *hit)
{
    const struct trigger *t = &s->entries.data[hit->trigger].trigger;
    struct probe_hit *h = &hit->probe;
    struct call_open call = {.sp = h->sp, .time_ns = h->time_ns, .arg1 = h->arg1, .arg2 = h->arg2};
    if (h->role == PROBE_POINT)
        return true;
    if (h->role == PROBE_CALL) {
        hit->has_duration = true;
        return true;
    }
    if (h->role == PROBE_ENTRY) {
        if (!trigger_needs_return(t))
            return true;
        call_match_enter(s->calls, h->tid, hit->trigger, &call);
        return false;
    }
    h->arg1 = h->arg2 = 0; /* the registers hold something else by now */
    if (call_match_leave(s->calls, h->tid, hit->trigger, h->sp, &call)) {
        hit->has_duration = true;
        hit->duration_ns = h->time_ns - call.time_ns;
        h->arg1 = call.arg1;
        h->arg2 = call.arg2;
        return true;
    }
    /* A return whose entry was before the arming is a return all the same; a jump may be anything.
     */
    return h->role == PROBE_RETURN && t->when.slower_than_ns == 0;
}

static void tell_lost(struct trigger_set *s)
{
    struct probe_stats stats;
    probe_stats(s->probe, &stats);
    if (stats.lost > 0 && s->lost_told == 0)
        say(s, xasprintf("%llu hits came faster than they could be read and were lost",
                         (unsigned long long)stats.lost));
    s->lost_told = stats.lost;
}

static void on_hit(void *arg, const struct probe_hit *h)
{
    struct trigger_set *s = arg;
    struct trigger_hit hit = {.probe = *h, .trigger = h->trigger};
    if (++s->hits % HITS_TO_LOOK == 0)
        tell_lost(s);
    if (h->trigger >= s->entries.len || !match_call(s, &hit))
        return;
    struct entry *e = &s->entries.data[h->trigger];
    hit.verdict = trigger_policy_hit(&e->policy, h->time_ns, hit.has_duration, hit.duration_ns,
                                     s->snapshots > 0);
    if (hit.verdict == TRIGGER_FIRE)
        s->snapshots++;
    if (hit.verdict != TRIGGER_FAST && s->callbacks.hit)
        s->callbacks.hit(s->arg, &hit);
}

/* Looks again for what is pending (all: for everything), and arms it. */
static void look_again(struct trigger_set *s, struct process *p, bool all)
{
    struct err err = {0};
    bool found = false;
    for (size_t i = 0; i < s->entries.len; i++) {
        bool pending = pends(p, i);
        if (!all && !pending)
            continue;
        if (resolve_one(s, p, NULL, i, true, false, &err) < 0)
            continue;
        if (pending && !pends(p, i)) {
            found = true;
            say(s, xasprintf("trigger %s found: %s", s->entries.data[i].trigger.text,
                             p->armed.data[i].places.where));
        }
    }
    if (found || all) {
        int rc = arm_process(s, p, &err);
        if (rc < 0 && rc != MTUI_E_GONE)
            say(s, xasprintf("%s", err.text));
    }
    update_entries(s);
    note_armed(s);
}

static void on_look(void *arg)
{
    struct trigger_set *s = arg;
    s->look_timer = 0;
    for (size_t i = 0; i < s->processes.len; i++) {
        struct process *p = s->processes.data[i];
        if (!p->changed)
            continue;
        p->changed = false;
        bool first = p->modules == NULL;
        struct err err = {0};
        int rc = first ? modules_of_pid(NULL, p->pid, &p->modules, &err)
                       : modules_refresh(p->modules, &err);
        if (rc >= 0)
            look_again(s, p, first);
    }
    tell_lost(s);
}

/* Many mappings come at once when a program starts: one look for all. */
static void plan_look(struct trigger_set *s, struct process *p)
{
    p->changed = true;
    if (!s->look_timer)
        s->look_timer = loop_add_timer(s->loop, loop_now_ns(s->loop), on_look, s);
}

static bool something_pends(const struct trigger_set *s, const struct process *p)
{
    for (size_t i = 0; i < s->entries.len; i++)
        if (pends(p, i))
            return true;
    return false;
}

static void on_grace_over(void *arg)
{
    struct trigger_set *s = arg;
    s->grace_timer = 0;
    for (size_t i = 0; i < s->entries.len; i++) {
        struct entry *e = &s->entries.data[i];
        if (e->status != TRIGGER_PENDING)
            continue;
        set_where(e, TRIGGER_DISARMED, xstrdup("disarmed: the program that runs now lacks it"));
        say(s, xasprintf("trigger %s is disarmed: the program was replaced (exec) by one that does "
                         "not have it",
                         e->trigger.text));
    }
}

static void on_exec(struct trigger_set *s, struct process *p, const char *name)
{
    char comm[128];
    bool started = p->modules == NULL; /* the exec that `run` waits for */
    (void)utf8_escape(comm, sizeof comm, name ? name : "", name ? strlen(name) : 0);
    modules_free(p->modules);
    p->modules = NULL;
    plan_look(s, p);
    if (started || s->entries.len == 0)
        return;
    say(s, xasprintf("process %d runs another program now: %s", (int)p->pid, comm));
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
        process_free(s->processes.data[i]);
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
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)a);
    if (stat(path, &x) != 0)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)b);
    return stat(path, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The probes of its parent are armed in it already. An exec asks for a look of its own, but one
 * that came before the child was watched was not reported. */
static void on_child(struct trigger_set *s, const struct probe_event *event)
{
    struct process *p = add_process(s, event->pid);
    if (!same_program(event->pid, event->parent))
        plan_look(s, p);
}

static void on_event(void *arg, const struct probe_event *event)
{
    struct trigger_set *s = arg;
    struct process *p = find_process(s, event->pid);
    switch (event->change) {
    case PROBE_THREAD_ENDED:
        call_match_forget(s->calls, event->tid);
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
        if (p && (something_pends(s, p) || p->changed))
            plan_look(s, p);
        break;
    case PROBE_PROCESS_ENDED:
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
    say(arg, xstrdup(sentence));
}

/* ---- Arming ---- */

/* A process that has not exec'ed yet is still a copy of this one. */
static int read_modules(struct trigger_set *s, struct process *p, struct needed *needed,
                        struct err *err)
{
    if (!s->executable)
        return modules_of_pid(NULL, p->pid, &p->modules, err);
    for (size_t i = 0; i < s->entries.len; i++)
        if (s->entries.data[i].trigger.kind == TRIGGER_ADDRESS &&
            !s->entries.data[i].trigger.module)
            return err_set(err, MTUI_E_NOTSUP,
                           "trigger %s: the program does not run yet and may be loaded anywhere; "
                           "use PROGRAM:%s for an address as linked",
                           s->entries.data[i].trigger.text, s->entries.data[i].trigger.text);
    (void)needed_files(s->executable, needed, NULL); /* without: its libraries are pending */
    return 0;
}

int trigger_set_arm(struct trigger_set *s, pid_t pid, struct err *err)
{
    static const struct probe_callbacks callbacks = {on_hit, on_event, on_trouble};
    struct needed needed = {0};
    int rc = 0;
    if (find_process(s, pid))
        return 0;
    if (!s->probe)
        rc = probe_new(s->loop, &s->options.probe, &callbacks, s, &s->probe, err);
    if (rc < 0)
        return rc;
    struct process *p = add_process(s, pid);
    rc = probe_watch(s->probe, pid, err);
    if (rc == 0 && s->entries.len > 0)
        rc = read_modules(s, p, &needed, err);
    for (size_t i = 0; rc == 0 && i < s->entries.len; i++)
        rc = resolve_one(s, p, &needed, i, s->options.may_pend, true, err);
    needed_free(&needed);
    if (rc == 0 && s->entries.len > 0)
        rc = arm_process(s, p, err);
    if (rc < 0) {
        remove_process(s, pid);
        return rc;
    }
    update_entries(s);
    note_armed(s);
    return 0;
}

/* ---- Someone else's places ---- */

void trigger_set_hand_over(struct trigger_set *s)
{
    if (s->options.handed_over)
        return;
    s->options.handed_over = true;
    for (size_t i = 0; i < s->processes.len; i++)
        probe_set_sites(s->probe, s->processes.data[i]->pid, NULL, 0, NULL);
    if (s->callbacks.sites)
        s->callbacks.sites(s->arg);
}

void trigger_set_each_site(const struct trigger_set *s,
                           void (*fn)(void *arg, const struct probe_site *site), void *arg)
{
    for (size_t p = 0; p < s->processes.len; p++)
        for (size_t i = 0; i < s->processes.data[p]->armed.len; i++) {
            const struct armed *a = &s->processes.data[p]->armed.data[i];
            for (size_t k = 0; k < a->places.sites.len; k++)
                fn(arg, &a->places.sites.data[k]);
        }
}

void trigger_set_count_hit(struct trigger_set *s, uint32_t trigger, enum trigger_verdict verdict,
                           uint64_t time_ns)
{
    if (trigger < s->entries.len)
        trigger_policy_count(&s->entries.data[trigger].policy, verdict, time_ns);
}

/* ---- Snapshots and questions ---- */

void trigger_set_snapshot_begin(struct trigger_set *s)
{
    s->snapshots++;
}

void trigger_set_snapshot_done(struct trigger_set *s)
{
    if (s->snapshots > 0)
        s->snapshots--;
}

size_t trigger_set_count(const struct trigger_set *s)
{
    return s->entries.len;
}

const struct trigger *trigger_set_get(const struct trigger_set *s, uint32_t i)
{
    return &s->entries.data[i].trigger;
}

enum trigger_status trigger_set_status(const struct trigger_set *s, uint32_t i)
{
    return s->entries.data[i].status;
}

const char *trigger_set_where(const struct trigger_set *s, uint32_t i)
{
    return s->entries.data[i].where;
}

const struct trigger_counts *trigger_set_counts(const struct trigger_set *s, uint32_t i)
{
    return &s->entries.data[i].policy.counts;
}

bool trigger_set_exhausted(const struct trigger_set *s)
{
    for (size_t i = 0; i < s->entries.len; i++)
        if (!trigger_policy_exhausted(&s->entries.data[i].policy))
            return false;
    return s->entries.len > 0;
}

const struct probe *trigger_set_probe(const struct trigger_set *s)
{
    return s->probe;
}

void trigger_set_drain(struct trigger_set *s)
{
    if (s->probe) {
        probe_drain(s->probe);
        tell_lost(s);
    }
}

/* The events of sites: by what mechanism, in which threads, and how one set of them follows another. */
#include "core/trigger/probe_arm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/descriptors.h"
#include "core/machine/perf_event.h"
#include "core/machine/proc_stat.h"
#include "core/trigger/hwbreak.h"
#include "core/trigger/uprobe.h"

/* ---- One event ---- */

/* The descriptor of a file, the same for each path that leads to it; −errno when it cannot be opened. */
static int file_get(struct probe_machine *m, const char *path)
{
    struct stat st;
    if (!path)
        return -ENOENT;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ESRCH ? -ENOENT : -errno; /* it is the way by /proc that has ended, not whom the site is for */
    if (fstat(fd, &st) != 0)
        return fd;
    for (size_t i = 0; i < m->files.len; i++) {
        struct probe_file *f = &m->files.data[i];
        if (f->dev == st.st_dev && f->ino == st.st_ino) {
            (void)close(fd);
            f->users++;
            return f->fd;
        }
    }
    struct probe_file f = {.dev = st.st_dev, .ino = st.st_ino, .fd = fd, .users = 1};
    vec_push(&m->files, f);
    return fd;
}

static void file_put(struct probe_machine *m, int fd)
{
    for (size_t i = 0; i < m->files.len; i++) {
        struct probe_file *f = &m->files.data[i];
        if (f->fd != fd || --f->users > 0)
            continue;
        (void)close(fd);
        vec_remove(&m->files, i);
        return;
    }
}

static int open_event(const struct probe_machine *m, enum probe_mechanism mechanism,
                      const struct probe_armed *a, pid_t tid, bool reports, struct err *err)
{
    struct perf_event_attr attr;
    const struct probe_site *site = &a->site;
    const char *label = site->label ? site->label : "a site";
    char path[64];
    if (mechanism == PROBE_UPROBE && a->file < 0)
        return err_errno(err, -a->file, "arming %.180s: its file cannot be opened", label);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", a->file);
    if (mechanism == PROBE_HWBREAK)
        hwbreak_attr(&attr, site->addr);
    else
        uprobe_attr(&attr, m->uprobe_type, path, site->offset);
    if (reports)
        perf_event_sample_hits(&attr);
    int fd = perf_event_open(&attr, tid, -1);
    if (fd >= 0)
        return fd;
    int errno_value = errno;
    char what[256];
    (void)snprintf(what, sizeof what, "arming %.180s in thread %d", label, (int)tid);
    return perf_event_explain(err, errno_value, NULL, what);
}

void probe_event_close(struct probe_machine *m, const struct probe_process *p, int fd)
{
    if (p->mechanism == PROBE_UPROBE) {
        /* No more reports from now on (of a link: its numbers mean nothing any more); the breakpoint goes when the
         * close comes through. */
        (void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
        vec_push(&m->closing, fd);
    } else {
        (void)close(fd);
    }
}

int probe_thread_arm(const struct probe_machine *m, enum probe_mechanism mechanism,
                     struct probe_thread *t, const struct probe_armed *a, struct err *err)
{
    struct probe_thread_event e = {.number = a->number};
    e.fd = open_event(m, mechanism, a, t->tid, true, err);
    if (e.fd < 0)
        return e.fd;
    if (ioctl(e.fd, PERF_EVENT_IOC_SET_OUTPUT, t->fd) != 0 ||
        ioctl(e.fd, PERF_EVENT_IOC_ID, &e.id) != 0) {
        int errno_value = errno;
        (void)close(e.fd);
        return err_errno(err, errno_value, "joining a probe to the ring of thread %d", (int)t->tid);
    }
    vec_push(&t->events, e);
    return 0;
}

static int process_arm(const struct probe_machine *m, pid_t carrier, struct probe_armed *a,
                       struct err *err)
{
    int fd = open_event(m, PROBE_UPROBE, a, carrier, false, err);
    if (fd < 0)
        return fd;
    int rc = hit_output_bind(m->output, fd, a->number, err);
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    a->fd = fd;
    return 0;
}

/* The event of a carrier that has ended reports nothing, and stays open nevertheless: when it is closed, the kernel looks
 * whom else the breakpoint is for and, should the next carrier be ending too, takes it out; and no other event can be
 * opened until that is done. */
static void event_retire(struct probe_machine *m, struct probe_process *p, int fd)
{
    if (fd >= 0 && p->former.len >= PROBE_FORMER_MAX) {
        probe_event_close(m, p, fd);
    } else if (fd >= 0) {
        (void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
        vec_push(&p->former, fd);
    }
}

void probe_close_former(struct probe_machine *m, struct probe_process *p)
{
    for (size_t i = 0; i < p->former.len; i++)
        probe_event_close(m, p, p->former.data[i]);
    vec_free(&p->former);
}

/* A link reports from every thread of a process, but has breakpoints put into it, and left there, only as long as its
 * first thread lives: then the event of another thread that reports nothing holds each. The link's own stays where it
 * is until another probe goes from the same place, so there is time for that. An event whose thread ends while it is
 * being opened is such another probe.
 * Source: kernel/trace/bpf_trace.c (uprobe_multi_link_filter), kernel/events/uprobes.c (register_for_each_vma). */
static int process_hold(struct probe_machine *m, struct probe_process *p, pid_t carrier, struct probe_armed *a,
                        struct err *err)
{
    int fd = open_event(m, PROBE_UPROBE, a, carrier, false, err);
    p->uncarried = fd < 0;
    p->was_uncarried = p->was_uncarried || p->uncarried;
    if (fd < 0)
        return fd;
    (void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    event_retire(m, p, a->hold);
    a->hold = fd;
    return 0;
}

static void event_put(struct probe_machine *m, const struct probe_process *p, int fd)
{
    if (fd >= 0 && probe_link_put(m, fd))
        probe_event_close(m, p, fd);
}

void probe_armed_free(struct probe_machine *m, const struct probe_process *p, struct probe_armed *a)
{
    event_put(m, p, a->fd);
    event_put(m, p, a->hold);
    if (a->file >= 0)
        file_put(m, a->file);
    /* The copies were made by site_copy. */
    free((void *)(uintptr_t)a->site.path);
    free((void *)(uintptr_t)a->site.label);
    free((void *)(uintptr_t)a->site.refused);
}

static struct probe_armed site_copy(struct probe_machine *m, const struct probe_site *s)
{
    struct probe_armed a = {.number = ++m->next_number, .site = *s, .fd = -1, .hold = -1};
    a.file = file_get(m, s->path);
    /* Whoever arms it elsewhere, too, means this file, whatever has become of the path (of a mapping, after an exec). */
    a.site.path = a.file < 0 ? NULL : xasprintf("/proc/self/fd/%d", a.file);
    a.site.label = xstrdup(s->label ? s->label : "a site");
    a.site.refused = s->refused ? xstrdup(s->refused) : NULL;
    return a;
}

/* ---- Arming ---- */

static unsigned hardware_slots(struct probe_machine *m)
{
    if (!m->hwbreak_known) {
        m->hwbreak_known = true;
        (void)hwbreak_self_test(&m->hwbreak_slots, NULL);
    }
    return m->hwbreak_slots;
}

unsigned probe_machine_breakpoints(struct probe_machine *m)
{
    return m->wanted == PROBE_UPROBE ? 0 : hardware_slots(m);
}

static bool fits_hardware(struct probe_machine *m, const struct probe_site *sites, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sites[i].addr == 0)
            return false;
    return n > 0 && n <= hardware_slots(m);
}

int probe_machine_can_break(struct probe_machine *m, const struct probe_site *refused, size_t n, struct err *err)
{
    const char *label = refused->label ? refused->label : "a site";
    if (n <= probe_machine_breakpoints(m))
        return 0;
    if (m->wanted == PROBE_UPROBE || !m->hwbreak_slots)
        return err_set(err, MTUI_E_NOTSUP,
                       "%.180s: no uprobe can sit on the instruction \"%s\", and hardware breakpoints do not "
                       "work here: choose another function or line",
                       label, refused->refused);
    return err_set(err, MTUI_E_NOTSUP,
                   "%.180s: no uprobe can sit on the instruction \"%s\", and %zu places are more than the %u "
                   "hardware breakpoints there are: choose fewer, without @return",
                   label, refused->refused, n, m->hwbreak_slots);
}

static const struct probe_site *find_refused(const struct probe_site *sites, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sites[i].refused && !sites[i].only_to_stop)
            return &sites[i];
    return NULL;
}

/* A hardware breakpoint costs the target least, but knows only threads that it was armed in, by
 * address, and there are few. So AUTO takes it where uprobes would need an event a thread too, and where
 * no uprobe can sit. */
static int choose(struct probe_machine *m, const struct probe_site *sites, size_t n, enum probe_mechanism *out,
                  struct err *err)
{
    const struct probe_site *refused = find_refused(sites, n);
    *out = m->wanted;
    if (m->wanted == PROBE_AUTO)
        *out = (refused || !m->output) && fits_hardware(m, sites, n) ? PROBE_HWBREAK : PROBE_UPROBE;
    if (!refused || *out == PROBE_HWBREAK)
        return 0;
    int rc = probe_machine_can_break(m, refused, n, err);
    if (rc == 0)
        rc = err_set(err, MTUI_E_NOTSUP,
                     "%.180s: no uprobe can sit on the instruction \"%s\", and not every place has an "
                     "address yet",
                     refused->label ? refused->label : "a site", refused->refused);
    return rc;
}

/* A uprobe sits in the file, wherever that is mapped; a hardware breakpoint at an address. */
static bool same_site(enum probe_mechanism mechanism, const struct probe_armed *a,
                      const struct probe_armed *b)
{
    const struct probe_site *x = &a->site, *y = &b->site;
    return x->trigger == y->trigger && x->role == y->role && x->condition == y->condition &&
           (mechanism == PROBE_HWBREAK
                ? x->addr == y->addr
                : a->file >= 0 && a->file == b->file && x->offset == y->offset);
}

/* A site that a thread is to carry: its event, or, if a link has it, what holds it when the first thread cannot. */
static int carry_site(struct probe_machine *m, struct probe_process *p, pid_t carrier, struct probe_armed *a,
                      struct err *err)
{
    if (a->fd < 0)
        return process_arm(m, carrier, a, err);
    return carrier != p->pid && probe_is_link(m, a->fd) ? process_hold(m, p, carrier, a, err) : 0;
}

/* Threads that end in between are marked; a refusal elsewhere is the caller's failure. */
static int arm_everywhere(struct probe_machine *m, struct probe_process *next, uint64_t first_new, struct err *err)
{
    int rc = 0;
    if (next->cover == PROBE_COVER_PROCESS)
        probe_link_sites(m, next);
    for (size_t i = 0; i < next->sites.len && rc == 0; i++) {
        struct probe_armed *a = &next->sites.data[i];
        if (next->cover == PROBE_COVER_PROCESS) {
            if (a->number >= first_new || a->fd < 0)
                rc = carry_site(m, next, next->carrier, a, err);
            continue;
        }
        for (size_t k = 0; k < next->threads.len && rc == 0; k++) {
            struct probe_thread *t = next->threads.data[k];
            bool has = false;
            for (size_t j = 0; j < t->events.len && !has; j++)
                has = t->events.data[j].number == a->number;
            if (has || t->ended)
                continue;
            rc = probe_thread_arm(m, next->mechanism, t, a, err);
            if (rc == MTUI_E_GONE) {
                t->ended = true;
                rc = 0;
            }
        }
    }
    return rc;
}

/* Closes the events of threads for sites from `number` on (undo), or for sites no longer listed. */
static void drop_thread_events(struct probe_machine *m, const struct probe_process *p,
                               uint64_t from, bool unlisted)
{
    for (size_t k = 0; k < p->threads.len; k++) {
        struct probe_thread *t = p->threads.data[k];
        size_t kept = 0;
        for (size_t j = 0; j < t->events.len; j++) {
            struct probe_thread_event e = t->events.data[j];
            bool drop = unlisted ? !probe_process_site(p, e.number) : e.number >= from;
            if (drop)
                probe_event_close(m, p, e.fd);
            else
                t->events.data[kept++] = e;
        }
        t->events.len = kept;
    }
}

/* The record of its end may be on its way. */
static bool is_living(const struct probe_process *p, const struct probe_thread *t)
{
    struct proc_stat st;
    int rc = t->ended ? MTUI_E_GONE : proc_stat_read("/proc", p->pid, t->tid, &st, NULL);
    return rc != MTUI_E_GONE && (rc < 0 || !st.exiting);
}

/* The first thread, which ends last in most programs, else any, or one that has lived for a while; 0: there is none, or
 * all are ending. */
static pid_t living_thread(const struct probe_process *p, bool any)
{
    const struct probe_thread *leader = probe_process_thread(p, p->pid);
    if (leader && is_living(p, leader))
        return p->pid;
    for (size_t i = 0; i < p->threads.len; i++)
        if ((any || p->threads.data[i]->is_old) && is_living(p, p->threads.data[i]))
            return p->threads.data[i]->tid;
    return 0;
}

/* A thread has ended that no record has told of yet. False when that was known, or the thread is not. */
static bool mark_ended(struct probe_process *p, pid_t tid)
{
    struct probe_thread *t = probe_process_thread(p, tid);
    if (!t || t->ended)
        return false;
    t->ended = true;
    return true;
}

/* By the first thread of what was exec'ed: everything anew. Links of before may go on reporting for a while, under
 * their old numbers, which then mean nothing any more, so that no hit counts twice. */
static int carry_anew(struct probe_machine *m, struct probe_process *p, struct err *err)
{
    int rc = 0;
    VEC(struct probe_armed) before = {0};
    for (size_t i = 0; i < p->sites.len; i++) {
        struct probe_armed *a = &p->sites.data[i];
        vec_push(&before, *a);
        a->number = ++m->next_number;
        a->fd = a->hold = -1;
    }
    probe_link_sites(m, p);
    for (size_t i = 0; i < p->sites.len; i++) {
        int one = carry_site(m, p, p->pid, &p->sites.data[i], rc == 0 ? err : NULL);
        rc = rc ? rc : one;
        event_put(m, p, before.data[i].fd);
        event_put(m, p, before.data[i].hold);
    }
    probe_close_former(m, p);
    vec_free(&before);
    return rc;
}

/* By another thread, after the first one or one that had taken over. The event of a thread that has ended reports
 * nothing: the kernel takes its breakpoint out at the next hit. */
static int carry_on(struct probe_machine *m, struct probe_process *p, pid_t carrier, struct err *err)
{
    int rc = 0;
    (void)descriptors_make_room(p->sites.len, NULL); /* if there is none, the opening will tell */
    for (size_t i = 0; i < p->sites.len && rc != MTUI_E_GONE; i++) {
        struct probe_armed *a = &p->sites.data[i];
        bool linked = a->fd >= 0 && probe_is_link(m, a->fd);
        int before = linked ? -1 : a->fd;
        if (!linked) {
            p->was_uncarried = true;
            a->fd = -1;
        }
        int one = carry_site(m, p, carrier, a, rc == 0 ? err : NULL);
        rc = rc == 0 || one == MTUI_E_GONE ? one : rc;
        event_retire(m, p, before);
    }
    return rc;
}

int probe_move_carrier(struct probe_machine *m, struct probe_process *p, bool any, struct err *err)
{
    for (;;) {
        pid_t carrier = living_thread(p, any || p->uncarried);
        if (!carrier) /* the records of their ends will tell, or of others that were born */
            return 0;
        int rc = carrier == p->pid ? carry_anew(m, p, err) : carry_on(m, p, carrier, err);
        p->carrier = carrier;
        if (rc != MTUI_E_GONE || !mark_ended(p, carrier))
            return rc;
    }
}

static bool is_kept(const struct probe_armed *a, const struct probe_site *sites, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const struct probe_site *x = &a->site, *y = &sites[k];
        if (y->only_kept && x->trigger == y->trigger && x->role == y->role && x->condition == y->condition &&
            x->offset == y->offset && y->label && strcmp(x->label, y->label) == 0)
            return true;
    }
    return false;
}

static bool is_among(enum probe_mechanism mechanism, const struct probe_armed *a, const struct probe_armed *others,
                     size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (same_site(mechanism, a, &others[i]))
            return true;
    return false;
}

/* The next set of sites: those that stay (in their order, so that numbers ascend), then new ones.
 */
static void plan(struct probe_machine *m, const struct probe_process *p, bool keep,
                 const struct probe_site *sites, size_t n, struct probe_process *next)
{
    VEC(struct probe_armed) wanted = {0};
    for (size_t k = 0; k < n; k++) {
        if (sites[k].only_kept)
            continue;
        struct probe_armed a = site_copy(m, &sites[k]);
        if (!is_among(next->mechanism, &a, wanted.data, wanted.len))
            vec_push(&wanted, a);
        else /* a file that is mapped twice */
            probe_armed_free(m, p, &a);
    }
    for (size_t i = 0; keep && i < p->sites.len; i++) {
        if (is_kept(&p->sites.data[i], sites, n)) {
            vec_push(&next->sites, p->sites.data[i]);
            continue;
        }
        for (size_t k = 0; k < wanted.len; k++) {
            if (same_site(next->mechanism, &p->sites.data[i], &wanted.data[k])) {
                vec_push(&next->sites, p->sites.data[i]);
                probe_armed_free(m, p, &wanted.data[k]);
                vec_remove(&wanted, k);
                break;
            }
        }
    }
    for (size_t k = 0; k < wanted.len; k++)
        vec_push(&next->sites, wanted.data[k]);
    vec_free(&wanted);
}

static int set_sites(struct probe_machine *m, struct probe_process *p,
                     enum probe_mechanism mechanism, const struct probe_site *sites, size_t n,
                     struct err *err)
{
    struct probe_process next = *p;
    next.mechanism = mechanism;
    next.cover =
        next.mechanism == PROBE_UPROBE && m->output ? PROBE_COVER_PROCESS : PROBE_COVER_THREADS;
    bool keep = next.mechanism == p->mechanism && next.cover == p->cover;
    if (next.carrier <= 0)
        next.carrier = living_thread(p, true);
    if (!next.carrier)
        next.carrier = p->pid; /* which fails as whoever has ended */
    next.sites.data = NULL;
    next.sites.len = next.sites.cap = 0;
    uint64_t first_new = m->next_number + 1;
    plan(m, p, keep, sites, n, &next);

    int rc = arm_everywhere(m, &next, first_new, err);
    if (rc < 0) {
        if (next.cover == PROBE_COVER_PROCESS)
            p->carrier = next.carrier;
        p->former = next.former;
        drop_thread_events(m, &next, first_new, false);
        for (size_t i = 0; i < next.sites.len; i++)
            if (next.sites.data[i].number >= first_new)
                probe_armed_free(m, &next, &next.sites.data[i]);
        vec_free(&next.sites);
        return rc;
    }
    /* Old ones go last, so that nothing is missed in between. */
    for (size_t i = 0; i < p->sites.len; i++)
        if (!probe_process_site(&next, p->sites.data[i].number))
            probe_armed_free(m, p, &p->sites.data[i]);
    vec_free(&p->sites);
    enum probe_mechanism before = p->mechanism;
    *p = next;
    p->mechanism = before; /* the kind of what is being closed */
    drop_thread_events(m, p, 0, true);
    if (p->sites.len == 0)
        probe_close_former(m, p);
    p->mechanism = next.mechanism;
    return 0;
}

int probe_process_set_sites(struct probe_machine *m, struct probe_process *p,
                            const struct probe_site *sites, size_t n, struct err *err)
{
    enum probe_mechanism mechanism;
    int rc = choose(m, sites, n, &mechanism, err);
    if (rc < 0)
        return rc;
    if (n > 0)
        (void)probe_process_carry(m, p, NULL); /* what cannot be carried is refused below */
    rc = set_sites(m, p, mechanism, sites, n, err);
    /* The thread that was to carry the events has just ended: another one does. */
    while (rc == MTUI_E_GONE && mark_ended(p, p->carrier)) {
        rc = p->sites.len > 0 ? probe_move_carrier(m, p, true, err) : 0;
        p->carrier = p->sites.len > 0 ? p->carrier : 0;
        if (rc == 0)
            rc = set_sites(m, p, mechanism, sites, n, err);
    }
    /* An instruction that the kernel cannot step out of line may still take a breakpoint. */
    if (rc == MTUI_E_NOTSUP && m->wanted == PROBE_AUTO && mechanism == PROBE_UPROBE &&
        fits_hardware(m, sites, n))
        rc = set_sites(m, p, PROBE_HWBREAK, sites, n, err);
    if (rc == MTUI_E_PERM && mechanism == PROBE_UPROBE && m->hwbreak_slots && n > m->hwbreak_slots)
        return err_set(err, rc,
                       "%zu places need uprobes, which the kernel refuses here: run as root or with "
                       "CAP_PERFMON, or choose %u at most, for which there are hardware breakpoints",
                       n, m->hwbreak_slots);
    return rc;
}

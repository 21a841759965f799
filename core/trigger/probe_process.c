#include "core/trigger/probe_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/trigger/hwbreak.h"
#include "core/machine/perf_event.h"
#include "core/trigger/uprobe.h"

#define SIDEBAND_PAGES 2 /* holds the longest record (a mapping with a path of 4096 bytes) */
#define HIT_PAGES_MAX  64
#define SCAN_ROUNDS    8
#define CARRIER_GONE   (-1)

/* ---- Threads ---- */

/* Rings carry hits only when there is no hit_output; then they share the budget. */
static size_t ring_pages(const struct probe_machine *m, const struct probe_process *p)
{
    size_t pages = HIT_PAGES_MAX, page = (size_t)sysconf(_SC_PAGESIZE);
    if (m->output)
        return SIDEBAND_PAGES;
    while (pages > SIDEBAND_PAGES && pages * page * (p->threads.len + 1) > m->ring_bytes)
        pages /= 2;
    return pages;
}

static void close_event(struct probe_machine *m, const struct probe_process *p, int fd)
{
    if (p->mechanism == PROBE_UPROBE) {
        /* No more reports from now on; the breakpoint goes when the close comes through. */
        (void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
        vec_push(&m->closing, fd);
    } else {
        (void)close(fd);
    }
}

static void thread_free(struct probe_machine *m, const struct probe_process *p,
                        struct probe_thread *t)
{
    for (size_t i = 0; i < t->events.len; i++)
        close_event(m, p, t->events.data[i].fd);
    vec_free(&t->events);
    perf_ring_unmap(&t->ring);
    /* Explicitly: a child that is between fork and exec may hold the descriptor for a moment. */
    (void)epoll_ctl(m->epoll, EPOLL_CTL_DEL, t->fd, NULL);
    (void)close(t->fd);
    free(t);
}

static size_t thread_place(const struct probe_process *p, pid_t tid)
{
    size_t lo = 0, hi = p->threads.len;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (p->threads.data[mid]->tid < tid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int thread_open(struct probe_machine *m, const struct probe_process *p, pid_t tid,
                       struct probe_thread **out, struct err *err)
{
    struct perf_event_attr attr;
    char what[64];
    (void)snprintf(what, sizeof what, "watching thread %d", (int)tid);
    perf_event_dummy_attr(&attr);
    int fd = perf_event_open(&attr, tid, -1);
    if (fd < 0)
        return perf_event_explain(err, errno, NULL, what);
    struct probe_thread *t = xcalloc(1, sizeof *t);
    t->tid = tid;
    t->fd = fd;
    int rc = perf_ring_map(&t->ring, fd, ring_pages(m, p), err);
    struct epoll_event e = {.events = EPOLLIN, .data = {.fd = fd}};
    if (rc == 0 && epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &e) != 0)
        rc = err_errno(err, errno, "%s", what);
    if (rc < 0) {
        thread_free(m, p, t);
        return rc;
    }
    *out = t;
    return 0;
}

/* ---- Events of sites ---- */

/* The descriptor of a file, the same for each path that leads to it; −1 when it cannot be opened.
 */
static int file_get(struct probe_machine *m, const char *path)
{
    struct stat st;
    int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) != 0)
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
    char path[64];
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
    (void)snprintf(what, sizeof what, "arming %.180s in thread %d",
                   site->label ? site->label : "a site", (int)tid);
    return perf_event_explain(err, errno_value, NULL, what);
}

/* Opens the event of a site in one thread, reporting into the thread's ring. */
static int thread_arm(const struct probe_machine *m, enum probe_mechanism mechanism,
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

static void site_free(struct probe_machine *m, const struct probe_process *p, struct probe_armed *a)
{
    if (a->fd >= 0)
        close_event(m, p, a->fd);
    if (a->file >= 0)
        file_put(m, a->file);
    /* The copies were made by site_copy. */
    free((void *)(uintptr_t)a->site.path);
    free((void *)(uintptr_t)a->site.label);
}

static struct probe_armed site_copy(struct probe_machine *m, const struct probe_site *s)
{
    struct probe_armed a = {.number = ++m->next_number, .site = *s, .fd = -1};
    a.file = file_get(m, s->path);
    a.site.path = s->path ? xstrdup(s->path) : NULL;
    a.site.label = xstrdup(s->label ? s->label : "a site");
    return a;
}

/* ---- Process ---- */

static int add_thread(struct probe_machine *m, struct probe_process *p, pid_t tid, struct err *err)
{
    struct probe_thread *t = NULL;
    int rc = thread_open(m, p, tid, &t, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; p->cover == PROBE_COVER_THREADS && i < p->sites.len; i++) {
        rc = thread_arm(m, p->mechanism, t, &p->sites.data[i], err);
        if (rc < 0)
            break;
    }
    if (rc == MTUI_E_GONE) {
        thread_free(m, p, t);
        return rc;
    }
    /* A thread that could not be armed is still watched: its children and its end matter. */
    p->exec_suspected = p->exec_suspected || (tid == p->pid && p->leader_ended);
    size_t at = thread_place(p, tid);
    vec_push(&p->threads, t);
    memmove(p->threads.data + at + 1, p->threads.data + at,
            (p->threads.len - 1 - at) * sizeof *p->threads.data);
    p->threads.data[at] = t;
    return rc;
}

/* One pass over /proc/PID/task. */
static int scan_once(struct probe_machine *m, struct probe_process *p, size_t *born,
                     struct err *err)
{
    char path[64];
    int result = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)p->pid);
    DIR *dir = opendir(path);
    if (!dir)
        return err_set(err, MTUI_E_GONE, "process %d has ended", (int)p->pid);
    struct dirent *d;
    while ((d = readdir(dir))) {
        pid_t tid = (pid_t)strtol(d->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        size_t at = thread_place(p, tid);
        if (at < p->threads.len && p->threads.data[at]->tid == tid)
            continue;
        struct err why = {0};
        int rc = add_thread(m, p, tid, &why);
        if (rc == 0)
            (*born)++;
        else if (rc != MTUI_E_GONE && result == 0)
            result = err_set(err, rc, "%s", why.text);
        if (rc == MTUI_E_LIMIT || rc == MTUI_E_PERM)
            break; /* the next one would fare the same */
    }
    (void)closedir(dir);
    return result;
}

int probe_process_scan(struct probe_machine *m, struct probe_process *p, size_t *born,
                       struct err *err)
{
    /* A thread that was born of one not yet watched is found by the next pass; when a pass finds
     * nothing, every living thread is watched and will report its own children. */
    size_t total = 0, found = 1;
    int rc = 0;
    for (int round = 0; round < SCAN_ROUNDS && found > 0 && rc == 0; round++) {
        found = 0;
        rc = scan_once(m, p, &found, err);
        total += found;
    }
    *born = total;
    return rc;
}

int probe_process_new(struct probe_machine *m, pid_t pid, struct probe_process **out,
                      struct err *err)
{
    struct probe_process *p = xcalloc(1, sizeof *p);
    size_t born = 0;
    p->pid = pid;
    int rc = probe_process_scan(m, p, &born, err);
    if (rc == 0 && p->threads.len == 0)
        rc = err_set(err, MTUI_E_GONE, "process %d has ended", (int)pid);
    if (rc < 0) {
        probe_process_free(m, p);
        return rc;
    }
    *out = p;
    return 0;
}

void probe_process_free(struct probe_machine *m, struct probe_process *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->threads.len; i++)
        thread_free(m, p, p->threads.data[i]);
    for (size_t i = 0; i < p->sites.len; i++)
        site_free(m, p, &p->sites.data[i]);
    vec_free(&p->threads);
    vec_free(&p->sites);
    free(p);
}

const struct probe_armed *probe_process_site(const struct probe_process *p, uint64_t number)
{
    size_t lo = 0, hi = p->sites.len;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (p->sites.data[mid].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->sites.len && p->sites.data[lo].number == number ? &p->sites.data[lo] : NULL;
}

const struct probe_armed *probe_thread_site(const struct probe_process *p,
                                            const struct probe_thread *t, uint64_t id)
{
    for (size_t lo = 0, hi = t->events.len; lo < hi;) {
        size_t mid = (lo + hi) / 2;
        if (t->events.data[mid].id == id)
            return probe_process_site(p, t->events.data[mid].number);
        if (t->events.data[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

size_t probe_process_descriptors(const struct probe_process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->threads.len; i++)
        n += 1 + p->threads.data[i]->events.len;
    for (size_t i = 0; i < p->sites.len; i++)
        n += p->sites.data[i].fd >= 0;
    return n;
}

/* ---- Arming ---- */

static bool fits_hardware(struct probe_machine *m, const struct probe_site *sites, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sites[i].addr == 0)
            return false;
    if (!m->hwbreak_known) {
        m->hwbreak_known = true;
        (void)hwbreak_self_test(&m->hwbreak_slots, NULL);
    }
    return n > 0 && n <= m->hwbreak_slots;
}

/* A hardware breakpoint costs the target least, but knows only threads that it was armed in, by
 * address, and there are few. So AUTO takes it where uprobes would need an event a thread too. */
static enum probe_mechanism choose(struct probe_machine *m, const struct probe_site *sites,
                                   size_t n)
{
    if (m->wanted != PROBE_AUTO)
        return m->wanted;
    return !m->output && fits_hardware(m, sites, n) ? PROBE_HWBREAK : PROBE_UPROBE;
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

/* Threads that end in between are marked; a refusal elsewhere is the caller's failure. */
static int arm_everywhere(struct probe_machine *m, struct probe_process *next, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < next->sites.len && rc == 0; i++) {
        struct probe_armed *a = &next->sites.data[i];
        if (next->cover == PROBE_COVER_PROCESS) {
            if (a->fd < 0)
                rc = process_arm(m, next->carrier, a, err);
            continue;
        }
        for (size_t k = 0; k < next->threads.len && rc == 0; k++) {
            struct probe_thread *t = next->threads.data[k];
            bool has = false;
            for (size_t j = 0; j < t->events.len && !has; j++)
                has = t->events.data[j].number == a->number;
            if (has || t->ended)
                continue;
            rc = thread_arm(m, next->mechanism, t, a, err);
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
                close_event(m, p, e.fd);
            else
                t->events.data[kept++] = e;
        }
        t->events.len = kept;
    }
}

/* The first thread, which ends last in most programs, else any. */
static pid_t living_thread(const struct probe_process *p)
{
    size_t leader = thread_place(p, p->pid);
    if (leader < p->threads.len && p->threads.data[leader]->tid == p->pid &&
        !p->threads.data[leader]->ended)
        return p->pid;
    for (size_t i = 0; i < p->threads.len; i++)
        if (!p->threads.data[i]->ended)
            return p->threads.data[i]->tid;
    return p->pid;
}

/* A thread has ended that no record has told of yet. False when that was known, or the thread is not. */
static bool mark_ended(struct probe_process *p, pid_t tid)
{
    size_t at = thread_place(p, tid);
    if (at == p->threads.len || p->threads.data[at]->tid != tid || p->threads.data[at]->ended)
        return false;
    p->threads.data[at]->ended = true;
    return true;
}

static int carry_by(struct probe_machine *m, struct probe_process *p, pid_t carrier,
                    struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < p->sites.len; i++) {
        struct probe_armed *a = &p->sites.data[i];
        int old = a->fd;
        /* The old event goes on reporting until the kernel has let go of it, which takes a while: under
         * its old number, which then means nothing any more, so that no hit counts twice. */
        a->number = ++m->next_number;
        int one = process_arm(m, carrier, a, rc == 0 ? err : NULL);
        if (one < 0) {
            rc = rc ? rc : one;
            a->fd = -1;
        }
        if (old >= 0)
            close_event(m, p, old);
    }
    p->carrier = carrier;
    return rc;
}

/* Gives the events to another thread; one that ends meanwhile is not the last to be tried. */
static int move_carrier(struct probe_machine *m, struct probe_process *p, struct err *err)
{
    for (;;) {
        pid_t carrier = living_thread(p);
        int rc = carry_by(m, p, carrier, err);
        if (rc != MTUI_E_GONE || !mark_ended(p, carrier))
            return rc;
    }
}

/* The next set of sites: those that stay (in their order, so that numbers ascend), then new ones.
 */
static void plan(struct probe_machine *m, const struct probe_process *p, bool keep,
                 const struct probe_site *sites, size_t n, struct probe_process *next)
{
    VEC(struct probe_armed) wanted = {0};
    for (size_t k = 0; k < n; k++)
        vec_push(&wanted, site_copy(m, &sites[k]));
    for (size_t i = 0; keep && i < p->sites.len; i++) {
        for (size_t k = 0; k < wanted.len; k++) {
            if (same_site(next->mechanism, &p->sites.data[i], &wanted.data[k])) {
                vec_push(&next->sites, p->sites.data[i]);
                site_free(m, p, &wanted.data[k]);
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
    if (!next.carrier)
        next.carrier = living_thread(p);
    next.sites.data = NULL;
    next.sites.len = next.sites.cap = 0;
    uint64_t first_new = m->next_number + 1;
    plan(m, p, keep, sites, n, &next);

    int rc = arm_everywhere(m, &next, err);
    if (rc < 0) {
        if (next.cover == PROBE_COVER_PROCESS)
            p->carrier = next.carrier;
        drop_thread_events(m, &next, first_new, false);
        for (size_t i = 0; i < next.sites.len; i++)
            if (next.sites.data[i].number >= first_new)
                site_free(m, &next, &next.sites.data[i]);
        vec_free(&next.sites);
        return rc;
    }
    /* Old ones go last, so that nothing is missed in between. */
    for (size_t i = 0; i < p->sites.len; i++)
        if (!probe_process_site(&next, p->sites.data[i].number))
            site_free(m, p, &p->sites.data[i]);
    vec_free(&p->sites);
    enum probe_mechanism before = p->mechanism;
    *p = next;
    p->mechanism = before; /* the kind of what is being closed */
    drop_thread_events(m, p, 0, true);
    p->mechanism = next.mechanism;
    return 0;
}

int probe_process_set_sites(struct probe_machine *m, struct probe_process *p,
                            const struct probe_site *sites, size_t n, struct err *err)
{
    enum probe_mechanism mechanism = choose(m, sites, n);
    int rc = set_sites(m, p, mechanism, sites, n, err);
    /* The thread that was to carry the events has just ended: another one does. */
    while (rc == MTUI_E_GONE && mark_ended(p, p->carrier)) {
        rc = p->sites.len > 0 ? move_carrier(m, p, err) : 0;
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

/* ---- Ends and execs ---- */

int probe_process_sweep(struct probe_machine *m, struct probe_process *p, struct err *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->threads.len; i++) {
        struct probe_thread *t = p->threads.data[i];
        if (t->ended) {
            p->leader_ended = p->leader_ended || (t->tid == p->pid && !t->replaced);
            /* Its number may be another thread's soon; one that was replaced has lost it already.
             */
            if (t->tid == p->carrier && !t->replaced)
                p->carrier = CARRIER_GONE;
            thread_free(m, p, t);
        } else {
            p->threads.data[kept++] = t;
        }
    }
    p->threads.len = kept;
    size_t at = thread_place(p, p->carrier);
    bool carried = at < kept && p->threads.data[at]->tid == p->carrier;
    if (!p->carrier || carried || kept == 0)
        return 0;
    if (p->cover == PROBE_COVER_PROCESS && p->sites.len > 0)
        return move_carrier(m, p, err);
    p->carrier = 0;
    return 0;
}

void probe_process_exec(struct probe_machine *m, struct probe_process *p, struct probe_thread *t,
                        pid_t tid)
{
    for (size_t i = 0; i < p->threads.len; i++)
        if (p->threads.data[i] != t)
            p->threads.data[i]->ended = p->threads.data[i]->replaced = true;
    /* The leader that ended had the number that this thread has now. */
    if (p->carrier)
        p->carrier = p->carrier == t->tid ? tid : CARRIER_GONE;
    t->tid = tid;
    p->leader_ended = p->exec_suspected = false;
    if (p->mechanism == PROBE_HWBREAK) /* addresses mean nothing in the new program */
        (void)probe_process_set_sites(m, p, NULL, 0, NULL);
}

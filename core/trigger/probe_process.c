/* A process under probes: its threads as they come and go. */
#include "core/trigger/probe_process.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/perf_event.h"
#include "core/trigger/probe_arm.h"

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

static void thread_free(struct probe_machine *m, const struct probe_process *p,
                        struct probe_thread *t)
{
    for (size_t i = 0; i < t->events.len; i++)
        probe_event_close(m, p, t->events.data[i].fd);
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

struct probe_thread *probe_process_thread(const struct probe_process *p, pid_t tid)
{
    size_t at = thread_place(p, tid);
    return at < p->threads.len && p->threads.data[at]->tid == tid ? p->threads.data[at] : NULL;
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

/* ---- Process ---- */

static int add_thread(struct probe_machine *m, struct probe_process *p, pid_t tid, struct err *err)
{
    struct probe_thread *t = NULL;
    int rc = thread_open(m, p, tid, &t, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; p->cover == PROBE_COVER_THREADS && i < p->sites.len; i++) {
        rc = probe_thread_arm(m, p->mechanism, t, &p->sites.data[i], err);
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
        if (probe_process_thread(p, tid))
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
        probe_armed_free(m, p, &p->sites.data[i]);
    probe_close_former(m, p);
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
    size_t n = p->former.len;
    for (size_t i = 0; i < p->threads.len; i++)
        n += 1 + p->threads.data[i]->events.len;
    for (size_t i = 0; i < p->sites.len; i++) {
        const struct probe_armed *a = &p->sites.data[i];
        n += (size_t)(a->fd >= 0 && (i == 0 || p->sites.data[i - 1].fd != a->fd)) + (a->hold >= 0);
    }
    return n;
}

size_t probe_process_slow_events(const struct probe_machine *m, const struct probe_process *p)
{
    size_t n = p->former.len;
    if (p->mechanism != PROBE_UPROBE)
        return 0;
    for (size_t i = 0; i < p->threads.len; i++)
        n += p->threads.data[i]->events.len;
    for (size_t i = 0; i < p->sites.len; i++) {
        const struct probe_armed *a = &p->sites.data[i];
        n += (size_t)(a->fd >= 0 && !probe_is_link(m, a->fd)) + (a->hold >= 0);
    }
    return n;
}

/* ---- Ends and execs ---- */

static bool lacks_carrier(const struct probe_process *p)
{
    return p->carrier && !probe_process_thread(p, p->carrier) && p->threads.len > 0 && p->sites.len > 0 &&
           p->cover == PROBE_COVER_PROCESS;
}

/* Breakpoints of links stay where they are when threads end; after an exec they are to be set anew. */
static bool can_wait(const struct probe_machine *m, const struct probe_process *p)
{
    for (size_t i = 0; i < p->sites.len; i++)
        if (!probe_is_link(m, p->sites.data[i].fd))
            return false;
    return !p->uncarried && !probe_process_thread(p, p->pid);
}

int probe_process_carry(struct probe_machine *m, struct probe_process *p, struct err *err)
{
    return lacks_carrier(p) ? probe_move_carrier(m, p, !can_wait(m, p), err) : 0;
}

int probe_process_sweep(struct probe_machine *m, struct probe_process *p, struct err *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->threads.len; i++) {
        struct probe_thread *t = p->threads.data[i];
        if (t->ended) {
            p->leader_ended = p->leader_ended || (t->tid == p->pid && !t->replaced);
            /* Its number may be another thread's soon; one that was replaced has lost it already.
             */
            if (t->tid == p->carrier) {
                p->carrier_ended_ns = t->ended_ns;
                p->carrier = t->replaced ? p->carrier : CARRIER_GONE;
            }
            thread_free(m, p, t);
        } else {
            p->threads.data[kept++] = t;
        }
    }
    p->threads.len = kept;
    if (p->carrier == CARRIER_GONE && (p->cover != PROBE_COVER_PROCESS || p->sites.len == 0))
        p->carrier = 0;
    return can_wait(m, p) ? 0 : probe_process_carry(m, p, err);
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
    t->ended = false; /* whoever found it gone has looked for its old number */
    p->leader_ended = p->exec_suspected = false;
    if (p->mechanism == PROBE_HWBREAK) /* addresses mean nothing in the new program */
        (void)probe_process_set_sites(m, p, NULL, 0, NULL);
}

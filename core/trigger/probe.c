#include "core/trigger/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/descriptors.h"
#include "core/trigger/perf_clock.h"
#include "core/machine/perf_event.h"
#include "core/trigger/probe_process.h"
#include "core/machine/proc_stat.h"
#include "core/machine/slow_close.h"
#include "core/trigger/uprobe.h"

#define RING_BYTES      ((size_t)4 << 20)
#define RESCAN_NS       500000000u
#define CLOSING_AT_ONCE 64

/* Something to hand to a callback, in the order of time. */
struct pending {
    uint64_t time_ns;
    uint64_t order;
    bool is_hit;
    struct probe_hit hit;
    struct probe_event event;
    char *name; /* of event; owned */
};

struct birth {
    pid_t pid, tid, parent;
};

struct probe {
    struct loop *loop;
    struct probe_options options;
    struct probe_callbacks callbacks;
    void *arg;
    struct probe_machine machine;
    struct perf_clock *clock;
    int fd_source, rescan_timer, again_timer, closing_timer;
    bool draining;
    struct rlimit nofile; /* as it was */
    VEC(struct probe_process *) processes;
    VEC(struct pending) pending;
    VEC(struct birth) births;
    uint64_t order, hits, lost;
    uint32_t late_threads;
    unsigned char scratch[PERF_RING_SCRATCH];
};

static void on_ready(void *arg, int fd, short revents);
static void on_rescan(void *arg);

/* ---- Life ---- */

int probe_new(struct loop *loop, const struct probe_options *options,
              const struct probe_callbacks *callbacks, void *arg, struct probe **out,
              struct err *err)
{
    struct probe *p = xcalloc(1, sizeof *p);
    p->loop = loop;
    p->callbacks = *callbacks;
    p->arg = arg;
    if (options)
        p->options = *options;
    struct probe_machine *m = &p->machine;
    m->wanted = p->options.mechanism;
    m->ring_bytes = p->options.ring_bytes ? p->options.ring_bytes : RING_BYTES;
    (void)getrlimit(RLIMIT_NOFILE, &p->nofile);
    m->epoll = epoll_create1(EPOLL_CLOEXEC);
    int rc = m->epoll < 0 ? err_errno(err, errno, "epoll") : perf_clock_new(&p->clock, err);
    if (rc == 0 && uprobe_type(NULL, &m->uprobe_type, err) < 0 && m->wanted == PROBE_UPROBE)
        rc = MTUI_E_NOTSUP;
    if (rc < 0) {
        probe_free(p);
        return rc;
    }
    /* Without BPF there are other ways; why it is not there concerns the capability table only. */
    if (!p->options.no_bpf && m->wanted != PROBE_HWBREAK && m->uprobe_type)
        (void)hit_output_new(m->ring_bytes, &m->output, NULL);
    for (size_t i = 0; m->output && i < hit_output_count(m->output); i++) {
        int fd = hit_output_fd(m->output, i);
        struct epoll_event e = {.events = EPOLLIN, .data = {.fd = fd}};
        (void)epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &e);
    }
    p->fd_source = loop_add_fd(loop, m->epoll, POLLIN, on_ready, p);
    *out = p;
    return 0;
}

static void close_slowly(struct probe *p)
{
    slow_close(p->machine.closing.data, p->machine.closing.len);
    p->machine.closing.len = 0;
}

static void on_closing(void *arg)
{
    struct probe *p = arg;
    p->closing_timer = 0;
    close_slowly(p);
}

/* In batches: each costs a fork. */
static void plan_closing(struct probe *p)
{
    if (p->machine.closing.len >= CLOSING_AT_ONCE)
        close_slowly(p);
    else if (p->machine.closing.len > 0 && !p->closing_timer)
        p->closing_timer = loop_add_timer(p->loop, loop_now_ns(p->loop) + 20000000u, on_closing, p);
}

void probe_free(struct probe *p)
{
    if (!p)
        return;
    loop_remove(p->loop, p->fd_source);
    loop_remove(p->loop, p->rescan_timer);
    loop_remove(p->loop, p->again_timer);
    loop_remove(p->loop, p->closing_timer);
    for (size_t i = 0; i < p->processes.len; i++)
        probe_process_free(&p->machine, p->processes.data[i]);
    vec_free(&p->processes);
    close_slowly(p);
    vec_free(&p->machine.closing);
    vec_free(&p->machine.files);
    for (size_t i = 0; i < p->pending.len; i++)
        free(p->pending.data[i].name);
    vec_free(&p->pending);
    vec_free(&p->births);
    hit_output_free(p->machine.output);
    perf_clock_free(p->clock);
    if (p->machine.epoll >= 0)
        (void)close(p->machine.epoll);
    (void)setrlimit(RLIMIT_NOFILE, &p->nofile);
    free(p);
}

static void trouble(struct probe *p, const struct err *err)
{
    if (p->callbacks.trouble)
        p->callbacks.trouble(p->arg, err->text);
}

static struct probe_process *find_process(const struct probe *p, pid_t pid)
{
    for (size_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i]->pid == pid && !p->processes.data[i]->ended)
            return p->processes.data[i];
    return NULL;
}

/* ---- Reading ---- */

static void queue_event(struct probe *p, enum probe_change change, uint64_t time_ns, pid_t pid,
                        pid_t tid, char *name)
{
    struct pending item = {.time_ns = time_ns,
                           .order = p->order++,
                           .event = {.change = change, .time_ns = time_ns, .pid = pid, .tid = tid},
                           .name = name};
    vec_push(&p->pending, item);
}

/* Condition codes 0–15 as in Jcc (Intel SDM volume 1, appendix B). */
static bool condition_holds(int8_t code, uint64_t flags)
{
    bool cf = flags & 1, pf = flags & 4, zf = flags & 0x40, sf = flags & 0x80, of = flags & 0x800;
    bool holds = false;
    if (code < 0)
        return true;
    switch (code >> 1) {
    case 0:
        holds = of;
        break;
    case 1:
        holds = cf;
        break;
    case 2:
        holds = zf;
        break;
    case 3:
        holds = cf || zf;
        break;
    case 4:
        holds = sf;
        break;
    case 5:
        holds = pf;
        break;
    case 6:
        holds = sf != of;
        break;
    default:
        holds = zf || sf != of;
        break;
    }
    return holds != (bool)(code & 1);
}

static void queue_hit(struct probe *p, const struct probe_armed *a, const struct perf_hit *h)
{
    if (!a || !condition_holds(a->site.condition, h->regs[PERF_HIT_FLAGS]))
        return;
    struct pending item = {.time_ns = h->time_ns, .order = p->order++, .is_hit = true};
    item.hit = (struct probe_hit){.time_ns = h->time_ns,
                                  .pid = (pid_t)h->pid,
                                  .tid = (pid_t)h->tid,
                                  .ip = h->ip,
                                  .sp = h->regs[PERF_HIT_SP],
                                  .arg = {h->regs[PERF_HIT_DI], h->regs[PERF_HIT_SI],
                                          h->regs[PERF_HIT_DX], h->regs[PERF_HIT_CX],
                                          h->regs[PERF_HIT_R8], h->regs[PERF_HIT_R9]},
                                  .top = h->top,
                                  .result = h->regs[PERF_HIT_AX],
                                  .trigger = a->site.trigger,
                                  .role = a->site.role};
    vec_push(&p->pending, item);
}

static void read_lost(struct probe *p, const struct perf_event_header *h)
{
    uint64_t lost = 0;
    if (h->size >= sizeof *h + 16) {
        memcpy(&lost, (const unsigned char *)(h + 1) + 8, sizeof lost);
        p->lost += lost;
    }
}

/* A string at `offset` of the record, from malloc; bounded by the record. */
static char *record_string(const struct perf_event_header *h, size_t offset)
{
    if (h->size <= offset)
        return xstrdup("");
    const char *s = (const char *)h + offset;
    return xstrndup(s, strnlen(s, h->size - offset));
}

/* FORK and EXIT: {pid, ppid, tid, ptid, time}. */
static void read_task(struct probe *p, struct probe_thread *t, const struct perf_event_header *h)
{
    uint32_t v[4];
    uint64_t time_ns;
    if (h->size < sizeof *h + 24)
        return;
    memcpy(v, h + 1, sizeof v);
    memcpy(&time_ns, (const unsigned char *)(h + 1) + 16, sizeof time_ns);
    if (h->type == PERF_RECORD_FORK) {
        struct birth b = {.pid = (pid_t)v[0], .tid = (pid_t)v[2], .parent = (pid_t)v[1]};
        vec_push(&p->births, b);
        bool is_thread = b.pid == b.parent;
        queue_event(p, is_thread ? PROBE_THREAD_BORN : PROBE_CHILD, time_ns, b.pid, b.tid, NULL);
        p->pending.data[p->pending.len - 1].event.parent = is_thread ? 0 : b.parent;
    } else if ((pid_t)v[2] == t->tid) {
        t->ended = true;
        queue_event(p, PROBE_THREAD_ENDED, time_ns, (pid_t)v[0], (pid_t)v[2], NULL);
    }
}

static void read_record(struct probe *p, struct probe_process *proc, struct probe_thread *t,
                        const struct perf_event_header *h)
{
    struct perf_record_id id = {0};
    struct perf_hit hit;
    switch (h->type) {
    case PERF_RECORD_SAMPLE:
        if (perf_hit_parse(h, false, &hit))
            queue_hit(p, probe_thread_site(proc, t, hit.id), &hit);
        break;
    case PERF_RECORD_LOST: { /* a birth may be among what was lost */
        struct birth any = {.pid = proc->pid, .parent = proc->pid};
        vec_push(&p->births, any);
        read_lost(p, h);
        break;
    }
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        read_task(p, t, h);
        break;
    case PERF_RECORD_COMM: /* {pid, tid, comm[]} */
        if ((h->misc & PERF_RECORD_MISC_COMM_EXEC) && perf_record_id_parse(h, &id)) {
            probe_process_exec(&p->machine, proc, t, (pid_t)id.tid);
            queue_event(p, PROBE_EXEC, id.time_ns, (pid_t)id.pid, (pid_t)id.tid,
                        record_string(h, sizeof *h + 8));
        }
        break;
    case PERF_RECORD_MMAP2: /* {pid, tid, addr, len, pgoff, device and inode 24, prot, flags, name}
                             */
        if (perf_record_id_parse(h, &id))
            queue_event(p, PROBE_MAPPED, id.time_ns, (pid_t)id.pid, (pid_t)id.tid,
                        record_string(h, sizeof *h + 64));
        break;
    default:
        break;
    }
}

static void read_rings(struct probe *p)
{
    const struct perf_event_header *h;
    struct perf_hit hit;
    uint64_t lost;
    for (size_t i = 0; i < p->processes.len; i++) {
        struct probe_process *proc = p->processes.data[i];
        for (size_t k = 0; k < proc->threads.len; k++)
            while ((h = perf_ring_next(&proc->threads.data[k]->ring, p->scratch)))
                read_record(p, proc, proc->threads.data[k], h);
    }
    struct hit_output *o = p->machine.output;
    for (size_t i = 0; o && i < hit_output_count(o); i++) {
        while ((h = perf_ring_next(hit_output_ring(o, i), p->scratch))) {
            if (h->type == PERF_RECORD_LOST && !hit_output_lost(o, &lost))
                read_lost(p, h);
            if (h->type != PERF_RECORD_SAMPLE || !perf_hit_parse(h, true, &hit))
                continue;
            /* Also other processes' hits come here, for a moment after a fork. */
            struct probe_process *proc = find_process(p, (pid_t)hit.pid);
            queue_hit(p, proc ? probe_process_site(proc, hit.id) : NULL, &hit);
        }
    }
}

static struct probe_thread *find_thread_of_fd(const struct probe *p, int fd)
{
    for (size_t i = 0; i < p->processes.len; i++)
        for (size_t k = 0; k < p->processes.data[i]->threads.len; k++)
            if (p->processes.data[i]->threads.data[k]->fd == fd)
                return p->processes.data[i]->threads.data[k];
    return NULL;
}

/* Threads whose EXIT record was lost hang up. Called before the rings are read: what such a thread
 * left in its ring is all there by then. */
static void notice_hangups(struct probe *p)
{
    struct epoll_event events[64];
    int n = epoll_wait(p->machine.epoll, events, 64, 0);
    for (int e = 0; e < n; e++) {
        if (!(events[e].events & (EPOLLHUP | EPOLLERR)))
            continue;
        struct probe_thread *t = find_thread_of_fd(p, events[e].data.fd);
        if (t)
            t->ended = true;
        else /* the ring of a CPU that went offline */
            (void)epoll_ctl(p->machine.epoll, EPOLL_CTL_DEL, events[e].data.fd, NULL);
    }
}

/* ---- Following threads and children ---- */

static void scan(struct probe *p, struct probe_process *proc)
{
    struct err err = {0};
    size_t born = 0;
    int rc =
        descriptors_make_room(8 + (proc->cover == PROBE_COVER_THREADS ? proc->sites.len : 0), &err);
    if (rc == 0)
        rc = probe_process_scan(&p->machine, proc, &born, &err);
    p->late_threads += (uint32_t)born;
    if (rc < 0 && rc != MTUI_E_GONE)
        trouble(p, &err);
}

/* The child has the parent's mappings, so the parent's sites are its own. */
static void follow_child(struct probe *p, const struct birth *b)
{
    struct probe_process *parent = find_process(p, b->parent), *child = NULL;
    struct err err = {0};
    if (!parent || find_process(p, b->pid))
        return;
    VEC(struct probe_site) sites = {0};
    for (size_t i = 0; i < parent->sites.len; i++)
        vec_push(&sites, parent->sites.data[i].site);
    int rc = probe_process_new(&p->machine, b->pid, &child, &err);
    if (rc == 0) {
        vec_push(&p->processes, child);
        rc = probe_process_set_sites(&p->machine, child, sites.data, sites.len, &err);
    }
    vec_free(&sites);
    if (rc < 0 && rc != MTUI_E_GONE)
        trouble(p, &err);
}

/* A thread that exec'ed before it was watched has left no record: the process has but one thread,
 * with the number of a leader that is gone. */
static void notice_missed_exec(struct probe *p, struct probe_process *proc)
{
    if (!proc->exec_suspected || proc->threads.len != 1)
        return;
    proc->exec_suspected = proc->leader_ended = false;
    if (proc->mechanism == PROBE_HWBREAK)
        (void)probe_process_set_sites(&p->machine, proc, NULL, 0, NULL);
    struct proc_stat st = {0};
    (void)proc_stat_read("/proc", proc->pid, 0, &st, NULL);
    queue_event(p, PROBE_EXEC, probe_now_ns(p), proc->pid, proc->pid, xstrdup(st.comm));
}

static void handle_births(struct probe *p)
{
    for (size_t i = 0; i < p->births.len; i++) {
        struct birth b = p->births.data[i];
        struct probe_process *proc = find_process(p, b.pid);
        if (b.pid != b.parent && p->options.children)
            follow_child(p, &b);
        else if (proc)
            scan(p, proc); /* finds all that were born until now: the rest is quick */
    }
    p->births.len = 0;
}

static void handle_ends(struct probe *p)
{
    for (size_t i = 0; i < p->processes.len; i++) {
        struct probe_process *proc = p->processes.data[i];
        struct err err = {0};
        if (proc->ended)
            continue;
        if (probe_process_sweep(&p->machine, proc, &err) < 0)
            trouble(p, &err);
        if (proc->threads.len == 0) {
            scan(p, proc);
            if (probe_process_sweep(&p->machine, proc, &err) < 0)
                trouble(p, &err);
        }
        notice_missed_exec(p, proc);
        if (proc->threads.len == 0) {
            proc->ended = true;
            queue_event(p, PROBE_PROCESS_ENDED, probe_now_ns(p), proc->pid, proc->pid, NULL);
        }
    }
}

static void forget_ended(struct probe *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->processes.len; i++) {
        struct probe_process *proc = p->processes.data[i];
        if (proc->ended)
            probe_process_free(&p->machine, proc);
        else
            p->processes.data[kept++] = proc;
    }
    p->processes.len = kept;
}

/* ---- Handing over ---- */

static int by_time(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static void deliver_one(struct probe *p, struct pending *item, uint64_t now_ns)
{
    if (item->is_hit) {
        p->hits++;
        item->hit.noticed_ns = now_ns > item->time_ns ? now_ns : item->time_ns;
        p->callbacks.hit(p->arg, &item->hit);
    } else if (p->callbacks.event) {
        item->event.name = item->name;
        p->callbacks.event(p->arg, &item->event);
    }
    free(item->name);
}

static void on_again(void *arg)
{
    struct probe *p = arg;
    p->again_timer = 0;
    probe_drain(p);
}

/* Rings are read one after the other, so what is newer than the start of the round may miss an
 * older neighbour: it waits for the next round, and the order of time is exact. */
static void deliver(struct probe *p, uint64_t until_ns)
{
    VEC(struct pending) items = {p->pending.data, p->pending.len, p->pending.cap};
    p->pending.data = NULL;
    p->pending.len = p->pending.cap = 0;
    if (items.len > 1)
        qsort(items.data, items.len, sizeof *items.data, by_time);
    size_t i = 0;
    for (; i < items.len && (until_ns == 0 || items.data[i].time_ns <= until_ns); i++)
        deliver_one(p, &items.data[i], until_ns);
    for (; i < items.len; i++)
        vec_push(&p->pending, items.data[i]);
    vec_free(&items);
    if (p->pending.len > 0 && !p->again_timer)
        p->again_timer = loop_add_timer(p->loop, loop_now_ns(p->loop), on_again, p);
}

void probe_drain(struct probe *p)
{
    if (p->draining)
        return;
    p->draining = true;
    uint64_t start_ns = probe_now_ns(p);
    notice_hangups(p);
    read_rings(p);
    handle_births(p);
    handle_ends(p);
    deliver(p, start_ns);
    forget_ended(p);
    plan_closing(p);
    p->draining = false;
}

static void on_ready(void *arg, int fd, short revents)
{
    (void)fd;
    (void)revents;
    probe_drain(arg);
}

static void on_rescan(void *arg)
{
    struct probe *p = arg;
    for (size_t i = 0; i < p->processes.len; i++)
        scan(p, p->processes.data[i]);
    probe_drain(p);
    p->rescan_timer = loop_add_timer(p->loop, loop_now_ns(p->loop) + RESCAN_NS, on_rescan, p);
}

/* ---- Asking ---- */

int probe_watch(struct probe *p, pid_t pid, struct err *err)
{
    struct probe_process *proc = NULL;
    if (find_process(p, pid))
        return 0;
    int rc = descriptors_make_room(64, err);
    if (rc == 0)
        rc = probe_process_new(&p->machine, pid, &proc, err);
    if (rc < 0)
        return rc;
    vec_push(&p->processes, proc);
    if (!p->rescan_timer)
        p->rescan_timer = loop_add_timer(p->loop, loop_now_ns(p->loop) + RESCAN_NS, on_rescan, p);
    return 0;
}

int probe_set_sites(struct probe *p, pid_t pid, const struct probe_site *sites, size_t n,
                    struct err *err)
{
    struct probe_process *proc = find_process(p, pid);
    if (!proc)
        return err_set(err, MTUI_E_GONE, "process %d has ended", (int)pid);
    size_t needed = n * (p->machine.output ? 1 : proc->threads.len);
    int rc = descriptors_make_room(needed, err);
    if (rc == 0)
        rc = probe_process_set_sites(&p->machine, proc, sites, n, err);
    if (!p->draining)
        plan_closing(p);
    return rc;
}

int probe_can_break(struct probe *p, const struct probe_site *refused, size_t n, struct err *err)
{
    return probe_machine_can_break(&p->machine, refused, n, err);
}

unsigned probe_breakpoints(struct probe *p)
{
    return probe_machine_breakpoints(&p->machine);
}

uint64_t probe_now_ns(const struct probe *p)
{
    return perf_clock_now_ns(p->clock);
}

void probe_stats(const struct probe *p, struct probe_stats *out)
{
    struct probe_stats s = {.hits = p->hits, .lost = p->lost, .late_threads = p->late_threads};
    struct hit_output *o = p->machine.output;
    uint64_t lost = 0;
    if (o) {
        if (hit_output_lost(o, &lost))
            s.lost += lost;
        s.ring_bytes = hit_output_bytes(o);
        s.events = (uint32_t)hit_output_count(o);
        s.covers_births = true;
    }
    for (size_t i = 0; i < p->processes.len; i++) {
        const struct probe_process *proc = p->processes.data[i];
        s.threads += (uint32_t)proc->threads.len;
        s.events += (uint32_t)probe_process_descriptors(proc);
        for (size_t k = 0; k < proc->threads.len; k++)
            s.ring_bytes += proc->threads.data[k]->ring.size;
        if (proc->sites.len > 0) {
            s.mechanism = proc->mechanism;
            s.covers_births = proc->cover == PROBE_COVER_PROCESS;
        }
    }
    *out = s;
}

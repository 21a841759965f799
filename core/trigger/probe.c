#include "core/trigger/probe_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/descriptors.h"
#include "core/machine/slow_close.h"
#include "core/trigger/uprobe.h"

#define RING_BYTES      ((size_t)4 << 20)
#define RESCAN_NS       500000000u
#define CLOSING_AT_ONCE 64

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
    m->no_links = p->options.no_links;
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
    vec_free(&p->machine.links);
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

void probe_trouble(struct probe *p, const struct err *err)
{
    if (p->callbacks.trouble)
        p->callbacks.trouble(p->arg, err->text);
}

struct probe_process *probe_find_process(const struct probe *p, pid_t pid)
{
    for (size_t i = 0; i < p->processes.len; i++)
        if (p->processes.data[i]->pid == pid && !p->processes.data[i]->ended)
            return p->processes.data[i];
    return NULL;
}

void probe_queue_event(struct probe *p, enum probe_change change, uint64_t time_ns, pid_t pid,
                        pid_t tid, char *name)
{
    struct pending item = {.time_ns = time_ns,
                           .order = p->order++,
                           .event = {.change = change, .time_ns = time_ns, .pid = pid, .tid = tid},
                           .name = name};
    vec_push(&p->pending, item);
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

void probe_drain(struct probe *p)
{
    if (p->draining)
        return;
    p->draining = true;
    uint64_t start_ns = probe_now_ns(p);
    probe_notice_hangups(p);
    probe_read_rings(p);
    probe_handle_births(p);
    probe_handle_ends(p);
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
    for (size_t i = 0; i < p->processes.len; i++) {
        probe_scan(p, p->processes.data[i]);
        probe_carry(p, p->processes.data[i]);
    }
    probe_drain(p);
    p->rescan_timer = loop_add_timer(p->loop, loop_now_ns(p->loop) + RESCAN_NS, on_rescan, p);
}

/* ---- Asking ---- */

int probe_watch(struct probe *p, pid_t pid, struct err *err)
{
    struct probe_process *proc = NULL;
    if (probe_find_process(p, pid))
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
    struct probe_process *proc = probe_find_process(p, pid);
    if (!proc)
        return err_set(err, MTUI_E_GONE, "process %d has ended", (int)pid);
    size_t needed = n * (p->machine.output ? 2 : proc->threads.len);
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
        s.slow_events += (uint32_t)probe_process_slow_events(&p->machine, proc);
        if (proc->sites.len > 0) {
            s.mechanism = proc->mechanism;
            s.covers_births = proc->cover == PROBE_COVER_PROCESS;
        }
    }
    *out = s;
}

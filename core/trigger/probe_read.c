/* Reading the rings of the threads: hits, births, ends, execs and mappings. */
#include "core/trigger/probe_priv.h"

#include <string.h>
#include <sys/epoll.h>

#include "core/base/alloc.h"
#include "core/machine/perf_event.h"

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
                                  .member = a->site.member,
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
        probe_queue_event(p, is_thread ? PROBE_THREAD_BORN : PROBE_CHILD, time_ns, b.pid, b.tid, NULL);
        p->pending.data[p->pending.len - 1].event.parent = is_thread ? 0 : b.parent;
    } else if ((pid_t)v[2] == t->tid) {
        t->ended = true;
        t->ended_ns = time_ns;
        probe_queue_event(p, PROBE_THREAD_ENDED, time_ns, (pid_t)v[0], (pid_t)v[2], NULL);
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
            probe_queue_event(p, PROBE_EXEC, id.time_ns, (pid_t)id.pid, (pid_t)id.tid,
                        record_string(h, sizeof *h + 8));
        }
        break;
    case PERF_RECORD_MMAP2: /* {pid, tid, addr, len, pgoff, device and inode 24, prot, flags, name}
                             */
        if (perf_record_id_parse(h, &id))
            probe_queue_event(p, PROBE_MAPPED, id.time_ns, (pid_t)id.pid, (pid_t)id.tid,
                        record_string(h, sizeof *h + 64));
        break;
    default:
        break;
    }
}

void probe_read_rings(struct probe *p)
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
            struct probe_process *proc = probe_find_process(p, (pid_t)hit.pid);
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

void probe_notice_hangups(struct probe *p)
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

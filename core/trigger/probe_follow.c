/* Keeping up with threads, children and processes that come and go. */
#include "core/trigger/probe_priv.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/machine/descriptors.h"
#include "core/machine/proc_stat.h"
#include "core/trigger/probe_arm.h"

#define CALM_NS 100000000u /* threads that end together have ended by then */

/* What could not be armed since it has ended is no trouble: its end is told. */
static void tell(struct probe *p, int rc, const struct err *err)
{
    if (rc < 0 && rc != MTUI_E_GONE)
        probe_trouble(p, err);
}

void probe_scan(struct probe *p, struct probe_process *proc)
{
    struct err err = {0};
    size_t born = 0;
    int rc =
        descriptors_make_room(8 + (proc->cover == PROBE_COVER_THREADS ? proc->sites.len : 0), &err);
    if (rc == 0)
        rc = probe_process_scan(&p->machine, proc, &born, &err);
    p->late_threads += (uint32_t)born;
    tell(p, rc, &err);
}

/* The child has the parent's mappings, so the parent's sites are its own. */
static void follow_child(struct probe *p, const struct birth *b)
{
    struct probe_process *parent = probe_find_process(p, b->parent), *child = NULL;
    struct err err = {0};
    if (!parent || probe_find_process(p, b->pid))
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
    tell(p, rc, &err);
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
    probe_queue_event(p, PROBE_EXEC, probe_now_ns(p), proc->pid, proc->pid, xstrdup(st.comm));
}

void probe_handle_births(struct probe *p)
{
    for (size_t i = 0; i < p->births.len; i++) {
        struct birth b = p->births.data[i];
        struct probe_process *proc = probe_find_process(p, b.pid);
        if (b.pid != b.parent && p->options.children)
            follow_child(p, &b);
        else if (proc)
            probe_scan(p, proc); /* finds all that were born until now: the rest is quick */
    }
    p->births.len = 0;
}

/* since_ns: 0: not known. */
static void tell_uncarried(struct probe *p, struct probe_process *proc, uint64_t since_ns)
{
    char text[FMT_MAX] = "some milliseconds";
    struct err err;
    uint64_t now = probe_now_ns(p);
    if (!proc->was_uncarried || proc->uncarried || proc->uncarried_told)
        return;
    proc->uncarried_told = true;
    if (since_ns && now > since_ns)
        (void)fmt_duration(text, now - since_ns);
    if (proc->sites.len > 0 && probe_is_link(&p->machine, proc->sites.data[0].fd))
        err_set(&err, MTUI_E_GONE,
                "threads of process %d that its probes hung on have ended one right after the other: calls may not have "
                "been seen until they hung on another one, for %s",
                (int)proc->pid, text);
    else
        err_set(&err, MTUI_E_GONE,
                "the thread of process %d that its probes hung on has ended: calls were not seen until they hung on "
                "another one, for %s; that happens with each such thread (not with Linux 6.12 or newer)",
                (int)proc->pid, text);
    probe_trouble(p, &err);
}

void probe_carry(struct probe *p, struct probe_process *proc)
{
    struct err err = {0};
    uint64_t now = probe_now_ns(p);
    if (now >= proc->carrier_ended_ns + CALM_NS) {
        tell(p, probe_process_carry(&p->machine, proc, &err), &err);
        tell_uncarried(p, proc, now);
    }
    for (size_t i = 0; i < proc->threads.len; i++)
        proc->threads.data[i]->is_old = true;
}

void probe_handle_ends(struct probe *p)
{
    for (size_t i = 0; i < p->processes.len; i++) {
        struct probe_process *proc = p->processes.data[i];
        struct err err = {0};
        if (proc->ended)
            continue;
        tell(p, probe_process_sweep(&p->machine, proc, &err), &err);
        tell_uncarried(p, proc, proc->carrier_ended_ns);
        if (proc->threads.len == 0) {
            probe_scan(p, proc);
            tell(p, probe_process_sweep(&p->machine, proc, &err), &err);
        }
        notice_missed_exec(p, proc);
        if (proc->threads.len == 0) {
            proc->ended = true;
            probe_queue_event(p, PROBE_PROCESS_ENDED, probe_now_ns(p), proc->pid, proc->pid, NULL);
        }
    }
}

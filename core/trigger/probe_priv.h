/* What the files of probe.h share: probe.c keeps it and hands over in the order of time, probe_read.c reads the rings,
 * probe_follow.c keeps up with threads and processes that come and go. */
#ifndef MTUI_CORE_PROBE_PRIV_H
#define MTUI_CORE_PROBE_PRIV_H

#include <sys/resource.h>

#include "core/base/vec.h"
#include "core/trigger/perf_clock.h"
#include "core/trigger/probe.h"
#include "core/trigger/probe_process.h"

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

/* Tells the owner of what went wrong without ending anything. */
void probe_trouble(struct probe *p, const struct err *err);
/* One that runs; NULL: none of that number. */
struct probe_process *probe_find_process(const struct probe *p, pid_t pid);
/* To be handed over; the name becomes its own. */
void probe_queue_event(struct probe *p, enum probe_change change, uint64_t time_ns, pid_t pid, pid_t tid,
                       char *name);

/* Threads whose EXIT record was lost hang up. Called before the rings are read: what such a thread
 * left in its ring is all there by then. */
void probe_notice_hangups(struct probe *p);
/* Takes what is in the rings: hits and events into pending, forks into births, ends into the threads. */
void probe_read_rings(struct probe *p);

/* Takes in the threads that a process has now. */
void probe_scan(struct probe *p, struct probe_process *proc);
void probe_handle_births(struct probe *p);
/* Threads that have ended go, and processes without any are marked; an exec that left no record is told. */
void probe_handle_ends(struct probe *p);
/* Some time after its carrier's end, another thread of the process takes over. */
void probe_carry(struct probe *p, struct probe_process *proc);

#endif

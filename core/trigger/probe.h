/* Probes in running processes: addresses at which every thread of a process reports a hit.
 *
 * Mechanisms: a hardware execution breakpoint where the self-test passed and a slot is free, else a
 * uprobe of the kernel's uprobe PMU (perf_event_open(2); Documentation/ABI/testing/
 * sysfs-bus-event_source-devices-*: type from sysfs, config1 = path, config2 = file offset). One
 * event a thread and site, never inherited: an inherited uprobe event makes the target's clone
 * fail. Each thread has one small ring, owned by a dummy event that also reports what the thread
 * forks, execs, maps and when it ends; so a new thread is covered as soon as the record of its
 * birth is read (within about a millisecond; its first instants are not), and /proc/PID/task is
 * rescanned for what slipped through. Where BPF is allowed, uprobes cover the process instead, new threads too
 * (hit_output.h): with one link for all sites of a trigger in a file, or, before Linux 6.12, an event a site.
 *
 * Everything is closed with its descriptors: when this process ends, in whatever way, the kernel
 * takes every probe out and the target runs on. The target is never stopped.
 *
 * All functions and callbacks run in the loop's thread. */
#ifndef MTUI_CORE_PROBE_H
#define MTUI_CORE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/loop.h"

struct probe;

enum probe_role {
    PROBE_POINT,  /* a line or an address: a hit stands for itself */
    PROBE_ENTRY,  /* first instruction of a function */
    PROBE_RETURN, /* a return or tail jump of it */
    PROBE_JUMP,   /* an indirect jump in it: a tail jump when the stack pointer is the entry's */
    PROBE_CALL    /* a function of one instruction: entry and return at once */
};

enum probe_mechanism { PROBE_AUTO, PROBE_UPROBE, PROBE_HWBREAK };

/* Where to probe. Strings are copied by probe_set_sites. */
struct probe_site {
    const char *path; /* the mapped file, as this process can open it */
    uint64_t offset;  /* file offset of the instruction */
    uint64_t addr;    /* address in the target; 0: not mapped yet (uprobes only) */
    uint32_t trigger, member; /* the caller's numbers; they come back in each hit */
    enum probe_role role;
    int8_t condition;  /* PROBE_RETURN at a conditional tail jump: its condition code (0–15, as in
                        * the opcodes 0x70–0x7f; a hit counts only when it holds); else -1 */
    const char *label; /* for messages: "libc.so.6!malloc" */
    const char *refused; /* the instruction, when no uprobe can sit on it (uprobe_fits) and only a
                          * hardware breakpoint can; else NULL */
    bool only_kept;      /* if it is armed, it stays; it is not armed anew, since the path may mean another file by
                          * now. Found by its label and offset */
    bool only_to_stop;   /* a uprobe can, but not one that stops the thread (uprobe_leaves) */
};

#define PROBE_ARGS 6

struct probe_hit {
    uint64_t time_ns;    /* perf's clock, at the probed instruction */
    uint64_t noticed_ns; /* perf's clock, when this process read it */
    pid_t pid, tid;
    uint64_t ip;         /* the probed address */
    uint64_t sp;         /* stack pointer before the instruction: at a function's entry and at its
                          * return it is the same, the address of the return address */
    uint64_t arg[PROBE_ARGS]; /* rdi, rsi, rdx, rcx, r8, r9: integer arguments at an entry */
    uint64_t top;             /* the word at sp: the return address at an entry; 0: not known */
    uint64_t result;          /* rax: the value at a return */
    uint32_t trigger, member;
    enum probe_role role;
};

enum probe_change {
    PROBE_THREAD_BORN, /* armed already when reported */
    PROBE_THREAD_ENDED,
    PROBE_CHILD,  /* a process forked; armed when children are followed */
    PROBE_EXEC,   /* new program: sites must be set again (those in files that stay mapped
                   * keep working meanwhile) */
    PROBE_MAPPED, /* a new executable mapping: pending triggers may resolve now */
    PROBE_PROCESS_ENDED
};

struct probe_event {
    enum probe_change change;
    uint64_t time_ns;
    pid_t pid, tid;
    pid_t parent;     /* PROBE_CHILD: the process that forked; else 0 */
    const char *name; /* PROBE_EXEC: new comm; PROBE_MAPPED: the file; raw bytes */
};

struct probe_callbacks {
    /* Sorted by time within one round of reading. */
    void (*hit)(void *arg, const struct probe_hit *hit);
    void (*event)(void *arg, const struct probe_event *event); /* NULL allowed */
    /* One sentence about something that now does not work (a thread that could not be armed). */
    void (*trouble)(void *arg, const char *sentence); /* NULL allowed */
};

struct probe_options {
    enum probe_mechanism mechanism;
    bool children;     /* follow processes that the target forks */
    size_t ring_bytes; /* budget for all rings that carry hits; 0: 4 MiB */
    bool no_bpf;       /* as if BPF were not allowed */
    bool no_links;     /* as if Linux were older than 6.12 (hit_output_link) */
};

struct probe_stats {
    uint64_t hits;
    uint64_t lost;         /* records the kernel dropped because a ring was full */
    uint32_t threads;      /* armed now */
    uint32_t events;       /* descriptors held */
    uint32_t slow_events;  /* of these, uprobes that the kernel takes out one by one (slow_close_text) */
    uint32_t late_threads; /* armed after their birth was noticed */
    uint64_t ring_bytes;
    enum probe_mechanism mechanism; /* of the sites now armed; AUTO when there are none */
    bool covers_births;             /* new threads are covered from their first instruction */
};

/* Options are copied (NULL: all zero). MTUI_E_NOTSUP, MTUI_E_PERM: no mechanism works here. */
int probe_new(struct loop *loop, const struct probe_options *options,
              const struct probe_callbacks *callbacks, void *arg, struct probe **out,
              struct err *err);

/* Takes every probe out and frees. NULL allowed. Must not be called from a callback. */
void probe_free(struct probe *p);

/* Watches a process and all its threads (also one that has not exec'ed yet). Idempotent.
 * MTUI_E_GONE: it has ended. MTUI_E_PERM: with what would allow it. MTUI_E_LIMIT: descriptors. */
int probe_watch(struct probe *p, pid_t pid, struct err *err);

/* Makes exactly these sites armed in every thread of pid (watched before): those already armed stay
 * without a gap, others are closed, new ones opened. n = 0 disarms. On failure nothing changes;
 * errors as probe_watch, and MTUI_E_NOTSUP where no mechanism takes an instruction, MTUI_E_NOENT
 * for a file it cannot open. Callable from callbacks. */
int probe_set_sites(struct probe *p, pid_t pid, const struct probe_site *sites, size_t n,
                    struct err *err);

/* Whether n sites, of which `refused` is one, could sit under hardware breakpoints once their addresses are known.
 * MTUI_E_NOTSUP with the instruction and why not. */
int probe_can_break(struct probe *p, const struct probe_site *refused, size_t n, struct err *err);

/* How many sites may sit under hardware breakpoints; 0: they do not work here, or are not wanted. */
unsigned probe_breakpoints(struct probe *p);

/* Perf's clock now: for the time from a hit to what was done about it. */
uint64_t probe_now_ns(const struct probe *p);

void probe_stats(const struct probe *p, struct probe_stats *out);

/* Reads what is in the rings now, without waiting for the loop (at the end of a recording). */
void probe_drain(struct probe *p);

#endif

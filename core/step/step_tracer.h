/* The tracer of the `step` recorder: seizes a process by ptrace, lets it run at full speed, and steps
 * its threads through windows: from a site's hit to that call's return, or from now on.
 *
 * Belongs into a process of its own (it waits for every child and blocks for the length of a step).
 * ptrace(2): PTRACE_SEIZE, and never PTRACE_INTERRUPT, which makes system calls return EINTR; threads
 * are stopped by events (step_events.h). When this process ends in order, every thread is released:
 * stepped ones are detached, which takes the trap flag away, running ones go on by themselves.
 *
 * step_tracer.c has the threads, step_arm.c where they are stopped, step_window.c what a window is,
 * step_stops.c what each stop of a thread means, step_release.c how they are let go of. */
#ifndef MTUI_CORE_STEP_TRACER_H
#define MTUI_CORE_STEP_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/record/step_message.h"
#include "core/step/pt_encode.h"
#include "core/step/step_events.h"
#include "core/step/step_sideband.h"
#include "core/step/step_thread.h"

struct step_tracer;

/* The clock of budgets and wall times (CLOCK_MONOTONIC). */
uint64_t step_tracer_wall_ns(void);

/* One thread's recorded stretch. */
struct step_window {
    pid_t tid;
    uint64_t start_clock, end_clock; /* instructions */
    uint64_t wall_ns;
    enum step_end end;
    const struct step_thread *thread; /* its packets; valid during the call */
};

struct step_tracer_options {
    pid_t pid;
    const pid_t *tids; /* only these threads are stepped; none: all */
    size_t n_tids;
    bool at_sites;             /* calls of sites are stepped, else everything from now on */
    bool from_exec;            /* nothing before the next execve */
    uint64_t budget;           /* instructions a window; 0: no limit */
    uint64_t budget_wall_ns;   /* 0: no limit */
    size_t ring_bytes;         /* a thread; 0: no limit */
    struct pt_encode_options encoding;
    FILE *truth;               /* step_thread.h; NULL: none */
    const char *maps;          /* directory that keeps code which changes (step_code_log.h); NULL: none */
};

/* A thread has come to a site and waits there. */
struct step_hit {
    pid_t tid;
    uint32_t trigger, member; /* of the site */
    uint64_t address; /* 0: not known */
    uint64_t clock;   /* instructions */
    uint64_t arg1, arg2;
};

struct step_tracer_callbacks {
    bool (*hit)(void *arg, const struct step_hit *hit);     /* whether to step this call */
    void (*window)(void *arg, const struct step_window *w); /* one has ended */
    /* A stepped thread was in a system call; NULL allowed. */
    void (*syscall)(void *arg, pid_t tid, uint64_t number, uint64_t clock, uint64_t wall_ns);
    void (*message)(void *arg, const char *sentence);
    /* A thread could not be armed, and no other is: nothing will come of this. NULL: a message. */
    void (*refused)(void *arg, const struct err *why);
    void *arg;
};

/* Options and callbacks are copied; the files stay the caller's. Errors: MTUI_E_GONE,
 * MTUI_E_PERM with what would allow it. */
int step_tracer_new(struct step_tracer **out, const struct step_tracer_options *options,
                    const struct step_tracer_callbacks *callbacks, struct err *err);

/* The calls to step. Those that were in the list before stay armed without a gap, as long as none is
 * left out; with one left out all are armed anew. Copied. MTUI_E_IO: a file cannot be read, and nothing
 * has changed. step_tracer_enable arms. */
int step_tracer_set_sites(struct step_tracer *t, const struct step_site *sites, size_t n,
                          struct err *err);

/* Arms the sites, or begins to step; off: windows in progress end, threads run on. Fails with the reason
 * when no thread can be armed. */
int step_tracer_enable(struct step_tracer *t, bool on, struct err *err);

/* Handles the stops that are there, at most max of them. While some thread is in the middle of a step
 * it waits for it, until a signal interrupts that; returns false when there was nothing to wait for
 * (then wait for SIGCHLD). */
bool step_tracer_run(struct step_tracer *t, unsigned max);

/* Threads left; 0: the process has ended. */
size_t step_tracer_threads(const struct step_tracer *t);
bool step_tracer_stepping(const struct step_tracer *t);
uint64_t step_tracer_clock(const struct step_tracer *t);
const struct step_sideband *step_tracer_sideband(const struct step_tracer *t);

/* Calls fn for every thread that is being stepped now (a snapshot of a window in progress). */
void step_tracer_each_window(struct step_tracer *t,
                             void (*fn)(void *arg, const struct step_window *w), void *arg);

/* To be called some times a second: threads that blocked SIGTRAP when they should have been armed may not do so any
 * more. */
void step_tracer_arm_late(struct step_tracer *t);

/* Ends the windows that are over by time although their threads wait in the kernel; with all, every
 * window: those of waiting threads now, the others at their next instruction. */
void step_tracer_end_windows(struct step_tracer *t, bool all);

/* Ends the windows and releases what is stopped; what runs is released when this process ends. The
 * sideband stays. */
void step_tracer_release(struct step_tracer *t);

/* The same from a signal handler of a process that is about to die: windows are lost, the threads are not. */
void step_tracer_abandon(struct step_tracer *t);

/* step_tracer_release, and frees. */
void step_tracer_free(struct step_tracer *t);

#endif

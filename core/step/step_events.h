/* Events that stop a traced thread by a SIGTRAP of its own (perf_event_attr.sigtrap, Linux ≥ 5.13):
 * at an instruction (through a uprobe or a hardware breakpoint), or wherever it is when it next runs user
 * code (a clock).
 *
 * Nothing is written into the target by us, and the stop is synchronous: behind the probed instruction
 * (uprobe), or before it (breakpoint). The signal kills a thread that is not traced by ptrace, so the
 * events are opened after the seize and closed before the detach; they are never inherited. */
#ifndef MTUI_CORE_STEP_EVENTS_H
#define MTUI_CORE_STEP_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* si_code of such a SIGTRAP (asm-generic/siginfo.h; the libc header may be older than that). */
#define STEP_TRAP_PERF 6

struct step_site {
    char *path;       /* the mapped file, as this process can open it */
    uint64_t offset;
    uint64_t address; /* in the target, for breakpoints; 0: not mapped at present */
    uint32_t trigger, member; /* the caller's numbers */
    bool is_entry;    /* a function begins here: there is a return to wait for */
    bool no_uprobe;   /* only a breakpoint can sit here (core/trigger/uprobe_place.h) */
};

/* How a thread is stopped at a site. Uprobes: any number, also in files that are not mapped yet, with
 * CAP_PERFMON. Breakpoints: four a thread, at addresses; without a privilege for programs of one's own
 * where perf_event_paranoid is at most 2, and where the processor has them (hwbreak_self_test). A site with
 * no_uprobe gets a breakpoint in any case. */
enum step_means { STEP_BY_UPROBE, STEP_BY_BREAKPOINT };

/* What a stop carries: the number of the site; with STEP_SITE_AHEAD, the instruction there has not been
 * executed; STEP_CLOCK_SITE for a stop by step_events_arm_clock. */
#define STEP_SITE_AHEAD (UINT64_C(1) << 62)
#define STEP_CLOCK_SITE UINT64_MAX

/* The events of one thread. Zero-initialise. */
struct step_events {
    int *fds; /* −1: a breakpoint whose site is not mapped */
    size_t n;
};

/* One event for each of n sites, in files: what their paths led to, opened. Events that are open already (for the
 * first e->n sites) stay. On failure none stays open. MTUI_E_GONE: the thread has ended. MTUI_E_PERM, MTUI_E_NOTSUP,
 * MTUI_E_LIMIT: not by these means. */
int step_events_arm(struct step_events *e, pid_t tid, enum step_means means,
                    const struct step_site *sites, const int *files, size_t n, struct err *err);
/* True when nothing is left to arm for n sites. */
bool step_events_complete(const struct step_events *e, size_t n);

/* Fires once the thread has run for a moment, or when it comes out of the kernel after a wait. */
int step_events_arm_clock(struct step_events *e, pid_t tid, struct err *err);

/* Silences them without closing (while the thread is stepped). */
void step_events_enable(const struct step_events *e, bool on);
void step_events_close(struct step_events *e);

#endif

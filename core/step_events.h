/* Events that stop a traced thread by a SIGTRAP of its own (perf_event_attr.sigtrap, Linux ≥ 5.13):
 * at an instruction (through a uprobe), or wherever it is when it next runs user code (a clock).
 *
 * Nothing is written into the target by us, and the stop is synchronous: the thread has executed the
 * probed instruction and nothing else. The signal kills a thread that is not traced by ptrace, so the
 * events are opened after the seize and closed before the detach; they are never inherited. */
#ifndef MTUI_CORE_STEP_EVENTS_H
#define MTUI_CORE_STEP_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

/* si_code of such a SIGTRAP (asm-generic/siginfo.h; the libc header may be older than that). */
#define STEP_TRAP_PERF 6

struct step_site {
    char *path;       /* the mapped file, as this process can open it */
    uint64_t offset;
    uint32_t trigger; /* the caller's number */
    bool is_entry;    /* a function begins here: there is a return to wait for */
};

/* What a stop by step_events_arm_clock carries instead of the number of a site. */
#define STEP_CLOCK_SITE UINT64_MAX

/* The events of one thread. Zero-initialise. */
struct step_events {
    int *fds;
    size_t n;
};

/* One event for each of n sites; its stop carries the site's number. Those that are open already (e->n of
 * them, for the first sites) stay. On failure none stays open. MTUI_E_GONE: the thread has ended. */
int step_events_arm(struct step_events *e, pid_t tid, const struct step_site *sites, size_t n,
                    struct err *err);

/* Fires once the thread has run for a moment, or when it comes out of the kernel after a wait. */
int step_events_arm_clock(struct step_events *e, pid_t tid, struct err *err);

/* Silences them without closing (while the thread is stepped). */
void step_events_enable(const struct step_events *e, bool on);
void step_events_close(struct step_events *e);

#endif

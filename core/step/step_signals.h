/* The signals of the step recorder's process. It must never just die: a thread in the middle of a step keeps
 * the trap flag, and the trap kills it once nobody traces it.
 *
 * Every signal that would end the process only asks it to end (signal(7)); job control does not stop it. A
 * fault of its own, abort(3) and running out of memory let go of the target first (step_tracer_abandon).
 * What is left is SIGKILL: the process is made the last choice of the kernel's killer for want of memory,
 * where the privileges allow that (proc(5), oom_score_adj). */
#ifndef MTUI_CORE_STEP_SIGNALS_H
#define MTUI_CORE_STEP_SIGNALS_H

#include <stdbool.h>

#include "core/base/err.h"
#include "core/step/step_tracer.h"

struct step_signals {
    int fd; /* readable when a signal waits: one that asks to end, or SIGCHLD */
};

/* Of the whole process, which has one thread. A timer of period_us breaks off waits from then on. */
int step_signals_open(struct step_signals *s, unsigned period_us, struct err *err);
/* What a crash lets go of; NULL: nothing. */
void step_signals_guard(struct step_tracer *t);
/* True when something has asked the process to end since the last call. */
bool step_signals_end_asked(const struct step_signals *s);
/* True when the timer has fired since the last call. */
bool step_signals_timer_fired(void);
void step_signals_close(struct step_signals *s);

#endif

/* Letting go of the threads: in order, and when this process is about to die. */
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "core/step/step_tracer_priv.h"

/* How long a thread may take to come out of the kernel with a trap of ours. */
#define RELEASE_WAIT_NS 500000000u

/* A SIGTRAP of our events that is on its way must not reach a thread that nobody traces any more: the
 * events are closed, so none is added; those that wait are taken here. */
static bool trap_pending(const struct tracee *e)
{
    return tracee_signal_in(e, "SigPnd", SIGTRAP);
}

/* A thread that has blocked SIGTRAP since it was armed keeps one pending, which would kill it as soon as
 * it is unblocked. Worth what this module else never does: breaking off a system call. */
static void stop_blockers(struct step_tracer *t)
{
    for (size_t i = 0; i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        if (!e->stopped && trap_pending(e) && tracee_blocks_trap(e))
            tracee_interrupt(e);
    }
}

static void take_pending_traps(struct step_tracer *t)
{
    uint64_t give_up = step_tracer_wall_ns() + RELEASE_WAIT_NS;
    bool pending = true;
    stop_blockers(t);
    while (pending && step_tracer_wall_ns() < give_up) {
        step_tracer_run(t, 64);
        pending = false;
        for (size_t i = 0; i < t->tracees.len && !pending; i++)
            pending = t->tracees.data[i]->listening ||
                      (!t->tracees.data[i]->stopped && trap_pending(t->tracees.data[i]));
        if (pending)
            sched_yield();
    }
    step_tracer_run(t, 64);
}

/* Brings threads that are inside a step to their stop and lets go of them; those that wait in the
 * kernel have no trap flag and are released by our end. */
void step_tracer_release(struct step_tracer *t)
{
    if (t->released)
        return;
    t->released = true;
    t->enabled = false;
    step_tracer_disarm_all(t);
    for (size_t i = 0; i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        if (e->listening || e->to_breakpoint)
            tracee_interrupt(e); /* the trap flag may be set behind the job-control stop */
    }
    uint64_t give_up = step_tracer_wall_ns() + RELEASE_WAIT_NS; /* closing uprobes takes its time */
    while (step_tracer_step_under_way(t) && step_tracer_run(t, 1) && step_tracer_wall_ns() < give_up)
        ;
    take_pending_traps(t);
    for (size_t i = 0; i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        if (e->steps)
            step_window_end_in_kernel(t, e, STEP_END_STOPPED);
        if (e->stopped) {
            tracee_take_trap(e);
            tracee_detach(e, 0);
        }
    }
}

/* ---- In a crash ---- */

/* What a stopped thread is about to get, if that is not our own trap. */
static int signal_of(const struct tracee *e)
{
    siginfo_t info;
    uint64_t data;
    if (ptrace(PTRACE_GETSIGINFO, e->tid, NULL, &info) != 0 || info.si_code >> 8 > 0 ||
        info.si_code == (SIGTRAP | 0x80))
        return 0; /* stopped for job control, by an event, or at a system call (ptrace(2)) */
    return tracee_stop(e, info.si_signo << 8 | 0x7f, &data) == STOP_SIGNAL ? (int)data : 0;
}

/* True when it was stopped. */
static bool let_go(struct tracee *e)
{
    struct user_regs_struct regs;
    if (!tracee_regs(e, &regs))
        return false;
    tracee_take_trap(e);
    int sig = signal_of(e);
    tracee_end_run(e);
    tracee_clear_trap_flag(e);
    tracee_remask_trap(e);
    tracee_detach(e, sig);
    return true;
}

/* Only system calls from here on, since memory and files may be in any state; and only what the kernel says
 * counts, since what is noted of a thread may be one step behind. */
void step_tracer_abandon(struct step_tracer *t)
{
    bool again = true;
    for (size_t i = 0; i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        for (size_t j = 0; j < e->events.n; j++)
            if (e->events.fds[j] >= 0)
                close(e->events.fds[j]);
        if (e->listening || e->to_breakpoint)
            tracee_interrupt(e);
    }
    uint64_t give_up = step_tracer_wall_ns() + RELEASE_WAIT_NS;
    while (again && step_tracer_wall_ns() < give_up) {
        again = false;
        for (size_t i = 0; i < t->tracees.len; i++) {
            struct tracee *e = t->tracees.data[i];
            if (let_go(e))
                e->steps = NULL;
            again |= e->steps && !e->in_syscall && !e->restarting; /* it stops by itself in microseconds */
        }
        sched_yield();
    }
}

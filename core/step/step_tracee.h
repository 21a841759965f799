/* One traced thread, and the ptrace(2) calls on it. Private to the step recorder's tracer. */
#ifndef MTUI_CORE_STEP_TRACEE_H
#define MTUI_CORE_STEP_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "core/base/err.h"
#include "core/step/step_events.h"
#include "core/step/step_insn.h"
#include "core/step/step_thread.h"

struct tracee {
    pid_t tid;
    bool stopped;   /* in a ptrace stop: may be asked and continued */
    bool in_step;   /* inside PTRACE_SINGLESTEP: stops by itself in microseconds */
    bool to_breakpoint; /* it runs to a breakpoint instead; in_step too */
    bool listening; /* in a job-control stop that lasts until SIGCONT */
    bool armed;     /* events are open */
    bool blocked;   /* not armed, because it blocks or ignores SIGTRAP */
    bool blocked_said;
    unsigned blocked_looks; /* in a row, at which it did so */
    struct step_events events;

    /* While it is stepped: */
    struct step_thread *steps; /* NULL: it runs at full speed */
    struct step_insn insn;     /* the instruction that the present step executes */
    uint64_t insn_ip;
    bool insn_pending;         /* insn_ip has been handed to the processor, its outcome is not known */
    bool trap_due;             /* its outcome is known, but the trap of the step is still to come */
    bool in_syscall;           /* between the entry and the exit stop of a system call */
    bool restarting;           /* the system call that ended will be made again, or a handler runs */
    uint64_t syscall_ns;       /* when it began, wall clock */
    bool trap_masked;          /* the program blocks SIGTRAP; its mask does not show it now */
    bool end_asked;            /* the window ends at the next stop */
    bool time_spent;           /* so does it, by its wall time */
    bool trap_taken;           /* the program wants SIGTRAP for itself: so does it */
    uint64_t start_clock, start_ns;
    uint64_t entry_sp;         /* 0: the window has no return to wait for */
    bool inside;               /* it began inside a function, whose return slot is at entry_sp or above */
    uint64_t stack_start, stack_end;
    bool main_stack;           /* [stack]: no fibre has another stack in the same mapping */
    unsigned signals;          /* delivered in this window */
};

/* The stop a thread is in, decoded from waitpid's status. */
enum stop_kind {
    STOP_ENDED,    /* exited or killed: it is gone */
    STOP_SYSCALL,  /* entry or exit of a system call */
    STOP_STEP,     /* a single step is done */
    STOP_HANDLER,  /* a signal handler's frame was made; nothing has executed */
    STOP_EVENT,    /* one of our sigtrap events: site in *data */
    STOP_LATE,     /* the same, but long ago: SIGTRAP was blocked then */
    STOP_SIGNAL,   /* a signal is about to be delivered: its number in *data */
    STOP_GROUP,    /* a job-control stop */
    STOP_NEW,      /* first stop of a thread that a traced one made; end of a job-control stop */
    STOP_CLONE,    /* inside clone or fork, after the child was made */
    STOP_EXEC
};

enum stop_kind tracee_stop(const struct tracee *t, int status, uint64_t *data);

/* In a STOP_SYSCALL: true at the exit, false at the entry. */
bool tracee_at_syscall_exit(const struct tracee *t);
/* At the exit of a system call: true when the kernel has broken it off for a signal and makes it again,
 * or lets it fail with EINTR, depending on what becomes of that (include/linux/errno.h, ERESTART*). */
bool tracee_syscall_restarts(const struct user_regs_struct *regs);
/* Whether sig is in a set of /proc/TID/status ("SigCgt", "SigBlk", "SigPnd"). */
bool tracee_signal_in(const struct tracee *t, const char *set, int sig);
bool tracee_blocks_trap(const struct tracee *t);
/* The trap of a step makes the kernel forget that a program ignores SIGTRAP (force_sig_info, as below). */
bool tracee_ignores_trap(const struct tracee *t);
/* Why it cannot be stepped now, as a clause about it; NULL: it can. */
const char *tracee_unstoppable(const struct tracee *t);
/* True when a handler of the program is called for sig. */
bool tracee_catches(const struct tracee *t, int sig);

bool tracee_regs(const struct tracee *t, struct user_regs_struct *regs);
/* Continue at full speed / by one instruction / stay in a group stop; sig is delivered (0: none). */
void tracee_continue(struct tracee *t, int sig);
void tracee_step(struct tracee *t, int sig);
/* Over a system call: two stops, at its entry and its exit, and no trap flag in between, so that a
 * thread that waits in the kernel is unharmed if this process ends meanwhile. */
void tracee_syscall(struct tracee *t, int sig);
/* To the instruction at `to`, by a hardware breakpoint of ptrace (user_regs' u_debugreg, ptrace(2)), the
 * thread's only one. False when that cannot be set, or the debug registers are in use; then nothing happens. At
 * the next stop, whatever it is, tracee_end_run takes the breakpoint away. */
bool tracee_run_to(struct tracee *t, uint64_t to, int sig);
void tracee_end_run(struct tracee *t);
void tracee_listen(struct tracee *t);
/* Brings a thread that is listening, or runs to a breakpoint, into a stop in which it can be detached. It is in
 * a job-control stop, or in the middle of an instruction, so there is no system call that this could break off
 * (of any other thread it might). */
void tracee_interrupt(struct tracee *t);
/* A thread that an interrupt has stopped may have met our trap just before: it waits in the thread's queue, behind
 * the stop, and would kill a thread that nobody traces. This takes it; to be called before what made it (the trap
 * flag, the breakpoint) is taken away and before detaching. System calls only. */
void tracee_take_trap(const struct tracee *t);
/* Lets go of a stopped thread: the trap flag is taken away, nothing is delivered but sig. */
void tracee_detach(struct tracee *t, int sig);

/* Executes a POPF (of `bytes`) in place of the processor. Stepped over one, Linux takes the trap flag for
 * the program's own from then on (is_setting_trap_flag in arch/x86/kernel/step.c) and leaves it set. False
 * when the flags popped hold the trap flag: the program means it. */
bool tracee_pop_flags(const struct tracee *t, struct user_regs_struct *regs, unsigned bytes,
                      unsigned len);
/* No trap flag is left behind by stepping. */
void tracee_clear_trap_flag(const struct tracee *t);

/* A step's trap that finds SIGTRAP blocked makes the kernel unblock it and forget its handler
 * (force_sig_info in kernel/signal.c). So it is taken out of the mask while the thread is stepped, and put
 * back before anything can see the mask: a system call, a handler's frame, the end of stepping. */
void tracee_unmask_trap(struct tracee *t);
void tracee_remask_trap(struct tracee *t);

/* The trap flag of ours that PUSHF has just stored at sp must not become the program's own. */
void tracee_hide_trap_flag(const struct tracee *t, uint64_t sp);

/* Bytes by which the instruction has lowered the stack pointer (negative: raised), of those that do so by an amount of
 * their own: push, pop, pushf, popf, sub, add, lea, enter, call, ret. 0 for others. */
int64_t tracee_stack_growth(const uint8_t *code, size_t n);

#endif

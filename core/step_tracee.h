/* One traced thread, and the ptrace(2) calls on it. Private to the step recorder's tracer. */
#ifndef MTUI_CORE_STEP_TRACEE_H
#define MTUI_CORE_STEP_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "core/err.h"
#include "core/step_events.h"
#include "core/step_insn.h"
#include "core/step_thread.h"

struct tracee {
    pid_t tid;
    bool stopped;         /* in a ptrace stop: may be asked and continued */
    bool armed;           /* events are open */
    struct step_events events;
    uint64_t hits;

    /* While it is stepped: */
    struct step_thread *steps; /* NULL: it runs at full speed */
    struct step_insn insn;     /* the instruction that the present step executes */
    uint64_t insn_ip;
    bool insn_pending;         /* insn_ip has been handed to the processor, its outcome is not known */
    bool in_syscall;           /* between the entry and the exit stop of a system call */
    uint64_t start_clock, start_ns;
    uint64_t entry_sp;         /* 0: the window has no return to wait for */
    uint64_t stack_start, stack_end;
    unsigned signals;          /* delivered in this window */
};

/* The stop a thread is in, decoded from waitpid's status. */
enum stop_kind {
    STOP_ENDED,    /* exited or killed: it is gone */
    STOP_SYSCALL,  /* entry or exit of a system call */
    STOP_STEP,     /* a single step is done */
    STOP_HANDLER,  /* a signal handler's frame was made; nothing has executed */
    STOP_EVENT,    /* one of our sigtrap events: site in *data */
    STOP_SIGNAL,   /* a signal is about to be delivered: its number in *data */
    STOP_GROUP,    /* a job-control stop */
    STOP_NEW,      /* first stop of a thread that a traced one made */
    STOP_CLONE,    /* inside clone or fork, after the child was made */
    STOP_EXEC
};

enum stop_kind tracee_stop(const struct tracee *t, int status, uint64_t *data);

/* In a STOP_SYSCALL: true at the exit, false at the entry. */
bool tracee_at_syscall_exit(const struct tracee *t);

bool tracee_regs(const struct tracee *t, struct user_regs_struct *regs);
/* Continue at full speed / by one instruction / stay in a group stop; sig is delivered (0: none). */
void tracee_continue(struct tracee *t, int sig);
void tracee_step(struct tracee *t, int sig);
/* Over a system call: two stops, at its entry and its exit, and no trap flag in between, so that a
 * thread that waits in the kernel is unharmed if this process ends meanwhile. */
void tracee_syscall(struct tracee *t, int sig);
void tracee_listen(struct tracee *t);
/* Lets go of a stopped thread: the trap flag is taken away, nothing is delivered but sig. */
void tracee_detach(struct tracee *t, int sig);

/* The trap flag of ours that PUSHF has just stored at sp must not become the program's own. */
void tracee_hide_trap_flag(const struct tracee *t, uint64_t sp);

/* Bytes by which the instruction has lowered the stack pointer, for those that begin functions (push,
 * sub, call); 0 for others. */
uint64_t tracee_stack_growth(const uint8_t *code, size_t n);

#endif

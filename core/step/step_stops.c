/* What each stop of a traced thread means, and how it goes on from there (ptrace(2)). */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/step/step_tracer_priv.h"

/* So many iterations of a string instruction take longer one by one than by a breakpoint behind it. */
#define REPEATS_AT_ONCE 16

/* ---- Going on ---- */

/* By one instruction, the one at ip; over a whole system call if that is what stands there. */
static void step_instruction(struct tracee *e, struct user_regs_struct *regs, int sig)
{
    e->insn = step_thread_begin(e->steps, regs->rip);
    while (e->insn.pops_flags) {
        uint64_t ip = regs->rip;
        if (!tracee_pop_flags(e, regs, e->insn.pops_flags, e->insn.len))
            break;
        step_thread_executed(e->steps, ip, &e->insn, regs->rip, regs->rsp);
        e->insn = step_thread_begin(e->steps, regs->rip);
    }
    e->insn_ip = regs->rip;
    e->insn_pending = true;
    if (e->insn.kind == STEP_SYSCALL) {
        tracee_remask_trap(e);
        tracee_syscall(e, sig);
    } else if (!e->insn.repeats || regs->rcx < REPEATS_AT_ONCE ||
               !tracee_run_to(e, regs->rip + e->insn.len, sig)) {
        tracee_step(e, sig);
    }
}

/* What runs next is a handler, unless the program changes its mind about the signal meanwhile: the next
 * stop tells. */
static void step_into_handler(struct tracee *e, uint64_t ip, int sig)
{
    e->insn_ip = ip;
    e->insn.kind = STEP_PLAIN;
    e->insn_pending = e->restarting = false;
    tracee_remask_trap(e);
    tracee_step(e, sig);
}

/* Resumes a stopped thread in the way it was running, with sig delivered. */
static void resume(struct step_tracer *t, struct tracee *e, int sig)
{
    struct user_regs_struct regs;
    enum step_end end;
    if (!e->steps) {
        tracee_continue(e, sig);
        return;
    }
    bool handled = sig && tracee_catches(e, sig);
    if (e->in_syscall || (e->restarting && !handled)) {
        tracee_syscall(e, sig);
        return;
    }
    if (!tracee_regs(e, &regs)) {
        tracee_step(e, sig);
        return;
    }
    if (step_window_over(t, e, regs.rsp, &end)) {
        step_window_end(t, e, regs.rip, end);
        tracee_continue(e, sig);
    } else if (handled) {
        step_into_handler(e, regs.rip, sig);
    } else {
        step_instruction(e, &regs, sig);
    }
}

/* ---- Steps ---- */

static void executed(struct tracee *e, const struct user_regs_struct *regs)
{
    if (!e->insn_pending) {
        /* A signal that had no handler after all: the instruction was not announced. */
        e->insn = step_thread_begin(e->steps, e->insn_ip);
    }
    e->insn_pending = false;
    if (e->insn.pushes_flags)
        tracee_hide_trap_flag(e, regs->rsp);
    step_thread_executed(e->steps, e->insn_ip, &e->insn, regs->rip, regs->rsp);
    step_window_follow(e, regs->rsp);
}

static void on_step(struct step_tracer *t, struct tracee *e)
{
    struct user_regs_struct regs;
    if (e->steps && tracee_regs(e, &regs)) {
        bool late = e->trap_due && regs.rip == e->insn_ip;
        e->trap_due = false;
        if (!late)
            executed(e, &regs);
    }
    resume(t, e, 0);
}

/* A job-control stop can come between the end of a step and its trap: the step counts, and the trap that
 * follows it says nothing new. */
static void count_step(struct tracee *e)
{
    struct user_regs_struct regs;
    if (!e->steps || !e->insn_pending || e->insn.kind == STEP_SYSCALL || !tracee_regs(e, &regs) ||
        regs.rip == e->insn_ip)
        return;
    executed(e, &regs);
    e->trap_due = true;
}

/* ---- System calls ---- */

static bool changes_mappings(uint64_t number)
{
    switch (number) {
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_mremap:
    case SYS_remap_file_pages:
    case SYS_pkey_mprotect:
    case SYS_shmat:
        return true;
    default:
        return false;
    }
}

static void on_syscall_entry(struct tracee *e, const struct user_regs_struct *regs)
{
    e->syscall_ns = step_tracer_wall_ns();
    e->in_syscall = true;
    if (e->restarting) { /* the kernel has set the program back to its instruction, 2 bytes long */
        e->restarting = false;
        e->insn_ip = regs->rip - 2;
        e->insn = step_thread_begin(e->steps, e->insn_ip);
        e->insn_pending = true;
    }
    tracee_syscall(e, 0);
}

static void on_syscall_exit(struct step_tracer *t, struct tracee *e,
                            const struct user_regs_struct *regs)
{
    e->in_syscall = false;
    if (changes_mappings(regs->orig_rax))
        step_tracer_refresh(t);
    if (regs->orig_rax == SYS_rt_sigaction && regs->rdi == SIGTRAP)
        e->trap_taken |= tracee_ignores_trap(e);
    if (regs->orig_rax == SYS_prctl)
        step_sideband_name(t->sideband, e->tid, t->clock);
    if (e->insn_pending)
        executed(e, regs);
    if (t->cb.syscall)
        t->cb.syscall(t->cb.arg, e->tid, regs->orig_rax, t->clock,
                      step_tracer_wall_ns() - e->syscall_ns);
    /* No instruction of the program runs before a signal has been looked at, or the call is repeated. */
    e->restarting = tracee_syscall_restarts(regs);
    if (!e->restarting)
        tracee_unmask_trap(e);
    resume(t, e, 0);
}

static void on_syscall(struct step_tracer *t, struct tracee *e)
{
    struct user_regs_struct regs;
    if (!e->steps || !tracee_regs(e, &regs))
        tracee_continue(e, 0);
    else if (tracee_at_syscall_exit(e))
        on_syscall_exit(t, e, &regs);
    else
        on_syscall_entry(e, &regs);
}

/* ---- Signals and our own traps ---- */

static void on_event(struct step_tracer *t, struct tracee *e, uint64_t site)
{
    struct user_regs_struct regs;
    if (!e->steps && t->enabled && tracee_regs(e, &regs)) {
        if (site == STEP_CLOCK_SITE) {
            step_tracer_disarm(e);
            if (step_tracer_may_step(t, e))
                step_window_begin(t, e);
        } else if ((site & ~STEP_SITE_AHEAD) < t->places.len) {
            step_window_enter(t, e, (size_t)(site & ~STEP_SITE_AHEAD), site & STEP_SITE_AHEAD, &regs);
        }
    }
    resume(t, e, 0);
}

static void on_signal(struct step_tracer *t, struct tracee *e, int sig)
{
    struct user_regs_struct regs;
    if (e->steps && tracee_regs(e, &regs)) {
        if (e->insn_pending && e->insn.kind != STEP_SYSCALL && regs.rip != e->insn_ip)
            executed(e, &regs); /* its own int3; or a SIGTRAP from tgkill(2) that the step's has joined */
        else
            step_thread_interrupted(e->steps, regs.rip);
        e->insn_pending = false;
        e->signals++;
        /* It blocks SIGTRAP, though its mask does not show it now: at full speed it is made to wait again. */
        e->trap_taken |= sig == SIGTRAP && e->trap_masked;
    }
    resume(t, e, sig);
}

static void on_group_stop(struct step_tracer *t, struct tracee *e)
{
    struct user_regs_struct regs;
    count_step(e);
    if (!t->released) {
        tracee_listen(e);
        return;
    }
    if (e->steps)
        step_window_end(t, e, tracee_regs(e, &regs) ? regs.rip : e->insn_ip, STEP_END_STOPPED);
    tracee_detach(e, 0); /* it stays in its job-control stop */
}

/* ---- Threads and programs ---- */

static void on_end(struct step_tracer *t, struct tracee *e, bool killed)
{
    if (e->steps)
        step_window_end_in_kernel(t, e, killed ? STEP_END_KILLED : STEP_END_EXITED);
    step_sideband_exit(t->sideband, e->tid, t->clock);
    step_tracer_drop(t, e);
}

/* execve by another thread than the first: it takes over the first one's number. */
static void take_over(struct step_tracer *t, struct tracee *e)
{
    unsigned long former = 0;
    ptrace(PTRACE_GETEVENTMSG, e->tid, NULL, &former);
    struct tracee *caller = step_tracer_find(t, (pid_t)former);
    if (!caller || caller == e)
        return;
    if (caller->steps)
        step_window_end_in_kernel(t, caller, STEP_END_REPLACED);
    step_sideband_exit(t->sideband, caller->tid, t->clock);
    step_tracer_drop(t, caller);
}

/* Of a thread inside the system call that has made it, or its program. */
static void begin_or_arm(struct step_tracer *t, struct tracee *e)
{
    if (!step_tracer_wants_all(t, e))
        step_tracer_arm(t, e);
    else if (step_tracer_may_step(t, e))
        step_window_begin_in_syscall(t, e);
}

static void on_exec(struct step_tracer *t, struct tracee *e)
{
    take_over(t, e);
    step_tracer_disarm(e); /* the kernel has taken the events out */
    t->exec_seen = true;
    step_tracer_forget_gone(t);
    if (e->steps) /* its call is gone with its program */
        step_window_end_in_kernel(t, e, STEP_END_REPLACED);
    step_tracer_disarm(e); /* the window's end has armed it by the former mappings */
    /* Readers merge the records of threads and of the program by time: each has its own. */
    t->clock++;
    step_tracer_replaced(t);
    t->clock++;
    begin_or_arm(t, e);
    resume(t, e, 0);
}

static void on_new(struct step_tracer *t, struct tracee *e)
{
    count_step(e);
    if (t->released && !e->steps && tracee_blocks_trap(e))
        tracee_unmask_trap(e); /* the trap that waits is taken now */
    if (!e->steps && !e->armed && t->enabled)
        begin_or_arm(t, e);
    resume(t, e, 0);
}

/* clone(2) can make a process too (without CLONE_THREAD): that one is not ours. */
static struct tracee *adopt(struct step_tracer *t, pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)t->opt.pid, (int)tid);
    if (access(path, F_OK) == 0)
        return step_tracer_add(t, tid);
    ptrace(PTRACE_DETACH, tid, NULL, NULL);
    return NULL;
}

void step_stops_handle(struct step_tracer *t, pid_t tid, int status)
{
    struct tracee *e = step_tracer_find(t, tid);
    if (!e && WIFSTOPPED(status)) /* made by a traced thread; its stop may come before the maker's */
        e = adopt(t, tid);
    if (!e)
        return;
    e->stopped = true;
    e->in_step = e->listening = false;
    step_code_read_through(t->code, tid);
    uint64_t data;
    enum stop_kind kind = tracee_stop(e, status, &data);
    if (kind != STOP_ENDED)
        tracee_end_run(e);
    switch (kind) {
    case STOP_ENDED:
        on_end(t, e, WIFSIGNALED(status));
        break;
    case STOP_SYSCALL:
        on_syscall(t, e);
        break;
    case STOP_STEP:
        on_step(t, e);
        break;
    case STOP_HANDLER:
        e->insn_pending = e->restarting = false;
        if (e->steps)
            tracee_unmask_trap(e);
        resume(t, e, 0);
        break;
    case STOP_EVENT:
        on_event(t, e, data);
        break;
    case STOP_LATE: /* where it was hit is long past */
        if (!e->steps) {
            tracee_remask_trap(e);
            step_tracer_say_blocked(t, e);
        }
        resume(t, e, 0);
        break;
    case STOP_SIGNAL:
        on_signal(t, e, (int)data);
        break;
    case STOP_GROUP:
        on_group_stop(t, e);
        break;
    case STOP_NEW:
        on_new(t, e);
        break;
    case STOP_CLONE:
        resume(t, e, 0);
        break;
    case STOP_EXEC:
        on_exec(t, e);
        break;
    }
}

#include "core/step/step_tracee.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "core/machine/proc_stat.h"

#define TRAP_FLAG 0x100u
#define POPPED    0x240dd5u /* CF PF AF ZF SF TF DF OF NT AC ID: what POPF can change (SDM vol. 2) */
#define LATE_TRAP 1u        /* TRAP_PERF_FLAG_ASYNC (asm-generic/siginfo.h) */

/* A step over an instruction with a uprobe, whoever has put it there: the kernel executes or emulates the
 * instruction elsewhere and then sends the thread a plain SIGTRAP in place of the step's (send_sig(SIGTRAP,
 * current, 0) in arch_uprobe_post_xol and arch_uprobe_skip_sstep, arch/x86/kernel/uprobes.c), from its own
 * process as kill(2) would. It stops the thread behind the instruction; a kill(2) never does: it is taken
 * before one, since the trap of a step waits in the thread's own queue, which is emptied first. */
static bool ends_probed_step(const struct tracee *t, const siginfo_t *info)
{
    struct user_regs_struct regs;
    return t->steps && info->si_code == SI_USER && tracee_regs(t, &regs) &&
           (regs.rip != t->insn_ip || t->trap_due);
}

/* SIGTRAP stops are told apart by si_code: TRAP_TRACE and TRAP_BRKPT a step (some processors report a
 * hardware step as the latter), SIGTRAP itself the notice of a handler's entry (signal_setup_done in
 * kernel/signal.c), TRAP_PERF our event; anything else is a trap of the program's own. */
static enum stop_kind trap_kind(const struct tracee *t, uint64_t *data)
{
    siginfo_t info;
    if (ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &info) != 0)
        return STOP_STEP;
    if (info.si_code == STEP_TRAP_PERF) {
        /* struct siginfo: the data word stands behind si_addr (asm-generic/siginfo.h, _perf). */
        uint32_t flags;
        memcpy(data, (const char *)&info + 24, sizeof *data);
        memcpy(&flags, (const char *)&info + 36, sizeof flags);
        return flags & LATE_TRAP ? STOP_LATE : STOP_EVENT;
    }
    if (info.si_code == SIGTRAP)
        return STOP_HANDLER;
    if (t->steps && (info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT))
        return STOP_STEP;
    if (t->to_breakpoint && info.si_code == TRAP_HWBKPT)
        return STOP_STEP;
    if (ends_probed_step(t, &info))
        return STOP_STEP;
    *data = SIGTRAP;
    return STOP_SIGNAL;
}

enum stop_kind tracee_stop(const struct tracee *t, int status, uint64_t *data)
{
    *data = 0;
    if (!WIFSTOPPED(status))
        return STOP_ENDED;
    int sig = WSTOPSIG(status), event = status >> 16;
    switch (event) {
    case PTRACE_EVENT_CLONE:
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
        return STOP_CLONE;
    case PTRACE_EVENT_EXEC:
        return STOP_EXEC;
    case PTRACE_EVENT_STOP:
        return sig == SIGTRAP ? STOP_NEW : STOP_GROUP;
    default:
        break;
    }
    if (sig == (SIGTRAP | 0x80)) /* PTRACE_O_TRACESYSGOOD */
        return STOP_SYSCALL;
    if (sig == SIGTRAP)
        return trap_kind(t, data);
    *data = (uint64_t)sig;
    return STOP_SIGNAL;
}

bool tracee_at_syscall_exit(const struct tracee *t)
{
    struct __ptrace_syscall_info info;
    memset(&info, 0, sizeof info);
    long n = ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, (void *)sizeof info, &info);
    /* Before Linux 5.3 there is no such request: the stops alternate. */
    return n > 0 ? info.op == PTRACE_SYSCALL_INFO_EXIT : t->in_syscall;
}

bool tracee_syscall_restarts(const struct user_regs_struct *regs)
{
    long long result = (long long)regs->rax;
    return (long long)regs->orig_rax >= 0 && result <= -512 && result >= -516 && result != -515;
}

bool tracee_signal_in(const struct tracee *t, const char *set, int sig)
{
    char value[32];
    return proc_status_value("/proc", t->tid, set, value, sizeof value) &&
           (strtoull(value, NULL, 16) >> (sig - 1) & 1);
}

bool tracee_catches(const struct tracee *t, int sig)
{
    return tracee_signal_in(t, "SigCgt", sig);
}

bool tracee_blocks_trap(const struct tracee *t)
{
    return tracee_signal_in(t, "SigBlk", SIGTRAP);
}

bool tracee_ignores_trap(const struct tracee *t)
{
    return tracee_signal_in(t, "SigIgn", SIGTRAP);
}

const char *tracee_unstoppable(const struct tracee *t)
{
    if (tracee_blocks_trap(t))
        return "blocks SIGTRAP, by which it would be stopped";
    if (tracee_ignores_trap(t))
        return "ignores SIGTRAP, which stepping would undo";
    return NULL;
}

bool tracee_regs(const struct tracee *t, struct user_regs_struct *regs)
{
    return ptrace(PTRACE_GETREGS, t->tid, NULL, regs) == 0;
}

/* ptrace's data argument is a pointer that holds a number. */
static void *number(int n)
{
    return (void *)(intptr_t)n;
}

void tracee_continue(struct tracee *t, int sig)
{
    t->stopped = ptrace(PTRACE_CONT, t->tid, NULL, number(sig)) != 0;
}

void tracee_step(struct tracee *t, int sig)
{
    t->in_step = ptrace(PTRACE_SINGLESTEP, t->tid, NULL, number(sig)) == 0;
    t->stopped = !t->in_step;
}

void tracee_syscall(struct tracee *t, int sig)
{
    t->stopped = ptrace(PTRACE_SYSCALL, t->tid, NULL, number(sig)) != 0;
}

static bool poke_debug(const struct tracee *t, unsigned n, uint64_t value)
{
    size_t at = offsetof(struct user, u_debugreg) + n * sizeof value;
    return ptrace(PTRACE_POKEUSER, t->tid, (void *)at, (void *)(uintptr_t)value) == 0;
}

bool tracee_run_to(struct tracee *t, uint64_t to, int sig)
{
    errno = 0;
    long used = ptrace(PTRACE_PEEKUSER, t->tid,
                       (void *)(offsetof(struct user, u_debugreg) + 7 * sizeof(uint64_t)), NULL);
    if (errno || (used & 0xff)) /* a debugger that was here before has left breakpoints */
        return false;
    t->to_breakpoint = true;
    if (!poke_debug(t, 0, to) || !poke_debug(t, 7, 1)) { /* DR7: L0, execution (SDM vol. 3) */
        tracee_end_run(t);
        return false;
    }
    t->in_step = ptrace(PTRACE_CONT, t->tid, NULL, number(sig)) == 0;
    t->stopped = !t->in_step;
    return true;
}

void tracee_end_run(struct tracee *t)
{
    if (!t->to_breakpoint)
        return;
    poke_debug(t, 7, 0);
    poke_debug(t, 0, 0);
    t->to_breakpoint = false;
}

void tracee_listen(struct tracee *t)
{
    t->listening = ptrace(PTRACE_LISTEN, t->tid, NULL, NULL) == 0;
    t->stopped = !t->listening;
}

void tracee_interrupt(struct tracee *t)
{
    ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
}

static bool trap_waits(const struct tracee *t)
{
    struct __ptrace_peeksiginfo_args args = {.off = 0, .flags = 0, .nr = 16};
    siginfo_t infos[16];
    uint64_t mask;
    if (ptrace((enum __ptrace_request)PTRACE_GETSIGMASK, t->tid, (void *)sizeof mask, &mask) != 0 ||
        (mask >> (SIGTRAP - 1) & 1))
        return false;
    long n = ptrace(PTRACE_PEEKSIGINFO, t->tid, &args, infos);
    for (long i = 0; i < n; i++)
        if (infos[i].si_signo == SIGTRAP)
            return true;
    return false;
}

void tracee_take_trap(const struct tracee *t)
{
    int status;
    /* Back in the kernel's search for signals it takes the trap, before any instruction of the program. */
    if (trap_waits(t) && ptrace(PTRACE_CONT, t->tid, NULL, NULL) == 0)
        while (waitpid(t->tid, &status, __WALL) < 0 && errno == EINTR)
            ;
}

void tracee_detach(struct tracee *t, int sig)
{
    ptrace(PTRACE_DETACH, t->tid, NULL, number(sig));
    t->stopped = false;
}

static bool peek(const struct tracee *t, uint64_t addr, uint64_t *out)
{
    errno = 0;
    long word = ptrace(PTRACE_PEEKDATA, t->tid, (void *)(uintptr_t)addr, NULL);
    *out = (uint64_t)word;
    return errno == 0;
}

bool tracee_pop_flags(const struct tracee *t, struct user_regs_struct *regs, unsigned bytes,
                      unsigned len)
{
    uint64_t value, change = bytes == 2 ? POPPED & 0xffff : POPPED;
    if (!peek(t, regs->rsp, &value) || (value & TRAP_FLAG))
        return false;
    struct user_regs_struct after = *regs;
    after.eflags = (regs->eflags & ~change) | (value & change);
    after.rsp += bytes;
    after.rip += len;
    if (ptrace(PTRACE_SETREGS, t->tid, NULL, &after) != 0)
        return false;
    *regs = after;
    return true;
}

void tracee_clear_trap_flag(const struct tracee *t)
{
    struct user_regs_struct regs;
    if (!tracee_regs(t, &regs) || !(regs.eflags & TRAP_FLAG))
        return; /* one that the kernel knows to be ours is not shown, and it takes it away itself */
    regs.eflags &= ~(unsigned long long)TRAP_FLAG;
    ptrace(PTRACE_SETREGS, t->tid, NULL, &regs);
}

/* The kernel's signal set, 64 bits on x86-64. */
static bool change_mask(const struct tracee *t, bool block)
{
    uint64_t mask, bit = UINT64_C(1) << (SIGTRAP - 1);
    void *size = (void *)sizeof mask;
    if (ptrace((enum __ptrace_request)PTRACE_GETSIGMASK, t->tid, size, &mask) != 0 ||
        block == ((mask & bit) != 0))
        return false;
    mask ^= bit;
    return ptrace((enum __ptrace_request)PTRACE_SETSIGMASK, t->tid, size, &mask) == 0;
}

void tracee_unmask_trap(struct tracee *t)
{
    if (change_mask(t, false))
        t->trap_masked = true;
}

void tracee_remask_trap(struct tracee *t)
{
    if (t->trap_masked)
        change_mask(t, true);
    t->trap_masked = false;
}

void tracee_hide_trap_flag(const struct tracee *t, uint64_t sp)
{
    uint64_t word;
    if (peek(t, sp, &word) && (word & TRAP_FLAG))
        ptrace(PTRACE_POKEDATA, t->tid, (void *)(uintptr_t)sp,
               (void *)(uintptr_t)(word & ~(uint64_t)TRAP_FLAG));
}

static bool is_stack_pointer(const ZydisDecodedOperand *op)
{
    return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == ZYDIS_REGISTER_RSP;
}

/* Of an instruction whose first operand is the stack pointer. */
static int64_t growth_by_arithmetic(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *op)
{
    bool immediate = op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    bool from_itself = op[1].type == ZYDIS_OPERAND_TYPE_MEMORY && op[1].mem.base == ZYDIS_REGISTER_RSP &&
                       op[1].mem.index == ZYDIS_REGISTER_NONE;
    if (insn->mnemonic == ZYDIS_MNEMONIC_SUB && immediate)
        return op[1].imm.value.s;
    if (insn->mnemonic == ZYDIS_MNEMONIC_ADD && immediate)
        return -op[1].imm.value.s;
    if (insn->mnemonic == ZYDIS_MNEMONIC_LEA && from_itself)
        return -op[1].mem.disp.value;
    return 0;
}

int64_t tracee_stack_growth(const uint8_t *code, size_t n)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, n, &insn, op)))
        return 0;
    switch ((int)insn.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ:
        return insn.operand_width / 8;
    case ZYDIS_MNEMONIC_POP:
        return is_stack_pointer(&op[0]) ? 0 : -(insn.operand_width / 8);
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
        return -(insn.operand_width / 8);
    case ZYDIS_MNEMONIC_CALL:
        return 8;
    case ZYDIS_MNEMONIC_RET:
        return -8 - (op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? (int64_t)op[0].imm.value.u : 0);
    case ZYDIS_MNEMONIC_ENTER: /* the frame pointer, those of the enclosing levels, the frame */
        return 8 + 8 * (int64_t)(op[1].imm.value.u % 32) + (int64_t)op[0].imm.value.u;
    default:
        return is_stack_pointer(&op[0]) ? growth_by_arithmetic(&insn, op) : 0;
    }
}

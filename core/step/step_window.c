/* A window: one stretch of one thread that is stepped, from its first instruction to the reason why it
 * ends. */
#include "core/step/step_tracer_priv.h"

#include <string.h>

#include "core/machine/maps.h"

/* A program whose signals leave it fewer than this many instructions each, over so many signals, does
 * not get on under stepping: its timer is faster than we are. */
#define STARVED_SIGNALS      64
#define STARVED_INSTRUCTIONS 3000

/* On a stack that is not the main thread's, a stack pointer this far above the call's belongs to another
 * stack in the same mapping (fibres in the heap). */
#define OTHER_STACK 65536

void step_window_begin(struct step_tracer *t, struct tracee *e)
{
    struct step_thread_options o = {.encoding = t->opt.encoding,
                                    .ring_bytes = t->opt.ring_bytes,
                                    .truth = t->opt.truth,
                                    .clock = &t->clock,
                                    .read_code = step_code_read,
                                    .read_code_arg = t->code,
                                    .code_since = step_tracer_code_since,
                                    .code_since_arg = t};
    step_tracer_refresh(t);
    step_sideband_name(t->sideband, e->tid, t->clock);
    e->steps = step_thread_new(e->tid, &o);
    e->start_clock = t->clock;
    e->start_ns = step_tracer_wall_ns();
    e->entry_sp = 0;
    e->inside = false;
    e->signals = 0;
    e->insn = (struct step_insn){0};
    e->insn_pending = e->trap_due = e->in_syscall = e->restarting = e->end_asked = false;
    e->trap_masked = e->trap_taken = e->time_spent = false;
    tracee_unmask_trap(e);
    step_events_enable(&e->events, false);
}

void step_window_begin_in_syscall(struct step_tracer *t, struct tracee *e)
{
    step_window_begin(t, e);
    tracee_remask_trap(e);
    e->insn.kind = STEP_SYSCALL;
    e->in_syscall = true;
    e->syscall_ns = e->start_ns;
}

struct step_window step_window_describe(const struct step_tracer *t, const struct tracee *e,
                                        enum step_end end)
{
    return (struct step_window){.tid = e->tid,
                                .start_clock = e->start_clock,
                                .end_clock = t->clock,
                                .wall_ns = step_tracer_wall_ns() - e->start_ns,
                                .end = end,
                                .thread = e->steps};
}

void step_window_end(struct step_tracer *t, struct tracee *e, uint64_t ip, enum step_end end)
{
    step_thread_finish(e->steps, ip);
    struct step_window w = step_window_describe(t, e, end);
    if (t->cb.window)
        t->cb.window(t->cb.arg, &w);
    t->clock++; /* readers merge windows by time: what comes next has another than this one's end */
    step_thread_free(e->steps);
    e->steps = NULL;
    if (e->stopped) {
        tracee_clear_trap_flag(e);
        tracee_remask_trap(e);
    }
    step_events_enable(&e->events, true);
    if (t->opt.at_sites)
        step_tracer_arm(t, e); /* for what has come to the list meanwhile */
}

void step_window_end_in_kernel(struct step_tracer *t, struct tracee *e, enum step_end end)
{
    if (e->insn_pending && e->insn.kind == STEP_SYSCALL)
        step_thread_executed(e->steps, e->insn_ip, &e->insn, 0, 0);
    e->insn_pending = e->in_syscall = e->restarting = false;
    step_window_end(t, e, e->insn_ip, end);
}

/* ---- Calls ---- */

/* How far the stack reaches on which the call's return address stands. */
static void find_stack(struct step_tracer *t, struct tracee *e, uint64_t sp)
{
    e->entry_sp = sp;
    const struct map *stack = maps_find(step_code_maps(t->code), e->entry_sp);
    e->stack_start = stack ? stack->start : 0;
    e->stack_end = stack ? stack->end : 0;
    e->main_stack = stack && strcmp(stack->path, "[stack]") == 0;
}

/* Every trigger at this place is told: the kernel sends one signal for all that was hit by an instruction. Whether
 * one of them wants the call. */
static bool tell_hit(struct step_tracer *t, const struct step_place *place, struct step_hit hit)
{
    bool wanted = false;
    for (size_t i = 0; i < t->places.len; i++) {
        const struct step_place *p = &t->places.data[i];
        if (p->ino != place->ino || p->site.offset != place->site.offset)
            continue;
        hit.trigger = p->site.trigger;
        hit.member = p->site.member;
        wanted |= t->cb.hit(t->cb.arg, &hit);
    }
    return wanted;
}

void step_window_enter(struct step_tracer *t, struct tracee *e, size_t site, bool ahead,
                       const struct user_regs_struct *regs)
{
    const struct step_place *place = &t->places.data[site];
    if (!step_tracer_site_address(t, place))
        step_tracer_refresh(t); /* a file mapped since */
    uint64_t addr = ahead ? regs->rip : step_tracer_site_address(t, place);
    struct step_hit hit = {.tid = e->tid,
                           .address = addr,
                           .clock = t->clock,
                           .arg1 = regs->rdi,
                           .arg2 = regs->rsi};
    if (!step_tracer_may_step(t, e) || !t->cb.hit || !tell_hit(t, place, hit))
        return;
    step_window_begin(t, e);
    uint8_t code[STEP_INSN_MAX];
    size_t n = addr ? step_code_read(t->code, addr, code, sizeof code) : 0;
    /* What the first instruction did to the stack pointer, if it has been executed. */
    int64_t growth = ahead ? 0 : tracee_stack_growth(code, n);
    e->inside = !place->site.is_entry;
    find_stack(t, e, regs->rsp + (uint64_t)growth);
    if (addr && !ahead) { /* it is reported as if it had been stepped */
        e->insn = step_thread_begin(e->steps, addr);
        e->insn_ip = addr;
        step_thread_executed(e->steps, addr, &e->insn, regs->rip, regs->rsp);
        step_window_follow(e, regs->rsp);
    }
}

/* Inside a function its return slot is at the stack pointer or above, nobody knows how far: a return that
 * leaves the stack pointer above that is the function's own. Unless the function had more on the stack
 * at the hit than when it made that call (arguments that were pushed): then the call has told. */
void step_window_follow(struct tracee *e, uint64_t sp)
{
    bool call = e->insn.kind == STEP_CALL || e->insn.kind == STEP_CALL_INDIRECT;
    if (e->inside && call && sp >= e->entry_sp && sp < e->stack_end &&
        (e->main_stack || sp - e->entry_sp < OTHER_STACK))
        e->entry_sp = sp + sizeof(uint64_t);
}

/* True when the call that the window is about has been left: its return slot is gone from the stack, by
 * a return, a jump (longjmp, an exception), or a signal frame's end; a system call with the slot alone popped is
 * made by a function that pushes it again (vfork). Another stack (a fibre, a signal stack) says nothing about it. Of
 * a window that began inside a function only a return tells for certain. */
static bool call_left(const struct tracee *e, uint64_t sp)
{
    bool may_jump = e->insn.kind == STEP_JUMP_INDIRECT || e->insn.kind == STEP_SYSCALL;
    bool may_leave = e->insn.kind == STEP_RETURN || (may_jump && !e->inside);
    uint64_t above = e->entry_sp + (e->insn.kind == STEP_SYSCALL ? sizeof(uint64_t) : 0);
    return e->entry_sp && may_leave && sp > above && sp >= e->stack_start &&
           sp < e->stack_end && (e->main_stack || sp - e->entry_sp < OTHER_STACK);
}

/* Of a call that has been left: by its own return, which leaves the stack pointer right above its slot. */
static bool returned(const struct tracee *e, uint64_t sp)
{
    return e->insn.kind == STEP_RETURN && (e->inside || sp == e->entry_sp + sizeof(uint64_t));
}

bool step_window_over(const struct step_tracer *t, const struct tracee *e, uint64_t sp,
                      enum step_end *end)
{
    uint64_t done = step_thread_instructions(e->steps);
    if (call_left(e, sp))
        *end = returned(e, sp) ? STEP_END_RETURNED : STEP_END_LEFT;
    else if (step_thread_status(e->steps, NULL) < 0)
        *end = STEP_END_FAILED;
    else if (e->trap_taken)
        *end = STEP_END_TRAP;
    else if (!t->enabled || e->end_asked)
        *end = STEP_END_STOPPED;
    else if (t->opt.budget && done >= t->opt.budget)
        *end = STEP_END_BUDGET;
    else if (e->signals >= STARVED_SIGNALS && done / e->signals < STARVED_INSTRUCTIONS)
        *end = STEP_END_STARVED;
    else if (e->time_spent || (t->opt.budget_wall_ns && done % 64 == 0 &&
                               step_tracer_wall_ns() - e->start_ns > t->opt.budget_wall_ns))
        *end = STEP_END_TIME;
    else
        return false;
    return true;
}

#include "core/step_tracer.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/proc_stat.h"
#include "core/step_code.h"
#include "core/step_tracee.h"
#include "core/vec.h"

/* A program whose signals leave it fewer than this many instructions each, over so many signals, does
 * not get on under stepping: its timer is faster than we are. */
#define STARVED_SIGNALS      64
#define STARVED_INSTRUCTIONS 3000

/* How long a thread may take to come out of the kernel with a trap of ours. */
#define RELEASE_WAIT_NS 500000000u

struct site {
    struct step_site place;
    ino_t ino;
};

struct step_tracer {
    struct step_tracer_options opt;
    struct step_tracer_callbacks cb;
    VEC(struct site) sites;
    VEC(pid_t) chosen;
    VEC(struct tracee *) tracees;
    struct step_code *code;
    struct step_sideband *sideband;
    uint64_t clock;
    bool enabled, exec_seen, released;
};

static const char *const end_names[] = {"returned", "budget", "starved", "exited", "stopped"};

const char *step_end_name(enum step_end end)
{
    return end_names[end];
}

static uint64_t wall_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void say(struct step_tracer *t, const char *sentence)
{
    if (t->cb.message)
        t->cb.message(t->cb.arg, sentence);
}

/* ---- threads ---- */

static struct tracee *find_tracee(const struct step_tracer *t, pid_t tid)
{
    for (size_t i = 0; i < t->tracees.len; i++)
        if (t->tracees.data[i]->tid == tid)
            return t->tracees.data[i];
    return NULL;
}

static struct tracee *add_tracee(struct step_tracer *t, pid_t tid)
{
    struct tracee *e = xcalloc(1, sizeof *e);
    e->tid = tid;
    vec_push(&t->tracees, e);
    step_sideband_thread(t->sideband, tid, t->clock);
    return e;
}

static void drop_tracee(struct step_tracer *t, struct tracee *e)
{
    for (size_t i = 0; i < t->tracees.len; i++) {
        if (t->tracees.data[i] == e) {
            vec_remove(&t->tracees, i);
            break;
        }
    }
    step_events_close(&e->events);
    step_thread_free(e->steps);
    free(e);
}

static bool is_chosen(const struct step_tracer *t, pid_t tid)
{
    for (size_t i = 0; i < t->chosen.len; i++)
        if (t->chosen.data[i] == tid)
            return true;
    return t->chosen.len == 0;
}

/* True: without sites, threads are stepped from the moment they can be. */
static bool steps_everything(const struct step_tracer *t)
{
    return t->sites.len == 0 && (!t->opt.from_exec || t->exec_seen);
}

static void arm(struct step_tracer *t, struct tracee *e)
{
    struct err err;
    int rc = 0;
    if (!t->enabled || e->armed || e->steps || !is_chosen(t, e->tid))
        return;
    if (t->sites.len) {
        struct step_site *places = xcalloc(t->sites.len, sizeof *places);
        for (size_t i = 0; i < t->sites.len; i++)
            places[i] = t->sites.data[i].place;
        rc = step_events_arm(&e->events, e->tid, places, t->sites.len, &err);
        free(places);
    } else if (steps_everything(t)) {
        rc = step_events_arm_clock(&e->events, e->tid, &err);
    } else {
        return;
    }
    e->armed = rc == 0;
    if (rc < 0 && rc != MTUI_E_GONE)
        say(t, err.text);
}

static void disarm(struct tracee *e)
{
    step_events_close(&e->events);
    e->armed = false;
}

/* ---- windows ---- */

static void begin_window(struct step_tracer *t, struct tracee *e)
{
    struct step_thread_options o = {.encoding = t->opt.encoding,
                                    .ring_bytes = t->opt.ring_bytes,
                                    .truth = t->opt.truth,
                                    .clock = &t->clock,
                                    .read_code = step_code_read,
                                    .read_code_arg = t->code};
    struct err err;
    if (step_code_refresh(t->code, &err) == 0)
        step_sideband_maps(t->sideband, step_code_maps(t->code), t->clock);
    e->steps = step_thread_new(e->tid, &o);
    e->start_clock = t->clock;
    e->start_ns = wall_ns();
    e->entry_sp = 0;
    e->signals = 0;
    e->insn_pending = e->in_syscall = false;
    step_events_enable(&e->events, false);
}

static struct step_window describe(const struct step_tracer *t, const struct tracee *e,
                                   enum step_end end)
{
    return (struct step_window){.tid = e->tid,
                                .start_clock = e->start_clock,
                                .end_clock = t->clock,
                                .wall_ns = wall_ns() - e->start_ns,
                                .end = end,
                                .thread = e->steps};
}

static void end_window(struct step_tracer *t, struct tracee *e, uint64_t ip, enum step_end end)
{
    step_thread_finish(e->steps, ip);
    struct step_window w = describe(t, e, end);
    if (t->cb.window)
        t->cb.window(t->cb.arg, &w);
    step_thread_free(e->steps);
    e->steps = NULL;
    step_events_enable(&e->events, true);
}

static uint64_t site_address(const struct step_tracer *t, size_t site)
{
    const struct maps *maps = step_code_maps(t->code);
    const struct site *s = &t->sites.data[site];
    for (size_t i = 0; i < maps_count(maps); i++) {
        const struct map *m = maps_at(maps, i);
        if ((m->prot & MAPS_X) && m->inode == s->ino && s->place.offset >= m->offset &&
            s->place.offset - m->offset < m->end - m->start)
            return m->start + (s->place.offset - m->offset);
    }
    return 0;
}

/* The stop comes after the probed instruction: it is reported as if it had been stepped, and the
 * place of the return address is worked out from what it did to the stack pointer. */
static void enter_call(struct step_tracer *t, struct tracee *e, size_t site,
                       const struct user_regs_struct *regs)
{
    begin_window(t, e);
    uint64_t addr = site_address(t, site);
    uint8_t code[STEP_INSN_MAX];
    size_t n = addr ? step_code_read(t->code, addr, code, sizeof code) : 0;
    e->entry_sp = regs->rsp + tracee_stack_growth(code, n);
    const struct map *stack = maps_find(step_code_maps(t->code), e->entry_sp);
    e->stack_start = stack ? stack->start : 0;
    e->stack_end = stack ? stack->end : 0;
    if (addr) {
        struct step_insn first = step_thread_begin(e->steps, addr);
        step_thread_executed(e->steps, addr, &first, regs->rip, regs->rsp);
    }
    if (t->cb.hit)
        t->cb.hit(t->cb.arg, e->tid, site, e->start_clock);
}

/* True when the call that the window is about has been left: its return slot is gone from the stack.
 * Another stack (a fibre, a signal stack) says nothing about it. */
static bool call_left(const struct tracee *e, uint64_t sp)
{
    bool may_leave = e->insn.kind == STEP_RETURN || e->insn.kind == STEP_JUMP_INDIRECT ||
                     e->insn.kind == STEP_SYSCALL;
    return e->entry_sp && may_leave && sp > e->entry_sp && sp >= e->stack_start &&
           sp < e->stack_end;
}

/* Whether the window is over before another instruction is executed. */
static bool over(const struct step_tracer *t, const struct tracee *e, uint64_t sp,
                 enum step_end *end)
{
    uint64_t done = step_thread_instructions(e->steps);
    if (call_left(e, sp))
        *end = STEP_END_RETURNED;
    else if (!t->enabled || step_thread_status(e->steps, NULL) < 0)
        *end = STEP_END_STOPPED;
    else if (t->opt.budget && done >= t->opt.budget)
        *end = STEP_END_BUDGET;
    else if (e->signals >= STARVED_SIGNALS && done / e->signals < STARVED_INSTRUCTIONS)
        *end = STEP_END_STARVED;
    else if (t->opt.budget_wall_ns && done % 64 == 0 &&
             wall_ns() - e->start_ns > t->opt.budget_wall_ns)
        *end = STEP_END_BUDGET;
    else
        return false;
    return true;
}

/* Resumes a stopped thread in the way it was running, with sig delivered. */
static void resume(struct step_tracer *t, struct tracee *e, int sig)
{
    struct user_regs_struct regs;
    if (!e->steps) {
        tracee_continue(e, sig);
        return;
    }
    if (e->in_syscall) {
        tracee_syscall(e, sig);
        return;
    }
    if (!tracee_regs(e, &regs)) {
        tracee_step(e, sig);
        return;
    }
    enum step_end end;
    if (over(t, e, regs.rsp, &end)) {
        end_window(t, e, regs.rip, end);
        tracee_continue(e, sig);
        return;
    }
    if (sig) { /* what runs next is the handler, or the same instruction: known at the next stop */
        tracee_step(e, sig);
        e->insn_ip = regs.rip;
        e->insn.kind = STEP_PLAIN;
        e->insn_pending = false;
        return;
    }
    e->insn = step_thread_begin(e->steps, regs.rip);
    e->insn_ip = regs.rip;
    e->insn_pending = true;
    if (e->insn.kind == STEP_SYSCALL)
        tracee_syscall(e, 0);
    else
        tracee_step(e, 0);
}

/* A window of a thread that is still inside the system call that made it, or its program: it begins
 * at the exit of that. */
static void begin_window_in_syscall(struct step_tracer *t, struct tracee *e)
{
    begin_window(t, e);
    e->insn.kind = STEP_SYSCALL;
    e->in_syscall = true;
}

/* ---- stops ---- */

static bool changes_mappings(uint64_t syscall_number)
{
    switch (syscall_number) {
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_mremap:
    case SYS_remap_file_pages:
    case SYS_pkey_mprotect:
        return true;
    default:
        return false;
    }
}

static void executed(struct tracee *e, const struct user_regs_struct *regs)
{
    if (!e->insn_pending) {
        /* A signal that had no handler: the instruction was executed without being announced. */
        e->insn = step_thread_begin(e->steps, e->insn_ip);
    }
    e->insn_pending = false;
    if (e->insn.pushes_flags)
        tracee_hide_trap_flag(e, regs->rsp);
    step_thread_executed(e->steps, e->insn_ip, &e->insn, regs->rip, regs->rsp);
}

static void on_syscall_stop(struct step_tracer *t, struct tracee *e)
{
    struct user_regs_struct regs;
    if (!e->steps || !tracee_regs(e, &regs)) {
        tracee_continue(e, 0);
        return;
    }
    e->in_syscall = !tracee_at_syscall_exit(e);
    if (e->in_syscall) {
        tracee_syscall(e, 0);
        return;
    }
    if (changes_mappings(regs.orig_rax) && step_code_refresh(t->code, NULL) == 0)
        step_sideband_maps(t->sideband, step_code_maps(t->code), t->clock);
    if (e->insn_pending)
        executed(e, &regs);
    resume(t, e, 0);
}

static void on_step(struct step_tracer *t, struct tracee *e)
{
    struct user_regs_struct regs;
    if (e->steps && tracee_regs(e, &regs))
        executed(e, &regs);
    resume(t, e, 0);
}

static void on_event(struct step_tracer *t, struct tracee *e, uint64_t site)
{
    struct user_regs_struct regs;
    if (e->steps || !t->enabled || !tracee_regs(e, &regs)) {
        resume(t, e, 0);
        return;
    }
    if (site == STEP_CLOCK_SITE) {
        disarm(e);
        begin_window(t, e);
    } else if (site < t->sites.len &&
               (t->opt.every <= 1 || ++e->hits % t->opt.every == 0)) {
        enter_call(t, e, (size_t)site, &regs);
    }
    resume(t, e, 0);
}

static void on_signal(struct step_tracer *t, struct tracee *e, int sig)
{
    struct user_regs_struct regs;
    if (e->steps && tracee_regs(e, &regs)) {
        step_thread_interrupted(e->steps, regs.rip);
        e->insn_pending = false;
        e->signals++;
    }
    resume(t, e, sig);
}

static void on_exec(struct step_tracer *t, struct tracee *e)
{
    unsigned long former = 0;
    ptrace(PTRACE_GETEVENTMSG, e->tid, NULL, &former);
    /* execve by another thread than the first: it takes over the first one's number. */
    struct tracee *caller = (pid_t)former == e->tid ? e : find_tracee(t, (pid_t)former);
    if (caller && caller != e) {
        struct tracee was = *caller;
        was.tid = e->tid;
        was.stopped = e->stopped;
        step_events_close(&e->events);
        step_thread_free(e->steps);
        *e = was;
        caller->steps = NULL;
        caller->events = (struct step_events){0};
        drop_tracee(t, caller);
    }
    disarm(e); /* the kernel has taken the events out */
    t->exec_seen = true;
    step_sideband_exec(t->sideband, t->clock);
    if (step_code_refresh(t->code, NULL) == 0)
        step_sideband_maps(t->sideband, step_code_maps(t->code), t->clock);
    if (!e->steps && t->enabled && steps_everything(t) && is_chosen(t, e->tid))
        begin_window_in_syscall(t, e);
    arm(t, e);
    resume(t, e, 0);
}

static void on_new(struct step_tracer *t, struct tracee *e)
{
    if (!e->steps && !e->armed && t->enabled) {
        if (steps_everything(t) && is_chosen(t, e->tid))
            begin_window_in_syscall(t, e);
        else
            arm(t, e);
    }
    resume(t, e, 0);
}

static void on_end(struct step_tracer *t, struct tracee *e)
{
    if (e->steps) {
        if (e->insn_pending && e->insn.kind == STEP_SYSCALL)
            step_thread_executed(e->steps, e->insn_ip, &e->insn, 0, 0);
        end_window(t, e, e->insn_ip, STEP_END_EXITED);
    }
    step_sideband_exit(t->sideband, e->tid, t->clock);
    drop_tracee(t, e);
}

/* clone(2) can make a process too (without CLONE_THREAD): that one is not ours. */
static struct tracee *adopt(struct step_tracer *t, pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)t->opt.pid, (int)tid);
    if (access(path, F_OK) == 0)
        return add_tracee(t, tid);
    ptrace(PTRACE_DETACH, tid, NULL, NULL);
    return NULL;
}

static void handle_stop(struct step_tracer *t, pid_t tid, int status)
{
    struct tracee *e = find_tracee(t, tid);
    if (!e && WIFSTOPPED(status)) /* made by a traced thread; its stop may come before the maker's */
        e = adopt(t, tid);
    if (!e)
        return;
    e->stopped = true;
    uint64_t data;
    switch (tracee_stop(e, status, &data)) {
    case STOP_ENDED:
        on_end(t, e);
        break;
    case STOP_SYSCALL:
        on_syscall_stop(t, e);
        break;
    case STOP_STEP:
        on_step(t, e);
        break;
    case STOP_HANDLER:
        e->insn_pending = false;
        resume(t, e, 0);
        break;
    case STOP_EVENT:
        on_event(t, e, data);
        break;
    case STOP_SIGNAL:
        on_signal(t, e, (int)data);
        break;
    case STOP_GROUP:
        tracee_listen(e);
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

/* ---- the interface ---- */

static int seize(struct step_tracer *t, pid_t tid, struct err *err)
{
    if (find_tracee(t, tid))
        return 0;
    if (ptrace(PTRACE_SEIZE, tid, NULL,
               (void *)(intptr_t)(PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                                  PTRACE_O_TRACESYSGOOD)) != 0) {
        if (errno == ESRCH)
            return 0;
        return err_errno(err, errno,
                         "cannot trace thread %d (another tracer, a debugger, or no permission: run "
                         "as root or set kernel.yama.ptrace_scope=0)",
                         (int)tid);
    }
    add_tracee(t, tid);
    return 1;
}

/* Until a scan finds no thread that is not ours yet: threads may be born meanwhile. */
static int seize_all(struct step_tracer *t, struct err *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)t->opt.pid);
    for (int fresh = 1; fresh;) {
        DIR *d = opendir(path);
        if (!d)
            return err_set(err, MTUI_E_GONE, "process %d has ended", (int)t->opt.pid);
        fresh = 0;
        int rc = 0;
        for (struct dirent *f; rc >= 0 && (f = readdir(d));) {
            if (!isdigit((unsigned char)f->d_name[0]))
                continue;
            rc = seize(t, (pid_t)strtol(f->d_name, NULL, 10), err);
            fresh |= rc > 0;
        }
        closedir(d);
        if (rc < 0)
            return rc;
    }
    return t->tracees.len ? 0
                          : err_set(err, MTUI_E_GONE, "process %d has ended", (int)t->opt.pid);
}

static int copy_sites(struct step_tracer *t, const struct step_tracer_options *o, struct err *err)
{
    for (size_t i = 0; i < o->n_sites; i++) {
        struct stat sb;
        if (stat(o->sites[i].path, &sb) != 0)
            return err_errno(err, errno, "cannot look at %s", o->sites[i].path);
        struct site s = {.place = {xstrdup(o->sites[i].path), o->sites[i].offset},
                         .ino = sb.st_ino};
        vec_push(&t->sites, s);
    }
    for (size_t i = 0; i < o->n_tids; i++)
        vec_push(&t->chosen, o->tids[i]);
    return 0;
}

int step_tracer_new(struct step_tracer **out, const struct step_tracer_options *options,
                    const struct step_tracer_callbacks *callbacks, struct err *err)
{
    struct step_tracer *t = xcalloc(1, sizeof *t);
    t->opt = *options;
    t->cb = *callbacks;
    t->clock = STEP_CLOCK_START;
    t->sideband = step_sideband_new(options->pid);
    int rc = copy_sites(t, options, err);
    if (rc == 0)
        rc = step_code_new(&t->code, options->pid, err);
    if (rc == 0)
        rc = seize_all(t, err);
    if (rc < 0) {
        step_tracer_free(t);
        return rc;
    }
    step_sideband_maps(t->sideband, step_code_maps(t->code), t->clock);
    *out = t;
    return 0;
}

int step_tracer_enable(struct step_tracer *t, bool on, struct err *err)
{
    t->enabled = on;
    size_t armed = 0, wanted = 0;
    for (size_t i = 0; i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        if (!on) {
            disarm(e);
            continue;
        }
        arm(t, e);
        wanted += is_chosen(t, e->tid);
        armed += e->armed || e->steps;
    }
    if (on && wanted && !armed && (t->sites.len || steps_everything(t)))
        return err_set(err, MTUI_E_NOTSUP, "no thread of process %d could be armed",
                       (int)t->opt.pid);
    return 0;
}

/* True while some thread is inside a single step: it will stop by itself in microseconds. */
static bool step_under_way(const struct step_tracer *t)
{
    for (size_t i = 0; i < t->tracees.len; i++) {
        const struct tracee *e = t->tracees.data[i];
        if (e->steps && !e->in_syscall && !e->stopped && e->insn.kind != STEP_SYSCALL)
            return true;
    }
    return false;
}

bool step_tracer_run(struct step_tracer *t, unsigned max)
{
    for (unsigned i = 0; i < max; i++) {
        int status;
        pid_t tid = waitpid(-1, &status, __WALL | (step_under_way(t) ? 0 : WNOHANG));
        if (tid < 0 && errno == EINTR)
            continue;
        if (tid <= 0)
            return false;
        handle_stop(t, tid, status);
    }
    return true;
}

size_t step_tracer_threads(const struct step_tracer *t)
{
    return t->tracees.len;
}

bool step_tracer_stepping(const struct step_tracer *t)
{
    for (size_t i = 0; i < t->tracees.len; i++)
        if (t->tracees.data[i]->steps)
            return true;
    return false;
}

uint64_t step_tracer_clock(const struct step_tracer *t)
{
    return t->clock;
}

const struct step_sideband *step_tracer_sideband(const struct step_tracer *t)
{
    return t->sideband;
}

void step_tracer_each_window(struct step_tracer *t,
                             void (*fn)(void *arg, const struct step_window *w), void *arg)
{
    for (size_t i = 0; i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        if (!e->steps)
            continue;
        step_thread_sync(e->steps);
        struct step_window w = describe(t, e, STEP_END_STOPPED);
        fn(arg, &w);
    }
}

/* A SIGTRAP of our events that is on its way must not reach a thread that nobody traces any more: the
 * events are closed, so none is added; those that wait are taken here. */
static bool trap_pending(const struct step_tracer *t, pid_t tid)
{
    char path[64], key[] = "SigPnd", value[32];
    snprintf(path, sizeof path, "/proc/%d/task", (int)t->opt.pid);
    return proc_status_value(path, tid, key, value, sizeof value) &&
           (strtoull(value, NULL, 16) >> (SIGTRAP - 1) & 1);
}

static void take_pending_traps(struct step_tracer *t)
{
    uint64_t give_up = wall_ns() + RELEASE_WAIT_NS;
    bool pending = true;
    while (pending && wall_ns() < give_up) {
        step_tracer_run(t, 64);
        pending = false;
        for (size_t i = 0; i < t->tracees.len && !pending; i++)
            pending = trap_pending(t, t->tracees.data[i]->tid);
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
    for (size_t i = 0; i < t->tracees.len; i++)
        disarm(t->tracees.data[i]);
    while (step_under_way(t) && step_tracer_run(t, 1))
        ;
    take_pending_traps(t);
    for (size_t i = 0; i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        if (e->steps)
            end_window(t, e, e->insn_ip, STEP_END_STOPPED);
        if (e->stopped)
            tracee_detach(e, 0);
    }
}

void step_tracer_free(struct step_tracer *t)
{
    if (!t)
        return;
    if (t->code)
        step_tracer_release(t);
    while (t->tracees.len)
        drop_tracee(t, t->tracees.data[t->tracees.len - 1]);
    for (size_t i = 0; i < t->sites.len; i++)
        free(t->sites.data[i].place.path);
    vec_free(&t->sites);
    vec_free(&t->chosen);
    vec_free(&t->tracees);
    step_code_free(t->code);
    step_sideband_free(t->sideband);
    free(t);
}

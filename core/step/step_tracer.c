/* The step recorder's tracer: its threads, and most of the interface. */
#include "core/step/step_tracer.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/proc_stat.h"
#include "core/machine/ptrace_refusal.h"
#include "core/step/step_tracer_priv.h"

uint64_t step_tracer_wall_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void step_tracer_say(struct step_tracer *t, const char *sentence)
{
    if (t->cb.message)
        t->cb.message(t->cb.arg, sentence);
}

/* ---- threads ---- */

struct tracee *step_tracer_find(const struct step_tracer *t, pid_t tid)
{
    for (size_t i = 0; i < t->tracees.len; i++)
        if (t->tracees.data[i]->tid == tid)
            return t->tracees.data[i];
    return NULL;
}

struct tracee *step_tracer_add(struct step_tracer *t, pid_t tid)
{
    struct tracee *e = xcalloc(1, sizeof *e);
    e->tid = tid;
    vec_push(&t->tracees, e);
    step_sideband_thread(t->sideband, tid, t->clock);
    return e;
}

void step_tracer_drop(struct step_tracer *t, struct tracee *e)
{
    for (size_t i = 0; i < t->tracees.len; i++) {
        if (t->tracees.data[i] == e) {
            vec_remove(&t->tracees, i);
            break;
        }
    }
    step_tracer_keep_ended(t, e);
    step_events_close(&e->events);
    step_thread_free(e->steps);
    free(e);
}

static void tell_maps(struct step_tracer *t)
{
    step_sideband_maps(t->sideband, step_code_maps(t->code), t->clock);
    step_pages_remapped(t->pages);
}

void step_tracer_refresh(struct step_tracer *t)
{
    if (step_code_refresh(t->code, NULL) == 0)
        tell_maps(t);
}

void step_tracer_replaced(struct step_tracer *t)
{
    step_sideband_exec(t->sideband, t->clock);
    if (step_code_replaced(t->code, NULL) == 0)
        tell_maps(t);
}

uint64_t step_tracer_code_since(void *arg, uint64_t ip, const uint8_t *bytes, size_t n)
{
    struct step_tracer *t = arg;
    uint64_t since = step_pages_executes(t->pages, ip, bytes, n);
    if (step_pages_lost(t->pages))
        step_tracer_say(t, "code that the program writes changes so much, or the disk is so full, that not all of "
                           "it is kept: where it is not, there are gaps");
    return since;
}

/* ---- the interface ---- */

/* A thread born of one that is seized already is traced from its birth on, and will be told by its first stop. */
static bool is_ours(pid_t tid)
{
    char tracer[32];
    return proc_status_value("/proc", tid, "TracerPid", tracer, sizeof tracer) &&
           strtol(tracer, NULL, 10) == (long)getpid();
}

/* The main thread can have, and stays until the others have too. */
static bool has_ended(pid_t pid, pid_t tid)
{
    struct proc_stat st;
    return proc_stat_read("/proc", pid, tid, &st, NULL) < 0 || st.state == 'Z' || st.state == 'X';
}

static int seize(struct step_tracer *t, pid_t tid, struct err *err)
{
    if (step_tracer_find(t, tid))
        return 0;
    if (ptrace(PTRACE_SEIZE, tid, NULL,
               (void *)(intptr_t)(PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                                  PTRACE_O_TRACESYSGOOD)) != 0) {
        char what[64];
        int cause = errno;
        if (cause == ESRCH || is_ours(tid) || has_ended(t->opt.pid, tid))
            return 0;
        snprintf(what, sizeof what, "cannot trace thread %d", (int)tid);
        return ptrace_refusal_explain(err, cause, NULL, t->opt.pid, true, what);
    }
    step_tracer_add(t, tid);
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

int step_tracer_new(struct step_tracer **out, const struct step_tracer_options *options,
                    const struct step_tracer_callbacks *callbacks, struct err *err)
{
    struct step_tracer *t = xcalloc(1, sizeof *t);
    t->opt = *options;
    t->cb = *callbacks;
    t->clock = STEP_CLOCK_START;
    t->sideband = step_sideband_new(options->pid);
    for (size_t i = 0; i < options->n_tids; i++)
        vec_push(&t->chosen, options->tids[i]);
    int rc = step_code_new(&t->code, options->pid, err);
    if (rc == 0 && options->maps)
        rc = step_code_log_open(&t->code_log, options->maps, options->pid, err);
    t->pages = step_pages_new(t->code, t->sideband, t->code_log, &t->clock);
    if (rc == 0)
        rc = seize_all(t, err);
    if (rc == 0)
        step_code_replaced(t->code, NULL); /* before it was seized nobody would have told */
    if (rc < 0) {
        step_tracer_free(t);
        return rc;
    }
    if (!options->from_exec)
        step_sideband_maps(t->sideband, step_code_maps(t->code), t->clock);
    *out = t;
    return 0;
}

bool step_tracer_step_under_way(const struct step_tracer *t)
{
    for (size_t i = 0; i < t->tracees.len; i++)
        if (t->tracees.data[i]->in_step)
            return true;
    return false;
}

bool step_tracer_run(struct step_tracer *t, unsigned max)
{
    for (unsigned i = 0; i < max; i++) {
        int status;
        pid_t tid = waitpid(-1, &status, __WALL | (step_tracer_step_under_way(t) ? 0 : WNOHANG));
        if (tid < 0 && errno == EINTR)
            return true;
        if (tid <= 0)
            return false;
        step_stops_handle(t, tid, status);
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
        struct step_window w = step_window_describe(t, e, STEP_END_STOPPED);
        fn(arg, &w);
    }
}

void step_tracer_end_windows(struct step_tracer *t, bool all)
{
    uint64_t now = step_tracer_wall_ns();
    for (size_t i = 0; i < t->tracees.len; i++) {
        struct tracee *e = t->tracees.data[i];
        if (!e->steps)
            continue;
        bool spent = t->opt.budget_wall_ns && now - e->start_ns > t->opt.budget_wall_ns;
        if (!all && !spent)
            continue;
        if (e->in_syscall || e->restarting)
            step_window_end_in_kernel(t, e, all ? STEP_END_STOPPED : STEP_END_TIME);
        else if (all)
            e->end_asked = true;
        else
            e->time_spent = true;
        if (e->steps && e->to_breakpoint)
            tracee_interrupt(e);
    }
}

void step_tracer_free(struct step_tracer *t)
{
    if (!t)
        return;
    if (t->code)
        step_tracer_release(t);
    while (t->tracees.len)
        step_tracer_drop(t, t->tracees.data[t->tracees.len - 1]);
    step_tracer_close_ended(t);
    vec_free(&t->ended);
    step_tracer_free_places(t);
    step_tracer_close_files(t);
    vec_free(&t->chosen);
    vec_free(&t->tracees);
    step_pages_free(t->pages);
    step_code_log_close(t->code_log);
    step_code_free(t->code);
    step_sideband_free(t->sideband);
    free(t);
}

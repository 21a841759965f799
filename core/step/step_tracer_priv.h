/* Inside of the step recorder's tracer: what its files share. */
#ifndef MTUI_CORE_STEP_TRACER_PRIV_H
#define MTUI_CORE_STEP_TRACER_PRIV_H

#include "core/step/step_code.h"
#include "core/step/step_pages.h"
#include "core/step/step_tracee.h"
#include "core/step/step_tracer.h"
#include "core/base/vec.h"

struct step_place {
    struct step_site site;
    ino_t ino;
    int fd; /* its file, one of step_tracer's */
};

/* A file with places, held open: a path through /proc leads to it only as long as the thread lives by whose number it
 * goes. */
struct step_file {
    dev_t dev;
    ino_t ino;
    int fd;
};

struct step_tracer {
    struct step_tracer_options opt;
    struct step_tracer_callbacks cb;
    VEC(struct step_place) places;
    VEC(struct step_file) files;
    VEC(pid_t) chosen;
    VEC(struct tracee *) tracees;
    VEC(int) ended; /* events that stop nothing any more; see step_tracer_close_ended */
    struct step_code *code;
    struct step_sideband *sideband;
    struct step_code_log *code_log; /* NULL: none */
    struct step_pages *pages;
    uint64_t clock;
    enum step_means means;
    bool means_tried;   /* uprobes were refused and breakpoints looked at */
    struct err refusal; /* why a thread could not be armed, the first one of them */
    bool enabling;      /* threads are being armed one by one */
    size_t looked; /* tracees, one by one, by step_tracer_arm_late */
    bool enabled, exec_seen, released;
};

/* step_tracer.c */
struct tracee *step_tracer_find(const struct step_tracer *t, pid_t tid);
struct tracee *step_tracer_add(struct step_tracer *t, pid_t tid);
void step_tracer_drop(struct step_tracer *t, struct tracee *e);
void step_tracer_refresh(struct step_tracer *t); /* the mappings have changed */
void step_tracer_replaced(struct step_tracer *t); /* the program has, execve(2) */

/* True while some thread is inside a single step: it will stop by itself in microseconds. */
bool step_tracer_step_under_way(const struct step_tracer *t);

/* A step_code_since_fn; arg is the tracer. */
uint64_t step_tracer_code_since(void *arg, uint64_t ip, const uint8_t *bytes, size_t n);

void step_tracer_say(struct step_tracer *t, const char *sentence);

/* step_arm.c */
void step_tracer_arm(struct step_tracer *t, struct tracee *e);
void step_tracer_disarm(struct tracee *e);
void step_tracer_disarm_all(struct step_tracer *t);
/* A thread that has ended gives its events up: they are kept, as no thread can be armed while one is being closed
 * (slow_close.h), and closed together when they are many. */
void step_tracer_keep_ended(struct step_tracer *t, struct tracee *e);
void step_tracer_close_ended(struct step_tracer *t);
/* Says once why this thread cannot be stepped, if it cannot. */
void step_tracer_say_blocked(struct step_tracer *t, struct tracee *e);
/* False when stepping it would change what the program has done with SIGTRAP; that is said, and it waits for
 * step_tracer_arm_late. */
bool step_tracer_may_step(struct step_tracer *t, struct tracee *e);
/* True: this thread is to be stepped from the moment it can be. */
bool step_tracer_wants_all(const struct step_tracer *t, const struct tracee *e);
void step_tracer_free_places(struct step_tracer *t);
void step_tracer_close_files(struct step_tracer *t);
/* Takes out the places whose file is gone, as with the mappings of a program that was replaced. Whoever told of them
 * tells what becomes of the triggers. */
void step_tracer_forget_gone(struct step_tracer *t);
/* Where a site is in the target, by the mappings as they were read last; 0: nowhere. */
uint64_t step_tracer_site_address(const struct step_tracer *t, const struct step_place *p);

/* step_window.c */
void step_window_begin(struct step_tracer *t, struct tracee *e);
/* Of a thread that is still inside the system call that made it, or its program: it begins at the exit
 * of that. */
void step_window_begin_in_syscall(struct step_tracer *t, struct tracee *e);
/* At a site, ahead of its instruction or when that has been executed. */
void step_window_enter(struct step_tracer *t, struct tracee *e, size_t site, bool ahead,
                       const struct user_regs_struct *regs);
/* The instruction has been executed: what it tells about the window's call. */
void step_window_follow(struct tracee *e, uint64_t sp);
/* Whether the window is over before another instruction is executed. */
bool step_window_over(const struct step_tracer *t, const struct tracee *e, uint64_t sp,
                      enum step_end *end);
void step_window_end(struct step_tracer *t, struct tracee *e, uint64_t ip, enum step_end end);
/* Of a thread that is in a system call, or gone. */
void step_window_end_in_kernel(struct step_tracer *t, struct tracee *e, enum step_end end);
struct step_window step_window_describe(const struct step_tracer *t, const struct tracee *e,
                                        enum step_end end);

/* step_stops.c */
void step_stops_handle(struct step_tracer *t, pid_t tid, int status);

#endif

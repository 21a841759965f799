/* anchors.tsv of a recording by single-stepping: where its clock of instructions stood when, one line each for
 * the beginning and the end of a window and for the system calls in it.
 *
 *   clock perf_ns tid what wall_ns
 *
 * what: "begin" (of a call's window), "syscall:NUMBER", "end" (the call has returned) or "end:WHY" (why, as
 * step_end_name has it). wall_ns: of the system call, or of the whole window at its end. Each beginning
 * and end is in the file at once, whoever is killed. */
#ifndef MTUI_CORE_STEP_ANCHORS_H
#define MTUI_CORE_STEP_ANCHORS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/record/step_message.h"

#define STEP_ANCHORS_FILE "anchors.tsv" /* in the snapshot directory */

struct step_anchor {
    uint64_t clock, perf_ns; /* instructions; perf's clock, 0: not known */
    pid_t tid;
    uint64_t wall_ns;
};

/* ---- Writing; f NULL: nothing happens ---- */

/* Makes the file, which must not exist. */
int step_anchors_create(FILE **out, const char *path, struct err *err);
void step_anchors_begin(FILE *f, const struct step_anchor *a);
void step_anchors_syscall(FILE *f, const struct step_anchor *a, uint64_t number);
void step_anchors_end(FILE *f, const struct step_anchor *a, enum step_end why);

/* ---- Reading ---- */

/* A window that has ended. */
struct step_anchor_window {
    pid_t tid;
    uint64_t start_clock, end_clock; /* start: 0 where the file does not say */
    uint64_t wall_ns;
    enum step_end why;
};

/* In the order in which they ended; released with free(). A missing file is no windows; lines that are none
 * of those above are passed over. */
int step_anchors_read(const char *path, struct step_anchor_window **out, size_t *n, struct err *err);

#endif

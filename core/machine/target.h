/* The traced program: a running process that is attached to, or one that is started here.
 *
 * It is identified by pid, start time and pidfd, so a reused pid is never mistaken for it. Its end
 * is noticed in the loop. It is never stopped, and nothing of it is changed.
 *
 * A started program waits before its execve until target_go: recorders and probes attach to its pid
 * meanwhile and miss nothing. It is no child of the recorder. When this process is killed while the
 * program waits, it ends without having run; later it runs on.
 *
 * All functions and callbacks run in the loop's thread. */
#ifndef MTUI_CORE_TARGET_H
#define MTUI_CORE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/loop.h"

struct target;

enum target_state {
    TARGET_WAITING, /* started, before its execve */
    TARGET_RUNNING,
    TARGET_ENDED,
    TARGET_FAILED /* the execve failed; target_error says why */
};

enum target_stdio {
    TARGET_PTY,    /* a terminal of its own, copied to a file and to the last lines; it is not the
                    * controlling terminal, so the program outlives this process */
    TARGET_INHERIT /* stdin and stderr inherited, stdout goes to stderr; same process group */
};

struct target_callbacks {
    void (*changed)(void *arg, enum target_state state); /* RUNNING, ENDED, FAILED */
    void (*output)(void *arg); /* new output on the pty: target_last_lines; NULL allowed */
};

struct target_run_options {
    char *const *argv; /* NULL-terminated; argv[0] is searched in PATH */
    enum target_stdio stdio;
    const char *output_path; /* TARGET_PTY: the file that keeps the output (created); NULL: none */
    unsigned short rows, cols; /* size of the pty; 0: 24 × 80 */
};

/* Says whether pid can be traced, and if not why, in one sentence: kernel thread, zombie, ended,
 * 32-bit program, another user's without the capability, protected against ptrace, this process
 * itself. MTUI_E_GONE, MTUI_E_PERM, MTUI_E_NOTSUP. */
int target_check(pid_t pid, struct err *err);
/* And whether perf events of it are allowed, which only who steps without triggers can do without. */
int target_check_perf(pid_t pid, struct err *err);

/* callbacks may be NULL. */
int target_attach(struct loop *loop, pid_t pid, const struct target_callbacks *callbacks, void *arg,
                  struct target **out, struct err *err);

/* MTUI_E_NOENT, MTUI_E_PERM when there is no such program or it may not be run: said at once. */
int target_run(struct loop *loop, const struct target_run_options *options,
               const struct target_callbacks *callbacks, void *arg, struct target **out,
               struct err *err);

/* Lets a waiting program go; the outcome comes as a change to RUNNING or FAILED.
 * MTUI_E_STATE unless it waits. */
int target_go(struct target *t, struct err *err);

enum target_state target_state(const struct target *t);
pid_t target_pid(const struct target *t);
uint64_t target_start_time(const struct target *t);    /* field 22 of /proc/PID/stat, clock ticks */
bool target_is_ours(const struct target *t);           /* started here */
const char *target_executable(const struct target *t); /* started: the resolved path; else NULL */

/* Of a program started here and ended: true and its wait(2) status; an attached process tells
 * none. */
bool target_exit_status(const struct target *t, int *status);
/* "exited with status 3", "killed by SIGSEGV (core dumped)", "ended", "running"; out ≥ 64 bytes. */
char *target_describe(const struct target *t, char *out, size_t size);
const struct err *target_error(const struct target *t); /* TARGET_FAILED */

/* Thread ids now, ascending, at most max written; returns how many there are. */
size_t target_threads(const struct target *t, pid_t *tids, size_t max);

/* Sends a signal through the pidfd. MTUI_E_GONE when it has ended. */
int target_signal(struct target *t, int sig, struct err *err);

/* The last lines of the output, oldest first, as one string of raw bytes with newlines, at most
 * `lines` of them; valid until the loop runs again. Escape before display. */
const char *target_last_lines(const struct target *t, size_t lines, size_t *len);
/* Why the output file is incomplete (disk full), or NULL. */
const char *target_output_problem(const struct target *t);
/* Bytes typed by the user to the program. */
int target_input(struct target *t, const char *bytes, size_t n, struct err *err);
void target_resize(struct target *t, unsigned short rows, unsigned short cols);

enum target_leave {
    TARGET_LEAVE, /* runs on; a small process of ours goes on copying its output to the file */
    TARGET_END    /* SIGTERM, SIGKILL if it is still there after two seconds; only for a program
                   * started here, an attached process is always left */
};
/* NULL allowed. A program that still waits ends. */
void target_free(struct target *t, enum target_leave leave);

#endif

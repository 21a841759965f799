/* A helper process of ours (perf, or the stepper) in the event loop: started in a process group of
 * its own, ended with us, its output drained all the time, reaped without blocking. */
#ifndef MTUI_CORE_CHILD_H
#define MTUI_CORE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/loop.h"

struct child;

struct child_fd {
    int from; /* ours; stays open here, the caller closes it */
    int to;   /* the number that the child finds it under, > 2 */
};

struct child_spec {
    char *const *argv; /* argv[0] is looked up in PATH */
    const struct child_fd *fds;
    size_t n_fds;
    bool spare; /* never killed: others would die with it */
};

/* How a child ended. !known: someone else has reaped it (SIGCHLD ignored): gone, cause unknown. */
struct child_end {
    bool known;
    bool signaled;
    int code; /* exit status, or the signal */
};

struct child_events {
    /* One whole line of its stdout or stderr, raw, without the newline; cut at 8 KiB. */
    void (*line)(void *arg, const char *line, size_t len);
    /* It has ended and all its output was delivered. Once. */
    void (*ended)(void *arg, const struct child_end *end);
    void *arg;
};

/* Starts it: stdin /dev/null, stdout and stderr into one pipe of ours, PAGER=cat, no debuginfod, no
 * user perf configuration, default signal dispositions, SIGTERM when the calling thread ends (so
 * call from the main thread; for a program with file capabilities the kernel drops that at the
 * exec, and it ends when its control descriptor closes). Returns when the program has been
 * executed. MTUI_E_NOENT, MTUI_E_PERM, MTUI_E_IO: it could not be. */
int child_spawn(struct loop *loop, const struct child_spec *spec, const struct child_events *events,
                struct child **out, struct err *err);

/* Kills what still runs (SIGTERM, and SIGCONT for one that someone has stopped; a second later SIGKILL) and reaps it:
 * blocks for that time. One that is to be spared gets ten seconds, and is left alone then. */
void child_free(struct child *c);

/* Delivers the lines that it has written by now, without waiting for the loop to come to them. */
void child_drain(struct child *c);

pid_t child_pid(const struct child *c);

/* MTUI_E_GONE when it has ended; never hits another process that got the same pid, where the kernel
 * has pidfds. */
int child_signal(struct child *c, int sig, struct err *err);

#endif

/* Is this perf ready for signals and commands? Found out from /proc, without asking perf itself:
 * for a perf that has no control descriptor, and to tell a slow start from a perf that never
 * answers.
 *
 * A SIGUSR2 before perf has installed its handlers kills it, and one that comes before its main
 * loop is ignored. In its main loop, and only there, perf waits in poll(2) without a time limit
 * (tools/perf/builtin-record.c, __cmd_record): its handlers are installed (SigCgt in
 * /proc/PID/status) and the thread sits in that call (/proc/PID/syscall). */
#ifndef MTUI_CORE_PERF_READY_H
#define MTUI_CORE_PERF_READY_H

#include <stdbool.h>
#include <sys/types.h>

struct perf_ready {
    bool handlers; /* SIGTERM is caught, and SIGUSR2 caught or ignored */
    bool waiting;  /* in poll without limit: the main loop, nothing to do */
    bool pending;  /* one of SIGUSR2, SIGINT, SIGTERM is not delivered yet */
    bool stopped;  /* by SIGSTOP or the like: it does nothing until SIGCONT, whatever it waited for */
    bool coarse;   /* waiting means only that it sleeps: /proc tells no more of a perf that has file
                      capabilities, to a user without; ask for further signs of life */
};

/* proc_root: "/proc". All false when the process is gone. */
void perf_ready_check(const char *proc_root, pid_t pid, struct perf_ready *ready);

/* The main loop was reached and every signal sent so far has been dealt with. */
bool perf_ready_is_idle(const struct perf_ready *ready);

#endif

/* Starts a program that waits just before its execve(2) until it is told to go.
 *
 * The waiting process is a child of this one, with its final pid and standard streams; everything
 * close-on-exec is closed in it already. It runs in no way ptraced or stopped: it reads a pipe.
 * When this process dies first, it exits. */
#ifndef MTUI_CORE_SPAWN_H
#define MTUI_CORE_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/err.h"

struct spawn_options {
    const char *path;  /* what is exec'ed: spawn_find_program */
    char *const *argv; /* NULL-terminated */
    int tty;           /* stdin, stdout and stderr, in a session of its own without a controlling
                        * terminal; −1: inherited, stdout becomes stderr */
};

struct spawned {
    pid_t pid;
    int go_fd;     /* one byte: go; closing it without: the child exits */
    int status_fd; /* end of file: the execve worked (or the child was killed); else an int: errno
                    */
};

/* Finds argv[0] as execvp(3) does. The path is from malloc. MTUI_E_NOENT, MTUI_E_PERM with a
 * sentence. */
int spawn_find_program(const char *name, char **path, struct err *err);

int spawn_waiting(const struct spawn_options *options, struct spawned *out, struct err *err);

/* The sentence for an errno read from status_fd. */
int spawn_explain(struct err *err, int errno_value, const char *path);

#endif

/* A program on a pseudo-terminal, under a small job-control shell of ours, which says on the terminal what
 * becomes of it:
 *
 *   <<PID n>>                            when it has started
 *   <<STOPPED modes=same>>               it stopped itself; the next line typed continues it
 *   <<EXIT n modes=same>>, <<SIGNAL n modes=changed>>    how it ended, and whether the terminal modes are
 *                                        those of before
 *
 * Everything waits for a text with a deadline; nothing sleeps. */
#ifndef MTUI_TESTS_LIB_PTY_H
#define MTUI_TESTS_LIB_PTY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pty {
    int master;
    pid_t shell, program;
    char *home;  /* a temporary directory */
    int alive;   /* end-of-file when program and shell are gone */
    char *raw;   /* all that was written to the terminal */
    size_t raw_len, raw_cap;
    char *text;  /* the same without escape sequences and control characters */
    size_t text_len, text_cap;
    size_t mark; /* pty_wait looks behind it, and moves it behind what it found */
    int state;   /* of the escape parser */
};

/* env: "NAME=VALUE" strings, NULL at the end, put over a clean environment (TERM=xterm-256color,
 * LC_ALL=C.UTF-8, a HOME of its own that goes with it, an XDG_CONFIG_HOME that does not exist,
 * PATH). argv as for execv. */
struct pty *pty_start(const char *const *env, char *const *argv, int rows, int cols);
/* Ends what is left of it (by its pid), removes its HOME, frees all. */
void pty_free(struct pty *p);

void pty_type(struct pty *p, const char *bytes);
void pty_resize(struct pty *p, int rows, int cols);

/* Reads what is there, waiting for at most ms; false when there was nothing. */
bool pty_pump(struct pty *p, int ms);

/* Reads until text has come (behind the mark); false at the deadline or the end of the output. */
bool pty_wait(struct pty *p, const char *text, int ms);

/* Hangs up; true when program and shell have ended within ms. */
bool pty_hang_up(struct pty *p, int ms);

#endif

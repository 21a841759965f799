/* The terminal side of a program that runs on a pseudo-terminal: its output goes to a file, and the
 * last of it stays in memory for the screen. */
#ifndef MTUI_CORE_PTY_LOG_H
#define MTUI_CORE_PTY_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/loop.h"

struct pty_log;

/* Opens a pty and, when path is not NULL, creates the file (0600). *slave is the program's end, the
 * caller's to close once the program has it. changed is called after new output; NULL allowed. */
int pty_log_new(struct loop *loop, const char *path, unsigned short rows, unsigned short cols,
                loop_fn *changed, void *arg, struct pty_log **out, int *slave, struct err *err);

/* When keep is true and the program may still write, a small process of ours goes on copying to the
 * file until the program's end. NULL allowed. */
void pty_log_free(struct pty_log *p, bool keep);

/* Reads what is there now. */
void pty_log_drain(struct pty_log *p);

/* The last lines, as target_last_lines. */
const char *pty_log_last_lines(const struct pty_log *p, size_t lines, size_t *len);
/* Why the file is incomplete (disk full), or NULL. */
const char *pty_log_problem(const struct pty_log *p);

int pty_log_input(struct pty_log *p, const char *bytes, size_t n, struct err *err);
void pty_log_resize(struct pty_log *p, unsigned short rows, unsigned short cols);

#endif

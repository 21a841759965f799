/* $EDITOR in the foreground of our terminal, while the loop goes on. */
#ifndef MTUI_TUI_EDITOR_H
#define MTUI_TUI_EDITOR_H

#include "core/base/err.h"
#include "core/base/loop.h"

struct editor;

/* complaint is NULL, or a sentence when the editor could not be run or ended badly. The editor is gone
 * (freed) when it is called. */
typedef void editor_done_fn(void *arg, const char *complaint);

/* The editor has stopped itself and nobody else: stop as well, so that the shell comes back; when it
 * returns, the editor is let go on. */
typedef void editor_stopped_fn(void *arg);

/* Starts `COMMAND +LINE PATH` by sh, so that COMMAND may have options; command "" means $VISUAL, $EDITOR,
 * or vi. The terminal must have been left to it (term_leave). done comes from the loop, once. */
int editor_start(struct editor **out, struct loop *loop, const char *command, const char *path, int line,
                 editor_done_fn *done, editor_stopped_fn *stopped, void *arg, struct err *err);

/* Stops waiting for it (the program ends); NULL is fine. */
void editor_free(struct editor *e);

#endif

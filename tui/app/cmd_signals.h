/* Signals of the commands that run without a screen. */
#ifndef MTUI_TUI_CMD_SIGNALS_H
#define MTUI_TUI_CMD_SIGNALS_H

#include <stdbool.h>

/* Handlers that only note: SIGINT, SIGTERM and SIGHUP ask to finish; PIPE, USR1 and USR2 do nothing. They
 * are handlers and not SIG_IGN since what is ignored here would be ignored by every program that is
 * started from here. */
void cmd_catch_signals(void);
/* Only SIGPIPE: a closed pipe becomes an error of write(2). */
void cmd_catch_pipe(void);
/* Ends as SIGPIPE ends a program; what is to be done before the end is done. */
void cmd_end_by_pipe(void);

/* The signal that asked to finish since the last call, or 0. *from_process: another process sent it, not
 * the terminal, whose signals reach a traced program by themselves. */
int cmd_caught_signal(bool *from_process);

#endif

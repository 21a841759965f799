/* Inside tui/term/term: the bytes and modes that put a terminal back, prepared beforehand so that a signal
 * handler only has to write them. */
#ifndef MTUI_TUI_TERM_RESET_H
#define MTUI_TUI_TERM_RESET_H

#include <stddef.h>

#define TERM_MOUSE_ON "\033[?1000h\033[?1002h\033[?1006h"
#define TERM_MOUSE_OFF "\033[?1006l\033[?1002l\033[?1000l"

/* Remembers the terminal and its modes as they are now: those that it is to have in the end. Nothing is
 * armed by this. */
void term_reset_remember(int in_fd, int out_fd);
/* Arms: from now on a fatal signal or exit() writes bytes to the terminal and sets the modes remembered.
 * Bytes are copied (the first 256). */
void term_reset_arm(const char *bytes);
/* The terminal is in order: nothing is to be done any more. */
void term_reset_disarm(void);
/* Writes the bytes and sets the modes, if armed, and disarms. Safe in signal handlers. */
void term_reset_now(void);

#endif

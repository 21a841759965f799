/* A program under tmux: a terminal of another make, whose screen can be read as a person sees it. */
#ifndef MTUI_TESTS_LIB_TMUX_H
#define MTUI_TESTS_LIB_TMUX_H

#include <stdbool.h>

struct tmux;

/* Runs a shell command in a terminal of that size; the server is the test's own, its files lie in dir. */
struct tmux *tmux_start(const char *dir, int rows, int cols, const char *command);
/* Ends the server, and with it what runs in there. */
void tmux_free(struct tmux *t);

/* Types text as it stands. */
void tmux_type(struct tmux *t, const char *text);
/* Presses a key by tmux' name of it: Enter, Escape, Tab, BSpace. */
void tmux_press(struct tmux *t, const char *key);

/* The screen, a line a row; valid until the next call. */
const char *tmux_screen(struct tmux *t);
/* Waits until the text is on the screen; fails the test, and shows the screen, when it does not come. */
void tmux_see(struct tmux *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What the program put onto the terminal's clipboard last, from malloc; "" when nothing. */
char *tmux_clipboard(struct tmux *t);

#endif

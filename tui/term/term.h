/* The terminal: surfaces out, events in. The only user of curses.
 *
 * One terminal at a time. However the program ends (exit, a fatal signal) the terminal is put back:
 * modes as they were, main screen, cursor on, mouse and bracketed paste off. Belongs to one thread. */
#ifndef MTUI_TUI_TERM_H
#define MTUI_TUI_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "tui/term/color.h"
#include "tui/term/keys.h"
#include "tui/term/surface.h"
#include "tui/term/theme.h"

struct terminal;

struct term_options {
    const char *name;     /* TERM; NULL or "" when unset */
    int in_fd, out_fd;    /* −1: the standard ones (in: /dev/tty when standard input is no terminal) */
    bool want_rgb;        /* use an installed NAME-direct entry when there is one */
    bool mouse;
    int escdelay_ms;
    bool need_tty;        /* refuse what is no terminal; false in tests on pipes */
};

/* Takes the terminal over. MTUI_E_NOTSUP, with not one byte written: no terminal, TERM=dumb, or no
 * terminfo entry that would do. notice gets a sentence ("" else) when TERM is unknown and another entry
 * is used in its place, or when want_rgb could not be had. */
int term_open(struct terminal **out, const struct term_options *options, char *notice,
              size_t notice_size, struct err *err);
/* Restores the terminal; NULL is fine. */
void term_close(struct terminal *t);

int term_fd(const struct terminal *t); /* to poll for POLLIN */
enum color_tier term_tier(const struct terminal *t); /* the best that it can show (ignores NO_COLOR) */
void term_size(const struct terminal *t, int *rows, int *cols);
/* Asks the terminal for its size again. */
void term_resize(struct terminal *t);

/* Shows a surface of the terminal's size; sends only what changed. */
void term_show(struct terminal *t, const struct surface *s, const struct theme *theme);
/* The next term_show paints every cell anew. A theme that changed needs this too. */
void term_invalidate(struct terminal *t);

/* Restores the terminal for a while (^Z, an editor) and takes it back. */
void term_leave(struct terminal *t);
void term_enter(struct terminal *t);

void term_set_mouse(struct terminal *t, bool on);
void term_set_escdelay(struct terminal *t, int ms);

/* Copies text to the clipboard (OSC 52), where the terminal is one that may know it. */
bool term_copy(struct terminal *t, const char *text);

struct term_event {
    bool is_mouse;
    struct key key;
    struct mouse mouse;
};

/* The next event that has come; false when there is none now. Never waits, but for the escdelay after a
 * lone Esc. now_ns tells double clicks. */
bool term_read(struct terminal *t, uint64_t now_ns, struct term_event *event);

/* ---- For tests: what curses has been told for a cell ---- */
struct term_cell {
    uint32_t cp, mark;
    int fg, bg; /* colour numbers, −1 default */
    unsigned attr; /* enum cell_attr */
};
bool term_peek(struct terminal *t, int row, int col, struct term_cell *cell);

#endif

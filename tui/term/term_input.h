/* Inside tui/term/term: mouse reports and names of keys, free of curses. */
#ifndef MTUI_TUI_TERM_INPUT_H
#define MTUI_TUI_TERM_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/term/keys.h"

/* A mouse report being read, byte by byte: what follows ESC [ < (SGR: "0;10;5M") or ESC [ M (three
 * bytes). Source: xterm's ctlseqs, "Mouse Tracking". */
struct mouse_report {
    bool active, sgr;
    size_t len;
    char bytes[32];
};

struct mouse_clicks { /* to tell double clicks */
    uint64_t last_ns;
    int row, col, button;
};

void mouse_report_start(struct mouse_report *r, bool sgr);
/* Adds a byte. 1: complete, *m is filled; 0: more to come, or it was dropped (r->active is false then). */
int mouse_report_add(struct mouse_report *r, int byte, struct mouse *m);
/* Makes the second press at one place within 400 ms a MOUSE_DOUBLE. */
void mouse_tell_double(struct mouse_clicks *c, uint64_t now_ns, struct mouse *m);

/* The key for an extended terminfo name such as kUP5 or kDC3 (digit: xterm's modifier parameter). */
bool key_of_capability(const char *name, struct key *key);

#endif

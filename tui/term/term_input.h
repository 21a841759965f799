/* Inside tui/term/term: mouse reports and key sequences, free of curses. */
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

/* A key sequence that terminfo does not know, being read: what follows ESC [ (CSI: parameter bytes, then
 * a final byte) or ESC O (SS3). Sources: ECMA-48 5.4; xterm's ctlseqs, "PC-Style Function Keys". */
struct key_sequence {
    bool active;
    char intro; /* '[' or 'O' */
    size_t len; /* of the whole; bytes holds its first part */
    char bytes[16];
};

enum sequence_state {
    SEQUENCE_MORE,    /* goes on */
    SEQUENCE_KEY,     /* complete: a key */
    SEQUENCE_NOTHING, /* complete, and no key of ours */
    SEQUENCE_BROKEN   /* the character does not belong to it; what came before is dropped */
};

void key_sequence_start(struct key_sequence *q, char intro);
/* Adds a character. Only SEQUENCE_MORE leaves it active; only SEQUENCE_KEY fills *key. */
enum sequence_state key_sequence_add(struct key_sequence *q, uint32_t ch, struct key *key);
/* Nothing came behind ESC [ or ESC O in time: it was Alt-[ or Alt-O, and the sequence ends. False when it
 * has got parameters, so that its rest is still to come. */
bool key_sequence_is_alt(struct key_sequence *q, struct key *key);

/* The key for an extended terminfo name such as kUP5 or kDC3 (digit: xterm's modifier parameter). */
bool key_of_capability(const char *name, struct key *key);

#endif

/* The line editor: the `:` command line, / search, \ filter, questions for a word, the symbol query.
 *
 * Text is UTF-8; the cursor moves by whole characters (with their combining marks) and the line scrolls
 * sideways when it is longer than its field. */
#ifndef MTUI_TUI_PROMPT_H
#define MTUI_TUI_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/term/glyph.h"
#include "tui/term/keys.h"
#include "tui/term/surface.h"

#define PROMPT_MAX 1024 /* bytes, terminator included */

struct prompt;

enum prompt_result {
    PROMPT_IGNORED,   /* not a key for it */
    PROMPT_MOVED,     /* the cursor, nothing else */
    PROMPT_CHANGED,   /* the text */
    PROMPT_DONE,      /* Enter */
    PROMPT_CANCELLED  /* Esc, ^C, or Bksp on an empty line */
};

struct prompt *prompt_new(void);
void prompt_free(struct prompt *p);

/* The text, and the cursor behind it. */
void prompt_set(struct prompt *p, const char *text);
const char *prompt_text(const struct prompt *p);
size_t prompt_cursor(const struct prompt *p); /* in bytes */

/* Characters insert; Left Right Home End ^A ^E ^B ^F move; Bksp ^H Del ^D ^U ^K ^W delete; Alt-B Alt-F
 * move by words; Up Down ^P ^N go through the history; Enter, Esc and ^C end. */
enum prompt_result prompt_key(struct prompt *p, struct key k);
/* True for Alt-B and Alt-F, the only ones of their kind that mean something in a line. */
bool prompt_key_moves_by_word(struct key k);

/* Remembers a line for Up (the last 100; a repeated one moves to the end). Empty ones are ignored. */
void prompt_remember(struct prompt *p, const char *line);

/* Draws label and text into one row of cols columns and puts the surface's cursor there. An ellipsis stands for
 * what is scrolled out at the left. */
void prompt_draw(struct prompt *p, struct surface *s, int row, int col, int cols, const char *label,
                 struct style style, const struct glyphs *g);

/* Replaces the word that ends at the cursor by candidate (completion). The word starts behind the last
 * blank. */
void prompt_complete(struct prompt *p, const char *candidate);
/* That word's bytes; returns where it starts in the text. */
size_t prompt_word(const struct prompt *p, char *out, size_t size);

#endif

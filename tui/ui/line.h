/* One line of text in a room that may be too small for it. */
#ifndef MTUI_TUI_LINE_H
#define MTUI_TUI_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/term/glyph.h"
#include "tui/term/surface.h"

/* Draws text into at most cols columns, as surface_text does. Facts in it are separated by two blanks or
 * more: what does not fit is left out fact by fact, from the last, so that no number is shown in part. Where
 * that would leave half of the room empty, the text ends in an ellipsis instead. */
void line_draw(struct surface *s, int row, int col, int cols, const char *text, struct style style,
               const struct glyphs *g);

/* A fact of a line, and what it is worth: of those that do not fit, the one of the highest rank goes first. */
struct line_fact {
    const char *text; /* "": none */
    int rank;
};

/* Joins the facts into out in their order, with what stands between two of them: all that fit whole into cols
 * columns, those of rank 0 in any case. Returns whether all have come in. */
bool line_join(char *out, size_t size, int cols, const char *between, const struct line_fact *facts, size_t n);

/* Draws text and ends it in an ellipsis when it is longer than cols columns. */
void line_cut(struct surface *s, int row, int col, int cols, const char *text, struct style style,
              const struct glyphs *g);

/* The same for what is typed or grows at its end: the ellipsis stands at its left, the end is seen. */
void line_cut_left(struct surface *s, int row, int col, int cols, const char *text, struct style style,
                   const struct glyphs *g);

/* Draws a sentence over the rows of r, broken at blanks; what is left on the last row as line_cut does. */
void line_wrap(struct surface *s, struct rect r, const char *text, struct style style, const struct glyphs *g);
/* The rows, of cols columns each, that line_wrap needs for all of the text: 0 for none, at least one. */
int line_rows(const char *text, int cols);

#endif

/* A line of source, or of code, in a pane. */
#ifndef MTUI_TUI_SOURCE_DRAW_H
#define MTUI_TUI_SOURCE_DRAW_H

#include <stdbool.h>

#include "tui/term/glyph.h"
#include "tui/term/surface.h"

/* Pointer (when it is the one meant), number or address, text (bytes from outside, tabs are eight columns). */
void source_draw_line(struct surface *s, struct rect row, const char *number, int number_cols,
                      const char *text, bool here, const struct glyphs *g);

#endif

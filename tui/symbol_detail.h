/* The panes below the symbol list: the selected function with its source, and the chosen triggers. */
#ifndef MTUI_TUI_SYMBOL_DETAIL_H
#define MTUI_TUI_SYMBOL_DETAIL_H

#include "tui/glyph.h"
#include "tui/model.h"
#include "tui/surface.h"
#include "tui/symbol_rows.h"

#define SYMBOL_DETAIL_ROWS 9 /* rule, name, raw or why, six source lines */

/* The function in one row of the list; item NULL: none. Long names are cut left by shift_cols. */
void symbol_detail_draw(struct symbol_rows *r, const struct symbol_item *item, struct surface *s,
                        struct rect area, size_t shift_cols, const struct glyphs *g);

/* Rule and one row for each trigger; selected is the row that ^E and Tab are about, SIZE_MAX for none. */
void trigger_pane_draw(const struct model *m, struct surface *s, struct rect area, size_t selected,
                       const struct glyphs *g);

/* Where the function stands: what ACT_SOURCE opens. False when it is not known (yet). */
bool symbol_detail_place(struct symbol_rows *r, const struct symbol_item *item, const char **file,
                         int *line);

#endif

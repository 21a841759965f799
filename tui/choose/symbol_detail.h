/* The panes below the symbol list: the selected function with its source, and the chosen triggers. */
#ifndef MTUI_TUI_SYMBOL_DETAIL_H
#define MTUI_TUI_SYMBOL_DETAIL_H

#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/term/surface.h"
#include "tui/choose/symbol_rows.h"

#define SYMBOL_DETAIL_ROWS 9 /* rule, name, name in the file, source lines */

/* The whole name over as many rows as it takes (three at most), how it is written in the file, the source
 * around its beginning or why there is none; item NULL: no function. */
void symbol_detail_draw(struct symbol_rows *r, const struct symbol_item *item, struct surface *s,
                        struct rect area, const struct glyphs *g);

/* Rule and one row for each trigger; selected is the row that ^E and Tab are about, SIZE_MAX for none. */
void trigger_pane_draw(const struct model *m, struct surface *s, struct rect area, size_t selected,
                       const struct glyphs *g);

/* Where the function stands: what ACT_SOURCE opens. False when it is not known (yet). */
bool symbol_detail_place(struct symbol_rows *r, const struct symbol_item *item, const char **file,
                         int *line);

#endif

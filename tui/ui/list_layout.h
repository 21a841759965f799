/* Inside tui/ui/list: which columns fit and where, and how a cell is cut, aligned and highlighted. */
#ifndef MTUI_TUI_LIST_LAYOUT_H
#define MTUI_TUI_LIST_LAYOUT_H

#include "tui/ui/list.h"

#define LIST_GUTTER 2 /* columns for pointer and mark before the first column */

struct list_place {
    size_t column;
    int col, cols; /* from the left edge of the list */
};

struct list_layout {
    struct list_place place[LIST_COLUMNS_MAX];
    size_t n;
    size_t stretched; /* the column that stretches, or SIZE_MAX */
};

/* Places the columns in width cols: those with the highest priority number go first when there is not
 * room for all; what is left goes to the last column that stretches, but for the share of those that grow. */
void list_layout_make(struct list_layout *out, const struct list_column *columns, size_t n,
                      uint32_t hidden, int cols);

/* The column shown at col, or SIZE_MAX. */
size_t list_layout_column(const struct list_layout *layout, int col);

/* Where pattern stands in text (see list_search), or NULL. */
const char *list_text_find(const char *text, const char *pattern);

void list_draw_cell(struct surface *s, int row, int col, int cols, const struct list_cell *cell,
                    bool right, size_t shift_cols, const char *pattern, const struct glyphs *g);

#endif

/* Screen 2, Symbols: which functions of the chosen process fire a snapshot. */
#ifndef MTUI_TUI_V_SYMBOL_H
#define MTUI_TUI_V_SYMBOL_H

#include "tui/ui/view.h"

extern const struct view_ops view_symbol;

/* What view_symbol.create does, over another /proc (tests). */
void *symbol_view_new(struct model *m, const char *proc_root);
/* Waits until names and source positions are there (tests). */
void symbol_view_wait(void *view);

#endif

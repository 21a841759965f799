/* One call against the median call of its function, function by function: what was different this time. */
#ifndef MTUI_TUI_V_COMPARE_H
#define MTUI_TUI_V_COMPARE_H

#include "tui/ui/view.h"

extern const struct view_ops view_compare;

#endif

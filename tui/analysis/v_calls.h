/* All calls of one function, the longest first: outliers, and how the durations are spread. */
#ifndef MTUI_TUI_V_CALLS_H
#define MTUI_TUI_V_CALLS_H

#include "tui/ui/view.h"

extern const struct view_ops view_calls;

#endif

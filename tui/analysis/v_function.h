/* The Functions screen: statistics of every function over the trace, the range A–B, or one thread; who
 * calls it, whom it calls, its longest calls. */
#ifndef MTUI_TUI_V_FUNCTION_H
#define MTUI_TUI_V_FUNCTION_H

#include "tui/ui/view.h"

extern const struct view_ops view_function;

#endif

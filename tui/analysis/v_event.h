/* The Events screen: calls, returns, gaps and marks in the order of time around the timeline's cursor. */
#ifndef MTUI_TUI_V_EVENT_H
#define MTUI_TUI_V_EVENT_H

#include "tui/ui/view.h"

extern const struct view_ops view_event;

#endif

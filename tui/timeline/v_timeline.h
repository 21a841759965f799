/* The Timeline screen: see tui/timeline/timeline.h for how it is made. */
#ifndef MTUI_TUI_V_TIMELINE_H
#define MTUI_TUI_V_TIMELINE_H

#include "tui/ui/view.h"

extern const struct view_ops view_timeline;

#endif

/* The screens, in the order of their tabs, then those without one. A new screen is one line in screens.c. */
#ifndef MTUI_TUI_SCREENS_H
#define MTUI_TUI_SCREENS_H

#include <stddef.h>

#include "tui/ui/view.h"

extern const struct view_ops *const screens[];
extern const size_t screens_count;

#endif

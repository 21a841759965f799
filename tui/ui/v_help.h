/* The help screen: every key and command of the table of actions, in sections that fold. */
#ifndef MTUI_TUI_V_HELP_H
#define MTUI_TUI_V_HELP_H

#include "tui/ui/view.h"

extern const struct view_ops view_help;

/* Puts the sections of that screen first and open (NULL: everywhere), from the keys as bound now. */
void v_help_explain(void *view, const struct keymap *km, const struct view_ops *screen);
/* Goes to the settings and their values; above them, when there are any, to the wrong lines of the configuration
 * file. */
void v_help_show_settings(void *view);

#endif

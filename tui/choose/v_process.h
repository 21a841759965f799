/* Screen 1, Processes. */
#ifndef MTUI_TUI_V_PROCESS_H
#define MTUI_TUI_V_PROCESS_H

#include "tui/ui/view.h"

extern const struct view_ops view_process;

/* What view_process.create does, over another /proc (tests). */
void *process_view_new(struct model *m, const char *proc_root);

#endif

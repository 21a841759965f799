/* The Record screen: plan, live state of the recorder, snapshots, hits, log. */
#ifndef MTUI_TUI_V_RECORD_H
#define MTUI_TUI_V_RECORD_H

#include "tui/ui/view.h"

extern const struct view_ops view_record;

#endif

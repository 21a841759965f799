/* Events as text: rows of the Events screen and the pane about one of them. */
#ifndef MTUI_TUI_EVENT_DRAW_H
#define MTUI_TUI_EVENT_DRAW_H

#include "tui/analysis/event_list.h"
#include "tui/term/glyph.h"
#include "tui/term/surface.h"
#include "tui/ui/function_names.h"

/* Header in the first row of r, events below it. */
void event_draw_rows(const struct event_list *l, const struct trace *t, struct function_names *names,
                     struct surface *s, struct rect r, const struct glyphs *g);

#define EVENT_PANE_ROWS 5
void event_draw_pane(const struct event_list *l, const struct trace *t, struct function_names *names,
                     struct surface *s, struct rect r, const struct glyphs *g);

#endif

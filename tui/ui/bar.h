/* The rows that every screen has: tabs above, status and key bar below; drawn and hit-tested. */
#ifndef MTUI_TUI_BAR_H
#define MTUI_TUI_BAR_H

#include <stddef.h>

#include "tui/ui/actions.h"
#include "tui/ui/model.h"
#include "tui/term/surface.h"
#include "tui/ui/view.h"

/* Row 0: name, one tab a screen ("[1 Processes] 2 Symbols …"), and at the right end `state`. active may
 * be outside of the screens (help). Titles give way to bare numbers where the row is narrow. */
void bar_draw_tabs(struct surface *s, int row, const struct view_ops *const *screens, size_t n,
                   size_t active, const char *state, bool recording, const struct glyphs *g);
/* The tab at col, or SIZE_MAX. */
size_t bar_tab_at(const struct surface *s, const struct view_ops *const *screens, size_t n, size_t active,
                  int col);

/* The last row: keys and labels of the actions that matter here. */
void bar_draw_keys(struct surface *s, int row, const struct keymap *km, const enum context *contexts,
                   size_t n);
/* The action at col, or ACT_NONE. */
enum action bar_key_at(const struct surface *s, const struct keymap *km, const enum context *contexts,
                       size_t n, int col);

/* The row above: a message in the colour of its severity (errors begin with "! "), or the view's own
 * status; as tui/ui/line.h draws lines. */
void bar_draw_status(struct surface *s, int row, const char *say, enum model_severity severity,
                     const char *status, const struct glyphs *g);

/* The row above a list: " Filter: TEXT" and behind it `note` ("": none), at the right end `right`, all one column
 * apart at least. A filter that has no room is cut at its left; `right` gives way where nothing of it would be seen. */
void bar_draw_filter(struct surface *s, struct rect r, const char *filter, const char *note, const char *right,
                     const struct glyphs *g);

/* A pane's title row: "-- title ----------------- right --" over cols columns. */
void bar_draw_rule(struct surface *s, int row, int col, int cols, const char *title,
                   const char *right, const struct glyphs *g);

#endif

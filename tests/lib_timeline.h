/* A screen of a trace alone on a surface, with a model and a theme: the Timeline where no other is named. */
#ifndef MTUI_TESTS_LIB_TIMELINE_H
#define MTUI_TESTS_LIB_TIMELINE_H

#include <stdbool.h>

#include "core/base/loop.h"
#include "tui/term/theme.h"
#include "tui/timeline/timeline.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"

/* A server of two threads, in the text form of lib_gentrace.h, with a gap and a trigger. */
extern const char timeline_server[];

struct rig {
    struct loop *loop; /* NULL: work is done at once */
    struct model *m;
    struct trace *t; /* the rig's */
    struct theme *theme;
    const struct view_ops *ops;
    void *view;
    struct timeline *tl; /* the view, where it is the Timeline */
    struct surface *s;
};

void rig_open(struct rig *r, struct trace *t, enum glyph_tier glyphs, enum color_tier color, int rows,
              int cols);
/* The same with work between frames; the loop is the rig's. */
void rig_open_on(struct rig *r, struct loop *loop, struct trace *t, enum glyph_tier glyphs, enum color_tier color,
                 int rows, int cols);
/* Another screen, shown: unicode, 256 colours. */
void rig_open_view(struct rig *r, const struct view_ops *ops, const char *text, int rows, int cols);
void rig_close(struct rig *r);
/* 100 × 30, unicode, 256 colours, the whole trace. */
void opened(struct rig *r, const char *text);

/* The app's rows: tabs above, status and keys below. */
void draw(struct rig *r);
/* Actions that must be taken. */
void act(struct rig *r, enum action a);
void act_with(struct rig *r, enum action a, const char *arg);
/* The same, then drawn. */
void act_drawn(struct rig *r, enum action a, const char *arg);

const struct span *selected(struct rig *r);
const char *selected_name(struct rig *r);
/* The selected span can be seen: some cell of the rows wears the selection. */
bool selection_on_screen(struct rig *r);

#endif

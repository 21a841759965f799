/* The Timeline screen alone on a surface, with a model, a theme and a trace. */
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
    struct timeline *tl;
    struct surface *s;
};

void rig_open(struct rig *r, struct trace *t, enum glyph_tier glyphs, enum color_tier color, int rows,
              int cols);
/* The same with work between frames; the loop is the rig's. */
void rig_open_on(struct rig *r, struct loop *loop, struct trace *t, enum glyph_tier glyphs, enum color_tier color,
                 int rows, int cols);
void rig_close(struct rig *r);
/* 100 × 30, unicode, 256 colours, the whole trace. */
void opened(struct rig *r, const char *text);

/* The app's rows: tabs above, status and keys below. */
void draw(struct rig *r);
/* Actions that must be taken. */
void act(struct rig *r, enum action a);
void act_with(struct rig *r, enum action a, const char *arg);

const struct span *selected(struct rig *r);
const char *selected_name(struct rig *r);
/* The selected span can be seen: some cell of the rows wears the selection. */
bool selection_on_screen(struct rig *r);

#endif

/* The screens of a trace over the whole ui: driven by keys and commands, read from the surface. */
#ifndef MTUI_TESTS_LIB_SCREENS_H
#define MTUI_TESTS_LIB_SCREENS_H

#include <stdbool.h>

#include "core/base/loop.h"
#include "decode/trace/trace.h"
#include "tui/term/glyph.h"
#include "tui/term/surface.h"
#include "tui/term/theme.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"
#include "tui/ui/ui.h"

struct screens {
    const struct view_ops *views[6];
    struct model *m;
    struct keymap *km;
    struct theme *theme;
    struct ui *ui;
    struct surface *s;
    struct trace *t;
};

struct screens_setup {
    struct trace *t;              /* taken over; NULL: none is open */
    struct loop *loop;            /* NULL: the work on a trace is done at once */
    struct settings *settings;    /* NULL: none */
    const struct ui_hooks *hooks; /* NULL: none */
    const struct view_ops *more;  /* a screen behind Timeline, Functions, Events, Calls, Compare; NULL: none */
    enum glyph_tier glyphs;
    int rows, cols;
};

/* Opened and drawn. Loop, settings, hooks and `more` stay the caller's and must outlive it. */
void screens_open(struct screens *x, const struct screens_setup *setup);
void screens_close(struct screens *x);

/* Keys by name, blanks between them; then drawn. */
void screens_press(struct screens *x, const char *keys);
/* A prompt that the key opens: the text in place of what stands there, and Enter. */
void screens_type(struct screens *x, const char *opener, const char *text);
/* A `:` command that must succeed; what was said before is forgotten. */
void screens_command(struct screens *x, const char *line);
/* Whether the text stands somewhere. */
bool screens_see(const struct screens *x, const char *text);

#endif

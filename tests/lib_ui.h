/* The whole ui on a surface, with three small views that write down what comes to them: Processes (a
 * list), Record (handles recording commands only) and Timeline. */
#ifndef MTUI_TESTS_LIB_UI_H
#define MTUI_TESTS_LIB_UI_H

#include <stdbool.h>

#include "tui/ui/actions.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"
#include "tui/term/surface.h"
#include "tui/ui/ui.h"

#define UI_SEEN 3

/* A view's state: log has what came, as "command=arg " "<Key>" "mouseROW,COL " "changedN ". */
struct seen {
    struct model *m;
    char log[512];
    bool typing, takes_quit;
};

/* The views of the present fixture, in the order of their tabs. */
extern struct seen *made[UI_SEEN];

struct fixture {
    struct settings *settings;
    struct keymap *km;
    struct model *m;
    struct ui *ui;
    struct surface *s; /* 30 × 100 at first */
    struct view_ops ops[UI_SEEN];
    const struct view_ops *list[UI_SEEN];
    bool suspended; /* what the hooks were told */
    char copied[64], edited[64];
    int settings_rc; /* what the settings hook is to answer */
};

/* For cmocka_unit_test_setup_teardown: *state is a struct fixture. */
int ui_set_up(void **state);
int ui_tear_down(void **state);

/* Keys by name, text by character, a command line; and the text of a row after drawing. */
void press(struct fixture *f, const char *keys);
void type(struct fixture *f, const char *text);
int command(struct fixture *f, const char *line, struct err *e);
void assert_row(struct fixture *f, int row, const char *want);

#endif

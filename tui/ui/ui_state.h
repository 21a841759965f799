/* Inside tui/ui/ui: the state that its parts share. */
#ifndef MTUI_TUI_UI_STATE_H
#define MTUI_TUI_UI_STATE_H

#include "core/base/vec.h"
#include "tui/ui/prompt.h"
#include "tui/ui/ui.h"

enum ui_mode {
    UI_NORMAL,
    UI_COMMAND,  /* the `:` line */
    UI_SEARCH,
    UI_FILTER,
    UI_LINE,     /* a line that a view asked for */
    UI_QUESTION, /* y or n */
    UI_LETTER    /* the letter of a mark */
};

struct ui {
    struct model *m;
    struct keymap *km;
    const struct ui_hooks *hooks;
    void *hooks_arg;

    const struct view_ops *const *screens;
    size_t n_screens, n_tabs;
    void **views;
    void *help;
    bool help_shown;
    size_t active;
    VEC(size_t) back; /* the screens that `back` returns to, last first */

    enum ui_mode mode;
    struct prompt *prompts[UI_LINE + 1]; /* each has its own history */
    char *label;
    enum action letter_for;
    char *search;  /* the last pattern that was entered */
    int depth;     /* of commands that run commands */

    int rows, cols; /* of the last draw */
    struct rect body;
};

/* The view shown: help or a screen. */
const struct view_ops *ui_ops(const struct ui *ui);
void *ui_view(const struct ui *ui);

void ui_go(struct ui *ui, size_t screen);
void ui_show_help(struct ui *ui, bool shown);

/* ui_prompt.c: the modes in which keys do not go to the view. */
void ui_open_prompt(struct ui *ui, enum ui_mode mode, const char *label, const char *initial);
void ui_prompt_key(struct ui *ui, struct key k);
void ui_draw_prompt(struct ui *ui, struct surface *s, int row);

/* ui_action.c */
bool ui_run_binding(struct ui *ui, const struct binding *b);

#endif

/* The user interface without a terminal: views, tabs, prompts, questions, commands; keys in, surface out.
 *
 * tui/app/app.c feeds it from the terminal; tests feed it by hand. */
#ifndef MTUI_TUI_UI_H
#define MTUI_TUI_UI_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "tui/ui/actions.h"
#include "tui/term/keys.h"
#include "tui/ui/model.h"
#include "tui/term/surface.h"
#include "tui/ui/view.h"

struct ui;

/* What only the program around can do. Members may be NULL: then it says that it cannot be done here. */
struct ui_hooks {
    void (*suspend)(void *arg);
    void (*redraw)(void *arg);
    void (*edit)(void *arg, const char *path, int line);
    bool (*copy)(void *arg, const char *text);
    /* A setting changed (theme, glyphs, mouse, escdelay…): apply it, update the model. */
    int (*settings)(void *arg, struct err *err);
};

#define UI_MIN_ROWS 16
#define UI_MIN_COLS 60

/* Creates every view and shows the first, or the one that the model was told to go to (the first is then where
 * the way back ends, and has cost nothing). The model's on_change is taken over. screens must
 * outlive the ui; model, keymap and hooks stay the caller's. */
struct ui *ui_new(struct model *m, struct keymap *km, const struct view_ops *const *screens, size_t n,
                  const struct ui_hooks *hooks, void *hooks_arg);
void ui_free(struct ui *ui);

/* Alt with a character, where that means nothing, is Esc and then the character. */
void ui_key(struct ui *ui, struct key k);
void ui_mouse(struct ui *ui, const struct mouse *m);
/* About every second. */
void ui_tick(struct ui *ui);

/* Does what views asked for in model.want, except quit, which is the caller's. Done by ui_key, ui_mouse,
 * ui_tick and ui_command themselves; call it after other callbacks. */
void ui_take_requests(struct ui *ui);

/* Draws the whole screen into s, at its size. */
void ui_draw(struct ui *ui, struct surface *s);

/* Runs one `:` command line (with or without the colon). An error is a sentence: unknown command, wrong
 * arguments, nothing here that does that. */
int ui_command(struct ui *ui, const char *line, struct err *err);

/* An action as if by its key; arg may be NULL. False when nothing handled it. */
bool ui_action(struct ui *ui, enum action act, const char *arg);

/* The name of the view that is shown ("help" too). */
const char *ui_screen(const struct ui *ui);

/* Conditions of `wait`: "text TEXT" (on the screen), "screen NAME", and those of the views. 1 holds, 0
 * not yet, −1 nobody knows it. */
int ui_condition(struct ui *ui, const char *name, const char *arg);

/* Writes the screen as text, one line a row, to a file. */
int ui_save_screen(struct ui *ui, const char *path, struct err *err);

#endif

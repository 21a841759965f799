/* What a screen is: one file that exports one `const struct view_ops`.
 *
 * The app creates every view once at start (create must be quick), draws the one that is shown, and
 * hands it actions, text keys and the mouse. A view keeps its state private, reads and changes what
 * screens share through the model (tui/ui/model.h), and never touches the terminal, so that tests make a
 * model, create a view, feed it and read the surface. All calls come from the loop's thread. Members
 * marked optional may be NULL. */
#ifndef MTUI_TUI_VIEW_H
#define MTUI_TUI_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/ui/actions.h"
#include "tui/ui/filter_help.h"
#include "tui/term/keys.h"
#include "tui/term/surface.h"

struct model;

/* What changed in the model; see view_ops.changed. */
enum model_change {
    MODEL_TARGET,   /* the chosen process */
    MODEL_TRIGGERS, /* the chosen triggers */
    MODEL_SESSION,  /* a recording began, made progress, or ended */
    MODEL_TRACE,    /* another trace (or none): pointers into the old one are dead after the call */
    MODEL_CURSOR,   /* the time, thread or range that screens share */
    MODEL_SETTINGS, /* a setting, the theme, the glyphs */
    MODEL_TRACE_GREW, /* more of the same trace: another object that holds what the old one had (threads,
                         closed calls, ids of functions; calls may stand deeper). What is shown stays */
    MODEL_CHANGES
};

#define VIEW_CONTEXTS_MAX 4
#define VIEW_LACKS_MAX 8

struct view_ops {
    const char *name;  /* "timeline": `wait screen timeline`, the command that goes there */
    const char *title; /* "Timeline", in the tab */
    bool apart;        /* has no tab: other screens lead to it, `back` leads back. Such screens come last */

    /* Where its keys are looked up, most specific first; CTX_GLOBAL follows by itself. */
    enum context contexts[VIEW_CONTEXTS_MAX];
    size_t context_count;
    /* Actions of these contexts that mean nothing here: help leaves them out. ACT_NONE ends them. */
    enum action lacks[VIEW_LACKS_MAX];

    const struct filter_help *filter; /* NULL: nothing to filter */

    /* The result is handed to every other member as `view`. */
    void *(*create)(struct model *m);
    void (*destroy)(void *view);

    /* Draws into r, which is cleared (rows 1 to rows−3 of the screen: the app has the tab row, the
     * status row and the key bar). r may be of any size, also 0. */
    void (*draw)(void *view, struct surface *s, struct rect r);

    /* Optional: the view comes to the front / leaves it. */
    void (*show)(void *view);
    void (*hide)(void *view);

    /* An action by key or `:` command; arg is NULL or what followed the command (one letter for marks).
     * True when it was handled; the app does its own part otherwise, or says that it means nothing
     * here. ACT_SEARCH and ACT_FILTER come with the pattern once it is typed, ACT_SEARCH also while it
     * is being typed when search_live is set; an empty pattern clears. ACT_CANCEL comes for Esc. ACT_QUIT
     * comes to every view before mtui ends: one that returns true has taken the leaving over (it asks what
     * it must, and calls model_quit). Actions that belong to one screen (`:ping`), or to none, come to the
     * other views too when the one shown does not handle them; so does ACT_SNAPSHOT. */
    bool (*action)(void *view, enum action act, const char *arg);
    bool search_live;

    /* Optional: true while typing goes to the view (a query): text keys then go to key(), not to
     * bindings. */
    bool (*typing)(const void *view);
    /* Optional: keys that are text (while typing) and keys that are bound to nothing; true = used. */
    bool (*key)(void *view, struct key k);

    /* Optional: a mouse event in r (rows and columns of the whole screen); r is that of the last draw. */
    bool (*mouse)(void *view, const struct mouse *mouse, struct rect r);

    /* Optional: about every second while it is shown (the app's timer). Finer needs: loop timers. */
    void (*tick)(void *view);

    /* Optional: something that screens share has changed; comes to every view, shown or not. */
    void (*changed)(void *view, enum model_change what);

    /* Optional: one line of text, empty when out[0] is left '\0'. status: the row above the key bar.
     * state: the right end of the tab row ("snap 1  9.12 ms"). Escaped by the drawing. */
    void (*status)(void *view, char *out, size_t size);
    void (*state)(void *view, char *out, size_t size);

    /* Optional: conditions for `wait NAME [ARGS]` in scripts that belong to this view, such as
     * "snapshots" "2": 1 holds, 0 not yet, −1 not mine. arg is "" when there is none. */
    int (*condition)(void *view, const char *name, const char *arg);
};

/* Whether an action of its contexts means nothing there. */
static inline bool view_lacks(const struct view_ops *ops, enum action act)
{
    for (size_t i = 0; i < VIEW_LACKS_MAX && ops->lacks[i] != ACT_NONE; i++)
        if (ops->lacks[i] == act)
            return true;
    return false;
}

#endif

/* The program with a screen: terminal, signals, timers, script, and the ui, in one loop. */
#ifndef MTUI_TUI_APP_H
#define MTUI_TUI_APP_H

#include "core/base/err.h"
#include "tui/ui/model.h"

struct loop;

struct tui_options {
    struct loop *loop;  /* the caller's; also what recorders and decoders run in */
    const char *theme, *glyphs, *color; /* from the command line, above the settings; NULL: not given */
    const char *script; /* a file for tui/ui/script, or NULL */
    const char *screen; /* view_ops.name of the first screen; NULL: the first tab */

    /* Called when model and views are there and before the first drawing: to choose a target, open a
     * trace, start a recording. A negative result ends mtui with that error. NULL: nothing to do. */
    int (*start)(void *arg, struct model *m, struct err *err);
    /* Called at the end while model and views are still there. NULL: nothing to do. */
    void (*stop)(void *arg, struct model *m);
    void *arg;
};

/* Runs until the user leaves, the terminal hangs up, or SIGTERM, SIGINT or SIGHUP asks; the terminal is
 * restored then. Returns the exit status: 0, or 1 with a sentence on stderr (no terminal, a bad config
 * file, a script that failed). Call setlocale(LC_ALL, "") before. */
int tui_main(const struct tui_options *options);

#endif

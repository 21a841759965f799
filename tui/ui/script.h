/* Scripts: `:` commands from a file, one a line, that drive mtui as a user would.
 *
 *   # what a line may be
 *   wait screen processes
 *   key / d e m o Enter
 *   type "some text"
 *   wait text "demo-server" 5s       a condition (ui_condition) and a time limit, 10 s when left out
 *   save-screen /tmp/screen.txt
 *   quit
 *
 * A command that fails or a wait that runs out ends the script with "FILE:LINE: sentence". When the file
 * ends without `quit`, mtui goes on with the keyboard. */
#ifndef MTUI_TUI_SCRIPT_H
#define MTUI_TUI_SCRIPT_H

#include <stdint.h>

#include "core/base/err.h"
#include "tui/ui/ui.h"

struct script;

/* Reads the whole file and checks that every line is a command. */
int script_open(struct script **out, const char *path, struct err *err);
void script_free(struct script *s);

enum script_state {
    SCRIPT_MORE,    /* a command was run: call again when its effects are on the screen */
    SCRIPT_WAITING, /* a condition does not hold yet: call again soon */
    SCRIPT_DONE
};

/* Runs the next command. Returns enum script_state or a negative error. */
int script_step(struct script *s, struct ui *ui, uint64_t now_ns, struct err *err);

#endif

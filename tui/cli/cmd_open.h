/* Opening a recording on the screen. */
#ifndef MTUI_TUI_CMD_OPEN_H
#define MTUI_TUI_CMD_OPEN_H

#include "tui/cli/cli.h"
#include "tui/ui/model.h"

struct cmd_opening;

/* Begins to decode c->path in the background; the trace goes to the model as far as it is
 * there, and grows. A path that cannot be opened at all is an error. */
int cmd_open_begin(struct cli *c, struct model *m, struct cmd_opening **out, struct err *err);
/* The snapshot asked for, as decode/open/open.h takes it. */
unsigned cmd_open_snapshot(const struct cli *c);
/* Cancels what runs, and runs the loop until it has stopped. NULL allowed. */
void cmd_open_end(struct cmd_opening *o);

#endif

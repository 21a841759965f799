/* Commands that end on a screen: home, run and attach without --batch, open. */
#ifndef MTUI_TUI_CMD_SCREEN_H
#define MTUI_TUI_CMD_SCREEN_H

#include "tui/cli/cli.h"

/* Runs the program with a screen; returns the exit status. */
int cmd_screen(struct cli *c);

#endif

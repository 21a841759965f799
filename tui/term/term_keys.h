/* Inside tui/term/term: the keys that curses tells apart, by the names that it gives them. Free of curses. */
#ifndef MTUI_TUI_TERM_KEYS_H
#define MTUI_TUI_TERM_KEYS_H

#include <stdbool.h>

#include "tui/term/keys.h"

/* The key for a name as keyname(3X) gives it ("KEY_UP", "KEY_F(5)", "kUP5"); false for names that mean
 * nothing here. */
bool key_of_curses_name(const char *name, struct key *key);

#endif

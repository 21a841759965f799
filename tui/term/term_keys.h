/* Inside tui/term/term: what keys curses tells apart, by terminfo and beyond it. */
#ifndef MTUI_TUI_TERM_KEYS_H
#define MTUI_TUI_TERM_KEYS_H

#include <stdbool.h>

#include "tui/term/keys.h"

/* Key codes of ours, past those that curses gives out: a mouse report begins. */
#define KEYCODE_SGR 3000
#define KEYCODE_X10 3001

/* Teaches the screen of curses the common sequences that its terminfo entry lacks. */
void term_keys_define(void);
/* The key for a code of curses; false for codes that mean nothing here. */
bool term_key_of_code(int code, struct key *key);

#endif

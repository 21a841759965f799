#include "tui/term/term_keys.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tui/term/term_input.h"

static const struct {
    const char *name;
    struct key key;
} names[] = {
    {"KEY_UP", {K_UP, 0}}, {"KEY_DOWN", {K_DOWN, 0}}, {"KEY_LEFT", {K_LEFT, 0}},
    {"KEY_RIGHT", {K_RIGHT, 0}}, {"KEY_HOME", {K_HOME, 0}}, {"KEY_END", {K_END, 0}},
    {"KEY_FIND", {K_HOME, 0}}, {"KEY_SELECT", {K_END, 0}}, {"KEY_A1", {K_HOME, 0}},
    {"KEY_C1", {K_END, 0}}, {"KEY_A3", {K_PGUP, 0}}, {"KEY_C3", {K_PGDN, 0}},
    {"KEY_PPAGE", {K_PGUP, 0}}, {"KEY_NPAGE", {K_PGDN, 0}}, {"KEY_IC", {K_INSERT, 0}},
    {"KEY_DC", {K_DELETE, 0}}, {"KEY_BACKSPACE", {K_BACKSPACE, 0}}, {"KEY_ENTER", {K_ENTER, 0}},
    {"KEY_BTAB", {K_TAB, K_SHIFT}}, {"KEY_SLEFT", {K_LEFT, K_SHIFT}},
    {"KEY_SRIGHT", {K_RIGHT, K_SHIFT}}, {"KEY_SF", {K_DOWN, K_SHIFT}}, {"KEY_SR", {K_UP, K_SHIFT}},
    {"KEY_SHOME", {K_HOME, K_SHIFT}}, {"KEY_SEND", {K_END, K_SHIFT}},
    {"KEY_SPREVIOUS", {K_PGUP, K_SHIFT}}, {"KEY_SNEXT", {K_PGDN, K_SHIFT}},
    {"KEY_SDC", {K_DELETE, K_SHIFT}}, {"KEY_SIC", {K_INSERT, K_SHIFT}},
};

bool key_of_curses_name(const char *name, struct key *key)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, name) == 0) {
            *key = names[i].key;
            return true;
        }
    }
    /* xterm's entry counts on past F12 for shift, control, both, Alt, and Alt with shift. */
    static const uint32_t mods[] = {0, K_SHIFT, K_CTRL, K_CTRL | K_SHIFT, K_ALT, K_ALT | K_SHIFT};
    unsigned n = 0;
    if (sscanf(name, "KEY_F(%2u)", &n) == 1 && n >= 1 && n <= 63) {
        *key = (struct key){K_F1 + (n - 1) % 12, mods[(n - 1) / 12]};
        return true;
    }
    return key_of_capability(name, key);
}

/* Input events and the names of keys.
 *
 * A key is a Unicode code point or one of enum key_code (which lie past the last code point), plus
 * modifiers. Normal form: a printable character carries its shift itself ('N', not shift + 'n');
 * control characters are the small letter with K_CTRL ('n' + K_CTRL for ^N), except Enter, Tab, Esc
 * and Backspace, which are named keys. */
#ifndef MTUI_TUI_KEYS_H
#define MTUI_TUI_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

enum key_code {
    K_NONE = 0,
    K_UP = 0x110000,
    K_DOWN,
    K_LEFT,
    K_RIGHT,
    K_HOME,
    K_END,
    K_PGUP,
    K_PGDN,
    K_INSERT,
    K_DELETE,
    K_BACKSPACE,
    K_ENTER,
    K_TAB,
    K_ESC,
    K_F1,
    K_F12 = K_F1 + 11,
    K_CODE_END
};

enum key_mod { K_SHIFT = 1, K_ALT = 2, K_CTRL = 4 };

struct key {
    uint32_t code;
    uint32_t mods; /* enum key_mod */
};

enum mouse_kind {
    MOUSE_DOWN,
    MOUSE_UP,
    MOUSE_DRAG,   /* moved while a button is held */
    MOUSE_DOUBLE, /* the second of two presses at one place within 400 ms, instead of MOUSE_DOWN */
    MOUSE_WHEEL_UP,
    MOUSE_WHEEL_DOWN
};

struct mouse {
    enum mouse_kind kind;
    int row, col;  /* of the screen, from 0 */
    int button;    /* 1 left, 2 middle, 3 right; 0 for the wheel */
    uint32_t mods; /* enum key_mod */
};

/* The longest name with its terminator: "Alt-S-^PgUp". */
#define KEY_NAME_MAX 24

static inline bool key_equal(struct key a, struct key b)
{
    return a.code == b.code && a.mods == b.mods;
}

/* True for a character that typing would insert. */
bool key_is_text(struct key k);

/* Brings a key into normal form (see above); 8 and 127 become Backspace. */
struct key key_normal(struct key k);

/* One name: a character, or Up Down Left Right Home End PgUp PgDn Ins Del Bksp Enter Tab Esc Space
 * F1–F12; before it any of `S-`, `Alt-` (or `A-`, `M-`), and `^` (or `C-`, `Ctrl-`). A lone `^` is the
 * character. The whole string must parse; case of names does not matter. */
int key_parse(const char *name, struct key *key, struct err *err);

/* The canonical name ("^N", "S-Tab", "Alt-1", "Space"); out must hold KEY_NAME_MAX bytes; returns
 * out. key_parse gives back the same key. */
char *key_format(struct key k, char *out);

#endif

/* Settings: a typed table, changed by `set NAME VALUE` on the command line of mtui, in scripts, and in
 * $XDG_CONFIG_HOME/mtui/config (~/.config when unset), whose grammar is that of the `:` commands:
 *
 *   # comment
 *   set refresh 2s
 *   theme light
 *   bind timeline z zoom-range
 *   unbind everywhere F10
 *
 * To add a setting: one line in SETTINGS. */
#ifndef MTUI_TUI_SETTINGS_H
#define MTUI_TUI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/conf.h"
#include "core/base/err.h"
#include "tui/ui/actions.h"

enum setting_type {
    SETTING_BOOL,     /* on, off */
    SETTING_INT,      /* limits: "MIN MAX" */
    SETTING_DURATION, /* "1s"; limits: "MIN MAX", durations too */
    SETTING_CHOICE,   /* limits: the words */
    SETTING_TEXT
};

/* X(id, name, type, default, limits, help) */
#define SETTINGS(X)                                                                                \
    X(THEME, "theme", TEXT, "default", "", "colours and attributes: a name or a file")             \
    X(COLOR, "color", CHOICE, "auto", "auto mono 16 256 rgb", "how many colours to use")           \
    X(GLYPHS, "glyphs", CHOICE, "auto", "auto unicode vga ascii", "characters for pictures")       \
    X(MOUSE, "mouse", BOOL, "on", "", "let mtui have the mouse")                                   \
    X(ESCDELAY, "escdelay", INT, "50", "1 1000", "ms that an Esc waits for the rest of a key")     \
    X(REFRESH, "refresh", DURATION, "1s", "100ms 60s", "how often lists are read again")           \
    X(FOLLOW, "follow", BOOL, "on", "", "lists and events follow")                                 \
    X(THREADS, "threads", BOOL, "off", "", "all threads in the details of a process")             \
    X(KERNEL_THREADS, "kernel-threads", BOOL, "off", "", "kernel threads in the process list")     \
    X(DETAILS, "details", BOOL, "on", "", "details panes")                                         \
    X(DEMANGLE, "demangle", CHOICE, "short", "short full raw", "how C++ and Rust names are shown")         \
    X(EDITOR, "editor", TEXT, "", "", "editor for sources; empty: $EDITOR, then vi")

enum setting {
#define SETTING_ID_(id, name, type, preset, limits, help) SET_##id,
    SETTINGS(SETTING_ID_)
#undef SETTING_ID_
        SET_COUNT
};

struct setting_info {
    const char *name;
    enum setting_type type;
    const char *preset, *limits, *help;
};

struct settings;

struct settings *settings_new(void); /* all at their presets */
void settings_free(struct settings *s);

const struct setting_info *setting_info(enum setting which);
/* SET_COUNT when there is none. */
enum setting setting_find(const char *name);

/* The value as text; valid until it is set again. */
const char *settings_text(const struct settings *s, enum setting which);
bool settings_bool(const struct settings *s, enum setting which);
/* SETTING_INT as it is, SETTING_DURATION in ns. */
uint64_t settings_number(const struct settings *s, enum setting which);

/* value is checked; for a bool NULL or "" means toggle. MTUI_E_INVAL with what would be right. */
int settings_set(struct settings *s, enum setting which, const char *value, struct err *err);

/* Runs one of the commands that a config file may hold (set, bind, unbind, theme); 1 when it is none of
 * them. For `set NAME` of anything but a bool: MTUI_E_INVAL with the value. */
int settings_command(struct settings *s, struct keymap *km, const struct conf_words *w,
                     struct err *err);

/* A line of the config file that did nothing, and what would be right. */
struct settings_mistake {
    int line; /* from 1 */
    char *text;
};

/* Reads a config file; a missing one is no error. Every good line counts, bad ones are kept as mistakes: the
 * result is their number, negative when the file cannot be read. */
int settings_read_config(struct settings *s, struct keymap *km, const char *path, struct err *err);
size_t settings_mistake_count(const struct settings *s);
const struct settings_mistake *settings_mistake(const struct settings *s, size_t i);

/* $XDG_CONFIG_HOME/mtui/config or ~/.config/mtui/config; returns out. */
char *settings_config_path(char *out, size_t size);

#endif

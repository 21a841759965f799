/* Themes: the look of each role, from files of lines `role = FG BG [ATTR…]`.
 *
 *   # comment
 *   terminal = dark            what "default" is taken for when contrast is checked: dark, light
 *   select = black cyan bold   colours as in color_parse; attributes bold dim underline reverse standout
 *
 * Roles that a theme does not name keep the look of the built-in default theme; fn0–fn31 keep the
 * palette of the colour tier. Every unknown word is an error with file and line.
 *
 * A cell has an ink role and a paper role. The roles that fill spans (fn*, kernel, vdso, unknown, off-cpu,
 * gap, untraced) are painted in their BG: as paper, and as the ink of a fragment on other paper. Ink
 * and paper of the same role is text on it, in its FG. For all other roles ink is FG and paper is BG. */
#ifndef MTUI_TUI_THEME_H
#define MTUI_TUI_THEME_H

#include <stddef.h>
#include <stdio.h>

#include "core/base/err.h"
#include "tui/term/color.h"
#include "tui/term/surface.h"

struct theme;

/* What a cell looks like on the tier of the theme: colours are default, an index the terminal has, or
 * rgb (COLOR_RGB only). attr has no CELL_AGGREGATE. */
struct look {
    struct color fg, bg;
    unsigned attr; /* enum cell_attr */
};

/* The built-in theme ("default"; on COLOR_MONO every theme looks like the built-in "mono"). */
struct theme *theme_new(enum color_tier tier);
void theme_free(struct theme *t);

/* Reads a theme: a name is looked for as NAME.theme in theme_folder 0, 1, …; a name with a slash, or
 * that ends in .theme, is a file; "default" and "mono" are always there. On failure t (NULL allowed: only
 * check) is unchanged. */
int theme_load(struct theme *t, const char *name, struct err *err);
/* The same from memory. */
int theme_parse(struct theme *t, const char *name, const char *text, size_t len, struct err *err);

/* The i-th place where themes are looked for (the user's, the tree's, the installed ones); false behind
 * the last. */
bool theme_folder(size_t i, char *out, size_t size);

const char *theme_name(const struct theme *t);
enum color_tier theme_tier(const struct theme *t);
void theme_set_tier(struct theme *t, enum color_tier tier);

/* Entries of the function palette; 16 for t = NULL. Views hash into this (color_of_function). */
unsigned theme_palette_size(const struct theme *t);

struct look theme_look(const struct theme *t, const struct cell *cell);

/* Role names in themes: "default" "bar" "bar-active" … "fn0". ROLE_COUNT when there is none. */
const char *role_name(unsigned role);
unsigned role_find(const char *name);

/* Prints contrast for each role of theme NAME (or file) and returns the number of roles whose text
 * falls below 3:1 on 256 colours or 16 (worst of both), or a negative error. */
int theme_check(const char *name, FILE *out, struct err *err);

#endif

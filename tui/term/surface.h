/* The grid of cells that every view draws into; tests read it, tui/term/term.c shows it.
 *
 * A cell has a code point (with at most one combining mark), an ink role, a paper role and attributes.
 * Roles are names of purposes, never colours: a theme gives each a colour per colour tier. Nothing is
 * drawn outside the clip; text from outside is made harmless by surface_text itself. */
#ifndef MTUI_TUI_SURFACE_H
#define MTUI_TUI_SURFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SURFACE_FN_COLORS 32 /* entries of the palette that functions are hashed into */

enum role {
    ROLE_DEFAULT,    /* the terminal's own foreground or background */
    ROLE_BAR,        /* tab row, key bar */
    ROLE_BAR_ACTIVE, /* the active tab, key names */
    ROLE_TITLE,      /* pane titles and rules */
    ROLE_HEADER,     /* column headers */
    ROLE_DIM,        /* secondary text (never the only carrier of a meaning) */
    ROLE_SELECT,     /* the selected row or span */
    ROLE_MARKED,     /* marked rows */
    ROLE_MATCH,      /* search matches, matched characters */
    ROLE_OK,
    ROLE_WARN,
    ROLE_ERROR,
    ROLE_REC,      /* recording is on */
    ROLE_PROMPT,
    ROLE_RULER,
    ROLE_CURSOR,   /* the timeline's time cursor */
    ROLE_RANGE,    /* the A–B range */
    ROLE_MARK,     /* trigger marks */
    ROLE_KERNEL,
    ROLE_VDSO,
    ROLE_UNKNOWN,  /* code without a name */
    ROLE_OFF_CPU,
    ROLE_GAP,
    ROLE_UNTRACED,
    ROLE_MINIMAP,
    ROLE_SOURCE,   /* source lines */
    ROLE_FN0,      /* ROLE_FN0 + n, n < SURFACE_FN_COLORS: span colours */
    ROLE_COUNT = ROLE_FN0 + SURFACE_FN_COLORS
};

enum cell_attr {
    CELL_BOLD = 1 << 0,
    CELL_DIM = 1 << 1,
    CELL_UNDERLINE = 1 << 2,
    CELL_REVERSE = 1 << 3,
    CELL_STANDOUT = 1 << 4,
    CELL_AGGREGATE = 1 << 5 /* several spans share this cell; shown by its glyph, kept for tests */
};

struct cell {
    uint32_t cp;   /* 0: the right half of the wide character to the left */
    uint32_t mark; /* combining mark or 0 */
    uint16_t ink, paper;
    uint16_t attr;
};

struct style {
    uint16_t ink, paper, attr;
};

struct rect {
    int row, col, rows, cols;
};

struct surface;

struct surface *surface_new(int rows, int cols);
void surface_free(struct surface *s);
void surface_resize(struct surface *s, int rows, int cols); /* clears */
int surface_rows(const struct surface *s);
int surface_cols(const struct surface *s);
void surface_clear(struct surface *s);

/* Where the terminal's cursor is to stand (a prompt); row −1 hides it. */
void surface_set_cursor(struct surface *s, int row, int col);
void surface_get_cursor(const struct surface *s, int *row, int *col);

/* NULL outside. */
const struct cell *surface_at(const struct surface *s, int row, int col);

/* One cell; outside of the surface it is ignored. */
void surface_put(struct surface *s, int row, int col, uint32_t cp, struct style style);
void surface_put_cell(struct surface *s, int row, int col, struct cell cell);
void surface_fill(struct surface *s, struct rect r, uint32_t cp, struct style style);
/* Changes the style and leaves the text. */
void surface_restyle(struct surface *s, struct rect r, struct style style);

/* Draws text (UTF-8, len bytes or strlen when len is SIZE_MAX) into at most max_cols columns and
 * returns the columns used. Unsafe code points and invalid bytes become one replacement cell each
 * ('?' on the ascii tier, U+FFFD else: see surface_set_replacement). A wide character that would be
 * cut in half becomes a blank. Nothing is drawn left of column 0 or beyond the surface. */
int surface_text(struct surface *s, int row, int col, int max_cols, const char *text, size_t len,
                 struct style style);
int surface_printf(struct surface *s, int row, int col, int max_cols, struct style style,
                   const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* Which code point stands for what cannot be shown, and whether code points above 0x7e may be used at
 * all (false on the ascii tier: they are replaced too). */
void surface_set_replacement(struct surface *s, uint32_t cp, bool unicode);

#endif

/* A table that scrolls: columns that give way when it is narrow, a sort column, marks, search matches,
 * and a selection that stays on the same thing when the rows change under it.
 *
 * The rows belong to the view: it filters and sorts them, and answers for row numbers 0 to count − 1.
 * Drawing asks only for the rows that are seen, so a million rows cost what a screenful costs. */
#ifndef MTUI_TUI_LIST_H
#define MTUI_TUI_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "tui/ui/actions.h"
#include "tui/term/glyph.h"
#include "tui/term/keys.h"
#include "tui/term/surface.h"

struct list_column {
    const char *title;
    int cols;     /* width; for the one that stretches: the least */
    int priority; /* 0 always there; the highest number is dropped first when it gets narrow */
    bool right;   /* aligned to the right */
    bool stretch; /* takes what is left; the last such one scrolls with ← and → */
    int most;     /* 0: always cols; else takes a quarter of what is left, up to this width */
    bool fixed;   /* cannot be sorted by */
    bool rising;  /* its order begins with the least when it is not inverted */
    bool name;    /* of a function: made shorter as such (tui/ui/name.h), whole when it scrolls */
};

#define LIST_COLUMNS_MAX 24
#define LIST_CELL_MAX 1024

struct list_cell {
    char text[LIST_CELL_MAX]; /* bytes from outside are fine: drawing makes them harmless */
    struct style style;       /* preset to the default */
    int cols;                 /* preset: how wide the column is */
    bool overload;            /* of a name: as name_fit has it */
    uint64_t matched;         /* bit n: character n of the text is drawn as a match (fuzzy pickers) */
};

struct list_rows {
    size_t (*count)(void *arg);
    /* What the row is, the same across refreshes (a pid and its start, an address). Unique; not 0. */
    uint64_t (*identity)(void *arg, size_t row);
    void (*cell)(void *arg, size_t row, size_t column, struct list_cell *cell);
    /* Optional, both or none: the cell as a program wants it, in a written table: plain numbers and whole
     * names; and for each column what it is called there, with its unit. */
    void (*plain)(void *arg, size_t row, size_t column, struct list_cell *cell);
    const char *const *fields;
    /* Optional, for a quick way back: the row with that identity, or SIZE_MAX. */
    size_t (*find)(void *arg, uint64_t identity);
};

struct list;

/* columns must outlive the list. */
struct list *list_new(const struct list_column *columns, size_t n, const struct list_rows *rows,
                      void *arg);
void list_free(struct list *l);

/* To call when rows came, went or moved: finds the selection again (or takes the row at its place when
 * it is gone) and forgets marks of rows that are gone when forget_marks is set. */
void list_refresh(struct list *l, bool forget_marks);

/* Draws header (one row) and rows into r. */
void list_draw(struct list *l, struct surface *s, struct rect r, const struct glyphs *g);
/* Without the header row. */
void list_set_header(struct list *l, bool shown);
/* Drops columns from view by hand (options); bit n hides column n. */
void list_hide_columns(struct list *l, uint32_t mask);
/* The titles of those not hidden, a blank between two; and the other way round: only the columns of
 * these titles are shown. MTUI_E_INVAL, and nothing is changed, when one is unknown or there is none. */
void list_column_titles(const struct list *l, char *out, size_t size);
int list_show_columns(struct list *l, const char *titles, struct err *err);

/* Writes the marked rows, or all when none is, with the columns not hidden: tab-separated, escaped as in decode/export/export.h, after a line of
 * titles; of the plain cells and fields where the rows have them. */
void list_write_table(const struct list *l, FILE *file);

/* Moving, marks, horizontal scroll, sort column, search next/prev. True when it was one of those. After
 * ACT_SORT_* the view sorts its rows by list_sort_column and calls list_refresh. */
bool list_action(struct list *l, enum action act);

enum list_hit { LIST_MISS, LIST_SELECTED, LIST_OPENED, LIST_SORTED };
/* A mouse event within the rect of the last draw: wheel scrolls, click selects (LIST_SELECTED), double
 * click opens (LIST_OPENED: the view acts as for ACT_OPEN), click on a header sorts (LIST_SORTED). */
enum list_hit list_mouse(struct list *l, const struct mouse *m);

/* The selected row, or SIZE_MAX when there are none. */
size_t list_selected(const struct list *l);
uint64_t list_selected_identity(const struct list *l);
void list_select(struct list *l, size_t row);
bool list_select_identity(struct list *l, uint64_t identity);

size_t list_sort_column(const struct list *l);
bool list_sort_inverted(const struct list *l);
void list_set_sort(struct list *l, size_t column, bool inverted);
/* The column with that title (case and trailing blanks do not matter), or SIZE_MAX. */
size_t list_find_column(const struct list *l, const char *title);

size_t list_mark_count(const struct list *l);
/* How many of the rows that are there now are marked. */
size_t list_marked_rows(const struct list *l);
bool list_is_marked(const struct list *l, uint64_t identity);
bool list_row_is_marked(const struct list *l, size_t row);
void list_set_mark(struct list *l, uint64_t identity, bool marked);
void list_clear_marks(struct list *l);

/* Highlights and finds a text in any column: a substring; capital letters in it make case count. NULL or
 * "" ends it. Goes to the first match at or behind the selection; false when there is none. */
bool list_search(struct list *l, const char *pattern);
const char *list_pattern(const struct list *l); /* "" when there is none */

/* First row seen, and how many the last draw had room for. */
size_t list_top(const struct list *l);
int list_visible(const struct list *l);

#endif

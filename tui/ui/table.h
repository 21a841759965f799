/* What the screens that are one table have in common: the keys that order, search, filter and write its rows,
 * the mouse in it, and the line above it. */
#ifndef MTUI_TUI_TABLE_H
#define MTUI_TUI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/ui/list.h"
#include "tui/ui/model.h"

struct table_ops {
    const char *row;  /* what one is: "call", for messages */
    const char *sort; /* what can be sorted by: "duration, start or tid" */
    const char *file; /* proposed for the table when it is written; NULL: the screen exports by itself */
    /* Called on the screen: rows in the order that the list has now; those that pass a text (NULL: all), which
     * says itself when the text is wrong; the text that holds ("" none); what Enter does. */
    void (*arrange)(void *screen);
    void (*filter)(void *screen, const char *text);
    const char *(*filter_text)(void *screen);
    void (*open)(void *screen);
    size_t (*count)(void *screen); /* rows that pass */
    const char *(*name)(void *screen, size_t row); /* what is copied of it; NULL: the screen copies by itself */
};

struct table {
    struct model *m;
    struct list *list; /* the screen's, as all here */
    const struct list_column *columns;
    const struct table_ops *ops;
    void *screen;
};

/* Enter, filter, search, sorting, copying and export (of the marked rows, if there are any), Esc (which ends a
 * search, then a filter, then takes the marks away) and moving; true when it was one of those and there was
 * something to do. ACT_SORT without a column is left to be asked for. */
bool table_action(struct table *t, enum action act, const char *arg);

/* The same of the list: orders and opens. */
enum list_hit table_mouse(struct table *t, const struct mouse *m);

/* " Filter: TEXT", `note` and how many rows are marked; at the right end `right`. */
void table_draw_scope(const struct table *t, struct surface *s, struct rect r, const char *note,
                      const char *right);
/* `right` for most: "7 of 23 functions   sort: SELF inverted". */
void table_scope_text(const struct table *t, char *out, size_t size, size_t total);

#endif

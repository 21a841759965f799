/* The rows of the symbol picker: the names of a process (core/symbols/symbol_list.h), matched and ranked
 * (core/symbols/rank.h), with what a row shows. No drawing. Loop's thread. */
#ifndef MTUI_TUI_SYMBOL_ROWS_H
#define MTUI_TUI_SYMBOL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/symbols/match.h"
#include "core/symbols/symbol_list.h"
#include "tui/ui/list.h"
#include "tui/trace/source_lookup.h"

struct model;

enum symbol_column { SYMBOL_CHOSEN, SYMBOL_NAME, SYMBOL_MODULE, SYMBOL_ADDRESS, SYMBOL_SIZE, SYMBOL_SOURCE,
                     SYMBOL_COLUMNS };
extern const struct list_column symbol_columns[SYMBOL_COLUMNS];

struct symbol_rows;

/* The model gives triggers (for the marks) and settings (how names are shown). */
struct symbol_rows *symbol_rows_new(struct model *m);
void symbol_rows_free(struct symbol_rows *r);

/* Drops what was there and begins to load the names of a process; pid 0: none. */
int symbol_rows_load(struct symbol_rows *r, const char *proc_root, pid_t pid, struct err *err);
bool symbol_rows_loaded(const struct symbol_rows *r);
struct modules *symbol_rows_modules(struct symbol_rows *r);       /* NULL: none */
struct source_lookup *symbol_rows_source(struct symbol_rows *r);  /* NULL: none */
void symbol_rows_progress(const struct symbol_rows *r, struct symbol_progress *out);
/* Waits for the names and for the answers about sources. For tests. */
void symbol_rows_wait(struct symbol_rows *r);

/* Query, mode, and module (SIZE_MAX: all) take effect together; the query before stays on failure. */
int symbol_rows_query(struct symbol_rows *r, enum match_mode mode, const char *query, size_t module,
                      struct err *err);
size_t symbol_rows_module(const struct symbol_rows *r);
/* The module after the present one that has names: SIZE_MAX (all) follows the last. */
size_t symbol_rows_next_module(const struct symbol_rows *r);
/* What it is called here: the end of its path that tells it from the others. */
const char *symbol_rows_module_name(const struct symbol_rows *r, size_t module);
/* The first whose file name, or what it is called here, begins with that text; SIZE_MAX when there is none. */
size_t symbol_rows_find_module(const struct symbol_rows *r, const char *name);

/* Takes in what has been loaded and matches on, until deadline_ns; true while there is more to do. */
bool symbol_rows_work(struct symbol_rows *r, uint64_t deadline_ns);

size_t symbol_rows_count(const struct symbol_rows *r); /* matches */
size_t symbol_rows_total(const struct symbol_rows *r); /* names in the chosen module or all */
bool symbol_rows_get(struct symbol_rows *r, size_t row, struct symbol_item *out);

/* Width of the name column, so that the match of a long name can be kept in view. */
void symbol_rows_set_width(struct symbol_rows *r, int name_cols);
struct list_rows symbol_rows_callbacks(void);

/* The trigger that stands for a function, without @return, from malloc: its name with arguments, and
 * "module:", by the module's name here, before it where another module has that name too. */
char *symbol_rows_spec(struct symbol_rows *r, const struct symbol_item *item);

enum symbol_choice { SYMBOL_NOT_CHOSEN, SYMBOL_AT_ENTRY, SYMBOL_AT_RETURN };
enum symbol_choice symbol_rows_choice(struct symbol_rows *r, const struct symbol_item *item);

#endif

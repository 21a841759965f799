/* The rows of the Calls screen: filtered, sorted, and as text. */
#ifndef MTUI_TUI_CALL_ROWS_H
#define MTUI_TUI_CALL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/trace/stats.h"
#include "tui/ui/function_names.h"
#include "tui/ui/list.h"

enum call_column { CALL_DURATION, CALL_TIMES, CALL_START, CALL_TID, CALL_NOTE, CALL_CALLER, CALL_COLUMNS };

extern const struct list_column call_columns[CALL_COLUMNS];
/* The columns in a written table. */
extern const char *const call_fields[CALL_COLUMNS];

struct call_rows;

/* names: of the functions of the traces that are set. */
struct call_rows *call_rows_new(struct function_names *names);
void call_rows_free(struct call_rows *r);

/* calls NULL: no rows. Both must outlive their use here. */
void call_rows_set(struct call_rows *r, const struct trace *t, const struct stats_calls *calls);
void call_rows_sort(struct call_rows *r, enum call_column column, bool inverted);

/* As in row_filter.h: caller, duration (also without a name: ">=1us"), start, tid. NULL or "": all rows.
 * MTUI_E_INVAL leaves the old filter. t: where names are looked for. */
int call_rows_filter(struct call_rows *r, const struct trace *t, const char *text, struct err *err);
const char *call_rows_filter_text(const struct call_rows *r);

size_t call_rows_count(const struct call_rows *r);
const struct stats_call *call_rows_at(const struct call_rows *r, size_t row);
void call_rows_cell(const struct call_rows *r, size_t row, enum call_column column, struct list_cell *cell);
/* As a program wants it; times as in the other exports, not since the trace's start. */
void call_rows_plain(const struct call_rows *r, size_t row, enum call_column column, struct list_cell *cell);

/* What the call is, whatever is counted around it, as long as the trace is there. */
uint64_t call_identity(const struct trace *t, const struct stats_call *c);

#endif

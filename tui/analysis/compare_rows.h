/* The rows of the Compare screen: filtered, sorted, and as text. */
#ifndef MTUI_TUI_COMPARE_ROWS_H
#define MTUI_TUI_COMPARE_ROWS_H

#include "decode/trace/compare.h"
#include "tui/ui/function_names.h"
#include "tui/ui/list.h"

enum compare_column {
    CMP_SELF_DIFF,
    CMP_SELF,
    CMP_SELF_MEDIAN,
    CMP_CALLS_DIFF,
    CMP_CALLS,
    CMP_CALLS_MEDIAN,
    CMP_TOTAL_DIFF,
    CMP_TOTAL,
    CMP_TOTAL_MEDIAN,
    CMP_NAME,
    CMP_COUNT
};

extern const struct list_column compare_columns[CMP_COUNT];
/* Of compare_rows_plain. */
extern const char *const compare_fields[CMP_COUNT];

struct compare_rows;

/* names: of the functions of the traces that are set. */
struct compare_rows *compare_rows_new(struct function_names *names);
void compare_rows_free(struct compare_rows *r);

/* Takes over c; t must outlive its use here. */
void compare_rows_set(struct compare_rows *r, const struct trace *t, struct comparison c);
/* Differences by their size, up or down; the rest descending, names ascending. */
void compare_rows_sort(struct compare_rows *r, enum compare_column column, bool inverted);
/* Part of a function's name, or a PCRE2 pattern; NULL or "": all rows. MTUI_E_INVAL leaves the old one. */
int compare_rows_filter(struct compare_rows *r, const char *text, struct err *err);
const char *compare_rows_filter_text(const struct compare_rows *r);

size_t compare_rows_count(const struct compare_rows *r);
size_t compare_rows_total(const struct compare_rows *r); /* without the filter */
const struct compare_row *compare_rows_at(const struct compare_rows *r, size_t row);
void compare_rows_cell(const struct compare_rows *r, size_t row, enum compare_column column,
                       struct list_cell *cell);
/* The same for programs: numbers without units, differences with their sign, 0 where nothing was called. */
void compare_rows_plain(const struct compare_rows *r, size_t row, enum compare_column column,
                        struct list_cell *cell);

#endif

/* The rows of the Functions screen: filtered, sorted, and as text. */
#ifndef MTUI_TUI_FUNCTION_ROWS_H
#define MTUI_TUI_FUNCTION_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "decode/trace/stats.h"
#include "tui/ui/function_names.h"
#include "tui/term/glyph.h"
#include "tui/ui/list.h"

enum function_column {
    FCOL_CALLS,
    FCOL_TOTAL,
    FCOL_SELF,
    FCOL_SELF_SHARE,
    FCOL_MIN,
    FCOL_AVG,
    FCOL_P50,
    FCOL_P99,
    FCOL_MAX,
    FCOL_HIST,
    FCOL_NAME,
    FCOL_COUNT
};

extern const struct list_column function_columns[FCOL_COUNT];

struct function_rows;

/* names: of the functions of the traces that are set. */
struct function_rows *function_rows_new(struct function_names *names);
void function_rows_free(struct function_rows *r);

/* stats NULL: no rows. All must outlive their use here. */
void function_rows_set(struct function_rows *r, const struct trace *t, const struct stats *stats,
                       const struct glyphs *g);
void function_rows_sort(struct function_rows *r, enum function_column column, bool inverted);

/* Words that all must hold, as in row_filter.h: name, module, calls, total, self, self%, min, avg, p50, p99, max.
 * NULL or "": all rows. MTUI_E_INVAL leaves the old filter. */
int function_rows_filter(struct function_rows *r, const char *text, struct err *err);
const char *function_rows_filter_text(const struct function_rows *r);

size_t function_rows_count(const struct function_rows *r);
size_t function_rows_total(const struct function_rows *r); /* without the filter */
const struct function_stats *function_rows_at(const struct function_rows *r, size_t row);
void function_rows_cell(const struct function_rows *r, size_t row, enum function_column column,
                        struct list_cell *cell);

/* Log₂ buckets from the first to the last that holds something, put together into n cells of bars, at most
 * STATS_BUCKETS of them. */
void function_histogram(const struct function_stats *f, const struct glyphs *g, uint32_t *cells, int n);

#endif

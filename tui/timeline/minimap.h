/* The whole trace on one row: how deep the stacks are, on the average of all threads, at each column.
 *
 * Filled in steps, since a big trace has thousands of rows; what is there can be drawn meanwhile. */
#ifndef MTUI_TUI_MINIMAP_H
#define MTUI_TUI_MINIMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/trace/pyramid.h"
#include "tui/timeline/flame_source.h"
#include "tui/term/glyph.h"
#include "tui/term/surface.h"
#include "tui/timeline/viewport.h"

enum { MINIMAP_LOSS = 1, MINIMAP_TRIGGER = 2 };

struct minimap {
    int cols;
    uint64_t *busy_ns;     /* per column: time in calls, summed over all rows; of whole nanoseconds */
    uint8_t *notes;        /* per column: MINIMAP_LOSS, MINIMAP_TRIGGER */
    size_t thread, depth;  /* the next row to add */
    bool done;
};

void minimap_init(struct minimap *m, const struct trace *t, int cols); /* cols ≥ 1 */
void minimap_free(struct minimap *m);

/* Adds at most max_rows rows of spans; true when all are in. Time off the CPU does not count. */
bool minimap_step(struct minimap *m, const struct trace *t, const struct pyramid *p,
                  struct flame_source *src, size_t max_rows);

/* The column of a time of the trace, 0 to cols − 1, and the first time of a column. */
int minimap_col_of(const struct minimap *m, const struct trace *t, uint64_t time_ns);
uint64_t minimap_time_at(const struct minimap *m, const struct trace *t, int col);

/* 0 (nothing) to 8 (the busiest column). */
unsigned minimap_level(const struct minimap *m, int col);

/* Draws the row: levels, the window of v in brackets, losses, trigger marks. */
void minimap_draw(const struct minimap *m, struct surface *s, int row, int col, const struct trace *t,
                  const struct viewport *v, const struct glyphs *g);

#endif

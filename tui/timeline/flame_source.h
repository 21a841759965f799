/* Rows of a trace as the flame renderer reads them: through the pyramid where there is one, else by
 * looking at the spans. The cells are the same either way.
 *
 * What is looked up once per row (its nodes, its spans off the CPU) is kept; belongs to one thread. */
#ifndef MTUI_TUI_FLAME_SOURCE_H
#define MTUI_TUI_FLAME_SOURCE_H

#include "decode/trace/pyramid.h"
#include "tui/timeline/flame.h"

struct flame_source;

/* Both stay the caller's and must outlive the source; p may be NULL. */
struct flame_source *flame_source_new(const struct trace *t, const struct pyramid *p);
void flame_source_free(struct flame_source *s);

/* Reads through p from now on; rows handed out before are no longer good. */
void flame_source_use(struct flame_source *s, const struct pyramid *p);

/* The row of a thread and depth, empty when there is none; good as long as the source. */
struct flame_row flame_source_row(struct flame_source *s, size_t thread, size_t depth);

/* Time of [from, to) off the CPU in a row; the number of waits in it is added to *count. Each is a span of its own,
 * below the calls that it interrupts. */
uint64_t flame_row_off_ns(const struct flame_row *row, uint64_t from, uint64_t to, uint64_t *count);

#endif

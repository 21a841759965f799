/* The last lines that a child printed: bounded, made harmless, repeats folded into "line x14". */
#ifndef MTUI_CORE_TAIL_H
#define MTUI_CORE_TAIL_H

#include <stdbool.h>
#include <stddef.h>

struct tail;

struct tail *tail_new(size_t max_lines);
void tail_free(struct tail *t);

/* Adds a line (no newline in it), escaped, cut to a few hundred bytes. False when it repeats the
 * last one and was folded. Empty lines are dropped (false). */
bool tail_add(struct tail *t, const char *line, size_t len);

size_t tail_count(const struct tail *t);

/* Line i, 0 the oldest kept; with " x14" behind it when it came 14 times in a row. Valid until the
 * next tail_add. */
const char *tail_line(const struct tail *t, size_t i);

#endif

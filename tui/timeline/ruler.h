/* The axis of time: ticks at 1-2-5 steps, and times and durations as text in the recording's unit.
 *
 * Where the clock counts instructions (`step`), numbers are instructions: "1,240 k", "12,345 insn". */
#ifndef MTUI_TUI_RULER_H
#define MTUI_TUI_RULER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/fmt.h"
#include "tui/term/glyph.h"
#include "tui/term/surface.h"
#include "tui/timeline/viewport.h"

/* The smallest step 1, 2 or 5 × 10^n, n ≥ 0, that is at least min. */
uint64_t ruler_nice_step(uint64_t min);

/* A point of the axis with the precision that a distance of step needs; out holds FMT_MAX bytes and is
 * returned. offset counts from the axis' origin, the start of the trace. */
char *ruler_time(char *out, int64_t offset, uint64_t step, bool instructions);
/* Any duration, three digits or, for instructions, whole. */
char *ruler_duration(char *out, uint64_t ns, bool instructions);
/* The same for a column of a table, of instructions the number alone, rounded: "48.3k". */
char *ruler_duration_short(char *out, uint64_t ns, bool instructions);
/* The mean of n durations, rounded as they are; below 10 units that are no whole ones to a tenth: "3.2 ns". The
 * shortness of a column of a table is asked for as above. */
char *ruler_mean(char *out, uint64_t sum_ns, uint64_t n, bool instructions);
char *ruler_mean_short(char *out, uint64_t sum_ns, uint64_t n, bool instructions);

/* A length as typed: "1.5ms"; of instructions "1200", "12.4k" or "3M". The whole string must parse. */
int ruler_parse(const char *text, bool instructions, uint64_t *ns, struct err *err);
/* A short and a longer one of these, for sentences that say what to type. */
const char *ruler_example(bool instructions);
const char *ruler_example_longer(bool instructions);

/* The step whose labels fit between two ticks of this viewport. */
uint64_t ruler_step(const struct viewport *v, bool instructions);

/* Draws one row: at every step a tick and behind it the time since v->first_ns. */
void ruler_draw(struct surface *s, int row, int col, const struct viewport *v, bool instructions,
                const struct glyphs *g);

#endif

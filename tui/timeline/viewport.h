/* The window of time that a timeline shows, and how it moves.
 *
 * Positions are fixed point (2^-FLAME_FRACTION_BITS ns) and a column is a number of at most 12
 * significant bits, so that halving it down to the limit is exact: zooming in and out again, or panning
 * there and back, always ends exactly where it began. A time under the cursor keeps its column.
 *
 * Columns may be asked and given outside [0, cols). */
#ifndef MTUI_TUI_VIEWPORT_H
#define MTUI_TUI_VIEWPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/vec.h"
#include "tui/timeline/flame.h"

/* The deepest zoom: 1 ns on 8 columns. */
#define VIEWPORT_MIN_COL_FP (((flame_u128)1 << FLAME_FRACTION_BITS) / 8)

struct viewport_place {
    flame_i128 start_fp;
    flame_u128 col_fp; /* length of a column */
};

struct viewport {
    uint64_t first_ns, last_ns; /* of the trace */
    int cols;
    struct viewport_place place;
    VEC(struct viewport_place) back, forward;
    bool stepping; /* the last change was a zoom or pan step: steps in a row are one history entry */
};

/* Starts at the whole trace. first ≤ last; cols ≥ 1. */
void viewport_init(struct viewport *v, uint64_t first_ns, uint64_t last_ns, int cols);
void viewport_free(struct viewport *v);

/* The terminal has another width: the length of a column stays, or the whole trace stays whole. */
void viewport_set_cols(struct viewport *v, int cols);

/* The trace has become longer: the window stays, or the whole trace stays whole. */
void viewport_set_trace(struct viewport *v, uint64_t first_ns, uint64_t last_ns);

struct flame_window viewport_window(const struct viewport *v);

/* The first whole nanosecond of a column, not before 0. */
uint64_t viewport_time_at(const struct viewport *v, int col);
/* The column a time falls into; far outside it is clamped to ±2^30. */
int viewport_col_of(const struct viewport *v, uint64_t t_ns);
/* Length of a column and of the window, in ns, rounded up. */
uint64_t viewport_col_ns(const struct viewport *v);
uint64_t viewport_length_ns(const struct viewport *v);
bool viewport_is_whole(const struct viewport *v);
/* How many times the whole trace is longer than the window, as the number of halvings. */
int viewport_zoom_level(const struct viewport *v);

/* Twice or half as near, the time at col's left edge stays there. Zooming out past the whole trace
 * shows the whole trace. Return false when nothing changed (at the limit). */
bool viewport_zoom_in(struct viewport *v, int col);
bool viewport_zoom_out(struct viewport *v, int col);

/* Moves the window right by cols (negative: left); half of it may leave the trace, no more. */
bool viewport_pan(struct viewport *v, int cols);

/* The next four keep the window inside the trace where it is no longer than that.
 *
 * The smallest window around [t0, t1] in which it fills at most 1/share of the width; centred. */
void viewport_fit(struct viewport *v, uint64_t t0_ns, uint64_t t1_ns, unsigned share);
void viewport_whole(struct viewport *v);
/* The same zoom with t in the middle. */
void viewport_center(struct viewport *v, uint64_t t_ns);
/* Moves the window only if no part of [t0, t1] lies in it; then t0 comes to a quarter. Returns true
 * when it moved. */
bool viewport_show(struct viewport *v, uint64_t t0_ns, uint64_t t1_ns);

bool viewport_back(struct viewport *v);
bool viewport_forward(struct viewport *v);

#endif

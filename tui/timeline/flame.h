/* The flame renderer: the spans of one row and a window of time in, cells out. Pure: no colours, no
 * terminal, no state.
 *
 * Positions are eighths of a column. x(t) = floor((t − t0) · 8·cols / (t1 − t0)); a span owns the
 * eighths [x(start), max(x(end), x(start) + 1)), so neighbours share their edge exactly, nothing is
 * invented or lost, and panning by whole columns moves the picture without a shimmer. Fragments are
 * chosen by eighths, never by a cell's limits in nanoseconds, so nothing vanishes below 1 ns a column.
 *
 * What a cell then shows (enum flame_shape) is the first that fits: one span over all of it; one span
 * from the left or to the right edge; two spans that share one boundary; a lone thin line; else a
 * density. Spans off the CPU and gaps are never swallowed by a density.
 *
 * A frame: flame_axis_init once, then for every row flame_render_row, flame_render_gaps,
 * flame_render_labels. */
#ifndef MTUI_TUI_FLAME_H
#define MTUI_TUI_FLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/trace/trace.h"

__extension__ typedef unsigned __int128 flame_u128;
__extension__ typedef __int128 flame_i128;

/* Time in 2^-FLAME_FRACTION_BITS ns, so that a window can begin and end between two nanoseconds. */
#define FLAME_FRACTION_BITS 20

struct flame_window {
    flame_i128 start_fp; /* may lie before time 0 */
    flame_u128 length_fp;
    int cols;
};

/* The window of [t0_ns, t1_ns) on cols columns; t0 < t1, cols ≥ 1. */
struct flame_window flame_window_ns(uint64_t t0_ns, uint64_t t1_ns, int cols);

/* A window prepared for rendering. edges[e] is the first whole nanosecond t with x(t) ≥ e, for e in
 * [0, 8·cols]; before time 0 it is 0, past UINT64_MAX it is UINT64_MAX. */
struct flame_axis {
    struct flame_window window;
    int cols;
    bool whole_cols; /* only flame_render_halves is to follow: of a crowded cell `owned` and `eighths` are
                        not worked out, which is most of its cost; all of it counts as owned */
    uint64_t *edges;
};

void flame_axis_init(struct flame_axis *ax, struct flame_window window);
void flame_axis_free(struct flame_axis *ax);

/* x(t), clamped to [−1, 8·cols]. */
int flame_axis_x_eighths(const struct flame_axis *ax, uint64_t t_ns);

/* A row of spans, sorted by start and disjoint, and the three questions a renderer has. The answers
 * define the picture; how they are found (a scan, a pyramid) does not change it. */
struct flame_row {
    const struct span *spans;
    size_t n;
    /* The first index ≥ from whose start_ns ≥ t_ns; n if there is none. */
    size_t (*seek)(const struct flame_row *row, size_t from, uint64_t t_ns);
    /* The first of the longest spans in [i, j), i < j. */
    size_t (*longest)(const struct flame_row *row, size_t i, size_t j);
    /* The first span off the CPU in [i, j), or j. */
    size_t (*off_cpu)(const struct flame_row *row, size_t i, size_t j);
    /* NULL, or a quick partial answer: eighths of a cell (edge[0] to edge[8]) in which some span of
     * [i, j) starts for sure. */
    uint8_t (*starts)(const struct flame_row *row, size_t i, size_t j, const uint64_t edge[9]);
    const void *index; /* of the one who answers */
};

/* A row that answers by looking at the spans themselves. */
struct flame_row flame_row_of_spans(const struct span *spans, size_t n);

enum flame_shape {
    FLAME_EMPTY,
    FLAME_FULL,     /* `ink` owns the whole cell */
    FLAME_LEFT,     /* `ink` owns the first `eighths` eighths */
    FLAME_RIGHT,    /* `ink` owns what is right of the first `eighths` eighths */
    FLAME_SPLIT,    /* `ink` owns the first `eighths` eighths, `paper` the rest */
    FLAME_LINE,     /* `ink` owns at most two eighths inside; `eighths` is the third, 0–2, it is in */
    FLAME_DENSITY,  /* `eighths` eighths are owned; `ink` is the span with most time in the cell */
    FLAME_OFF,      /* time off the CPU; `ink` is that span, `paper` the one with most time or NULL */
    FLAME_GAP,      /* `gap`; `paper` is the span it lies on or beside, or NULL */
    FLAME_TEXT,     /* label text on `ink`, see cp */
    FLAME_HALVES    /* compact: `ink` owns the upper half, `paper` the lower; either may be NULL */
};

enum flame_flag {
    FLAME_AGGREGATE = 1 << 0, /* several spans, not shown one by one */
    FLAME_JOINED = 1 << 1,    /* the span begins at the cell's left edge, where another one ends */
    FLAME_REPEAT = 1 << 2,    /* FLAME_SPLIT: both are calls of one function; else FLAME_JOINED to one
                                 of the same: the boundary has to be drawn for them to be countable */
    FLAME_ALTERNATE = 1 << 3, /* the second shade of such calls */
    FLAME_CUT_LEFT = 1 << 4,  /* the label's span begins left of the window */
    FLAME_CUT_RIGHT = 1 << 5
};

struct flame_cell {
    const struct span *ink, *paper; /* NULL: the background */
    const struct gap *gap;          /* FLAME_GAP */
    uint32_t cp, mark;              /* FLAME_TEXT; cp 0 is the right half of a wide character */
    uint32_t count;                 /* spans that own part of the cell */
    uint8_t shape;                  /* enum flame_shape */
    uint8_t eighths;
    uint8_t owned;                  /* bit e: eighth e is owned by some span */
    uint8_t flags;                  /* enum flame_flag */
};

/* Fills cells[0, cols). */
void flame_render_row(const struct flame_axis *ax, const struct flame_row *row,
                      struct flame_cell *cells);

/* ---- Gaps (flame_gap.c) ---- */

/* True for causes after which nothing is known of the thread: such gaps cover every row. The others
 * (untraced, no sample, off the CPU) keep the stack and stand below its innermost frame. */
bool flame_gap_is_hard(enum gap_cause cause);

/* The gaps of one thread, sorted by start; reach[i] is the index of the one among [0, i] that ends
 * last. */
struct flame_gaps {
    const struct gap **gaps;
    size_t *reach;
    size_t n, cap;
};

/* Starts from {0}; gaps are to be added in the order of their starts and stay the caller's. */
void flame_gaps_add(struct flame_gaps *g, const struct gap *gap);
void flame_gaps_free(struct flame_gaps *g);
/* The gap that begins at t (the last such), or one that t lies in; NULL: none. */
const struct gap *flame_gaps_at(const struct flame_gaps *g, uint64_t t_ns);
/* Of those that begin at t or earlier the one that ends last; NULL: none. */
const struct gap *flame_gaps_before(const struct flame_gaps *g, uint64_t t_ns);

/* Draws gaps over the cells of a rendered row. Hard gaps cover everything; soft ones only what no
 * span of this row covers and the row above does (above NULL: the outermost row). */
void flame_render_gaps(const struct flame_axis *ax, const struct flame_row *row,
                       const struct flame_row *above, const struct flame_gaps *gaps, bool hard,
                       struct flame_cell *cells);

/* ---- Compact ---- */

/* Two rendered rows (without labels) in one row of half blocks, to whole columns. lower may be NULL:
 * an odd last row. */
void flame_render_halves(int cols, const struct flame_cell *upper, const struct flame_cell *lower,
                         struct flame_cell *cells);

/* ---- Labels (flame_label.c) ---- */

struct flame_label_style {
    bool brackets;                    /* ascii: `[name---]`, `<name---]` when it begins off-screen */
    uint32_t open, close, fill, lone; /* brackets, what fills them up, a span of one cell */
    uint32_t left, right;             /* goes on to the left, to the right */
    uint32_t replacement;            /* for what cannot be shown */
    bool unicode;                    /* false: code points above 0x7e are replaced */
};

/* Writes of the name of a function what fits into cols columns into out (size bytes); bytes from outside. */
typedef void flame_name_fn(const void *arg, fn_id fn, char *out, size_t size, int cols);

/* Writes names into the whole cells of each span that has at least 3 of them (with brackets also the
 * frame of those with 2, and `lone` into those with 1). The visible part carries the label; a span that
 * begins or ends off-screen, or at a time that is only inferred, goes on to that side. */
void flame_render_labels(const struct flame_axis *ax, const struct flame_label_style *style,
                         flame_name_fn *name, const void *arg, struct flame_cell *cells);

#endif

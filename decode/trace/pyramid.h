/* An index above the rows of a trace, so that a row drawn W columns wide costs O(W log n), at any zoom.
 *
 * Each row of more than 16 spans gets a tree: a node over 16 spans, then a node over 8 nodes, and so
 * on; a node knows first start, last end, busy time, longest span and dominant function of what lies
 * below it. Walking a window stops at nodes too narrow to be told apart on the screen. The idea is
 * Perfetto's slice mipmap, with leaves small enough that the part below the resolution is cheap too.
 * With the spans a trace then takes at most 27 bytes a span.
 *
 * Immutable once built: any thread may read it. It refers to the trace, which must outlive it. */
#ifndef MTUI_DECODE_PYRAMID_H
#define MTUI_DECODE_PYRAMID_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "decode/trace/trace.h"

struct pyramid;

/* Builds the trees of all rows in one pass, O(spans). cancel (NULL: none) is looked at now and then:
 * MTUI_E_CANCEL. MTUI_E_NOMEM when memory is short. */
int pyramid_new(struct pyramid **out, const struct trace *t, const atomic_bool *cancel,
                struct err *err);
void pyramid_free(struct pyramid *p);
/* Bytes used by nodes, without the spans. */
size_t pyramid_bytes(const struct pyramid *p);

/* What one stretch of a row holds: a single span (count 1), or several that together are narrower than
 * the resolution asked for. */
struct pyramid_item {
    uint64_t start_ns, end_ns; /* of the first and the last span, not clipped to the window */
    uint64_t busy_ns;          /* sum of the spans' durations */
    size_t first, count;       /* the spans first … first + count − 1 of the row */
    size_t longest;            /* index in the row of the longest one (the first of equals) */
    fn_id fn;                  /* of the single span; else the dominant function (see below) */
    uint16_t flags;            /* of the single span; 0 for an aggregate */
};

#define PYRAMID_LEVELS 10

/* Walks the part of a row that lies in a window. A struct for the stack: no allocation, nothing to
 * free. Everything in it is private. */
struct pyramid_iter {
    const struct span *spans;
    size_t n, at;
    const struct pyramid_node *level[PYRAMID_LEVELS]; /* the row's nodes, finest first */
    size_t levels, hint;
    uint64_t to_ns, resolution_ns;
};

/* The spans with start < to_ns that end after from_ns (or start at or after it), in order. Neighbours
 * are put together as long as the whole is narrower than resolution_ns; give the time of an eighth of a
 * column, (to − from) / (8 × columns): then at most 2 × (8 × columns + 1) items come, and an aggregate
 * belongs on all eighths that [start, end) touches. 0: every span on its own. At the window's edges an
 * aggregate may hold spans outside of it, by less than the resolution.
 * A thread or depth that does not exist gives no items. */
void pyramid_iter_init(struct pyramid_iter *it, const struct pyramid *p, size_t thread, size_t depth,
                       uint64_t from_ns, uint64_t to_ns, uint64_t resolution_ns);
bool pyramid_iter_next(struct pyramid_iter *it, struct pyramid_item *item);

/* Totals of a row over [from_ns, to_ns), exact: spans that intersect it (as above), their time inside
 * it, and the longest of them by its whole duration. O(log n). count 0: longest is meaningless. */
struct pyramid_sum {
    uint64_t count, busy_ns;
    size_t longest;
};
struct pyramid_sum pyramid_range(const struct pyramid *p, size_t thread, size_t depth,
                                 uint64_t from_ns, uint64_t to_ns);

/* ---- By place in the row ---- */

/* One row with its index, for the two questions below; for the stack, nothing to free. n 0: no such row. */
void pyramid_row(struct pyramid_iter *row, const struct pyramid *p, size_t thread, size_t depth);

/* The first span at or behind `from` that starts at or after time_ns; n when there is none.
 * O(log(distance)), and most of that in the nodes. */
size_t pyramid_seek(const struct pyramid_iter *row, size_t from, uint64_t time_ns);

/* Bit e is set if a span of from … to − 1 is known to start in [edge[e], edge[e + 1]); not every such e
 * is found. Reads a few dozen nodes and no spans. */
uint8_t pyramid_starts(const struct pyramid_iter *row, size_t from, size_t to, const uint64_t edge[9]);

/* The longest of the spans from … to − 1 (from < to), the first among equals. O(log n). */
size_t pyramid_longest(const struct pyramid_iter *row, size_t from, size_t to);

/* The dominant function of an aggregate is found by majority of time among its parts' dominant ones: one
 * that has most of the time is found, and where none has, the choice is a good guess. Enough to colour an
 * eighth of a column. */

#endif

/* The timestamps of a stream of trace data, and which of them cannot be right.
 *
 * A TSC never goes back along a stream (Intel SDM vol. 3, "TSC packet"), so where the timestamps of a stream do,
 * some of them are damaged. The fewest that have to be wrong for all others to be in order are taken to be: a
 * lone one that leaps ahead or back is found by those around it, wherever decoding begins. What is looked at are
 * the timestamps of all synchronisation points, and behind the last of these every one: what stands between two
 * points is bounded by theirs. The first and the last may be damaged and still in order: those that lie far outside
 * of the time in which the recording was made are wrong as well. */
#ifndef MTUI_DECODE_PT_STAMPS_H
#define MTUI_DECODE_PT_STAMPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/pt/pt_time.h"

#define PT_STAMP_NO_PSB SIZE_MAX
#define PT_STAMP_WRONG "a timestamp that is wrong, as those around it show: times up to the next one are estimated"

struct pt_stamp {
    size_t psb, at; /* offsets of the PSB (PT_STAMP_NO_PSB: of none) and of its TSC packet */
    uint64_t tsc;
    bool wrong;
};

/* Between which times the recording was made, both included. */
struct pt_stamp_limits {
    const struct pt_clock *clock; /* of the stamps, with a time */
    uint64_t from_ns, to_ns;
};

/* In the order of the stream. */
struct pt_stamps {
    struct pt_stamp *data;
    size_t len, cap;
    size_t wrong; /* how many are */
};

/* Of all of a stream. limits NULL: not known; and where more than half lie outside of them, it is the limits that are
 * not believed. MTUI_E_NOMEM. */
int pt_stamps_find(struct pt_stamps *s, const uint8_t *data, size_t len, const struct pt_stamp_limits *limits);
void pt_stamps_free(struct pt_stamps *s);

/* The first one with its TSC packet at or behind an offset; s->len: none. O(log n). */
size_t pt_stamps_from(const struct pt_stamps *s, size_t at);
/* That of the synchronisation point there; NULL: it has none. */
const struct pt_stamp *pt_stamps_of_psb(const struct pt_stamps *s, size_t psb);

#endif

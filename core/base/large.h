/* Large arrays that live long and are read all over: spans, pyramids.
 *
 * From one huge page up the memory is mapped on its own and huge pages are asked for, so that walking
 * gigabytes does not drown in TLB misses; freed memory goes back to the system at once. Smaller arrays
 * come from malloc. Safe from any thread. */
#ifndef MTUI_DECODE_LARGE_H
#define MTUI_DECODE_LARGE_H

#include <stddef.h>

#include "core/base/vec.h"

/* count × size bytes, uninitialised (zero when mapped); NULL when memory is short, the product
 * overflows or is 0. */
void *large_alloc(size_t count, size_t size);

/* With the same count and size as at the allocation; NULL is ignored. */
void large_free(void *p, size_t count, size_t size);

/* ---- Memory that changes hands ----
 *
 * One array is made from others that are used up on the way. Their pages are moved under it as it grows,
 * instead of being given back and fetched anew: the kernel would have to clear them, which takes longer than
 * to fill them, and for a while there would be two of everything (mremap(2)). */

struct large_part {
    char *at;
    size_t bytes;
};

struct large_heir {
    char *base;         /* of the array; NULL: nothing is moved, everything below does nothing */
    size_t block;       /* bytes that are moved at once, a power of two */
    unsigned char *has; /* a block: 1 when it may be written to */
    VEC(struct large_part) parts; /* used up, not taken over yet */
};

/* to: what large_alloc gave for count and size, not yet written to; streams: at about so many places it will
 * be filled at the same time. */
void large_heir_init(struct large_heir *h, void *to, size_t count, size_t size, size_t streams);
/* In place of large_free: its pages are for the heir now. */
void large_heir_give(struct large_heir *h, void *p, size_t count, size_t size);
/* Before bytes [from, to) of the array are written to for the first time; returns up to which one that holds. */
size_t large_heir_need(struct large_heir *h, size_t from, size_t to);
/* What was not needed goes back to the system. */
void large_heir_end(struct large_heir *h);

#endif

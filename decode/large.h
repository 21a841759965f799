/* Large arrays that live long and are read all over: spans, pyramids.
 *
 * From one huge page up the memory is mapped on its own and huge pages are asked for, so that walking
 * gigabytes does not drown in TLB misses; freed memory goes back to the system at once. Smaller arrays
 * come from malloc. Safe from any thread. */
#ifndef MTUI_DECODE_LARGE_H
#define MTUI_DECODE_LARGE_H

#include <stddef.h>

/* count × size bytes, uninitialised (zero when mapped); NULL when memory is short, the product
 * overflows or is 0. */
void *large_alloc(size_t count, size_t size);

/* With the same count and size as at the allocation; NULL is ignored. */
void large_free(void *p, size_t count, size_t size);

#endif

/* The durations of one function's calls, for exact percentiles without keeping each: the many short ones are
 * counted value by value, the others kept. Zero-initialised is empty. */
#ifndef MTUI_DECODE_DURATIONS_H
#define MTUI_DECODE_DURATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/vec.h"

#define DURATIONS_PAGES 16
#define DURATIONS_PAGE  256 /* values; what is below the product of both is counted */

struct durations {
    uint32_t *pages[DURATIONS_PAGES]; /* NULL: none of those values */
    VEC(uint32_t) longer;
    VEC(uint64_t) longest; /* what needs more than 32 bits */
};

void durations_free(struct durations *d);

bool durations_add_other(struct durations *d, uint64_t ns); /* for durations_add */

/* False when memory is short. */
static inline bool durations_add(struct durations *d, uint64_t ns)
{
    if (ns < DURATIONS_PAGES * DURATIONS_PAGE && d->pages[ns / DURATIONS_PAGE]) {
        d->pages[ns / DURATIONS_PAGE][ns % DURATIONS_PAGE]++;
        return true;
    }
    return durations_add_other(d, ns);
}

/* Adds all of another one; false when memory is short. */
bool durations_join(struct durations *to, const struct durations *from);

/* The rank-th of them (from 1 to their number) by size. */
uint64_t durations_rank(struct durations *d, uint64_t rank);

/* Adds to buckets[i] how many have i as their highest bit; 0 and 1 go to buckets[0]. */
void durations_histogram(const struct durations *d, uint64_t buckets[64]);

#endif

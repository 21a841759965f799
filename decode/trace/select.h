/* Order statistics without sorting: Hoare's find (CACM 4, 1961) with Dijkstra's three-way
 * partition. */
#ifndef MTUI_DECODE_SELECT_H
#define MTUI_DECODE_SELECT_H

#include <stddef.h>
#include <stdint.h>

/* The value that would stand at place k (< n) if v were sorted; reorders v. Linear time on average, also
 * for sorted input and for many equal values. */
static inline uint32_t select_u32(uint32_t *v, size_t n, size_t k)
{
    size_t lo = 0, hi = n - 1;
    uint64_t r = 0x9e3779b97f4a7c15u;
    while (lo < hi) {
        r = r * 6364136223846793005u + 1442695040888963407u; /* a pivot that no input can foresee */
        uint32_t pivot = v[lo + (size_t)(r >> 33) % (hi - lo + 1)], x;
        size_t below = lo, i = lo, above = hi; /* [below, i) equal the pivot, (above, hi] exceed it */
        while (i <= above) {
            x = v[i];
            if (x < pivot) {
                v[i++] = v[below];
                v[below++] = x;
            } else if (x > pivot) {
                v[i] = v[above];
                v[above--] = x;
            } else {
                i++;
            }
        }
        if (k < below)
            hi = below - 1;
        else if (k > above)
            lo = above + 1;
        else
            return pivot;
    }
    return v[k];
}

#endif

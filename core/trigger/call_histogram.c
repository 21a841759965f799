#include "core/trigger/call_histogram.h"

size_t call_histogram_bucket(uint64_t duration_ns)
{
    return duration_ns < 2 ? 0 : 63 - (size_t)__builtin_clzll(duration_ns);
}

void call_histogram_add(struct call_histogram *h, uint64_t duration_ns)
{
    h->bucket[call_histogram_bucket(duration_ns)]++;
    if (h->count == 0 || duration_ns < h->min_ns)
        h->min_ns = duration_ns;
    if (duration_ns > h->max_ns)
        h->max_ns = duration_ns;
    h->count++;
    h->sum_ns += duration_ns;
}

size_t call_histogram_quantile(const struct call_histogram *h, unsigned permille)
{
    uint64_t below = 0;
    for (size_t i = 0; i < CALL_HISTOGRAM_BUCKETS && h->count > 0; i++) {
        below += h->bucket[i];
        if ((double)below * 1000.0 >= (double)h->count * permille)
            return i;
    }
    return 0;
}

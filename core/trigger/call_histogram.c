#include "core/trigger/call_histogram.h"

#include <stdio.h>

#include "core/base/fmt.h"

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

void call_histogram_merge(struct call_histogram *h, const struct call_histogram *other)
{
    for (size_t i = 0; i < CALL_HISTOGRAM_BUCKETS; i++)
        h->bucket[i] += other->bucket[i];
    if (other->count > 0 && (h->count == 0 || other->min_ns < h->min_ns))
        h->min_ns = other->min_ns;
    if (other->max_ns > h->max_ns)
        h->max_ns = other->max_ns;
    h->count += other->count;
    h->sum_ns += other->sum_ns;
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

uint64_t call_histogram_below_ns(const struct call_histogram *h, unsigned permille)
{
    size_t next = call_histogram_quantile(h, permille) + 1;
    return next < CALL_HISTOGRAM_BUCKETS ? (uint64_t)1 << next : UINT64_MAX;
}

char *call_histogram_text(const struct call_histogram *h, char *out, size_t size)
{
    char half[FMT_MAX], most[FMT_MAX], max[FMT_MAX];
    *out = '\0';
    if (h->count > 0)
        (void)snprintf(out, size, "half < %s, 99 %% < %s, max %s", fmt_duration(half, call_histogram_below_ns(h, 500)),
                       fmt_duration(most, call_histogram_below_ns(h, 990)), fmt_duration(max, h->max_ns));
    return out;
}

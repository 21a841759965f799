/* Durations by powers of two: enough to choose a threshold by, at a few instructions a call. */
#ifndef MTUI_CORE_CALL_HISTOGRAM_H
#define MTUI_CORE_CALL_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define CALL_HISTOGRAM_BUCKETS 64

/* All zero: empty. Bucket i counts durations of [2^i, 2^(i+1)) ns; bucket 0 also 0 ns. */
struct call_histogram {
    uint64_t bucket[CALL_HISTOGRAM_BUCKETS];
    uint64_t count, sum_ns, min_ns, max_ns;
};

void call_histogram_add(struct call_histogram *h, uint64_t duration_ns);

/* The bucket of a duration. */
size_t call_histogram_bucket(uint64_t duration_ns);

void call_histogram_merge(struct call_histogram *h, const struct call_histogram *other);

/* The smallest bucket such that permille of all calls are in it or below; 0 for none. */
size_t call_histogram_quantile(const struct call_histogram *h, unsigned permille);

/* permille of all calls were shorter than this: the upper end of that bucket. */
uint64_t call_histogram_below_ns(const struct call_histogram *h, unsigned permille);

/* "half < 131 us, 99 % < 8.39 ms, max 44.1 ms"; nothing of no calls. */
char *call_histogram_text(const struct call_histogram *h, char *out, size_t size);

#endif

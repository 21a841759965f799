#include "decode/trace/durations.h"

#include <stdlib.h>

#include "decode/trace/select.h"

void durations_free(struct durations *d)
{
    for (size_t i = 0; i < DURATIONS_PAGES; i++)
        free(d->pages[i]);
    vec_free(&d->longer);
    vec_free(&d->longest);
    *d = (struct durations){0};
}

static bool need_page(struct durations *d, size_t i)
{
    if (!d->pages[i])
        d->pages[i] = calloc(DURATIONS_PAGE, sizeof *d->pages[i]);
    return d->pages[i] != NULL;
}

bool durations_add_other(struct durations *d, uint64_t ns)
{
    if (ns > UINT32_MAX)
        return vec_try_push(&d->longest, ns);
    if (ns >= DURATIONS_PAGES * DURATIONS_PAGE)
        return vec_try_push(&d->longer, (uint32_t)ns);
    if (!need_page(d, ns / DURATIONS_PAGE))
        return false;
    d->pages[ns / DURATIONS_PAGE][ns % DURATIONS_PAGE]++;
    return true;
}

bool durations_join(struct durations *to, const struct durations *from)
{
    for (size_t i = 0; i < DURATIONS_PAGES; i++) {
        if (!from->pages[i])
            continue;
        if (!need_page(to, i))
            return false;
        for (size_t k = 0; k < DURATIONS_PAGE; k++)
            to->pages[i][k] += from->pages[i][k];
    }
    for (size_t i = 0; i < from->longer.len; i++)
        if (!vec_try_push(&to->longer, from->longer.data[i]))
            return false;
    for (size_t i = 0; i < from->longest.len; i++)
        if (!vec_try_push(&to->longest, from->longest.data[i]))
            return false;
    return true;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

uint64_t durations_rank(struct durations *d, uint64_t rank)
{
    for (size_t i = 0; i < DURATIONS_PAGES; i++)
        for (size_t k = 0; d->pages[i] && k < DURATIONS_PAGE; k++) {
            if (rank <= d->pages[i][k])
                return i * DURATIONS_PAGE + k;
            rank -= d->pages[i][k];
        }
    if (rank <= d->longer.len)
        return select_u32(d->longer.data, d->longer.len, (size_t)rank - 1);
    rank -= d->longer.len;
    qsort(d->longest.data, d->longest.len, sizeof *d->longest.data, by_size);
    return d->longest.data[rank - 1];
}

static unsigned bucket_of(uint64_t ns)
{
    return ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
}

void durations_histogram(const struct durations *d, uint64_t buckets[64])
{
    for (size_t i = 0; i < DURATIONS_PAGES; i++)
        for (size_t k = 0; d->pages[i] && k < DURATIONS_PAGE; k++)
            buckets[bucket_of(i * DURATIONS_PAGE + k)] += d->pages[i][k];
    for (size_t i = 0; i < d->longer.len; i++)
        buckets[bucket_of(d->longer.data[i])]++;
    for (size_t i = 0; i < d->longest.len; i++)
        buckets[bucket_of(d->longest.data[i])]++;
}

/* Time order. The buffers of the CPUs lie in the file one after another, each in order of time, so the
 * index is a sequence of ascending runs: a natural merge sort takes n log(runs), and is stable. */
#include <stdlib.h>

#include "decode/perf/perf_priv.h"

static bool any_backward(const struct perf_file *f)
{
    for (size_t i = 0; i < f->events.len; i++)
        if (f->events.data[i].info.write_backward)
            return true;
    return false;
}

/* Rings that the kernel fills backward are written newest record first: turn each such run round, so
 * that also records of the same time come in the order in which they happened. */
static void reverse_descending_runs(struct perf_index_entry *e, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && e[end].time_ns && e[end].time_ns <= e[end - 1].time_ns)
            end++;
        for (size_t a = i, b = end - 1; a < b; a++, b--) {
            struct perf_index_entry t = e[a];
            e[a] = e[b];
            e[b] = t;
        }
        i = end;
    }
}

static void merge(const struct perf_index_entry *a, size_t na, const struct perf_index_entry *b,
                  size_t nb, struct perf_index_entry *out)
{
    while (na && nb) {
        if (b->time_ns < a->time_ns) {
            *out++ = *b++;
            nb--;
        } else {
            *out++ = *a++;
            na--;
        }
    }
    memcpy(out, na ? a : b, (na + nb) * sizeof *out);
}

/* Ends of the ascending runs, in order. */
struct runs {
    size_t *data;
    size_t len, cap;
};

static bool find_runs(const struct perf_index_entry *e, size_t n, struct runs *runs)
{
    for (size_t i = 1; i <= n; i++)
        if ((i == n || e[i].time_ns < e[i - 1].time_ns) && !vec_try_push(runs, i))
            return false;
    return true;
}

bool perf_order_sort(struct perf_file *f)
{
    size_t n = f->index.len;
    struct runs runs = {0};
    if (any_backward(f))
        reverse_descending_runs(f->index.data, n);
    if (!find_runs(f->index.data, n, &runs)) {
        vec_free(&runs);
        return false;
    }
    if (runs.len <= 1) {
        vec_free(&runs);
        return true;
    }
    struct perf_index_entry *other = malloc(n * sizeof *other);
    if (!other) {
        vec_free(&runs);
        return false;
    }
    while (runs.len > 1) { /* merge neighbours, two by two */
        size_t start = 0, kept = 0;
        for (size_t r = 0; r < runs.len; r += 2) {
            size_t mid = runs.data[r], end = r + 1 < runs.len ? runs.data[r + 1] : mid;
            const struct perf_index_entry *from = f->index.data;
            merge(from + start, mid - start, from + mid, end - mid, other + start);
            runs.data[kept++] = start = end;
        }
        runs.len = kept;
        struct perf_index_entry *sorted = other;
        other = f->index.data;
        f->index.data = sorted;
        f->index.cap = n;
    }
    free(other);
    vec_free(&runs);
    return true;
}

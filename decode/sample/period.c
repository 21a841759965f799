#include "decode/sample/period.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

#define KEPT 65536

struct metered {
    bool sampled, off;
    uint64_t last_ns, off_ns, waited_ns; /* waited: since last_ns */
};

struct period_meter {
    VEC(struct metered) threads;
    uint64_t *kept;
    size_t nkept;
    uint64_t seen, stride; /* every stride-th distance is kept */
};

struct period_meter *period_meter_new(void)
{
    struct period_meter *m = xcalloc(1, sizeof *m);
    m->kept = xmalloc(KEPT * sizeof *m->kept);
    m->stride = 1;
    return m;
}

void period_meter_free(struct period_meter *m)
{
    if (!m)
        return;
    vec_free(&m->threads);
    free(m->kept);
    free(m);
}

/* NULL when memory is short: the median then stands on fewer threads. */
static struct metered *find(struct period_meter *m, uint32_t thread)
{
    while (m->threads.len <= thread)
        if (!vec_try_push(&m->threads, (struct metered){0}))
            return NULL;
    return &m->threads.data[thread];
}

static void keep(struct period_meter *m, uint64_t distance)
{
    if (m->seen++ % m->stride)
        return;
    if (m->nkept == KEPT) {
        for (size_t i = 0; i < KEPT / 2; i++)
            m->kept[i] = m->kept[2 * i];
        m->nkept = KEPT / 2;
        m->stride *= 2;
    }
    m->kept[m->nkept++] = distance;
}

void period_meter_sample(struct period_meter *m, uint32_t thread, uint64_t time_ns)
{
    struct metered *t = find(m, thread);
    if (!t)
        return;
    if (t->sampled && !t->off && time_ns - t->last_ns > t->waited_ns)
        keep(m, time_ns - t->last_ns - t->waited_ns);
    *t = (struct metered){.sampled = true, .last_ns = time_ns};
}

void period_meter_switch(struct period_meter *m, uint32_t thread, uint64_t time_ns, bool out)
{
    struct metered *t = find(m, thread);
    if (!t)
        return;
    if (out && !t->off) {
        t->off = true;
        t->off_ns = time_ns;
    } else if (!out && t->off) {
        t->off = false;
        t->waited_ns += time_ns - t->off_ns;
    } else if (!out) {
        t->sampled = false; /* its switch out was lost: the distance to the next sample is unknown */
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

uint64_t period_meter_median(struct period_meter *m)
{
    if (m->nkept == 0)
        return 0;
    qsort(m->kept, m->nkept, sizeof *m->kept, by_value);
    return m->kept[(m->nkept - 1) / 2];
}

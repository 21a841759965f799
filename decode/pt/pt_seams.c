#include "decode/pt/pt_seams.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/pt/pt_pieces.h"

/* A thread's or CPU's data in one snapshot. Synchronisation points are counted in it, those with a time alone. */
struct queue {
    size_t snapshot;
    int cpu;
    pid_t owner;
    VEC(uint64_t) times; /* of the points, in the order of the data */
    size_t older;        /* the queue in an older snapshot that it repeats; SIZE_MAX: none */
    size_t common;       /* the first point there that is here as well */
    size_t from, to;     /* the points that this snapshot tells; SIZE_MAX: all that follow */
    uint64_t from_ns, to_ns; /* and the times */
};

struct pt_seams {
    VEC(struct queue) queues; /* snapshot after snapshot */
    size_t snapshots;
};

struct pt_seams *pt_seams_new(void)
{
    return xcalloc(1, sizeof(struct pt_seams));
}

void pt_seams_free(struct pt_seams *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->queues.len; i++)
        vec_free(&s->queues.data[i].times);
    vec_free(&s->queues);
    free(s);
}

/* ---- what a snapshot has ---- */

static size_t queue_of(const struct pt_seams *s, size_t snapshot, const struct pt_stream *st)
{
    for (size_t i = s->queues.len; i > 0 && s->queues.data[i - 1].snapshot == snapshot; i--)
        if (s->queues.data[i - 1].cpu == st->cpu && s->queues.data[i - 1].owner == st->owner)
            return i - 1;
    return SIZE_MAX;
}

static int take_stream(struct pt_seams *s, const struct pt_stream *st, const struct pt_clock *clock)
{
    size_t i = queue_of(s, s->snapshots, st), at = 0;
    struct queue none = {.snapshot = s->snapshots, .cpu = st->cpu, .owner = st->owner, .older = SIZE_MAX,
                         .to = SIZE_MAX, .to_ns = UINT64_MAX};
    uint64_t time_ns;
    if (i == SIZE_MAX) {
        i = s->queues.len;
        vec_push(&s->queues, none);
    }
    while (pt_stream_next_sync(st, clock, &at, &time_ns)) {
        at++;
        if (!vec_try_push(&s->queues.data[i].times, time_ns))
            return MTUI_E_NOMEM;
    }
    return 0;
}

static int take_file(struct pt_seams *s, struct pt_streams *streams, struct perf_file *f, struct err *err)
{
    struct perf_record rec;
    struct pt_clock clock;
    int rc;
    perf_file_rewind(f);
    while ((rc = perf_file_next(f, &rec, err)) > 0)
        if ((rc = pt_streams_add(streams, f, &rec, err)) < 0)
            return rc;
    if (rc == 0)
        rc = pt_streams_finish(streams, err);
    if (rc < 0 || !pt_streams_clock(streams, &clock))
        return rc;
    for (size_t i = 0; i < pt_streams_count(streams) && rc == 0; i++)
        rc = take_stream(s, pt_streams_at(streams, i), &clock);
    return rc < 0 ? err_set(err, rc, "not enough memory to compare the snapshots") : 0;
}

/* ---- what two have in common ---- */

/* The first point of older from which on all are those that newer begins with; SIZE_MAX: none. */
static size_t find_common(const struct queue *older, const struct queue *newer)
{
    size_t n = older->times.len, m = newer->times.len;
    size_t compared = 0, most = 16 * (n + m); /* times that are all the same would take for ever */
    for (size_t i = n > m ? n - m : 0; i < n && m && compared < most; i++) {
        size_t k = 0;
        while (i + k < n && older->times.data[i + k] == newer->times.data[k])
            k++;
        compared += k;
        if (i + k == n)
            return i;
    }
    return SIZE_MAX;
}

static void find_older(struct pt_seams *s, size_t newer)
{
    struct queue *q = &s->queues.data[newer];
    for (size_t i = newer; i-- > 0;) {
        const struct queue *o = &s->queues.data[i];
        if (o->snapshot == q->snapshot || o->cpu != q->cpu || o->owner != q->owner || !o->times.len)
            continue;
        q->common = find_common(o, q);
        if (q->common != SIZE_MAX)
            q->older = i;
        return;
    }
}

/* Before that time the older snapshots tell what CPUs did. A ring that still holds all that it held then does not
 * count: without others, nothing older is needed. */
static uint64_t seam_of_cpus(const struct pt_seams *s, size_t first)
{
    uint64_t seam_ns = 0;
    for (size_t i = first; i < s->queues.len; i++) {
        const struct queue *q = &s->queues.data[i];
        if (q->cpu >= 0 && q->older != SIZE_MAX && q->common > 0 && q->times.data[0] > seam_ns)
            seam_ns = q->times.data[0];
    }
    return seam_ns;
}

/* Both tell what lies between the points around the seam: what is shown of it, times decide. Where the older ends
 * before the seam, a point does. */
static void join(struct pt_seams *s, struct queue *q, uint64_t seam_ns)
{
    struct queue *o = &s->queues.data[q->older];
    size_t at = q->common > o->from ? q->common : o->from, n = o->times.len, last = at;
    while (q->cpu >= 0 && at + 1 < n && o->times.data[at] < seam_ns)
        if (o->times.data[++at] <= seam_ns)
            last = at;
    if (q->cpu >= 0 && seam_ns > o->from_ns && o->times.data[at] > seam_ns)
        o->to_ns = q->from_ns = seam_ns;
    else
        last = at;
    o->to = at;
    q->from = last - q->common;
}

int pt_seams_add(struct pt_seams *s, struct perf_file *f, struct err *err)
{
    size_t first = s->queues.len;
    struct pt_streams *streams = pt_streams_new();
    struct err why = {0};
    int rc = f ? take_file(s, streams, f, &why) : 0;
    pt_streams_free(streams);
    if (rc == MTUI_E_NOMEM)
        return err_set(err, rc, "%s", why.text);
    while (rc < 0 && s->queues.len > first) { /* it will not be shown: what it repeats is needed */
        s->queues.len--;
        vec_free(&s->queues.data[s->queues.len].times);
    }
    for (size_t i = first; i < s->queues.len; i++)
        find_older(s, i);
    uint64_t seam_ns = seam_of_cpus(s, first);
    for (size_t i = first; i < s->queues.len; i++)
        if (s->queues.data[i].older != SIZE_MAX)
            join(s, &s->queues.data[i], seam_ns);
    s->snapshots++;
    return 0;
}

/* ---- what a snapshot is to tell ---- */

/* From the first of its points that is told up to the first that is not any more. before: points of the queue in
 * the streams before this one; those in this one are added. */
static void limit(struct pt_stream_limits *l, const struct queue *q, const struct pt_stream *st,
                  const struct pt_clock *clock, size_t *before)
{
    bool begun = q->older == SIZE_MAX || *before > q->from;
    size_t at = 0;
    uint64_t time_ns;
    *l = (struct pt_stream_limits){begun ? 0 : st->len, *before > q->to ? 0 : st->len, q->from_ns, q->to_ns};
    while (pt_stream_next_sync(st, clock, &at, &time_ns)) {
        if (*before == q->from && !begun)
            l->from = at;
        if (*before == q->to)
            l->to = at;
        ++*before;
        at++;
    }
}

void pt_seams_apply(const struct pt_seams *s, size_t snapshot, struct pt_streams *streams,
                    const struct pt_clock *clock)
{
    for (size_t i = 0; i < s->queues.len; i++) {
        const struct queue *q = &s->queues.data[i];
        size_t before = 0;
        if (q->snapshot != snapshot || (q->older == SIZE_MAX && q->to == SIZE_MAX))
            continue;
        for (size_t k = 0; k < pt_streams_count(streams); k++) {
            const struct pt_stream *st = pt_streams_at(streams, k);
            struct pt_stream_limits l;
            if (st->cpu != q->cpu || st->owner != q->owner)
                continue;
            limit(&l, q, st, clock, &before);
            pt_streams_limit(streams, k, l);
        }
    }
}

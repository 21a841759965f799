/* How much of a stretch of time a thread was busy: in calls, on the CPU, and seen. */
#include "decode/trace/quiet.h"
#include "tui/timeline/timeline.h"

bool tl_knows_switches(struct timeline *tl)
{
    if (!trace_info(tl->trace)->sampled)
        return false;
    for (size_t i = 0; i < tl->nthreads; i++)
        for (size_t d = 0; d < trace_thread(tl->trace, i)->depths; d++) {
            struct flame_row row = flame_source_row(tl->src, i, d);
            if (row.off_cpu(&row, 0, row.n) < row.n)
                return true;
        }
    return false;
}

/* Only samples are told apart by switches; exact traces have them as gaps. */
static uint64_t off_time(struct timeline *tl, size_t thread, size_t depth, uint64_t from, uint64_t to,
                         uint64_t *count)
{
    uint64_t sum = 0;
    if (!trace_info(tl->trace)->sampled)
        return 0;
    for (; depth < trace_thread(tl->trace, thread)->depths; depth++) {
        struct flame_row row = flame_source_row(tl->src, thread, depth);
        sum += flame_row_off_ns(&row, from, to, count);
    }
    return sum;
}

/* Time in the row's calls that lies in gaps; what is off the CPU as well is not counted. */
static uint64_t gap_time(struct timeline *tl, const struct quiet *q, size_t thread, size_t depth,
                         uint64_t from, uint64_t to)
{
    uint64_t sum = 0, count = 0;
    for (size_t i = 0; i < q->n && q->parts[i].from_ns < to; i++) {
        uint64_t a = q->parts[i].from_ns > from ? q->parts[i].from_ns : from;
        uint64_t b = q->parts[i].to_ns < to ? q->parts[i].to_ns : to;
        if (a >= b)
            continue;
        uint64_t calls = pyramid_range(tl->pyramid, thread, depth, a, b).busy_ns;
        sum += calls ? calls - off_time(tl, thread, depth, a, b, &count) : 0;
    }
    return sum;
}

struct tl_busy tl_busy(struct timeline *tl, size_t thread, size_t depth, uint64_t from, uint64_t to)
{
    struct tl_busy_known *k = &tl->busy;
    if (!tl->pyramid)
        return (struct tl_busy){0};
    if (k->of == tl->pyramid && k->thread == thread && k->depth == depth && k->from_ns == from && k->to_ns == to)
        return k->busy;
    struct tl_busy b = {0};
    struct quiet q;
    uint64_t calls = pyramid_range(tl->pyramid, thread, depth, from, to).busy_ns;
    uint64_t idle = off_time(tl, thread, depth, from, to, &b.switches);
    if (quiet_init(&q, tl->trace, thread) == 0) {
        idle += gap_time(tl, &q, thread, depth, from, to);
        quiet_free(&q);
    }
    b.ns = calls > idle ? calls - idle : 0;
    *k = (struct tl_busy_known){tl->pyramid, thread, depth, from, to, b};
    return b;
}

/* The longest of the spans from … end − 1 that is no wait, else the longest wait; *waits: how many those are. */
static size_t longest_call(const struct flame_row *row, size_t from, size_t end, uint64_t *waits)
{
    size_t best = SIZE_MAX;
    *waits = 0;
    for (size_t i = from, off; i < end; i = off + 1) {
        off = row->off_cpu(row, i, end);
        *waits += off < end;
        if (off == i)
            continue;
        const size_t k = row->longest(row, i, off);
        if (best == SIZE_MAX || row->spans[k].end_ns - row->spans[k].start_ns >
                                    row->spans[best].end_ns - row->spans[best].start_ns)
            best = k;
    }
    return best != SIZE_MAX ? best : row->longest(row, from, end);
}

bool tl_aggregate(struct timeline *tl, struct tl_aggregate *a)
{
    const struct span *s = selection_span(tl->src, &tl->sel);
    if (!s || !tl->pyramid)
        return false;
    int col = viewport_col_of(&tl->view, s->start_ns);
    if (viewport_col_of(&tl->view, s->end_ns) > col + 1)
        return false;
    a->from_ns = viewport_time_at(&tl->view, col);
    a->to_ns = viewport_time_at(&tl->view, col + 1);
    if (a->to_ns <= a->from_ns)
        return false;
    const size_t thread = tl->sel.thread, depth = tl->sel.depth;
    struct pyramid_sum sum = pyramid_range(tl->pyramid, thread, depth, a->from_ns, a->to_ns);
    if (sum.count < 3)
        return false;
    struct flame_row row = flame_source_row(tl->src, thread, depth);
    const size_t end = row.seek(&row, 0, a->to_ns);
    a->longest = longest_call(&row, end - (size_t)sum.count, end, &a->waits);
    a->calls = sum.count - a->waits;
    a->busy_ns = tl_busy(tl, thread, depth, a->from_ns, a->to_ns).ns;
    return true;
}

#include "decode/trace/quiet.h"

#include <stdlib.h>

int quiet_init(struct quiet *q, const struct trace *t, size_t thread)
{
    size_t ngaps = 0;
    const struct gap *g = trace_gaps(t, &ngaps);
    pid_t tid = trace_thread(t, thread)->tid;
    *q = (struct quiet){0};
    if (ngaps == 0)
        return 0;
    q->parts = malloc(ngaps * sizeof *q->parts);
    if (!q->parts)
        return MTUI_E_NOMEM;
    for (size_t i = 0; i < ngaps; i++) { /* sorted by start already */
        if ((g[i].tid && g[i].tid != tid) || g[i].end_ns == g[i].start_ns)
            continue;
        struct quiet_part *last = q->n ? &q->parts[q->n - 1] : NULL;
        if (!last || g[i].start_ns > last->to_ns)
            q->parts[q->n++] = (struct quiet_part){g[i].start_ns, g[i].end_ns};
        else if (g[i].end_ns > last->to_ns)
            last->to_ns = g[i].end_ns;
    }
    return 0;
}

void quiet_free(struct quiet *q)
{
    free(q->parts);
    *q = (struct quiet){0};
}

static uint64_t overlap(const struct quiet_part *p, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t from = p->from_ns > from_ns ? p->from_ns : from_ns;
    uint64_t to = p->to_ns < to_ns ? p->to_ns : to_ns;
    return to > from ? to - from : 0;
}

uint64_t quiet_between(struct quiet *q, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t sum = 0;
    while (q->at < q->n && q->parts[q->at].to_ns <= from_ns)
        q->at++;
    for (size_t i = q->at; i < q->n && q->parts[i].from_ns < to_ns; i++)
        sum += overlap(&q->parts[i], from_ns, to_ns);
    return sum;
}

uint64_t quiet_total(const struct quiet *q, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < q->n; i++)
        sum += overlap(&q->parts[i], from_ns, to_ns);
    return sum;
}

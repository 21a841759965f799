#include "decode/pt/pt_switches.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/perf/sched_switch.h"

struct turn { /* a thread's, from a time on; −1: the next one's that is known */
    uint64_t from_ns;
    pid_t tid;
};

struct lane {
    int cpu;
    VEC(struct turn) turns;
};

struct pt_switches {
    VEC(struct lane) lanes;
    struct sched_switch *samples;
};

struct pt_switches *pt_switches_new(const struct perf_file *f)
{
    struct pt_switches *s = xcalloc(1, sizeof *s);
    s->samples = sched_switch_new(f);
    return s;
}

void pt_switches_free(struct pt_switches *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->lanes.len; i++)
        vec_free(&s->lanes.data[i].turns);
    vec_free(&s->lanes);
    sched_switch_free(s->samples);
    free(s);
}

static struct lane *lane_of(const struct pt_switches *s, int cpu)
{
    for (size_t i = 0; i < s->lanes.len; i++)
        if (s->lanes.data[i].cpu == cpu)
            return &s->lanes.data[i];
    return NULL;
}

static int note(struct pt_switches *s, const struct perf_record *rec, pid_t tid)
{
    if (rec->cpu < 0)
        return 0;
    struct lane *l = lane_of(s, rec->cpu);
    if (!l) {
        if (!vec_try_push(&s->lanes, ((struct lane){.cpu = rec->cpu})))
            return MTUI_E_NOMEM;
        l = &s->lanes.data[s->lanes.len - 1];
    }
    if (l->turns.len && l->turns.data[l->turns.len - 1].tid == tid)
        return 0;
    struct turn t = {rec->time_ns, tid};
    return vec_try_push(&l->turns, t) ? 0 : MTUI_E_NOMEM;
}

int pt_switches_apply(struct pt_switches *s, const struct perf_record *rec)
{
    pid_t next;
    if (rec->kind == PERF_REC_ITRACE_START)
        return note(s, rec, rec->tid);
    if (rec->kind == PERF_REC_SAMPLE && sched_switch_read(s->samples, rec, &next))
        return note(s, rec, next);
    if (rec->kind != PERF_REC_SWITCH)
        return 0;
    return note(s, rec, rec->u.sw.out ? rec->u.sw.other_tid : rec->tid);
}

bool pt_switches_know(const struct pt_switches *s, int cpu)
{
    return lane_of(s, cpu) != NULL;
}

static int by_number(const void *a, const void *b)
{
    const pid_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

size_t pt_switches_threads(const struct pt_switches *s, int cpu)
{
    const struct lane *l = lane_of(s, cpu);
    VEC(pid_t) tids = {0};
    size_t n = 0;
    for (size_t i = 0; l && i < l->turns.len; i++)
        if (l->turns.data[i].tid > 0)
            vec_push(&tids, l->turns.data[i].tid);
    if (tids.len)
        qsort(tids.data, tids.len, sizeof *tids.data, by_number);
    for (size_t i = 0; i < tids.len; i++)
        n += i == 0 || tids.data[i] != tids.data[i - 1];
    vec_free(&tids);
    return n;
}

pid_t pt_switches_at(const struct pt_switches *s, int cpu, uint64_t time_ns)
{
    const struct lane *l = lane_of(s, cpu);
    size_t lo = 0, hi = l ? l->turns.len : 0;
    while (lo < hi) { /* the first turn behind the time */
        size_t mid = lo + (hi - lo) / 2;
        if (l->turns.data[mid].from_ns <= time_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!l)
        return -1;
    if (lo && l->turns.data[lo - 1].tid >= 0)
        return l->turns.data[lo - 1].tid;
    for (; lo < l->turns.len; lo++)
        if (l->turns.data[lo].tid >= 0)
            return l->turns.data[lo].tid;
    return -1;
}

#include "decode/image/map_history.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/base/hash64.h"

/* [from, to): in states of a process, as numbers. */
struct lived {
    struct addrspace_map map;
    size_t from, to; /* SIZE_MAX: still there */
};

struct process {
    uint64_t generation;
    VEC(uint64_t) states; /* the time from which each holds */
    VEC(struct lived) lived;
    VEC(size_t) present; /* those that are still there, by address */
};

struct map_history {
    struct hash64 pids;
    VEC(struct process) processes;
};

struct map_history *map_history_new(void)
{
    return xcalloc(1, sizeof(struct map_history));
}

void map_history_free(struct map_history *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->processes.len; i++) {
        vec_free(&h->processes.data[i].states);
        vec_free(&h->processes.data[i].lived);
        vec_free(&h->processes.data[i].present);
    }
    vec_free(&h->processes);
    hash64_free(&h->pids);
    free(h);
}

static struct process *process_of(const struct map_history *h, pid_t pid)
{
    uint32_t i = hash64_get(&h->pids, (uint32_t)pid);
    return i == HASH64_NONE ? NULL : &h->processes.data[i];
}

static struct process *add_process(struct map_history *h, pid_t pid)
{
    struct process *p = process_of(h, pid), fresh = {0};
    if (p)
        return p;
    if (!hash64_set(&h->pids, (uint32_t)pid, (uint32_t)h->processes.len) ||
        !vec_try_push(&h->processes, fresh))
        return NULL;
    return &h->processes.data[h->processes.len - 1];
}

/* ---- writing ---- */

static bool same(const struct addrspace_map *a, const struct addrspace_map *b)
{
    return a->start == b->start && a->end == b->end && a->pgoff == b->pgoff && a->module == b->module &&
           a->prot == b->prot && a->owner == b->owner;
}

/* From the mappings of the state before to those of this one, both by address. */
static bool change(struct process *p, size_t state, const struct addrspace_map *maps, size_t n)
{
    size_t old = 0, kept = 0;
    size_t *present = malloc((n ? n : 1) * sizeof *present);
    if (!present)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct lived *l = NULL;
        for (; old < p->present.len; old++) {
            l = &p->lived.data[p->present.data[old]];
            if (l->map.start >= maps[i].start)
                break;
            l->to = state;
        }
        if (old < p->present.len && same(&l->map, &maps[i])) {
            present[kept++] = p->present.data[old++];
            continue;
        }
        struct lived fresh = {maps[i], state, SIZE_MAX};
        if (!vec_try_push(&p->lived, fresh)) {
            free(present);
            return false;
        }
        present[kept++] = p->lived.len - 1;
    }
    for (; old < p->present.len; old++)
        p->lived.data[p->present.data[old]].to = state;
    free(p->present.data);
    p->present.data = present;
    p->present.len = kept;
    p->present.cap = n ? n : 1;
    return true;
}

int map_history_note(struct map_history *h, pid_t pid, uint64_t time_ns, uint64_t generation,
                     const struct addrspace_map *maps, size_t n)
{
    struct process *p = add_process(h, pid);
    if (!p)
        return MTUI_E_NOMEM;
    if (p->generation == generation) /* 0: nothing is known of it (any more) */
        return 0;
    p->generation = generation;
    /* Records of one time, as perf writes them at its start, make one state. */
    size_t last = p->states.len;
    if (!last || p->states.data[last - 1] < time_ns) {
        if (!vec_try_push(&p->states, time_ns))
            return MTUI_E_NOMEM;
        last++;
    }
    return change(p, last - 1, maps, n) ? 0 : MTUI_E_NOMEM;
}

/* ---- asking ---- */

bool map_history_knows(const struct map_history *h, pid_t pid)
{
    const struct process *p = process_of(h, pid);
    return p && p->states.len;
}

static size_t state_at(const struct process *p, uint64_t time_ns)
{
    size_t lo = 0, hi = p->states.len;
    while (lo < hi) { /* the first that begins later */
        size_t mid = lo + (hi - lo) / 2;
        if (p->states.data[mid] <= time_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? lo - 1 : 0;
}

uint64_t map_history_state(const struct map_history *h, pid_t pid, uint64_t time_ns)
{
    const struct process *p = process_of(h, pid);
    if (!p || !p->states.len)
        return 0;
    return (uint64_t)(p - h->processes.data + 1) << 32 | (state_at(p, time_ns) & UINT32_MAX);
}

static int by_address(const void *a, const void *b)
{
    const struct addrspace_map *const *x = a, *const *y = b;
    return (*x)->start < (*y)->start ? -1 : (*x)->start > (*y)->start;
}

int map_history_at(const struct map_history *h, pid_t pid, uint64_t time_ns, struct map_state *out)
{
    const struct process *p = process_of(h, pid);
    out->len = 0;
    if (!p || !p->states.len)
        return 0;
    size_t state = state_at(p, time_ns);
    for (size_t i = 0; i < p->lived.len; i++) {
        const struct lived *l = &p->lived.data[i];
        if (l->from <= state && state < l->to && !vec_try_push(out, &l->map)) {
            out->len = 0;
            return MTUI_E_NOMEM;
        }
    }
    if (out->len)
        qsort(out->data, out->len, sizeof *out->data, by_address);
    return 0;
}

void map_state_free(struct map_state *s)
{
    vec_free(s);
}

const struct addrspace_map *map_state_find(const struct map_state *s, uint64_t ip)
{
    size_t lo = 0, hi = s->len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->data[mid]->end <= ip)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->len && ip >= s->data[lo]->start ? s->data[lo] : NULL;
}

const struct addrspace_map *map_history_next(const struct map_history *h, pid_t pid, uint64_t time_ns,
                                             uint64_t ip)
{
    const struct process *p = process_of(h, pid);
    const struct lived *next = NULL;
    if (!p || !p->states.len)
        return NULL;
    size_t state = state_at(p, time_ns);
    for (size_t i = 0; i < p->lived.len; i++) {
        const struct lived *l = &p->lived.data[i];
        if (l->from > state && l->from < l->to && l->map.start <= ip && ip < l->map.end &&
            (!next || l->from < next->from))
            next = l;
    }
    return next ? &next->map : NULL;
}

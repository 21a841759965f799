#include "decode/sample/sample_log.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/base/hash64.h"
#include "decode/sample/sample_log_priv.h"

struct sample_log {
    VEC(struct sample_event) events;
    struct stack_tree *stacks;
    VEC(struct sample_thread) threads;
    VEC(struct sample_source) sources;
    struct hash64 by_ids;  /* pid << 32 | tid → thread */
};

struct sample_log *sample_log_new(void)
{
    struct sample_log *l = xcalloc(1, sizeof *l);
    l->stacks = stack_tree_new();
    return l;
}

void sample_log_free(struct sample_log *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->threads.len; i++)
        free(l->threads.data[i].comm);
    for (size_t i = 0; i < l->sources.len; i++)
        free(l->sources.data[i].name);
    vec_free(&l->events);
    stack_tree_free(l->stacks);
    vec_free(&l->threads);
    vec_free(&l->sources);
    hash64_free(&l->by_ids);
    free(l);
}

/* Few names, so a walk finds them; a recording with more than 65,535 of them is no real one. */
uint16_t sample_log_add_event(struct sample_log *l, const char *name, bool clock, uint64_t period_ns)
{
    for (size_t i = 0; i < l->sources.len; i++)
        if (strcmp(l->sources.data[i].name, name) == 0)
            return (uint16_t)i;
    if (l->sources.len > UINT16_MAX)
        return UINT16_MAX;
    struct sample_source s = {xstrdup(name), clock, period_ns, 0};
    vec_push(&l->sources, s);
    return (uint16_t)(l->sources.len - 1);
}

uint32_t sample_log_thread(struct sample_log *l, pid_t pid, pid_t tid)
{
    uint64_t key = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
    uint32_t i = hash64_get(&l->by_ids, key);
    if (i != HASH64_NONE)
        return i;
    i = (uint32_t)l->threads.len;
    if (!hash64_set(&l->by_ids, key, i) ||
        !vec_try_push(&l->threads, ((struct sample_thread){pid, tid, NULL})))
        return SAMPLE_NO_THREAD;
    return i;
}

int sample_log_comm(struct sample_log *l, uint32_t thread, const char *comm)
{
    if (thread >= l->threads.len)
        return MTUI_E_NOMEM;
    struct sample_thread *t = &l->threads.data[thread];
    if (t->comm && strcmp(t->comm, comm) == 0)
        return 0;
    free(t->comm);
    t->comm = xstrdup(comm);
    return 0;
}

int sample_log_stack(struct sample_log *l, const fn_id *stack, size_t n, stack_id *out)
{
    stack_id at = STACK_EMPTY;
    for (size_t i = 0; i < n; i++)
        if (stack_tree_child(l->stacks, at, stack[i], &at) < 0)
            return MTUI_E_NOMEM;
    *out = at;
    return 0;
}

int sample_log_add(struct sample_log *l, const struct sample_event *e)
{
    if (e->kind == SAMPLE_STACK && e->event < l->sources.len)
        l->sources.data[e->event].samples++;
    return vec_try_push(&l->events, *e) ? 0 : MTUI_E_NOMEM;
}

void sample_log_set_stack(struct sample_log *l, size_t event, stack_id stack)
{
    l->events.data[event].stack = stack;
}

size_t sample_log_count(const struct sample_log *l)
{
    return l->events.len;
}

const struct sample_event *sample_log_events(const struct sample_log *l)
{
    return l->events.data;
}

const struct sample_thread *sample_log_thread_at(const struct sample_log *l, uint32_t thread)
{
    return &l->threads.data[thread];
}

size_t sample_log_thread_count(const struct sample_log *l)
{
    return l->threads.len;
}

const struct sample_source *sample_log_source(const struct sample_log *l, size_t i)
{
    return &l->sources.data[i];
}

size_t sample_log_source_count(const struct sample_log *l)
{
    return l->sources.len;
}

const struct stack_tree *sample_log_stacks(const struct sample_log *l)
{
    return l->stacks;
}

/* ---- Order ----
 * Readers deliver by time already, so this is a check; text may come in any order. A stable merge sort:
 * equal times keep the order in which they came. */

static bool sorted(const struct sample_event *e, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (e[i].time_ns < e[i - 1].time_ns)
            return false;
    return true;
}

static void merge_sort(struct sample_event *e, struct sample_event *scratch, size_t n)
{
    if (n < 2 || sorted(e, n))
        return;
    size_t half = n / 2;
    merge_sort(e, scratch, half);
    merge_sort(e + half, scratch, n - half);
    memcpy(scratch, e, half * sizeof *e);
    size_t a = 0, b = half, out = 0;
    while (a < half)
        e[out++] = b < n && e[b].time_ns < scratch[a].time_ns ? e[b++] : scratch[a++];
}

int sample_log_sort(struct sample_log *l)
{
    struct sample_event *e = l->events.data, *scratch = NULL;
    for (size_t from = 0, to; from < l->events.len; from = to + 1) {
        for (to = from; to < l->events.len && e[to].kind != SAMPLE_BORDER; to++)
            ;
        if (sorted(e + from, to - from))
            continue;
        if (!scratch)
            scratch = malloc(l->events.len / 2 * sizeof *scratch + sizeof *scratch);
        if (!scratch)
            return MTUI_E_NOMEM;
        merge_sort(e + from, scratch, to - from);
    }
    free(scratch);
    return 0;
}

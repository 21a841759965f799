#include "core/session/code_versions.h"

#include <stdlib.h>

#include "core/base/vec.h"

bool code_versions_add(struct code_versions *v, struct code_version version)
{
    version.order = v->len;
    return version.start % CODE_VERSION_PAGE == 0 && vec_try_push(v, version);
}

static int by_page_and_time(const void *a, const void *b)
{
    const struct code_version *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

void code_versions_sort(struct code_versions *v)
{
    if (v->len)
        qsort(v->data, v->len, sizeof *v->data, by_page_and_time);
}

void code_versions_free(struct code_versions *v)
{
    vec_free(v);
}

/* How many come before a key or are equal to it. */
static size_t until(const struct code_versions *v, pid_t pid, uint64_t start, uint64_t time_ns)
{
    const struct code_version key = {.pid = pid, .start = start, .time_ns = time_ns, .order = SIZE_MAX};
    size_t lo = 0, hi = v->len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (by_page_and_time(&v->data[mid], &key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const struct code_version *code_versions_find(const struct code_versions *v, pid_t pid, uint64_t time_ns,
                                              uint64_t address)
{
    uint64_t start = address - address % CODE_VERSION_PAGE;
    size_t n = until(v, pid, start, time_ns);
    const struct code_version *found = n ? &v->data[n - 1] : NULL;
    return found && found->pid == pid && found->start == start ? found : NULL;
}

bool code_versions_within(const struct code_versions *v, pid_t pid, uint64_t time_ns, uint64_t start,
                          uint64_t end)
{
    uint64_t page = start - start % CODE_VERSION_PAGE;
    size_t i = page ? until(v, pid, page - 1, UINT64_MAX) : until(v, pid - 1, UINT64_MAX, UINT64_MAX);
    for (; i < v->len && v->data[i].pid == pid && v->data[i].start < end; i++)
        if (v->data[i].time_ns <= time_ns)
            return true;
    return false;
}

/* The spans of many threads in one order: a heap of walks, the one with the earliest next span on top. */
#include <stdlib.h>

#include "core/base/alloc.h"
#include "decode/export/export_priv.h"

struct source {
    struct walk walk;
    const struct span *next;
    size_t thread;
    pid_t tid;
};

struct export_merge {
    struct source *heap;
    size_t n;
};

static bool advance(struct source *s)
{
    struct walk_event ev;
    while (walk_next(&s->walk, &ev))
        if (ev.enter) {
            s->next = ev.span;
            return true;
        }
    walk_free(&s->walk);
    return false;
}

static bool before(const struct source *a, const struct source *b)
{
    if (a->next->start_ns != b->next->start_ns)
        return a->next->start_ns < b->next->start_ns;
    return a->tid != b->tid ? a->tid < b->tid : a->thread < b->thread;
}

static void sift_down(struct source *heap, size_t n, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &heap[i]))
            return;
        struct source x = heap[i];
        heap[i] = heap[child];
        heap[child] = x;
    }
}

int export_merge_new(struct export_merge **out, const struct export_job *j)
{
    struct export_merge *m = xcalloc(1, sizeof *m);
    size_t n = trace_thread_count(j->trace);
    m->heap = malloc((n + 1) * sizeof *m->heap);
    for (size_t i = 0; m->heap && i < n; i++) {
        if (j->thread >= 0 && (size_t)j->thread != i)
            continue;
        struct source *s = &m->heap[m->n];
        *s = (struct source){.thread = i, .tid = trace_thread(j->trace, i)->tid};
        if (walk_init(&s->walk, j->trace, i, j->from_ns, j->to_ns) < 0) {
            export_merge_free(m);
            return MTUI_E_NOMEM;
        }
        m->n += advance(s);
    }
    if (!m->heap) {
        free(m);
        return MTUI_E_NOMEM;
    }
    for (size_t i = m->n; i-- > 0;)
        sift_down(m->heap, m->n, i);
    *out = m;
    return 0;
}

void export_merge_free(struct export_merge *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        walk_free(&m->heap[i].walk);
    free(m->heap);
    free(m);
}

const struct span *export_merge_next(struct export_merge *m, size_t *thread)
{
    if (m->n == 0)
        return NULL;
    struct source *top = &m->heap[0];
    const struct span *s = top->next;
    *thread = top->thread;
    if (!advance(top))
        m->heap[0] = m->heap[--m->n];
    sift_down(m->heap, m->n, 0);
    return s;
}

#include "core/trigger/call_match.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

struct thread_calls {
    pid_t tid;
    uint32_t function;
    VEC(struct call_open) open; /* in the order of time */
};

struct call_match {
    VEC(struct thread_calls *) threads; /* ascending by tid, function */
    VEC(uint64_t) left;                  /* by function */
};

struct call_match *call_match_new(void)
{
    return xcalloc(1, sizeof(struct call_match));
}

static void count_left(struct call_match *m, uint32_t function, uint64_t n)
{
    while (n > 0 && m->left.len <= function)
        vec_push(&m->left, 0);
    if (n > 0)
        m->left.data[function] += n;
}

static void thread_calls_free(struct thread_calls *t)
{
    vec_free(&t->open);
    free(t);
}

void call_match_free(struct call_match *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->threads.len; i++)
        thread_calls_free(m->threads.data[i]);
    vec_free(&m->threads);
    vec_free(&m->left);
    free(m);
}

static size_t place(const struct call_match *m, pid_t tid, uint32_t function)
{
    size_t lo = 0, hi = m->threads.len;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const struct thread_calls *t = m->threads.data[mid];
        if (t->tid < tid || (t->tid == tid && t->function < function))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct thread_calls *find(const struct call_match *m, pid_t tid, uint32_t function)
{
    size_t at = place(m, tid, function);
    if (at < m->threads.len && m->threads.data[at]->tid == tid &&
        m->threads.data[at]->function == function)
        return m->threads.data[at];
    return NULL;
}

static struct thread_calls *find_or_add(struct call_match *m, pid_t tid, uint32_t function)
{
    struct thread_calls *t = find(m, tid, function);
    if (t)
        return t;
    size_t at = place(m, tid, function);
    t = xcalloc(1, sizeof *t);
    t->tid = tid;
    t->function = function;
    vec_push(&m->threads, t);
    memmove(m->threads.data + at + 1, m->threads.data + at,
            (m->threads.len - 1 - at) * sizeof *m->threads.data);
    m->threads.data[at] = t;
    return t;
}

/* Drops open calls that cannot be open any more when the stack pointer is sp: those that lie below
 * it on the same stack; with `itself` also one at sp. Recent calls are at the end, and usually the
 * first look ends the search. */
static void drop_dead(struct call_match *m, struct thread_calls *t, uint64_t sp, bool itself)
{
    size_t n = t->open.len;
    while (n > 0) {
        const struct call_open *c = &t->open.data[n - 1];
        bool dead = itself ? c->sp <= sp : c->sp < sp;
        if (!dead || sp - c->sp > CALL_MATCH_STACK)
            break;
        n--;
    }
    count_left(m, t->function, t->open.len - n);
    t->open.len = n;
}

void call_match_enter(struct call_match *m, pid_t tid, uint32_t function,
                      const struct call_open *call)
{
    struct thread_calls *t = find_or_add(m, tid, function);
    drop_dead(m, t, call->sp, true);
    if (t->open.len >= CALL_MATCH_DEPTH)
        vec_remove(&t->open, 0);
    vec_push(&t->open, *call);
}

bool call_match_leave(struct call_match *m, pid_t tid, uint32_t function, uint64_t sp,
                      struct call_open *out)
{
    struct thread_calls *t = find(m, tid, function);
    if (!t)
        return false;
    drop_dead(m, t, sp, false);
    /* Calls on other stacks may have come later. */
    for (size_t i = t->open.len; i-- > 0;) {
        if (t->open.data[i].sp != sp)
            continue;
        *out = t->open.data[i];
        vec_remove(&t->open, i);
        return true;
    }
    return false;
}

void call_match_forget(struct call_match *m, pid_t tid)
{
    size_t from = place(m, tid, 0), to = from;
    while (to < m->threads.len && m->threads.data[to]->tid == tid)
        thread_calls_free(m->threads.data[to++]);
    if (to == from)
        return;
    memmove(m->threads.data + from, m->threads.data + to,
            (m->threads.len - to) * sizeof *m->threads.data);
    m->threads.len -= to - from;
}

void call_match_forget_all(struct call_match *m)
{
    for (size_t i = 0; i < m->threads.len; i++)
        thread_calls_free(m->threads.data[i]);
    m->threads.len = 0;
}

static bool find_call(const struct call_match *m, pid_t tid, uint32_t function,
                      const struct call_open *call, struct thread_calls **t, size_t *at)
{
    *t = find(m, tid, function);
    for (size_t i = *t ? (*t)->open.len : 0; i-- > 0;) {
        const struct call_open *c = &(*t)->open.data[i];
        if (c->sp != call->sp || c->time_ns != call->time_ns)
            continue;
        *at = i;
        return true;
    }
    return false;
}

void call_match_tell(struct call_match *m, pid_t tid, uint32_t function,
                     const struct call_open *call)
{
    struct thread_calls *t;
    size_t i;
    if (find_call(m, tid, function, call, &t, &i))
        t->open.data[i].told = true;
}

void call_match_pass_over(struct call_match *m, pid_t tid, uint32_t function,
                          const struct call_open *call)
{
    struct thread_calls *t;
    size_t i;
    if (find_call(m, tid, function, call, &t, &i))
        t->open.data[i].passed_over = true;
}

void call_match_see(struct call_match *m, pid_t tid, uint32_t function,
                    const struct call_open *call)
{
    struct thread_calls *t;
    size_t i;
    if (find_call(m, tid, function, call, &t, &i))
        t->open.data[i].seen = t->open.data[i].looked_at = true;
}

void call_match_look_again(struct call_match *m)
{
    for (size_t i = 0; i < m->threads.len; i++)
        for (size_t k = 0; k < m->threads.data[i]->open.len; k++)
            m->threads.data[i]->open.data[k].looked_at = false;
}

void call_match_drop(struct call_match *m, pid_t tid, uint32_t function,
                     const struct call_open *call)
{
    struct thread_calls *t;
    size_t i;
    if (!find_call(m, tid, function, call, &t, &i))
        return;
    vec_remove(&t->open, i);
    count_left(m, function, 1);
}

bool call_match_is_open(const struct call_match *m, pid_t tid, uint32_t function,
                        const struct call_open *call)
{
    struct thread_calls *t;
    size_t i;
    return find_call(m, tid, function, call, &t, &i);
}

/* The thread's oldest call that somebody may ask for; NULL: none. */
static const struct call_open *first_of(const struct thread_calls *t, bool unlooked)
{
    for (size_t i = 0; i < t->open.len; i++) {
        const struct call_open *c = &t->open.data[i];
        if (c->told || (unlooked && c->looked_at))
            return NULL;
        if (!c->passed_over)
            return c;
    }
    return NULL;
}

static bool find_oldest(const struct call_match *m, uint32_t function, bool unlooked, pid_t *tid,
                        struct call_open *out)
{
    const struct call_open *oldest = NULL;
    for (size_t i = 0; i < m->threads.len; i++) {
        const struct thread_calls *t = m->threads.data[i];
        const struct call_open *c = t->function == function ? first_of(t, unlooked) : NULL;
        if (!c || (oldest && c->time_ns >= oldest->time_ns))
            continue;
        oldest = c;
        *tid = t->tid;
    }
    if (oldest)
        *out = *oldest;
    return oldest != NULL;
}

bool call_match_oldest(const struct call_match *m, uint32_t function, pid_t *tid,
                       struct call_open *out)
{
    return find_oldest(m, function, false, tid, out);
}

bool call_match_oldest_unlooked(const struct call_match *m, uint32_t function, pid_t *tid,
                                struct call_open *out)
{
    return find_oldest(m, function, true, tid, out);
}

bool call_match_oldest_of(const struct call_match *m, pid_t tid, uint32_t function,
                          struct call_open *out)
{
    const struct thread_calls *t = find(m, tid, function);
    const struct call_open *c = t ? first_of(t, false) : NULL;
    if (c)
        *out = *c;
    return c != NULL;
}

uint64_t call_match_left(const struct call_match *m, uint32_t function)
{
    return function < m->left.len ? m->left.data[function] : 0;
}

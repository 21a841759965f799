#include "tui/analysis/event_list.h"

#include <stdlib.h>

void event_list_set(struct event_list *l, struct events *e)
{
    events_free(l->before);
    l->before = e;
    l->rows.len = l->chosen = 0;
    l->tired = false;
}

void event_list_free(struct event_list *l)
{
    event_list_set(l, NULL);
    vec_free(&l->rows);
}

void event_list_fill(struct event_list *l, size_t n)
{
    struct event ev;
    l->rows.len = 0;
    l->tired = false;
    if (!l->before)
        return;
    struct events *e = events_copy(l->before);
    while (l->rows.len < n && events_next(e, &ev))
        vec_push(&l->rows, ev);
    l->tired = events_tired(e);
    events_free(e);
    if (l->chosen >= l->rows.len)
        l->chosen = l->rows.len ? l->rows.len - 1 : 0;
}

/* Moves the first row by delta events; returns how far it got. */
static long scroll(struct event_list *l, long delta)
{
    struct event ev;
    long moved = 0;
    while (moved < delta && events_next(l->before, &ev))
        moved++;
    while (moved > delta && events_prev(l->before, &ev))
        moved--;
    l->tired |= events_tired(l->before);
    return moved;
}

void event_list_goto(struct event_list *l, uint64_t t_ns, size_t n)
{
    if (!l->before)
        return;
    events_seek(l->before, t_ns);
    event_list_fill(l, 1);
    bool at_end = l->rows.len == 0;
    l->chosen = (size_t)-scroll(l, -(long)(n / 3) - (at_end ? 1 : 0));
    event_list_fill(l, n);
}

void event_list_goto_call(struct event_list *l, uint64_t t_ns, size_t thread, size_t depth, size_t n)
{
    struct event ev;
    long ahead = 0;
    bool found = false;
    if (!l->before)
        return;
    event_list_goto(l, t_ns, n);
    struct events *e = events_copy(l->before);
    events_seek(e, t_ns);
    for (; !found && events_next(e, &ev) && ev.time_ns == t_ns; ahead++)
        found = ev.kind == EVENT_CALL && ev.thread == thread && ev.depth == depth;
    events_free(e);
    if (found)
        event_list_move(l, ahead - 1, n);
}

void event_list_stand(struct event_list *l, uint64_t t_ns, size_t n)
{
    if (!l->before)
        return;
    events_seek(l->before, t_ns);
    event_list_fill(l, n);
}

void event_list_move(struct event_list *l, long delta, size_t n)
{
    if (!l->before || n == 0)
        return;
    long want = (long)l->chosen + delta, last = (long)n - 1;
    if (want < 0) {
        scroll(l, want);
        want = 0;
    } else if (want > last) {
        /* Not past the point where the last event stands on the last row. */
        struct events *ahead = events_copy(l->before);
        struct event ev;
        long there = 0;
        while (there <= want && events_next(ahead, &ev))
            there++;
        events_free(ahead);
        if (there > (long)n)
            scroll(l, there - (long)n > want - last ? want - last : there - (long)n);
        want = last;
    }
    l->chosen = (size_t)want;
    event_list_fill(l, n);
}

const struct event *event_list_chosen(const struct event_list *l)
{
    return l->chosen < l->rows.len ? &l->rows.data[l->chosen] : NULL;
}

/* A scrolling window over the events of a trace: which of them stand on the screen, which is chosen.
 * Holds a screenful, whatever the trace's size. */
#ifndef MTUI_TUI_EVENT_LIST_H
#define MTUI_TUI_EVENT_LIST_H

#include "core/base/vec.h"
#include "tui/analysis/events.h"

struct event_list {
    struct events *before; /* stands before the first row; NULL: no trace */
    VEC(struct event) rows;
    size_t chosen; /* of rows */
    bool tired;    /* filled only in part: too many events do not pass the filter */
};

/* Takes over e (NULL: none). */
void event_list_set(struct event_list *l, struct events *e);
void event_list_free(struct event_list *l);

/* The screen has n rows: reads as many. */
void event_list_fill(struct event_list *l, size_t n);

/* The first row is the first event at or behind t. */
void event_list_stand(struct event_list *l, uint64_t t_ns, size_t n);
/* Goes to the first event at or behind t and chooses it, a third down the screen. */
void event_list_goto(struct event_list *l, uint64_t t_ns, size_t n);

/* The same; of the events of that time it chooses the call that stands on that thread and depth, if there is one. */
void event_list_goto_call(struct event_list *l, uint64_t t_ns, size_t thread, size_t depth, size_t n);

/* Moves the choice by delta events, scrolling where needed. */
void event_list_move(struct event_list *l, long delta, size_t n);

const struct event *event_list_chosen(const struct event_list *l);

#endif

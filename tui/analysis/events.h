/* The events of a trace in the order of time, walked both ways from any place and never all held at
 * once: calls and returns out of the rows of spans, gaps, marks.
 *
 * A cursor stands between two events. Order: time; at one time threads by index, and in a thread as it
 * happened; gaps and marks before calls. */
#ifndef MTUI_TUI_EVENTS_H
#define MTUI_TUI_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/timeline/flame_source.h"

enum event_kind { EVENT_CALL, EVENT_RETURN, EVENT_GAP, EVENT_MARK, EVENT_KINDS };
/* "call" "ret" "gap" "mark" */
const char *event_kind_name(enum event_kind kind);

struct event {
    enum event_kind kind;
    uint64_t time_ns;
    size_t thread; /* SIZE_MAX: gap or mark of no thread in the trace */
    size_t depth, index;
    const struct span *span; /* EVENT_CALL, EVENT_RETURN */
    const struct gap *gap;
    const struct mark *mark;
};

#define EVENTS_ALL_THREADS SIZE_MAX

struct events_filter {
    size_t thread;     /* EVENTS_ALL_THREADS or one */
    unsigned kinds;    /* bit per enum event_kind */
    unsigned marks;    /* bit per enum mark_kind; 0: all */
    const uint8_t *fn; /* NULL: all; else a bit per function (calls and returns only) */
};

struct events;

struct events *events_new(const struct trace *t, struct flame_source *src,
                          struct events_filter filter);
struct events *events_copy(const struct events *e);
void events_free(struct events *e);

/* Stands before the first event at or behind t. */
void events_seek(struct events *e, uint64_t t_ns);

/* Steps over one event that passes the filter; false at the end, or when more than `budget` events in a
 * row did not pass (events_tired tells). The cursor stays before the end, wherever it got to. */
bool events_next(struct events *e, struct event *out);
bool events_prev(struct events *e, struct event *out);
bool events_tired(const struct events *e);

#endif

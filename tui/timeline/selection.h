/* The selected span of a timeline and where the keys take it. Pure: reads rows, changes nothing else. */
#ifndef MTUI_TUI_SELECTION_H
#define MTUI_TUI_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/timeline/flame_source.h"

struct selection {
    bool valid;
    size_t thread, depth, index; /* of the span in its row */
};

/* NULL when not valid. */
const struct span *selection_span(struct flame_source *src, const struct selection *sel);

/* The span of a row that covers t, else the nearest one to t; false when the row is empty. */
bool selection_at(struct flame_source *src, size_t thread, size_t depth, uint64_t t_ns,
                  struct selection *sel);
/* The innermost span of a thread that covers t, else the outermost nearest one. */
bool selection_innermost(struct flame_source *src, size_t thread, size_t depths, uint64_t t_ns,
                         struct selection *sel);

/* Each returns false, and leaves sel alone, when there is no such span. */
bool selection_caller(struct flame_source *src, struct selection *sel);
/* The child under the time t, else the nearest child to t. */
bool selection_callee(struct flame_source *src, struct selection *sel, uint64_t t_ns);
bool selection_longest_child(struct flame_source *src, struct selection *sel);
/* delta −1 or 1. */
bool selection_sibling(struct flame_source *src, struct selection *sel, int delta);

/* The spans of the row below that lie in the selected one: [*from, *to). */
void selection_children(struct flame_source *src, const struct selection *sel, size_t *from,
                        size_t *to);

/* Time that the selected span spent in its children. */
uint64_t selection_child_time(struct flame_source *src, const struct pyramid *p,
                              const struct selection *sel);

#endif

/* Inside timeline_merged*.c: the merged flame graph of the Timeline screen.
 *
 * Its picture is a timeline of its own, over a model of its own whose trace is made of stacks instead of
 * calls (decode/trace/merged.h): every key that moves, zooms, searches or looks means the same there. */
#ifndef MTUI_TUI_TIMELINE_MERGED_H
#define MTUI_TUI_TIMELINE_MERGED_H

#include "decode/trace/merged.h"
#include "tui/timeline/timeline.h"

/* What is merged. */
struct tl_scope {
    ssize_t thread;          /* −1: all */
    uint64_t from_ns, to_ns; /* 0/0: the whole trace */
    bool fold;               /* direct recursion shows as one call */
};

struct tl_merged {
    struct timeline *of;
    struct model *m;
    struct timeline *tl;
    struct trace_export *export;
    bool shown;
    struct tl_scope scope;
    struct merged *merged; /* NULL: none yet */

    struct worker *worker; /* while it is being made */
    bool busy;
    const struct trace *trace; /* that it is made from */
    struct merged *made;
    struct err err;
    int rc;
    uint64_t spans; /* to be looked at, about */
    atomic_uint_fast64_t done;
};

#endif

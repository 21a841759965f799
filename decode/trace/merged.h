/* The merged flame graph: a merged call tree (decode/trace/call_tree.h) laid out as a trace of one thread, so
 * that whatever draws, searches or walks a trace does the same with it.
 *
 * "Left-heavy", as speedscope calls it: a node is as wide as the time spent in it and in all it called;
 * what a node called stands side by side from its left edge on, the widest first; what remains is its own
 * time. The axis starts at 0. Functions have the numbers that they have in the trace it was made from. */
#ifndef MTUI_DECODE_MERGED_H
#define MTUI_DECODE_MERGED_H

#include "decode/trace/call_tree.h"

struct merged;

/* MTUI_E_NOMEM, MTUI_E_CANCEL. t must outlive it (its spans are referred to). */
int merged_new(struct merged **out, const struct trace *t, const struct call_tree_options *options,
               struct err *err);
void merged_free(struct merged *m);

/* Thread 0 (its tid is 0), or none when nothing was called. Spans keep SPAN_SAMPLED and SPAN_OFF_CPU. */
const struct trace *merged_trace(const struct merged *m);

struct merged_node {
    uint64_t calls, total_ns, self_ns;
    const struct span *longest; /* of the calls, in the trace it was made from */
    size_t thread;              /* that it is in */
};

/* What stands behind trace_row(…, 0, depth)[index]. */
struct merged_node merged_node(const struct merged *m, size_t depth, size_t index);

#endif

/* The merged call tree of a trace: all calls with the same stack put together, with their totals. Folded
 * stacks are written from it, and the merged flame graph is drawn from it (decode/trace/merged.h).
 *
 * Between two events of a thread the time belongs to the stack that is open, less what lies in gaps: the
 * same rule as in decode/trace/stats.h, so the self times of all nodes of a function add up to its self time. */
#ifndef MTUI_DECODE_CALL_TREE_H
#define MTUI_DECODE_CALL_TREE_H

#include <stdatomic.h>

#include "decode/trace/stack_tree.h"
#include "decode/trace/trace.h"

struct call_tree_options {
    uint64_t from_ns, to_ns;    /* both 0: the whole trace */
    ssize_t thread;             /* index; −1: all */
    bool fold;                  /* a function that calls itself directly is one call with its caller */
    const atomic_bool *cancel;  /* NULL: none */
    atomic_uint_fast64_t *done; /* NULL, or counts the spans looked at while it works */
};

struct call_node {
    uint64_t self_ns, calls;
    const struct span *longest; /* the longest of those calls, the first of equals */
    size_t thread;              /* that it is in */
    unsigned flags;             /* SPAN_SAMPLED, SPAN_OFF_CPU if one of them has it */
};

struct call_tree;

/* MTUI_E_NOMEM, MTUI_E_CANCEL. t must outlive the tree. */
int call_tree_new(struct call_tree **out, const struct trace *t, const struct call_tree_options *options,
                  struct err *err);
void call_tree_free(struct call_tree *tree);

/* Its stacks; callers have lower numbers than what they call. */
const struct stack_tree *call_tree_stacks(const struct call_tree *tree);
const struct call_node *call_tree_node(const struct call_tree *tree, stack_id id);

#endif

/* Call stacks as small numbers: each (caller's node, function) is one node of a tree. */
#ifndef MTUI_DECODE_STACK_TREE_H
#define MTUI_DECODE_STACK_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "decode/trace/functions.h"

typedef uint32_t stack_id;
#define STACK_EMPTY UINT32_MAX

struct stack_node {
    stack_id caller; /* STACK_EMPTY: outermost */
    fn_id fn;
};

struct stack_tree;

struct stack_tree *stack_tree_new(void);
void stack_tree_free(struct stack_tree *t);

/* The node of fn called from caller (STACK_EMPTY: outermost), added when new; nodes are numbered from 0
 * in the order of adding. MTUI_E_NOMEM. */
int stack_tree_child(struct stack_tree *t, stack_id caller, fn_id fn, stack_id *out);

size_t stack_tree_count(const struct stack_tree *t);
struct stack_node stack_tree_node(const struct stack_tree *t, stack_id id);

#endif

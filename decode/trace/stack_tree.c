#include "decode/trace/stack_tree.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/err.h"
#include "core/base/vec.h"
#include "core/base/hash64.h"

struct stack_tree {
    VEC(struct stack_node) nodes;
    struct hash64 by_call; /* caller << 32 | fn → node */
};

struct stack_tree *stack_tree_new(void)
{
    return xcalloc(1, sizeof(struct stack_tree));
}

void stack_tree_free(struct stack_tree *t)
{
    if (!t)
        return;
    vec_free(&t->nodes);
    hash64_free(&t->by_call);
    free(t);
}

int stack_tree_child(struct stack_tree *t, stack_id caller, fn_id fn, stack_id *out)
{
    uint64_t key = (uint64_t)caller << 32 | fn;
    uint32_t node = hash64_get(&t->by_call, key);
    if (node == HASH64_NONE) {
        node = (uint32_t)t->nodes.len;
        if (t->nodes.len >= STACK_EMPTY || !hash64_set(&t->by_call, key, node) ||
            !vec_try_push(&t->nodes, ((struct stack_node){caller, fn})))
            return MTUI_E_NOMEM;
    }
    *out = node;
    return 0;
}

size_t stack_tree_count(const struct stack_tree *t)
{
    return t->nodes.len;
}

struct stack_node stack_tree_node(const struct stack_tree *t, stack_id id)
{
    return t->nodes.data[id];
}

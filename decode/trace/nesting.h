/* Which calls lie inside another call of the same function: calls are told in their order, each with its
 * depth, and the stack between them follows from that. */
#ifndef MTUI_DECODE_NESTING_H
#define MTUI_DECODE_NESTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/trace/functions.h"

struct nesting {
    uint32_t *active; /* calls of each function on the stack; the last one stands for all unknown ids */
    fn_id *open;      /* the stack */
    size_t nfn, depth;
};

/* For functions below nfn and depths below depths; MTUI_E_NOMEM. */
int nesting_init(struct nesting *n, size_t nfn, size_t depths);
void nesting_free(struct nesting *n);

/* Calls at this depth and deeper are over. */
static inline void nesting_leave(struct nesting *n, size_t depth)
{
    while (n->depth > depth)
        n->active[n->open[--n->depth]]--;
}

/* A call at a depth that is at most that of the stack; true when its function is on the stack already. */
static inline bool nesting_enter(struct nesting *n, size_t depth, fn_id fn)
{
    nesting_leave(n, depth);
    if (fn > n->nfn)
        fn = (fn_id)n->nfn;
    n->open[n->depth++] = fn;
    return n->active[fn]++ != 0;
}

#endif

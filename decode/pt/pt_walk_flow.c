/* Along the code: from node to node by the outcomes that the trace tells. */
#include "decode/pt/pt_walk_priv.h"

struct pt_node *walk_node_at(struct pt_walk *w, uint64_t ip)
{
    struct pt_node *n = pt_nodes_at(w->nodes, ip);
    if (!n)
        walk_lose(w, GAP_ERROR, ip, "not enough memory for the program's code");
    return n;
}

/* ---- along a node ---- */

static inline __attribute__((always_inline)) void take_call(struct pt_walk *w, struct pt_step *s)
{
    uint64_t insns = w->insns + s->insns;
    if (s->kind == PT_STEP_CALL) {
        walk_push_return(w, s->next, &s->resumed);
        walk_emit(w, PT_EVENT_CALL, s->next, s->fn, insns)->at_start = s->at_start;
    } else {
        walk_emit(w, PT_EVENT_JUMP, s->to, s->fn, insns)->at_start = s->at_start;
    }
}

/* The first n steps, with the branches between them. */
void walk_take_steps(struct pt_walk *w, struct pt_node *node, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct pt_step *s = &node->steps[i];
        bool call = s->kind == PT_STEP_CALL || s->kind == PT_STEP_CALL_NEXT;
        if (call || s->kind == PT_STEP_LEAVE) {
            if (s->kind != PT_STEP_CALL_NEXT)
                take_call(w, s);
        }
        walk_branch(w, call ? PT_BRANCH_CALL : PT_BRANCH_JUMP, s->from, s->to, PT_END_UNKNOWN);
    }
}

static __attribute__((noinline)) void take_calls(struct pt_walk *w, struct pt_node *n)
{
    for (uint32_t i = 0; i < n->n_calls; i++)
        take_call(w, n->calls[i]);
}

/* The whole node up to its terminator has run. */
static inline __attribute__((always_inline)) void run_node(struct pt_walk *w, struct pt_node *n)
{
    if (__builtin_expect(w->sink.branch != NULL, 0))
        walk_take_steps(w, n, n->n_steps);
    else if (n->n_calls)
        take_calls(w, n);
    w->insns += n->insns;
}

void walk_run_node(struct pt_walk *w, struct pt_node *n)
{
    run_node(w, n);
}

/* The node behind one that was only cut for length; NULL: memory is short. */
static struct pt_node *node_behind(struct pt_walk *w, struct pt_node *n)
{
    if (!n->fall)
        n->fall = walk_node_at(w, n->next);
    return n->fall;
}

/* Direct branches may go in a circle, which no program leaves again and no trace tells of: so it is looked
 * where they lead before anything of it counts as executed. NULL: nowhere, or memory is short. */
static struct pt_node *silent_end(struct pt_walk *w)
{
    struct pt_node *n = w->cur;
    for (unsigned i = 0; n && n->kind == PT_NODE_ON; i++)
        n = i < WALK_SILENT_NODES ? node_behind(w, n) : NULL;
    return n;
}

/* Over nodes that were only cut for length. */
bool walk_run_on(struct pt_walk *w)
{
    if (w->cur->kind != PT_NODE_ON)
        return true;
    struct pt_node *end = silent_end(w);
    if (!end && w->state == WALK_ON)
        walk_mismatch(w);
    if (!end)
        return false;
    for (; w->cur != end; w->cur = w->cur->fall)
        walk_run_node(w, w->cur);
    return true;
}

/* NULL: memory is short. */
static inline struct pt_node *follow(struct pt_walk *w, struct pt_node **link, uint64_t ip)
{
    if (__builtin_expect(!*link, 0) && !(*link = walk_node_at(w, ip)))
        return NULL;
    return w->cur = *link;
}

/* ---- outcomes ---- */

/* What follows n; NULL: the position got lost. */
static inline struct pt_node *take_branch(struct pt_walk *w, struct pt_node *n, bool taken)
{
    run_node(w, n);
    if (!taken)
        return follow(w, &n->fall, n->next);
    if (w->sink.branch)
        walk_branch(w, PT_BRANCH_COND, n->term, n->target, PT_END_UNKNOWN);
    struct pt_node *to = follow(w, &n->taken, n->target);
    if (n->leaves && to)
        walk_emit(w, PT_EVENT_JUMP, n->target, to->start_fn, w->insns)->at_start = to->starts_fn;
    return to;
}

static inline struct pt_node *take_compressed_return(struct pt_walk *w, struct pt_node *n)
{
    run_node(w, n); /* its own calls are what it may return from */
    if (!w->returns_len) {
        if (w->returns_torn)
            walk_lose(w, GAP_ERROR, n->term, "its call lies in a gap before: where it returns to is not known");
        else
            walk_mismatch(w);
        return NULL;
    }
    struct return_entry *r = &w->returns[w->returns_top];
    w->returns_top = (w->returns_top + WALK_RETURNS - 1) % WALK_RETURNS;
    w->returns_len--;
    if (w->sink.branch)
        walk_branch(w, PT_BRANCH_RETURN, n->term, r->addr, PT_END_UNKNOWN);
    struct pt_node *unknown = NULL, *to = follow(w, r->node ? r->node : &unknown, r->addr);
    if (to)
        walk_emit(w, PT_EVENT_RETURN, r->addr, to->start_fn, w->insns)->at_start = to->starts_fn;
    return to;
}

/* Spends the waiting outcomes as far as the flow needs no address. */
void walk_take_bits(struct pt_walk *w)
{
    struct pt_node *n = w->state == WALK_ON ? w->cur : NULL;
    while (n && w->n_bits) {
        bool bit = w->bits >> (w->n_bits - 1) & 1;
        switch (n->kind) {
        case PT_NODE_CONDITIONAL:
            w->n_bits--;
            n = take_branch(w, n, bit);
            break;
        case PT_NODE_RETURN:
            w->n_bits--;
            if (bit) {
                n = take_compressed_return(w, n);
                break;
            }
            walk_mismatch(w);
            return;
        case PT_NODE_ON:
            n = walk_run_on(w) ? w->cur : NULL;
            break;
        case PT_NODE_JUMP:
        case PT_NODE_CALL:
            return; /* its address comes later: the processor may put outcomes first */
        default:
            walk_mismatch(w);
            return;
        }
    }
}

/* ---- to an address in the middle of a node ---- */

/* The instruction at ip was reached and not executed. False: the code does not lead there, and nothing of it
 * counts as executed. */
bool walk_to(struct pt_walk *w, uint64_t ip)
{
    struct pt_node *n = w->cur;
    int steps = pt_node_steps_to(n, ip);
    for (unsigned i = 0; steps < 0 && n->kind == PT_NODE_ON && i < WALK_SILENT_NODES; i++) {
        n = node_behind(w, n);
        if (!n)
            return false;
        steps = pt_node_steps_to(n, ip);
    }
    if (steps < 0)
        return false;
    for (; w->cur != n; w->cur = w->cur->fall)
        walk_run_node(w, w->cur);
    walk_take_steps(w, n, (uint32_t)steps);
    w->insns += pt_nodes_insns_to(w->nodes, n, (uint32_t)steps, ip);
    return true;
}

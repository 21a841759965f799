/* Packets with addresses: where tracing begins and ends, where it goes by indirect branches, where it was
 * interrupted. */
#include "decode/pt/pt_far.h"
#include "decode/pt/pt_walk_priv.h"

static void interrupt_to(struct pt_walk *w, uint64_t ip)
{
    uint64_t from = w->fup;
    w->have_fup = false;
    if (!walk_to(w, from)) {
        if (w->state == WALK_ON)
            walk_mismatch(w);
        walk_begin_at(w, ip);
        return;
    }
    bool at_start;
    fn_id fn = pt_nodes_function(w->nodes, ip, &at_start);
    if (w->aborted) { /* back to its beginning, where the program decides what to do */
        walk_emit(w, PT_EVENT_TX_ABORT, from, FN_NONE, w->insns);
        walk_emit(w, PT_EVENT_JUMP, ip, fn, w->insns)->at_start = false;
    } else {
        walk_emit(w, PT_EVENT_INTERRUPT, from, fn, w->insns)->at_start = at_start;
    }
    walk_branch(w, w->aborted ? PT_BRANCH_ABORT : PT_BRANCH_INTERRUPT, from, ip, PT_END_UNKNOWN);
    w->aborted = false;
    w->cur = walk_node_at(w, ip);
}

/* An indirect branch, a return or a far branch went to ip. */
static void indirect_to(struct pt_walk *w, uint64_t ip)
{
    struct pt_node *n = w->cur;
    walk_run_node(w, n);
    struct pt_node *to = n->taken;
    if (n->kind == PT_NODE_RETURN || n->kind == PT_NODE_FAR || !to || n->target != ip) {
        to = walk_node_at(w, ip);
        if (!to)
            return;
        n->taken = to;
        n->target = ip;
    }
    w->cur = to;
    if (n->kind == PT_NODE_CALL) {
        walk_branch(w, PT_BRANCH_CALL, n->term, ip, PT_END_UNKNOWN);
        if (ip != n->next)
            walk_push_return(w, n->next, &n->fall);
        walk_emit(w, PT_EVENT_CALL, n->next, to->start_fn, w->insns)->at_start = to->starts_fn;
    } else if (n->kind == PT_NODE_RETURN) {
        walk_branch(w, PT_BRANCH_RETURN, n->term, ip, PT_END_UNKNOWN);
        walk_emit(w, PT_EVENT_RETURN, ip, to->start_fn, w->insns)->at_start = to->starts_fn;
    } else if (n->kind == PT_NODE_FAR) {
        bool returns = pt_far_returns(n->far);
        walk_branch(w, pt_far_branch(n->far), n->term, ip, PT_END_UNKNOWN);
        walk_emit(w, returns ? PT_EVENT_RETURN : PT_EVENT_CALL, returns ? ip : n->next, to->start_fn, w->insns)
            ->at_start = !returns;
    } else {
        walk_branch(w, PT_BRANCH_JUMP, n->term, ip, PT_END_UNKNOWN);
        if (to->start_fn != n->fn)
            walk_emit(w, PT_EVENT_JUMP, ip, to->start_fn, w->insns)->at_start = to->starts_fn;
    }
}

void walk_on_tip(struct pt_walk *w, const struct packet *p)
{
    if (!pt_packet_ip(p, &w->last_ip))
        return;
    uint64_t ip = w->last_ip;
    if (w->state != WALK_ON) { /* a position at last */
        w->have_fup = false;
        walk_begin_at(w, ip);
        return;
    }
    if (w->have_fup) {
        interrupt_to(w, ip);
        return;
    }
    walk_take_bits(w);
    if (w->state == WALK_ON && !walk_run_on(w))
        return;
    if (w->state == WALK_ON &&
        (w->cur->kind == PT_NODE_CONDITIONAL || w->cur->kind == PT_NODE_BAD))
        walk_mismatch(w);
    if (w->state != WALK_ON) {
        walk_begin_at(w, ip);
        return;
    }
    unsigned waiting = w->n_bits;
    indirect_to(w, ip);
    w->n_bits = waiting;
    walk_take_bits(w);
}

static enum pt_end end_of(const struct pt_node *n)
{
    switch (n->kind) {
    case PT_NODE_FAR:
        return pt_far_end(n->far);
    case PT_NODE_CALL:
        return PT_END_CALL;
    case PT_NODE_RETURN:
        return PT_END_RETURN;
    case PT_NODE_JUMP:
        return PT_END_JUMP;
    default:
        return PT_END_UNKNOWN;
    }
}

void walk_end_at(struct pt_walk *w, uint64_t at, enum pt_end how)
{
    walk_emit(w, PT_EVENT_END, at, FN_NONE, w->insns)->how = (uint8_t)how;
    walk_branch(w, PT_BRANCH_END, at, 0, how);
    walk_settle(w, w->now); /* the time until tracing goes on is not this code's */
    w->state = WALK_OFF;
    w->n_bits = 0;
}

/* With address filters a direct branch out of the traced range ends tracing, and the packet has where it
 * went. */
static bool end_at_direct_branch(struct pt_walk *w, uint64_t ip)
{
    struct pt_node *n = w->cur;
    for (uint32_t i = 0; i < n->n_steps; i++) {
        if (n->steps[i].to != ip)
            continue;
        walk_take_steps(w, n, i);
        w->insns += n->steps[i].insns;
        bool call = n->steps[i].kind == PT_STEP_CALL || n->steps[i].kind == PT_STEP_CALL_NEXT;
        walk_end_at(w, n->steps[i].from, call ? PT_END_CALL : PT_END_JUMP);
        return true;
    }
    return false;
}

void walk_on_pgd(struct pt_walk *w, const struct packet *p)
{
    bool has_ip = pt_packet_ip(p, &w->last_ip);
    bool async = w->have_fup;
    w->have_fup = false;
    if (w->state == WALK_LOST) {
        walk_found(w);
        w->state = WALK_OFF;
    }
    if (w->state != WALK_ON)
        return;
    if (async) {
        if (walk_to(w, w->fup)) {
            if (w->aborted)
                walk_emit(w, PT_EVENT_TX_ABORT, w->fup, FN_NONE, w->insns);
            walk_end_at(w, w->fup, PT_END_ASYNC);
        } else if (w->state == WALK_ON) {
            walk_mismatch(w);
        }
        w->aborted = false;
    } else {
        walk_take_bits(w);
        if (w->state == WALK_ON && has_ip && end_at_direct_branch(w, w->last_ip))
            return;
        if (w->state == WALK_ON && walk_run_on(w)) {
            struct pt_node *n = w->cur;
            walk_run_node(w, n);
            walk_end_at(w, n->term, end_of(n));
        }
    }
    if (w->state == WALK_LOST) {
        walk_found(w);
        w->state = WALK_OFF;
    }
}

void walk_on_pge(struct pt_walk *w, const struct packet *p)
{
    if (!pt_packet_ip(p, &w->last_ip))
        return;
    w->have_fup = w->overflowed = false;
    walk_begin_at(w, w->last_ip);
}

void walk_on_tsx(struct pt_walk *w, const struct packet *p)
{
    if (w->in_psb) /* how things stand, not what happens: no FUP of its own follows */
        return;
    w->in_tx = p->value & 1;
    w->aborted = p->value >> 1 & 1;
    w->fup_is_tx = !w->aborted;
}

/* A transaction begins or is committed at ip: what was run before belongs before the event. */
static void tx_at(struct pt_walk *w, uint64_t ip)
{
    w->fup_is_tx = false;
    if (w->state != WALK_ON)
        return;
    if (walk_to(w, ip))
        w->cur = walk_node_at(w, ip);
    else if (w->state == WALK_ON)
        walk_mismatch(w);
    if (w->state == WALK_ON)
        walk_emit(w, w->in_tx ? PT_EVENT_TX_BEGIN : PT_EVENT_TX_COMMIT, ip, FN_NONE, w->insns);
}

void walk_on_fup(struct pt_walk *w, const struct packet *p)
{
    if (!pt_packet_ip(p, &w->last_ip))
        return;
    if (w->in_psb) {
        w->psb_fup = true;
        w->fup = w->last_ip;
    } else if (w->overflowed) {
        w->overflowed = false;
        walk_begin_at(w, w->last_ip);
    } else if (w->fup_is_tx) {
        tx_at(w, w->last_ip);
    } else if (w->fup_is_data) {
        w->fup_is_data = false;
    } else {
        w->have_fup = true;
        w->fup = w->last_ip;
    }
}

#include "decode/pt_walk.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "decode/pt_packet.h"

#define RETURNS 64 /* depth of the hardware's return stack */
#define EVENTS  4096
/* Nodes without an outcome that may follow one another: code that goes in a circle of direct jumps would
 * be followed for ever. */
#define SILENT_NODES 4096

enum state {
    WALK_LOST, /* the position is not known */
    WALK_OFF,  /* tracing is off */
    WALK_ON
};

struct return_entry {
    uint64_t addr;
    struct pt_node **node; /* where the node at addr is (to be) remembered */
};

struct pt_walk {
    struct pt_nodes *nodes;
    struct pt_walk_sinks sink;
    const struct pt_clock *clock;
    struct pt_time time;
    uint64_t now; /* what events are stamped with */

    enum state state;
    struct pt_node *cur; /* WALK_ON: its steps are not taken yet */
    uint64_t last_ip;
    uint64_t insns;      /* before cur */
    uint64_t bits;       /* outcomes that wait, the oldest highest */
    unsigned n_bits;
    struct return_entry returns[RETURNS];
    unsigned returns_top, returns_len;

    bool have_fup; /* a FUP that the next packet explains */
    uint64_t fup;
    bool fup_is_data; /* the next FUP belongs to PTWRITE and the like */
    bool in_psb, psb_fup, overflowed, aborted;
    bool inner; /* the next PSB is where another piece has left off */

    const uint8_t *data, *at; /* the packet in hand */
    const uint8_t *lost_from; /* WALK_LOST: first byte that told nothing */
    struct pt_loss loss;

    uint64_t settled_time, settled_insns; /* up to the last timestamp */
    size_t n, unsettled;                  /* events in the batch; the first without its final time */
    bool cyc_in_hand;                     /* a CYC has just given the time of the next packet */
    struct pt_event batch[EVENTS];
};

struct pt_walk *pt_walk_new(struct pt_nodes *nodes, const struct pt_clock *clock,
                            const struct pt_walk_sinks *sinks)
{
    struct pt_walk *w = xcalloc(1, sizeof *w);
    w->nodes = nodes;
    w->sink = *sinks;
    w->clock = clock;
    pt_time_init(&w->time, clock);
    return w;
}

void pt_walk_free(struct pt_walk *w)
{
    free(w);
}

uint64_t pt_walk_insns(const struct pt_walk *w)
{
    return w->insns;
}

/* ---- events and their times ---- */

/* Streams without TSC have the count of instructions for time. */
static bool timeless(const struct pt_walk *w)
{
    return !w->clock->tsc || !w->clock->time_mult;
}

/* The time is now known to be `now` at this point: what happened since the last timestamp is spread over
 * the time since then. */
static void settle(struct pt_walk *w, uint64_t now)
{
    if (timeless(w)) {
        w->unsettled = w->n;
        return;
    }
    uint64_t t0 = w->settled_time, c0 = w->settled_insns;
    if (now < t0)
        now = t0;
    uint64_t passed = t0 ? now - t0 : 0, insns = w->insns - c0;
    for (size_t i = w->unsettled; i < w->n; i++) {
        struct pt_event *e = &w->batch[i];
        uint64_t done = e->insns > c0 ? e->insns - c0 : 0;
        if (!t0 || done >= insns || !insns)
            e->time = now;
        else
            e->time = t0 + (uint64_t)((pt_u128)passed * done / insns);
    }
    w->unsettled = w->n;
    w->settled_time = now;
    w->settled_insns = w->insns;
}

static void flush(struct pt_walk *w)
{
    if (w->unsettled < w->n)
        settle(w, w->now);
    if (w->n && w->sink.events)
        w->sink.events(w->sink.arg, w->batch, w->n);
    w->n = w->unsettled = 0;
}

static struct pt_event *emit(struct pt_walk *w, enum pt_event_kind kind, uint64_t addr, fn_id fn,
                             uint64_t insns)
{
    if (w->n == EVENTS)
        flush(w);
    struct pt_event *e = &w->batch[w->n++];
    e->time = timeless(w) ? insns : w->now;
    e->addr = addr;
    e->insns = insns;
    e->fn = fn;
    e->kind = (uint8_t)kind;
    e->how = 0;
    e->at_start = false;
    return e;
}

static void branch(struct pt_walk *w, enum pt_branch_kind kind, uint64_t from, uint64_t to,
                   enum pt_end end)
{
    if (!w->sink.branch)
        return;
    struct pt_branch b = {.time = timeless(w) ? w->insns : w->now,
                          .from = from,
                          .to = to,
                          .kind = (uint8_t)kind,
                          .end = (uint8_t)end};
    w->sink.branch(w->sink.arg, &b);
}

static void new_time(struct pt_walk *w, bool exact_for_next)
{
    if (timeless(w) || !w->time.have_tsc)
        return;
    uint64_t ns = pt_time_ns(w->clock, w->time.tsc);
    if (ns > w->now)
        w->now = ns;
    w->cyc_in_hand = exact_for_next;
    if (!exact_for_next)
        settle(w, w->now);
}

/* The TSC of a PSB+: what came before is settled, and the clock starts anew from it, whatever was counted
 * before, so that it does not matter where a walk begins. */
static void restart_time(struct pt_walk *w)
{
    if (timeless(w))
        return;
    uint64_t ns = pt_time_ns(w->clock, w->time.tsc);
    settle(w, ns);
    w->now = w->settled_time = ns;
}

/* ---- losing and finding the position ---- */

static void lose(struct pt_walk *w, enum gap_cause cause, uint64_t ip, const char *why)
{
    if (w->state == WALK_LOST && w->lost_from)
        return;
    settle(w, w->now);
    struct pt_event *e = emit(w, PT_EVENT_LOST, 0, FN_NONE, w->insns);
    e->how = (uint8_t)cause;
    branch(w, PT_BRANCH_ERROR, ip, 0, PT_END_UNKNOWN);
    w->loss = (struct pt_loss){.first_byte = (uint64_t)(w->at - w->data),
                               .from_time = w->now,
                               .ip = ip,
                               .cause = cause,
                               .why = why};
    w->lost_from = w->at;
    w->state = WALK_LOST;
    w->n_bits = 0;
    w->returns_len = 0;
    w->have_fup = false;
}

/* The loss is over at the packet in hand. */
static void found(struct pt_walk *w)
{
    if (!w->lost_from)
        return;
    w->loss.bytes = (uint64_t)(w->at - w->lost_from);
    w->loss.to_time = w->now;
    if (w->sink.loss)
        w->sink.loss(w->sink.arg, &w->loss);
    w->lost_from = NULL;
}

static struct pt_node *node_at(struct pt_walk *w, uint64_t ip)
{
    struct pt_node *n = pt_nodes_at(w->nodes, ip);
    if (!n)
        lose(w, GAP_ERROR, ip, "not enough memory for the program's code");
    return n;
}

/* What was known of the code may be over: nodes, and whatever refers to them. */
static void renew_code(struct pt_walk *w)
{
    if (!w->sink.code_changed || !w->sink.code_changed(w->sink.arg, w->now))
        return;
    pt_nodes_forget(w->nodes);
    w->returns_len = 0;
    w->cur = NULL;
}

/* Tracing is on at ip. */
static void begin_at(struct pt_walk *w, uint64_t ip)
{
    found(w);
    renew_code(w);
    bool at_start;
    fn_id fn = pt_nodes_function(w->nodes, ip, &at_start);
    emit(w, PT_EVENT_BEGIN, ip, fn, w->insns)->at_start = at_start;
    branch(w, PT_BRANCH_BEGIN, 0, ip, PT_END_UNKNOWN);
    w->state = WALK_ON;
    w->n_bits = 0;
    w->cur = node_at(w, ip);
}

static void mismatch(struct pt_walk *w)
{
    struct pt_node *n = w->cur;
    if (n->kind == PT_NODE_BAD)
        lose(w, GAP_NO_IMAGE, n->term, "the code there is not at hand");
    else
        lose(w, GAP_ERROR, n->term, "the trace does not match the code");
}

/* ---- along a node ---- */

static void push_return(struct pt_walk *w, uint64_t addr, struct pt_node **node)
{
    w->returns_top = (w->returns_top + 1) % RETURNS;
    w->returns[w->returns_top] = (struct return_entry){addr, node};
    if (w->returns_len < RETURNS)
        w->returns_len++;
}

static void take_call(struct pt_walk *w, struct pt_step *s)
{
    uint64_t insns = w->insns + s->insns;
    if (s->kind == PT_STEP_CALL) {
        push_return(w, s->next, &s->resumed);
        emit(w, PT_EVENT_CALL, s->next, s->fn, insns)->at_start = s->at_start;
    } else {
        emit(w, PT_EVENT_JUMP, s->to, s->fn, insns)->at_start = s->at_start;
    }
}

/* The first n steps, with the branches between them. */
static void take_steps(struct pt_walk *w, struct pt_node *node, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct pt_step *s = &node->steps[i];
        bool call = s->kind == PT_STEP_CALL || s->kind == PT_STEP_CALL_NEXT;
        if (call || s->kind == PT_STEP_LEAVE) {
            if (s->kind != PT_STEP_CALL_NEXT)
                take_call(w, s);
        }
        branch(w, call ? PT_BRANCH_CALL : PT_BRANCH_JUMP, s->from, s->to, PT_END_UNKNOWN);
    }
}

/* The whole node up to its terminator has run. */
static inline void run_node(struct pt_walk *w, struct pt_node *n)
{
    if (w->sink.branch) {
        take_steps(w, n, n->n_steps);
    } else {
        for (uint32_t i = 0; i < n->n_calls; i++)
            take_call(w, &n->steps[n->calls[i] - n->steps]);
    }
    w->insns += n->insns;
}

/* Over nodes that were only cut for length. */
static bool run_on(struct pt_walk *w)
{
    for (unsigned i = 0; w->cur->kind == PT_NODE_ON; i++) {
        struct pt_node *n = w->cur;
        if (i == SILENT_NODES) {
            mismatch(w);
            return false;
        }
        run_node(w, n);
        if (!n->fall)
            n->fall = node_at(w, n->next);
        if (!n->fall)
            return false;
        w->cur = n->fall;
    }
    return true;
}

static inline bool follow(struct pt_walk *w, struct pt_node **link, uint64_t ip)
{
    if (!*link && !(*link = node_at(w, ip)))
        return false;
    w->cur = *link;
    return true;
}

/* ---- outcomes ---- */

static bool take_branch(struct pt_walk *w, struct pt_node *n, bool taken)
{
    run_node(w, n);
    if (!taken)
        return follow(w, &n->fall, n->next);
    if (w->sink.branch)
        branch(w, PT_BRANCH_COND, n->term, n->target, PT_END_UNKNOWN);
    if (!follow(w, &n->taken, n->target))
        return false;
    if (n->leaves)
        emit(w, PT_EVENT_JUMP, n->target, w->cur->start_fn, w->insns)->at_start = w->cur->starts_fn;
    return true;
}

static bool take_compressed_return(struct pt_walk *w, struct pt_node *n)
{
    if (!w->returns_len) {
        mismatch(w);
        return false;
    }
    run_node(w, n);
    struct return_entry *r = &w->returns[w->returns_top];
    w->returns_top = (w->returns_top + RETURNS - 1) % RETURNS;
    w->returns_len--;
    if (w->sink.branch)
        branch(w, PT_BRANCH_RETURN, n->term, r->addr, PT_END_UNKNOWN);
    if (!follow(w, r->node, r->addr))
        return false;
    emit(w, PT_EVENT_RETURN, r->addr, w->cur->start_fn, w->insns)->at_start = w->cur->starts_fn;
    return true;
}

/* Spends the waiting outcomes as far as the flow needs no address. */
static void take_bits(struct pt_walk *w)
{
    while (w->n_bits && w->state == WALK_ON) {
        struct pt_node *n = w->cur;
        bool bit = w->bits >> (w->n_bits - 1) & 1;
        switch (n->kind) {
        case PT_NODE_CONDITIONAL:
            w->n_bits--;
            if (!take_branch(w, n, bit))
                return;
            break;
        case PT_NODE_RETURN:
            w->n_bits--;
            if (!bit)
                mismatch(w);
            else if (!take_compressed_return(w, n))
                return;
            break;
        case PT_NODE_ON:
            if (!run_on(w))
                return;
            break;
        case PT_NODE_JUMP:
        case PT_NODE_CALL:
            return; /* its address comes later: the processor may put outcomes first */
        default:
            mismatch(w);
            return;
        }
    }
}

static void on_tnt(struct pt_walk *w, const struct packet *p)
{
    if (w->state != WALK_ON)
        return; /* behind the end of tracing: outcomes that came too late; lost: of no use */
    if (w->n_bits + p->count > 64) {
        mismatch(w);
        return;
    }
    w->bits = p->count < 64 ? w->bits << p->count | p->value : p->value;
    w->n_bits += p->count;
    take_bits(w);
}

/* ---- to an address in the middle of a node ---- */

/* The instruction at ip was reached and not executed. False: the code does not lead there. */
static bool walk_to(struct pt_walk *w, uint64_t ip)
{
    for (unsigned i = 0; i < SILENT_NODES; i++) {
        struct pt_node *n = w->cur;
        int steps = pt_node_steps_to(n, ip);
        if (steps >= 0) {
            take_steps(w, n, (uint32_t)steps);
            w->insns += steps ? n->steps[steps - 1].insns : 0;
            return true;
        }
        if (n->kind != PT_NODE_ON)
            return false;
        run_node(w, n);
        if (!follow(w, &n->fall, n->next))
            return false;
    }
    return false;
}

/* ---- packets with addresses ---- */

static void interrupt_to(struct pt_walk *w, uint64_t ip)
{
    uint64_t from = w->fup;
    w->have_fup = false;
    if (!walk_to(w, from)) {
        if (w->state == WALK_ON)
            mismatch(w);
        begin_at(w, ip);
        return;
    }
    bool at_start;
    fn_id fn = pt_nodes_function(w->nodes, ip, &at_start);
    emit(w, PT_EVENT_INTERRUPT, from, fn, w->insns)->at_start = at_start;
    branch(w, w->aborted ? PT_BRANCH_ABORT : PT_BRANCH_INTERRUPT, from, ip, PT_END_UNKNOWN);
    w->aborted = false;
    w->cur = node_at(w, ip);
}

/* An indirect branch, a return or a far branch went to ip. */
static void indirect_to(struct pt_walk *w, uint64_t ip)
{
    struct pt_node *n = w->cur;
    run_node(w, n);
    struct pt_node *to = n->taken;
    if (n->kind == PT_NODE_RETURN || n->kind == PT_NODE_FAR || !to || n->target != ip) {
        to = node_at(w, ip);
        if (!to)
            return;
        n->taken = to;
        n->target = ip;
    }
    w->cur = to;
    if (n->kind == PT_NODE_CALL) {
        branch(w, PT_BRANCH_CALL, n->term, ip, PT_END_UNKNOWN);
        if (ip != n->next)
            push_return(w, n->next, &n->fall);
        emit(w, PT_EVENT_CALL, n->next, to->start_fn, w->insns)->at_start = to->starts_fn;
    } else if (n->kind == PT_NODE_RETURN) {
        branch(w, PT_BRANCH_RETURN, n->term, ip, PT_END_UNKNOWN);
        emit(w, PT_EVENT_RETURN, ip, to->start_fn, w->insns)->at_start = to->starts_fn;
    } else if (n->kind == PT_NODE_FAR) {
        branch(w, n->far_return ? PT_BRANCH_IRET : PT_BRANCH_SYSCALL, n->term, ip, PT_END_UNKNOWN);
        emit(w, n->far_return ? PT_EVENT_RETURN : PT_EVENT_CALL, n->far_return ? ip : n->next,
             to->start_fn, w->insns)
            ->at_start = !n->far_return;
    } else {
        branch(w, PT_BRANCH_JUMP, n->term, ip, PT_END_UNKNOWN);
        if (to->start_fn != n->fn)
            emit(w, PT_EVENT_JUMP, ip, to->start_fn, w->insns)->at_start = to->starts_fn;
    }
}

static void on_tip(struct pt_walk *w, const struct packet *p)
{
    if (!pt_packet_ip(p, &w->last_ip))
        return;
    uint64_t ip = w->last_ip;
    if (w->state != WALK_ON) { /* a position at last */
        w->have_fup = false;
        begin_at(w, ip);
        return;
    }
    if (w->have_fup) {
        interrupt_to(w, ip);
        return;
    }
    take_bits(w);
    if (w->state == WALK_ON && !run_on(w))
        return;
    if (w->state == WALK_ON &&
        (w->cur->kind == PT_NODE_CONDITIONAL || w->cur->kind == PT_NODE_BAD))
        mismatch(w);
    if (w->state != WALK_ON) {
        begin_at(w, ip);
        return;
    }
    unsigned waiting = w->n_bits;
    indirect_to(w, ip);
    w->n_bits = waiting;
    take_bits(w);
}

static enum pt_end end_of(const struct pt_node *n)
{
    switch (n->kind) {
    case PT_NODE_FAR:
        return n->far_return ? PT_END_IRET : PT_END_SYSCALL;
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

static void end_here(struct pt_walk *w, uint64_t at, enum pt_end how)
{
    emit(w, PT_EVENT_END, at, FN_NONE, w->insns)->how = (uint8_t)how;
    branch(w, PT_BRANCH_END, at, 0, how);
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
        take_steps(w, n, i);
        w->insns += n->steps[i].insns;
        bool call = n->steps[i].kind == PT_STEP_CALL || n->steps[i].kind == PT_STEP_CALL_NEXT;
        end_here(w, n->steps[i].from, call ? PT_END_CALL : PT_END_JUMP);
        return true;
    }
    return false;
}

static void on_pgd(struct pt_walk *w, const struct packet *p)
{
    bool has_ip = pt_packet_ip(p, &w->last_ip);
    bool async = w->have_fup;
    w->have_fup = false;
    if (w->state == WALK_LOST) {
        found(w);
        w->state = WALK_OFF;
    }
    if (w->state != WALK_ON)
        return;
    if (async) {
        if (walk_to(w, w->fup))
            end_here(w, w->fup, PT_END_ASYNC);
        else if (w->state == WALK_ON)
            mismatch(w);
    } else {
        take_bits(w);
        if (w->state == WALK_ON && has_ip && end_at_direct_branch(w, w->last_ip))
            return;
        if (w->state == WALK_ON && run_on(w)) {
            struct pt_node *n = w->cur;
            run_node(w, n);
            end_here(w, n->term, end_of(n));
        }
    }
    if (w->state == WALK_LOST) {
        found(w);
        w->state = WALK_OFF;
    }
}

static void on_pge(struct pt_walk *w, const struct packet *p)
{
    if (!pt_packet_ip(p, &w->last_ip))
        return;
    w->have_fup = w->overflowed = false;
    begin_at(w, w->last_ip);
}

static void on_fup(struct pt_walk *w, const struct packet *p)
{
    if (!pt_packet_ip(p, &w->last_ip))
        return;
    if (w->in_psb) {
        w->psb_fup = true;
        w->fup = w->last_ip;
    } else if (w->overflowed) {
        w->overflowed = false;
        begin_at(w, w->last_ip);
    } else if (w->fup_is_data) {
        w->fup_is_data = false;
    } else {
        w->have_fup = true;
        w->fup = w->last_ip;
    }
}

/* ---- synchronisation and the rest ---- */

/* Whatever a PSB+ does not tell anew is not known any more. */
static void on_psb(struct pt_walk *w)
{
    w->in_psb = true;
    w->psb_fup = w->overflowed = w->aborted = w->fup_is_data = w->cyc_in_hand = false;
    w->last_ip = 0;
    pt_time_init(&w->time, w->clock);
}

static void on_psbend(struct pt_walk *w)
{
    bool inner = w->inner;
    w->in_psb = w->inner = false;
    w->returns_len = 0;
    w->have_fup = false;
    if (inner) { /* the piece before has told everything up to here */
        w->lost_from = NULL;
        renew_code(w);
        w->state = w->psb_fup ? WALK_ON : WALK_OFF;
        if (w->psb_fup)
            w->cur = node_at(w, w->fup);
        return;
    }
    if (!w->psb_fup) { /* tracing was off when the PSB was written */
        found(w);
        w->state = WALK_OFF;
        return;
    }
    if (w->state == WALK_ON && !walk_to(w, w->fup) && w->state == WALK_ON)
        mismatch(w);
    if (w->state == WALK_ON) { /* from here on as a piece that begins here would go */
        renew_code(w);
        w->cur = node_at(w, w->fup);
    } else {
        begin_at(w, w->fup);
    }
}

static void on_overflow(struct pt_walk *w)
{
    lose(w, GAP_OVERFLOW, w->state == WALK_ON ? w->cur->start : 0,
         "the processor wrote packets faster than they could be stored");
    w->overflowed = true;
}

static void on_timing(struct pt_walk *w, const struct packet *p)
{
    switch (p->kind) {
    case PT_TSC:
        pt_time_tsc(&w->time, p->value);
        if (w->in_psb)
            restart_time(w);
        else
            new_time(w, false);
        break;
    case PT_TMA:
        pt_time_tma(&w->time, (unsigned)(p->value & 0xffff), (unsigned)(p->value >> 16));
        break;
    case PT_MTC:
        pt_time_mtc(&w->time, (unsigned)p->value);
        new_time(w, false);
        break;
    case PT_CYC:
        pt_time_cyc(&w->time, p->value);
        new_time(w, true);
        break;
    default:
        pt_time_cbr(&w->time, (unsigned)p->value);
        if (w->sink.mark)
            w->sink.mark(w->sink.arg, MARK_FREQUENCY, w->now, p->value);
        break;
    }
}

static void on_other(struct pt_walk *w, const struct packet *p)
{
    switch (p->kind) {
    case PT_MODE_EXEC:
        pt_nodes_set_bits(w->nodes, p->value & 1 ? 64 : 32);
        break;
    case PT_MODE_TSX:
        w->aborted = p->value >> 1 & 1;
        w->fup_is_data = !w->aborted;
        break;
    case PT_PTW:
        if (w->sink.mark)
            w->sink.mark(w->sink.arg, MARK_PTWRITE, w->now, p->value);
        w->fup_is_data = p->count;
        break;
    case PT_EXSTOP:
        w->fup_is_data = w->at[1] >> 7;
        break;
    case PT_STOP:
        w->state = w->state == WALK_ON ? WALK_OFF : w->state;
        break;
    default:
        break;
    }
}

static void on_packet(struct pt_walk *w, const struct packet *p)
{
    switch ((enum pt_kind)p->kind) {
    case PT_TNT:
        on_tnt(w, p);
        break;
    case PT_TIP:
        on_tip(w, p);
        break;
    case PT_TIP_PGE:
        on_pge(w, p);
        break;
    case PT_TIP_PGD:
        on_pgd(w, p);
        break;
    case PT_FUP:
        on_fup(w, p);
        return; /* the packet behind it tells what it means, and the CYC was for both */
    case PT_PSB:
        on_psb(w);
        break;
    case PT_PSBEND:
        on_psbend(w);
        break;
    case PT_OVF:
        on_overflow(w);
        break;
    case PT_TSC:
    case PT_TMA:
    case PT_MTC:
    case PT_CYC:
    case PT_CBR:
        on_timing(w, p);
        return;
    case PT_PAD:
        return;
    case PT_MODE_EXEC:
    case PT_MODE_TSX:
    case PT_PIP:
    case PT_VMCS:
    case PT_MNT:
    case PT_STOP:
    case PT_PTW:
    case PT_EXSTOP:
    case PT_MWAIT:
    case PT_PWRE:
    case PT_PWRX:
        on_other(w, p);
        break;
    }
    if (w->cyc_in_hand) {
        w->cyc_in_hand = false;
        settle(w, w->now);
    }
}

/* ---- the stream ---- */

/* Bytes that are no packet: from here to the next PSB nothing can be told. */
static const uint8_t *skip_bad(struct pt_walk *w, const uint8_t *end)
{
    lose(w, GAP_ERROR, w->state == WALK_ON ? w->cur->start : 0, "bytes that are no packet");
    const uint8_t *psb = pt_packet_find_psb(w->at + 1, end);
    return psb ? psb : end;
}

/* To the first PSB; what stands before it is a loss. */
static void find_start(struct pt_walk *w, size_t from, const uint8_t *end)
{
    const uint8_t *psb = pt_packet_find_psb(w->at, end);
    if (psb == w->at)
        return;
    w->loss = (struct pt_loss){.first_byte = from,
                               .cause = GAP_LOST,
                               .why = psb ? "before the first synchronisation point"
                                          : "too short: no synchronisation point in it"};
    w->lost_from = w->at;
    w->at = psb ? psb : end;
    found(w);
}

void pt_walk_run(struct pt_walk *w, const uint8_t *data, size_t from, size_t stop, size_t len,
                 bool inner)
{
    const uint8_t *end = data + len;
    w->data = data;
    w->at = data + from;
    w->state = WALK_LOST;
    w->lost_from = NULL;
    w->inner = inner;
    find_start(w, from, end);
    bool last_psb = false;
    while (w->at < end) {
        struct packet p;
        int n = pt_packet_read(w->at, end, &p);
        if (n == PT_END)
            break; /* the last packet is cut */
        if (n < 0) {
            w->at = skip_bad(w, end);
            continue;
        }
        if (p.kind == PT_PSB) {
            last_psb = (size_t)(w->at - data) >= stop;
            if (w->sink.cancelled && w->sink.cancelled(w->sink.arg))
                break;
        }
        on_packet(w, &p);
        w->at += n;
        if (last_psb && p.kind == PT_PSBEND)
            break;
    }
    if (!last_psb && w->at < end && !(w->sink.cancelled && w->sink.cancelled(w->sink.arg))) {
        lose(w, GAP_LOST, 0, "the last packet is cut");
        w->at = end;
    }
    found(w);
    flush(w);
}

#include "decode/pt/pt_walk.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "decode/pt/pt_walk_priv.h"

struct pt_walk *pt_walk_new(struct pt_nodes *nodes, const struct pt_clock *clock,
                            const struct pt_walk_sinks *sinks)
{
    struct pt_walk *w = xcalloc(1, sizeof *w);
    w->nodes = nodes;
    w->sink = *sinks;
    w->clock = clock;
    w->cap = WALK_EVENTS;
    w->batch = xmalloc(w->cap * sizeof *w->batch);
    pt_time_init(&w->time, clock);
    return w;
}

void pt_walk_free(struct pt_walk *w)
{
    if (!w)
        return;
    free(w->batch);
    free(w);
}

void pt_walk_stamps(struct pt_walk *w, const struct pt_stamps *stamps)
{
    w->stamps = stamps;
}

uint64_t pt_walk_insns(const struct pt_walk *w)
{
    return w->insns;
}

uint64_t pt_walk_bytes(const struct pt_walk *w)
{
    return w->walked;
}

/* ---- losing and finding the position ---- */

void walk_lose(struct pt_walk *w, enum gap_cause cause, uint64_t ip, const char *why)
{
    if (w->state == WALK_LOST && w->lost_from)
        return;
    walk_settle(w, w->now);
    struct flow_event *e = walk_emit(w, PT_EVENT_LOST, 0, FN_NONE, w->insns);
    e->how = (uint8_t)cause;
    e->time = walk_timeless(w) ? w->insns : w->now; /* where the gap begins, however much time passes until its end */
    w->unsettled = w->n;
    walk_branch(w, PT_BRANCH_ERROR, ip, 0, PT_END_UNKNOWN);
    w->loss = (struct pt_loss){.first_byte = (uint64_t)(w->at - w->data),
                               .from_time = w->now,
                               .ip = ip,
                               .cause = cause,
                               .why = why};
    w->lost_from = w->at;
    w->state = WALK_LOST;
    w->n_bits = 0;
    w->returns_len = 0;
    w->returns_torn = true;
    w->have_fup = w->fup_is_tx = w->aborted = w->in_psb = w->inner = w->by_cyc = w->late = false;
}

/* The loss is over at the packet in hand. */
void walk_found(struct pt_walk *w)
{
    if (!w->lost_from)
        return;
    const uint8_t *end = w->at < w->seam ? w->at : w->seam;
    w->loss.bytes = end > w->lost_from ? (uint64_t)(end - w->lost_from) : 0;
    w->loss.to_time = w->now;
    walk_doubt_over(w); /* it began before */
    if (w->sink.loss)
        w->sink.loss(w->sink.arg, &w->loss);
    w->lost_from = NULL;
    if (w->state == WALK_LOST) { /* what comes now is spread from here on */
        walk_settle(w, w->now);
        w->late = false;
    }
}

/* What was known of the code may be over: nodes, and whatever refers to them. */
void walk_renew_code(struct pt_walk *w)
{
    bool other = w->sink.code_changed && w->sink.code_changed(w->sink.arg, w->now);
    /* Damaged streams lead to ever new addresses: where nothing refers to nodes, too many are dropped. */
    bool too_many = w->returns_len == 0 && pt_nodes_bytes(w->nodes) > WALK_NODES_MOST;
    if (!other && !too_many)
        return;
    pt_nodes_forget(w->nodes);
    for (size_t i = 0; i < WALK_RETURNS; i++)
        w->returns[i].node = NULL; /* the hardware's stack stays as it is: only the addresses count */
    w->cur = NULL;
}

/* Tracing is on at ip. */
void walk_begin_at(struct pt_walk *w, uint64_t ip)
{
    walk_branch(w, PT_BRANCH_BEGIN, 0, ip, PT_END_UNKNOWN);
    walk_go_on_at(w, ip);
}

/* It was on all the time, and only now it is known where. */
void walk_go_on_at(struct pt_walk *w, uint64_t ip)
{
    walk_found(w);
    walk_renew_code(w);
    bool at_start;
    fn_id fn = pt_nodes_function(w->nodes, ip, &at_start);
    walk_emit(w, PT_EVENT_BEGIN, ip, fn, w->insns)->at_start = at_start;
    w->state = WALK_ON;
    w->n_bits = 0;
    w->cur = walk_node_at(w, ip);
}

void walk_mismatch(struct pt_walk *w)
{
    struct pt_node *n = w->cur;
    if (n->kind == PT_NODE_BAD)
        walk_lose(w, GAP_NO_IMAGE, n->term, "the code there is not at hand");
    else
        walk_lose(w, GAP_ERROR, n->term, "the trace does not match the code");
}

/* ---- outcomes ---- */

static void walk_on_tnt(struct pt_walk *w, const struct packet *p)
{
    if (w->state != WALK_ON)
        return; /* behind the end of tracing: outcomes that came too late; lost: of no use */
    if (w->n_bits + p->count > 64) {
        walk_mismatch(w);
        return;
    }
    w->bits = p->count < 64 ? w->bits << p->count | p->value : p->value;
    w->n_bits += p->count;
    walk_take_bits(w);
}

/* ---- synchronisation and the rest ---- */

/* Whatever a PSB+ does not tell anew is not known any more. */
static void on_psb(struct pt_walk *w)
{
    w->in_psb = true;
    w->psb_fup = w->overflowed = w->aborted = w->fup_is_data = w->fup_is_tx = false;
    w->last_ip = 0;
    walk_stop_time(w);
}

/* Tracing goes on, or is off, as the PSB+ has it. */
static void take_position(struct pt_walk *w)
{
    bool inner = w->inner;
    w->in_psb = w->inner = w->returns_torn = false;
    w->returns_len = w->n_bits = 0;
    w->have_fup = false;
    if (inner) { /* the piece before has told everything up to here */
        w->lost_from = NULL;
        walk_renew_code(w);
        w->state = w->psb_fup ? WALK_ON : WALK_OFF;
        if (w->psb_fup)
            w->cur = walk_node_at(w, w->fup);
        return;
    }
    if (!w->psb_fup) { /* tracing was off when the PSB was written */
        walk_found(w);
        if (w->state == WALK_ON)
            walk_end_at(w, w->cur->start, PT_END_UNKNOWN);
        w->state = WALK_OFF;
        return;
    }
    if (w->state == WALK_ON && !walk_to(w, w->fup) && w->state == WALK_ON)
        walk_mismatch(w);
    if (w->state == WALK_ON) { /* from here on as a piece that begins here would go */
        walk_renew_code(w);
        w->cur = walk_node_at(w, w->fup);
    } else {
        walk_go_on_at(w, w->fup);
    }
}

static void on_psbend(struct pt_walk *w)
{
    take_position(w);
    if (!w->untimed)
        walk_anchor_time(w);
}

static void on_overflow(struct pt_walk *w)
{
    walk_lose(w, GAP_OVERFLOW, w->state == WALK_ON ? w->cur->start : 0,
              "the processor wrote packets faster than they could be stored");
    w->in_psb = w->inner = false;
    w->overflowed = true;
}

static void on_timing(struct pt_walk *w, const struct packet *p)
{
    switch (p->kind) {
    case PT_TSC:
        walk_on_tsc(w, p);
        break;
    case PT_TMA:
        if (!w->untimed)
            pt_time_tma(&w->time, (unsigned)(p->value & 0xffff), (unsigned)(p->value >> 16));
        break;
    case PT_MTC:
        pt_time_mtc(&w->time, (unsigned)p->value, w->at == w->behind_cyc);
        walk_new_time(w, false);
        break;
    case PT_CYC:
        pt_time_cyc(&w->time, p->value);
        w->behind_cyc = w->at + p->len;
        walk_new_time(w, true);
        break;
    default:
        pt_time_cbr(&w->time, (unsigned)p->value);
        if (w->sink.mark && w->at < w->seam)
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
        walk_on_tsx(w, p);
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
        walk_on_tnt(w, p);
        break;
    case PT_TIP:
        walk_on_tip(w, p);
        break;
    case PT_TIP_PGE:
        walk_on_pge(w, p);
        break;
    case PT_TIP_PGD:
        walk_on_pgd(w, p);
        break;
    case PT_FUP:
        walk_on_fup(w, p);
        return; /* the packet behind it tells what it means */
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
    if (w->late)
        walk_settle_late(w);
}

/* ---- the stream ---- */

/* A recording may end in the middle of a packet: nothing that was open is less known for it. */
static const uint8_t *skip_cut(struct pt_walk *w)
{
    if (!w->lost_from) {
        w->loss = (struct pt_loss){.first_byte = (uint64_t)(w->at - w->data),
                                   .from_time = w->now,
                                   .cause = GAP_LOST,
                                   .why = "the last packet is cut"};
        w->lost_from = w->at;
    }
    return w->seam;
}

/* Bytes that are no packet: from here to the next PSB nothing can be told. */
static const uint8_t *skip_bad(struct pt_walk *w, const uint8_t *end)
{
    walk_lose(w, GAP_ERROR, w->state == WALK_ON ? w->cur->start : 0, "bytes that are no packet");
    const uint8_t *psb = pt_packet_find_psb(w->at + 1, end);
    return psb ? psb : end;
}

/* To the first PSB; what stands before it is a loss, unless it is padding: a ring that is not full yet. */
static void find_start(struct pt_walk *w, size_t from)
{
    const uint8_t *psb = pt_packet_find_psb(w->at, w->seam), *at = w->at;
    while (psb && at < psb && *at == 0)
        at++;
    if (at == psb) {
        w->walked += (uint64_t)(psb - w->at);
        w->at = psb;
        return;
    }
    w->loss = (struct pt_loss){.first_byte = from,
                               .cause = GAP_LOST,
                               .why = psb ? "before the first synchronisation point"
                                          : "too short: no synchronisation point in it"};
    w->lost_from = w->at;
    w->at = psb ? psb : w->seam;
    walk_found(w);
}

/* Most packets of most traces: up to six outcomes in a byte, the highest set bit marks where they begin. */
static inline bool is_short_tnt(const struct pt_walk *w)
{
    uint8_t op = *w->at;
    return !(op & 1) && op > 2 && w->state == WALK_ON && !w->in_psb && w->n_bits <= 64 - 6;
}

static inline void on_short_tnt(struct pt_walk *w)
{
    unsigned marked = *w->at >> 1u, count = 31u - (unsigned)__builtin_clz(marked);
    w->bits = w->bits << count | (marked & ((1u << count) - 1));
    w->n_bits += count;
    walk_take_bits(w);
    if (w->late)
        walk_settle_late(w);
    if (!w->lost_from)
        w->walked++;
    w->at++;
}

/* Up to the seam. */
static void walk_own(struct pt_walk *w)
{
    while (w->at < w->seam) {
        struct packet p;
        if (is_short_tnt(w)) {
            on_short_tnt(w);
            continue;
        }
        int n = pt_packet_read(w->at, w->seam, &p);
        if (n < 0) {
            w->at = n == PT_END && w->seam == w->end ? skip_cut(w) : skip_bad(w, w->seam);
            continue;
        }
        if (p.kind == PT_PSB && w->sink.cancelled && w->sink.cancelled(w->sink.arg))
            return;
        if (w->in_psb && p.kind != PT_PSBEND && p.kind != PT_OVF && !pt_packet_is_status(p.kind))
            walk_lose(w, GAP_ERROR, 0, "a synchronisation point without its end");
        on_packet(w, &p);
        if (!w->lost_from)
            w->walked += (uint64_t)n;
        w->at += n;
    }
}

/* The PSB+ behind the seam tells where the walk has arrived; the next piece reads it again. */
static void walk_seam(struct pt_walk *w, const uint8_t *end)
{
    struct packet p;
    int n;
    while ((n = pt_packet_read(w->at, end, &p)) > 0) {
        bool last = p.kind == PT_PSBEND;
        if (!last && (!pt_packet_is_status(p.kind) || (p.kind == PT_PSB && w->at != w->seam)))
            break;
        on_packet(w, &p);
        w->at += n;
        if (last)
            break;
    }
}

/* Everything that a walk before this one may have left. */
static void reset(struct pt_walk *w)
{
    w->state = WALK_LOST;
    w->lost_from = NULL;
    w->cur = NULL;
    w->in_psb = w->overflowed = w->aborted = w->have_fup = false;
    w->fup_is_data = w->fup_is_tx = w->by_cyc = w->late = false;
    w->behind_cyc = NULL;
    w->n_bits = w->returns_len = 0;
    w->returns_torn = false;
    w->now = w->settled_time = w->insns = w->settled_insns = w->walked = 0;
    w->n = w->unsettled = 0;
    w->last_ip = w->last_tsc = 0;
    w->untimed = w->doubt = false;
    pt_time_init(&w->time, w->clock);
    pt_nodes_set_bits(w->nodes, 64);
}

void pt_walk_run(struct pt_walk *w, const uint8_t *data, size_t from, size_t stop, size_t len,
                 bool inner)
{
    reset(w);
    w->data = data;
    w->at = data + from;
    w->seam = data + (stop < len ? stop : len);
    w->end = data + len;
    w->inner = inner;
    w->stamp = w->right = w->stamps ? pt_stamps_from(w->stamps, from) : 0;
    find_start(w, from);
    walk_own(w);
    if (w->at == w->seam && stop < len)
        walk_seam(w, w->end);
    walk_found(w);
    walk_doubt_over(w);
    walk_flush(w);
}

/* The state of a flow walker, between the files that make one: pt_walk.c (packets), pt_walk_flow.c (along the
 * code) and pt_walk_time.c. */
#ifndef MTUI_DECODE_PT_WALK_PRIV_H
#define MTUI_DECODE_PT_WALK_PRIV_H

#include "decode/pt/pt_packet.h"
#include "decode/pt/pt_walk.h"

#define WALK_RETURNS 64 /* depth of the hardware's return stack */
#define WALK_EVENTS  4096 /* at first */
#define WALK_EVENTS_MOST ((size_t)1 << 20)
#define WALK_NODES_MOST ((size_t)64 << 20) /* bytes */
/* Nodes without an outcome that may follow one another: code that goes in a circle of direct jumps would
 * be followed for ever. */
#define WALK_SILENT_NODES 4096

enum walk_state {
    WALK_LOST, /* the position is not known */
    WALK_OFF,  /* tracing is off */
    WALK_ON
};

struct return_entry {
    uint64_t addr;
    struct pt_node **node; /* where the node at addr is (to be) remembered; NULL: nowhere any more */
};

struct pt_walk {
    struct pt_nodes *nodes;
    struct pt_walk_sinks sink;
    const struct pt_clock *clock;
    struct pt_time time;
    uint64_t now; /* what events are stamped with */

    const struct pt_stamps *stamps; /* NULL: all timestamps are believed */
    size_t stamp, right;        /* of them: the first not passed, and the first of these that is right */
    uint64_t last_tsc;          /* of the last timestamp that was believed */
    struct pt_time time_at_psb; /* what the clock was before the PSB */
    bool late_at_psb;
    bool untimed;               /* the last timestamp was not believed */
    bool doubt;                 /* and that is still to be said: */
    struct pt_loss doubted;

    enum walk_state state;
    struct pt_node *cur; /* WALK_ON: its steps are not taken yet */
    uint64_t last_ip;
    uint64_t insns;      /* before cur */
    uint64_t bits;       /* outcomes that wait, the oldest highest */
    unsigned n_bits;
    struct return_entry returns[WALK_RETURNS];
    unsigned returns_top, returns_len;
    bool returns_torn; /* calls since the last PSB may have been lost */

    bool have_fup; /* a FUP that the next packet explains */
    uint64_t fup;
    bool fup_is_data; /* the next FUP belongs to PTWRITE and the like */
    bool fup_is_tx;   /* it says where a transaction begins (in_tx) or ends */
    bool in_tx;
    bool in_psb, psb_fup, overflowed, aborted;
    bool inner; /* the next PSB is where another piece has left off */

    const uint8_t *data, *at; /* the packet in hand */
    const uint8_t *seam;      /* the PSB of the next piece: bytes from here on are its own */
    const uint8_t *end;       /* of the stream */
    uint64_t walked;          /* bytes that told something */
    const uint8_t *lost_from; /* WALK_LOST: first byte that told nothing */
    struct pt_loss loss;

    uint64_t settled_time, settled_insns; /* up to the last timestamp */
    size_t n, unsettled;                  /* events in the batch; the first without its final time */
    const uint8_t *behind_cyc;            /* the byte behind the last CYC */
    bool by_cyc; /* since the last PSB a CYC was seen: each packet stands at the time before it */
    bool late;   /* time has passed since anything was executed that is known of: the next packet with
                    outcomes tells what was executed meanwhile */
    size_t cap;
    struct flow_event *batch;
};

/* Streams without TSC have the count of instructions for time. */
static inline bool walk_timeless(const struct pt_walk *w)
{
    return !pt_clock_has_time(w->clock);
}

/* ---- pt_walk_time.c ---- */

/* It is now `now`: what happened since the last timestamp is spread over the time since then. */
void walk_settle(struct pt_walk *w, uint64_t now);
/* Hands the batch over, whatever its times are by now. */
void walk_flush(struct pt_walk *w);
/* The batch is full: hands over what has its final times. */
void walk_make_room(struct pt_walk *w);
/* A timing packet has come. With CYC packets what came before it happened up to the time before, exactly;
 * else some time up to the new one. Where nothing came, it says only that time has passed: what comes next
 * began when the last thing did that is known. */
void walk_new_time(struct pt_walk *w, bool cyc);
/* late, and a packet has come. */
void walk_settle_late(struct pt_walk *w);
/* A timestamp, which may be wrong: then it is a loss, and the clock goes on. */
void walk_on_tsc(struct pt_walk *w, const struct packet *p);
/* Up to now times were doubtful, if they were. */
void walk_doubt_over(struct pt_walk *w);
/* Around a PSB: nothing is known of the clock any more; it begins anew from a TSC; what came up to the
 * PSBEND is settled, and spreading goes on from there. */
void walk_stop_time(struct pt_walk *w);
void walk_restart_time(struct pt_walk *w);
void walk_anchor_time(struct pt_walk *w);

/* Its time is given to it when it is settled; where there is none, it is the count of instructions. */
static inline struct flow_event *walk_emit(struct pt_walk *w, enum pt_event_kind kind, uint64_t addr, fn_id fn,
                             uint64_t insns)
{
    if (__builtin_expect(w->n == w->cap, 0))
        walk_make_room(w);
    struct flow_event *e = &w->batch[w->n++];
    e->time = insns;
    e->addr = addr;
    e->insns = insns;
    e->fn = fn;
    e->kind = (uint8_t)kind;
    e->how = 0;
    e->at_start = false;
    return e;
}

static inline void walk_branch(struct pt_walk *w, enum pt_branch_kind kind, uint64_t from, uint64_t to,
                   enum pt_end end)
{
    if (!w->sink.branch)
        return;
    struct pt_branch b = {.time = walk_timeless(w) ? w->insns : w->now,
                          .from = from,
                          .to = to,
                          .kind = (uint8_t)kind,
                          .end = (uint8_t)end};
    w->sink.branch(w->sink.arg, &b);
}

static inline void walk_push_return(struct pt_walk *w, uint64_t addr, struct pt_node **node)
{
    w->returns_top = (w->returns_top + 1) % WALK_RETURNS;
    w->returns[w->returns_top] = (struct return_entry){addr, node};
    if (w->returns_len < WALK_RETURNS)
        w->returns_len++;
}

/* ---- pt_walk.c ---- */

/* The position is not known from the packet in hand on; why is a constant string. */
void walk_lose(struct pt_walk *w, enum gap_cause cause, uint64_t ip, const char *why);
/* The loss, if there is one, is over at the packet in hand. */
void walk_found(struct pt_walk *w);
/* The flow does not agree with the trace where the walk stands. */
void walk_mismatch(struct pt_walk *w);
/* The code may be another from now on. */
void walk_renew_code(struct pt_walk *w);
/* Tracing begins at ip. */
void walk_begin_at(struct pt_walk *w, uint64_t ip);
/* It was on all the time, and only now it is known where: at ip. */
void walk_go_on_at(struct pt_walk *w, uint64_t ip);

/* ---- pt_walk_flow.c ---- */

/* The node at ip; NULL: memory is short, and the position lost. */
struct pt_node *walk_node_at(struct pt_walk *w, uint64_t ip);
/* The instruction at ip was reached and not executed. False: the code does not lead there. */
bool walk_to(struct pt_walk *w, uint64_t ip);
/* Spends the waiting outcomes as far as the flow needs no address. */
void walk_take_bits(struct pt_walk *w);
/* Over nodes that were only cut for length; false when the position got lost. */
bool walk_run_on(struct pt_walk *w);
/* Every instruction of the node has run, up to its terminator and with it. */
void walk_run_node(struct pt_walk *w, struct pt_node *n);
/* The first n steps of a node, with the branches between them. */
void walk_take_steps(struct pt_walk *w, struct pt_node *node, uint32_t n);

/* ---- pt_walk_address.c: packets with addresses ---- */

/* Tracing stops at the instruction at, which ended it or did not get to run. */
void walk_end_at(struct pt_walk *w, uint64_t at, enum pt_end how);
void walk_on_tip(struct pt_walk *w, const struct packet *p);
void walk_on_pge(struct pt_walk *w, const struct packet *p);
void walk_on_pgd(struct pt_walk *w, const struct packet *p);
void walk_on_fup(struct pt_walk *w, const struct packet *p);
/* The packet in front of the FUP that says where a transaction begins, ends or is aborted. */
void walk_on_tsx(struct pt_walk *w, const struct packet *p);

#endif

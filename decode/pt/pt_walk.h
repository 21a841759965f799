/* The flow walker: packets and code in, events out.
 *
 * Walks lazily: it stands at a node (pt_nodes.h) whose steps have not been taken yet; they are taken
 * when the next packet proves that the node was run to its end, so all of them get that packet's time.
 * Time that passes between two packets with a time of their own (CYC; packets without one behind them share
 * it) is spread over the events between them by the number of instructions executed. An MTC between them says
 * only that time has passed. Without CYC, time is spread between MTCs and TSCs.
 *
 * At every PSB the walker takes up its position anew from the packets there and the hardware's return
 * stack is empty; so a piece of a stream that begins at a PSB and ends behind the next one can be walked
 * on its own, with the same result as a walk over all of it.
 *
 * After an error it goes on at the next packet that carries an address. Every byte is either walked or
 * part of a loss. Format and rules: Intel SDM vol. 3, "Intel Processor Trace". */
#ifndef MTUI_DECODE_PT_WALK_H
#define MTUI_DECODE_PT_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/pt/pt_event.h"
#include "decode/pt/pt_nodes.h"
#include "decode/pt/pt_stamps.h"
#include "decode/pt/pt_time.h"

struct pt_walk_sinks {
    /* Events in order, a batch at a time. */
    void (*events)(void *arg, const struct flow_event *events, size_t n);
    /* Optional: every branch. Makes the walk much slower. */
    void (*branch)(void *arg, const struct pt_branch *branch);
    void (*loss)(void *arg, const struct pt_loss *loss);
    /* Optional: a frequency change, a PTWRITE value. */
    void (*mark)(void *arg, enum mark_kind kind, uint64_t time, uint64_t value);
    /* Optional: asked where tracing begins and at every PSB; true when the code is another from this time
     * on (the nodes are then forgotten). */
    bool (*code_changed)(void *arg, uint64_t time);
    /* Optional: asked at every PSB; true ends the walk. */
    bool (*cancelled)(void *arg);
    void *arg;
};

struct pt_walk;

/* nodes and clock must outlive it. */
struct pt_walk *pt_walk_new(struct pt_nodes *nodes, const struct pt_clock *clock,
                            const struct pt_walk_sinks *sinks);
void pt_walk_free(struct pt_walk *w);

/* The timestamps of the stream to be walked, which are to live as long; NULL, as at first: each is believed. One that
 * is wrong is a loss of its own: the clock goes on as if it were not there. */
void pt_walk_stamps(struct pt_walk *w, const struct pt_stamps *stamps);

/* Walks data[from, stop) of a stream of len bytes: one piece (pt_pieces.h). It takes up its position at
 * the first PSB there (what stands before it is a loss). Unless it is that of the stream, stop is the PSB
 * of the next piece, which is looked into up to its PSBEND. inner: another piece was walked up to behind
 * the PSB at `from`; tracing goes on there, it does not begin. */
void pt_walk_run(struct pt_walk *w, const uint8_t *data, size_t from, size_t stop, size_t len,
                 bool inner);

/* Of the last run: instructions walked; bytes that told something. Those and the losses are all bytes. */
uint64_t pt_walk_insns(const struct pt_walk *w);
uint64_t pt_walk_bytes(const struct pt_walk *w);

#endif

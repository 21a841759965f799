/* Code as the flow walker needs it: super-blocks.
 *
 * A node begins at an address to which some branch led, follows direct jumps and calls, and ends at the
 * first instruction whose outcome the trace has to tell: a conditional branch, a return, an indirect or
 * a far branch. What was passed on the way (calls, jumps) is a list of steps. Nodes are made when first
 * needed and found again by address, or without looking by the links between them. */
#ifndef MTUI_DECODE_PT_NODES_H
#define MTUI_DECODE_PT_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/image/pt_code.h"

enum pt_node_kind {
    PT_NODE_CONDITIONAL,
    PT_NODE_RETURN,
    PT_NODE_JUMP, /* indirect */
    PT_NODE_CALL, /* indirect */
    PT_NODE_FAR,  /* system call, software interrupt, far return: to or from another privilege level */
    PT_NODE_ON,   /* cut for length: goes on at next without an outcome */
    PT_NODE_BAD   /* at term there is no code, or none that can be decoded */
};

enum pt_step_kind {
    PT_STEP_CALL,
    PT_STEP_CALL_NEXT, /* a call to the next instruction: reads the program counter, no frame */
    PT_STEP_LEAVE,     /* a jump into another function */
    PT_STEP_JUMP       /* a jump inside a function: only lists of branches show it */
};

struct pt_node;

struct pt_step {
    uint64_t from, to;
    uint64_t next;           /* behind the call: where it returns to */
    struct pt_node *resumed; /* the node at next; NULL until needed */
    fn_id fn;                /* at to */
    uint16_t insns;          /* of the node, up to and with this step */
    uint8_t kind;            /* enum pt_step_kind */
    bool at_start;           /* to is the first instruction of fn */
};

struct pt_node {
    /* the hot part: one cache line */
    struct pt_node *taken, *fall; /* successors, NULL until needed; indirect: the last target */
    uint64_t target;              /* CONDITIONAL: when taken; indirect: address of `taken` */
    uint64_t next;                /* behind the terminator; ON: where it goes on */
    uint32_t n_calls;             /* steps that are CALL or LEAVE, in `calls` */
    uint32_t insns;               /* from start to the terminator, with it */
    struct pt_step **calls;
    fn_id fn;                     /* at the terminator */
    uint8_t kind;                 /* enum pt_node_kind */
    bool leaves;                  /* CONDITIONAL: taken, it jumps into another function */
    uint8_t far;                  /* FAR: enum pt_far */
    /* the rest */
    uint64_t start, term;
    fn_id start_fn;
    bool starts_fn; /* start is the first instruction of start_fn */
    uint32_t n_steps;
    struct pt_step *steps; /* all of them, in order */
};

struct pt_nodes;

struct pt_nodes *pt_nodes_new(const struct pt_code *code);
void pt_nodes_free(struct pt_nodes *c);

/* The node at ip; NULL only when memory is short. Nodes live until pt_nodes_forget. */
struct pt_node *pt_nodes_at(struct pt_nodes *c, uint64_t ip);

/* Instructions are of 64-bit code from now on, or of 32-bit code: MODE.Exec in the stream says so. Nodes
 * of both are kept apart. The beginning: 64. */
void pt_nodes_set_bits(struct pt_nodes *c, unsigned bits);

/* The code has changed (mapping, exec): every node is forgotten; pointers to them are dead. */
void pt_nodes_forget(struct pt_nodes *c);

/* The function at ip. */
fn_id pt_nodes_function(struct pt_nodes *c, uint64_t ip, bool *at_start);

/* Goes along the node from its start to the instruction at ip (an instruction boundary is not checked);
 * returns the number of steps before it, or −1 when the node does not pass ip. */
int pt_node_steps_to(const struct pt_node *n, uint64_t ip);
/* How many instructions the node has up to there, without that at ip; steps as above. Reads code: for places
 * that the walk stops at now and then. */
uint32_t pt_nodes_insns_to(struct pt_nodes *c, const struct pt_node *n, uint32_t steps, uint64_t ip);

size_t pt_nodes_count(const struct pt_nodes *c);
/* Memory that they take. */
size_t pt_nodes_bytes(const struct pt_nodes *c);

#endif

/* What the flow walker finds, in order: the calls, returns and jumps between functions that stacks are
 * made of, and, for whoever wants them, every single branch. */
#ifndef MTUI_DECODE_PT_EVENT_H
#define MTUI_DECODE_PT_EVENT_H

#include <stdint.h>

#include "decode/trace/functions.h"
#include "decode/trace/trace.h"

enum pt_event_kind {
    PT_EVENT_BEGIN,  /* tracing (again) at addr, in fn */
    PT_EVENT_END,    /* tracing stops at addr, the instruction that did it or did not get to run; how:
                        enum pt_end */
    PT_EVENT_CALL,   /* into fn; addr: where it will return to */
    PT_EVENT_RETURN, /* to addr, in fn */
    PT_EVENT_JUMP,   /* into another function fn, at addr */
    PT_EVENT_INTERRUPT, /* taken before addr was executed (kernel code is traced); then fn runs */
    PT_EVENT_TX_BEGIN,  /* what runs from here on may be undone */
    PT_EVENT_TX_COMMIT, /* it counts */
    PT_EVENT_TX_ABORT,  /* it has not happened; the jump to where the program goes on follows */
    PT_EVENT_LOST    /* packets or flow lost; addr: bytes; how: enum gap_cause. Nothing that was open is
                        known to be open any more */
};

/* Why tracing ended (the word behind "end:" in lists of branches). */
enum pt_end {
    PT_END_ASYNC,
    PT_END_SYSCALL,
    PT_END_CALL,
    PT_END_RETURN,
    PT_END_JUMP,
    PT_END_IRET,
    PT_END_SYSRET,
    PT_END_INTERRUPT, /* by an instruction: int */
    PT_END_UNKNOWN
};

struct flow_event {
    uint64_t time;  /* ns of perf's clock, or instructions where the stream has no time */
    uint64_t addr;
    uint64_t insns; /* instructions executed before it, of this piece of the stream */
    fn_id fn;
    uint8_t kind; /* enum pt_event_kind */
    uint8_t how;
    bool at_start; /* it came in at the first instruction of fn */
};

/* One branch, for lists of branches: as `perf script --itrace=be` shows it. */
enum pt_branch_kind {
    PT_BRANCH_CALL,
    PT_BRANCH_RETURN,
    PT_BRANCH_JUMP,
    PT_BRANCH_COND,
    PT_BRANCH_SYSCALL,
    PT_BRANCH_SYSRET,
    PT_BRANCH_INTERRUPT,
    PT_BRANCH_IRET,
    PT_BRANCH_ABORT,
    PT_BRANCH_BEGIN,
    PT_BRANCH_END,
    PT_BRANCH_ERROR
};

struct pt_branch {
    uint64_t time, from, to; /* the side that does not exist is 0 */
    uint8_t kind;            /* enum pt_branch_kind */
    uint8_t end;             /* END: enum pt_end */
};

/* A stretch of the stream that told nothing. */
struct pt_loss {
    uint64_t first_byte, bytes; /* of the stream handed to the walker */
    uint64_t from_time, to_time;
    uint64_t ip;                /* ERROR, NO_IMAGE: where the walk stood */
    enum gap_cause cause;
    const char *why;            /* a sentence that lives for ever */
};

#endif

/* What the step recorder says of itself, one line each, among the lines it shares with perf:
 *
 *   [ mtui step: hit TRIGGER MEMBER VERDICT TID ADDRESS CLOCK PERF_NS ARG1 ARG2 ]
 *   [ mtui step: at CLOCK PERF_NS ]
 *   [ mtui step: window TID INSTRUCTIONS WALL_NS ]
 *   [ mtui step: ended TID INSTRUCTIONS WALL_NS END CUT ]
 *   [ mtui step: dropped THREADS BYTES ]
 *
 * Numbers are decimal, addresses and arguments hexadecimal without 0x. */
#ifndef MTUI_CORE_STEP_MESSAGE_H
#define MTUI_CORE_STEP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/trigger/trigger_policy.h"

/* Why a window is over. */
enum step_end {
    STEP_END_RETURNED,  /* the call has returned */
    STEP_END_LEFT,      /* it was left in another way: longjmp, an exception, a signal handler's end */
    STEP_END_BUDGET,    /* its instructions are spent */
    STEP_END_TIME,      /* its wall time is spent */
    STEP_END_STARVED,   /* signals arrive faster than the stepped program gets on */
    STEP_END_EXITED,    /* the thread ended */
    STEP_END_KILLED,    /* a signal ended the process */
    STEP_END_STOPPED,   /* on request */
    STEP_END_REPLACED,  /* by exec */
    STEP_END_FAILED,    /* its packets could not be kept */
    STEP_END_TRAP,      /* the program blocks a SIGTRAP that it got, or ignores SIGTRAP */
    STEP_END_ABANDONED, /* whoever started the recorder is gone */
    STEP_ENDS
};
/* "returned" "left" "budget" "time" "starved" "exited" "killed" "stopped" "replaced" "failed"
 * "trap" "abandoned" */
const char *step_end_name(enum step_end end);
/* False for any other name. */
bool step_end_find(const char *name, enum step_end *out);
/* A clause for people: "the call returned", … */
const char *step_end_text(enum step_end end);

/* A line that begins so is a sentence that whoever started the recording should read. */
#define STEP_MESSAGE_NOTE "note: "

enum step_message_kind {
    STEP_MESSAGE_HIT,    /* a thread came to a site; with TRIGGER_FIRE its call is stepped now */
    STEP_MESSAGE_AT,     /* where the clock stands: before each dump */
    STEP_MESSAGE_WINDOW, /* how far a window in progress is, some times a second; tid 0: none is */
    STEP_MESSAGE_ENDED,  /* one is over */
    STEP_MESSAGE_DROPPED /* before a dump: the ring had no room for these windows of threads that ended */
};

struct step_message {
    enum step_message_kind kind;
    pid_t tid;
    uint32_t trigger, member; /* as in the site */
    enum trigger_verdict verdict;
    uint64_t address, arg1, arg2;
    uint64_t clock;   /* instructions, as in the file */
    uint64_t perf_ns; /* the same moment on perf's clock; 0: not known */
    uint64_t instructions, wall_ns;
    enum step_end end;
    uint64_t threads, bytes; /* that were dropped */
    bool cut; /* the ring was too small for all of it: its beginning is lost */
};

#define STEP_MESSAGE_MAX 256

/* Without a newline; out holds STEP_MESSAGE_MAX bytes. */
void step_message_format(const struct step_message *m, char *out);
/* False for any other line. */
bool step_message_parse(const char *line, size_t len, struct step_message *out);

#endif

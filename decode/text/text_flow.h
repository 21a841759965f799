/* From the branch lines of `perf script` to a trace: by the rules of pt_stack.h, as if the packets had been
 * decoded here, with the names and offsets that were printed.
 *
 * Times: perf gives all branches between two timestamps the first of them, so the time up to the next one
 * is spread over the calls in between. Text without times (-F without time) counts lines. A thread whose
 * text does not begin with "tr strt" was running already in the function that the first line leaves. Where
 * a line leaves another function than the one before led into, and no jumps were printed (--itrace=c gives
 * calls only), what was called has returned to it, or it is what runs now. */
#ifndef MTUI_DECODE_TEXT_FLOW_H
#define MTUI_DECODE_TEXT_FLOW_H

#include "decode/text/perf_text.h"
#include "decode/trace/trace.h"

struct text_flow;

/* b and its functions must outlive it. */
struct text_flow *text_flow_new(struct trace_builder *b, struct functions *functions);
void text_flow_free(struct text_flow *t);

/* A perf_text_fn for BRANCH, PACKET and ERROR events, others are ignored; arg is the text_flow.
 * MTUI_E_NOMEM. */
int text_flow_event(void *arg, const struct perf_text_event *ev);
/* There are no more. */
int text_flow_end(struct text_flow *t);

struct text_flow_counts {
    uint64_t losses;   /* decode errors: gaps */
    uint64_t guessed;  /* branches without flag words */
    uint64_t no_time;  /* lines without a time */
    uint64_t no_offset; /* places with a symbol and no "+0x…" */
    uint64_t calls, returns, jumps;
    uint64_t leaps;     /* lines that leave another function than the one before led into */
};
const struct text_flow_counts *text_flow_counts(const struct text_flow *t);

#endif

/* Time from timing packets: TSC anchors, MTC and CYC count on from them, CBR scales cycles.
 *
 * Source: Intel SDM vol. 3, "Intel Processor Trace", timing packets; the conversion to perf's clock is
 * that of struct perf_event_mmap_page (perf_event_open(2), "time_shift, time_mult, time_zero"). Plain
 * values: one clock belongs to one packet stream. */
#ifndef MTUI_DECODE_PT_TIME_H
#define MTUI_DECODE_PT_TIME_H

#include <stdbool.h>
#include <stdint.h>

/* What AUXTRACE_INFO says about the clocks. */
struct pt_clock {
    uint64_t time_shift, time_mult, time_zero; /* TSC ticks to ns; time_mult 0: not convertible */
    bool tsc;                        /* TSC packets were switched on */
    unsigned mtc_period;             /* MTC each 2^n CTC ticks */
    uint32_t tsc_ctc_n, tsc_ctc_d;   /* TSC ticks = CTC ticks × n / d; n 0: unknown */
    uint32_t max_nonturbo_ratio;     /* 0: unknown */
};

/* False: the stream has no time of its own, instructions are counted instead. */
static inline bool pt_clock_has_time(const struct pt_clock *c)
{
    return c->tsc && c->time_mult;
}

__extension__ typedef unsigned __int128 pt_u128;

struct pt_time {
    const struct pt_clock *clock;
    bool have_tsc;       /* an anchor was seen */
    uint64_t tsc;        /* the present time, ticks */
    uint64_t anchor;     /* the last TSC or MTC time: CYC counts from it */
    uint64_t cycles;     /* since anchor */
    bool have_mtc;       /* MTC counts can be used */
    uint8_t last_mtc;
    uint64_t ctc_origin; /* TSC time of CTC count 0 of ctc_ticks */
    uint64_t ctc_ticks;
    uint64_t cyc_to_tsc; /* 32.32 fixed point; 0: unknown */
};

void pt_time_init(struct pt_time *t, const struct pt_clock *clock);
void pt_time_tsc(struct pt_time *t, uint64_t tsc);
void pt_time_tma(struct pt_time *t, unsigned ctc, unsigned fc);
/* after_cyc: a CYC stands right before it, so that cycles are known up to it. Else they still count from the
 * anchor before. */
void pt_time_mtc(struct pt_time *t, unsigned mtc, bool after_cyc);
void pt_time_cbr(struct pt_time *t, unsigned ratio);

static inline void pt_time_cyc(struct pt_time *t, uint64_t cycles)
{
    t->cycles += cycles;
    if (!t->have_tsc || !t->cyc_to_tsc)
        return;
    uint64_t now =
        t->anchor + (uint64_t)((pt_u128)t->cycles * t->cyc_to_tsc >> 32);
    if (now > t->tsc)
        t->tsc = now;
}

/* TSC ticks in nanoseconds of perf's clock. */
static inline uint64_t pt_time_ns(const struct pt_clock *c, uint64_t tsc)
{
    pt_u128 scaled = (pt_u128)tsc * c->time_mult;
    return c->time_zero + (uint64_t)(scaled >> c->time_shift);
}

#endif

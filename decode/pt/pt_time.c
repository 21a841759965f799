#include "decode/pt/pt_time.h"

void pt_time_init(struct pt_time *t, const struct pt_clock *clock)
{
    *t = (struct pt_time){.clock = clock};
    if (clock->max_nonturbo_ratio)
        t->cyc_to_tsc = (uint64_t)1 << 32; /* until the first CBR */
}

/* The TSC packet has 56 bits; the rest is that of the time before. */
static uint64_t widen(const struct pt_time *t, uint64_t tsc)
{
    const uint64_t span = (uint64_t)1 << 56;
    uint64_t wide = (t->tsc & ~(span - 1)) | (tsc & (span - 1));
    if (t->have_tsc && wide + span / 2 < t->tsc)
        wide += span;
    return wide;
}

static void anchor_at(struct pt_time *t, uint64_t tsc)
{
    t->anchor = tsc;
    t->cycles = 0;
    /* A count that ran ahead is held until the anchor catches up: time does not go back. */
    if (!t->have_tsc || tsc > t->tsc)
        t->tsc = tsc;
}

void pt_time_tsc(struct pt_time *t, uint64_t tsc)
{
    uint64_t wide = widen(t, tsc);
    anchor_at(t, wide);
    t->have_tsc = true;
    t->have_mtc = false; /* until a TMA ties the CTC to it */
}

void pt_time_tma(struct pt_time *t, unsigned ctc, unsigned fc)
{
    const struct pt_clock *c = t->clock;
    if (!t->have_tsc || !c->tsc_ctc_n || !c->tsc_ctc_d)
        return;
    unsigned remainder = ctc & ((1u << c->mtc_period) - 1);
    t->last_mtc = (uint8_t)(ctc >> c->mtc_period);
    t->ctc_origin = t->anchor - fc - (uint64_t)remainder * c->tsc_ctc_n / c->tsc_ctc_d;
    t->ctc_ticks = 0;
    t->have_mtc = true;
}

void pt_time_mtc(struct pt_time *t, unsigned mtc, bool after_cyc)
{
    const struct pt_clock *c = t->clock;
    if (!t->have_mtc)
        return;
    uint8_t passed = (uint8_t)(mtc - t->last_mtc);
    t->last_mtc = (uint8_t)mtc;
    t->ctc_ticks += (uint64_t)passed << c->mtc_period;
    uint64_t tsc = t->ctc_origin + (uint64_t)((pt_u128)t->ctc_ticks * c->tsc_ctc_n / c->tsc_ctc_d);
    if (after_cyc || !t->cycles)
        anchor_at(t, tsc);
    else if (tsc > t->tsc)
        t->tsc = tsc;
}

void pt_time_cbr(struct pt_time *t, unsigned ratio)
{
    if (!ratio || !t->clock->max_nonturbo_ratio)
        return;
    /* The cycles so far passed at the old ratio. */
    t->anchor += (uint64_t)((pt_u128)t->cycles * t->cyc_to_tsc >> 32);
    t->cycles = 0;
    t->cyc_to_tsc = ((uint64_t)t->clock->max_nonturbo_ratio << 32) / ratio;
}

/* The times of events: known at timestamps, spread over what happened between two of them. */
#include <stdlib.h>
#include <string.h>

#include "decode/pt/pt_walk_priv.h"

void walk_settle(struct pt_walk *w, uint64_t now)
{
    if (walk_timeless(w)) {
        w->unsettled = w->n;
        return;
    }
    uint64_t t0 = w->settled_time, c0 = w->settled_insns;
    if (now < t0)
        now = t0;
    uint64_t passed = t0 ? now - t0 : 0, insns = w->insns - c0;
    /* Time an instruction, 32.32 fixed point; what passes in more than four seconds is not spread. */
    uint64_t each = insns && passed >> 32 == 0 ? (passed << 32) / insns : 0;
    for (size_t i = w->unsettled; i < w->n; i++) {
        struct flow_event *e = &w->batch[i];
        uint64_t done = e->insns > c0 ? e->insns - c0 : 0;
        if (!t0 || done >= insns || !insns)
            e->time = now;
        else
            e->time = t0 + (done * each >> 32);
    }
    w->unsettled = w->n;
    w->settled_time = now;
    w->settled_insns = w->insns;
}

static void deliver(struct pt_walk *w, size_t n)
{
    if (n && w->sink.events)
        w->sink.events(w->sink.arg, w->batch, n);
    memmove(w->batch, w->batch + n, (w->n - n) * sizeof *w->batch);
    w->n -= n;
    w->unsettled -= n;
}

void walk_flush(struct pt_walk *w)
{
    if (w->unsettled < w->n)
        walk_settle(w, w->now);
    deliver(w, w->n);
}

void walk_make_room(struct pt_walk *w)
{
    deliver(w, w->unsettled);
    if (w->n <= w->cap / 2)
        return;
    /* A long time without a timestamp: as long as memory lasts, its events wait for their times. */
    struct flow_event *more =
        w->cap < WALK_EVENTS_MOST ? realloc(w->batch, 2 * w->cap * sizeof *more) : NULL;
    if (more) {
        w->batch = more;
        w->cap *= 2;
    } else {
        walk_flush(w);
    }
}

/* A packet or an event has come since the last one that was settled. */
static inline bool anything_new(const struct pt_walk *w)
{
    return w->insns != w->settled_insns || w->unsettled < w->n;
}

void walk_settle_late(struct pt_walk *w)
{
    if (!anything_new(w))
        return;
    w->late = false;
    walk_settle(w, w->now);
}

void walk_new_time(struct pt_walk *w, bool cyc)
{
    if (walk_timeless(w) || !w->time.have_tsc)
        return;
    w->by_cyc |= cyc && w->time.cyc_to_tsc;
    uint64_t ns = pt_time_ns(w->clock, w->time.tsc);
    if (ns <= w->now)
        return;
    bool news = anything_new(w);
    if (news && w->by_cyc)
        walk_settle(w, w->now);
    w->now = ns;
    if (news && !w->by_cyc)
        walk_settle(w, ns);
    w->late = !news && !w->by_cyc;
}

void walk_stop_time(struct pt_walk *w)
{
    w->time_at_psb = w->time;
    w->late_at_psb = w->late;
    w->late = w->untimed = false;
    pt_time_init(&w->time, w->clock);
}

/* Whatever was counted before: so it does not matter where a walk begins. What came before the PSB at a time
 * that is known has that; where the processor wrote it because of the PSB, both times are the same, and what
 * runs up to the PSB's address counts as well. */
void walk_restart_time(struct pt_walk *w)
{
    if (walk_timeless(w))
        return;
    uint64_t ns = pt_time_ns(w->clock, w->time.tsc);
    if (w->by_cyc && ns > w->now && anything_new(w))
        walk_settle(w, w->now);
    w->now = ns;
}

/* Those before say from when on, and up to when, it can be; the stamps themselves are judged already. */
static bool believes(struct pt_walk *w, const struct packet *p)
{
    const struct pt_stamps *s = w->stamps;
    size_t at = (size_t)(w->at - w->data);
    if (!s || walk_timeless(w))
        return true;
    while (w->stamp < s->len && s->data[w->stamp].at < at)
        w->stamp++;
    while (w->right < s->len && (s->data[w->right].at < at || s->data[w->right].wrong))
        w->right++;
    if (w->stamp < s->len && s->data[w->stamp].at == at)
        return !s->data[w->stamp].wrong;
    return p->value >= w->last_tsc && (w->right == s->len || p->value <= s->data[w->right].tsc);
}

static void disbelieve(struct pt_walk *w, const struct packet *p)
{
    w->untimed = true;
    if (w->in_psb) {
        w->time = w->time_at_psb;
        w->late = w->late_at_psb;
    }
    if (!w->now && w->right < w->stamps->len) /* no time is known yet: the first one that will be */
        w->now = pt_time_ns(w->clock, w->stamps->data[w->right].tsc);
    walk_doubt_over(w);
    if (w->lost_from || w->at >= w->seam)
        return;
    w->doubt = true;
    w->doubted = (struct pt_loss){.first_byte = (uint64_t)(w->at - w->data),
                                  .bytes = p->len,
                                  .from_time = w->now,
                                  .cause = GAP_ERROR,
                                  .why = PT_STAMP_WRONG};
    w->walked -= p->len; /* it is not one of those that told something */
}

void walk_on_tsc(struct pt_walk *w, const struct packet *p)
{
    if (!believes(w, p)) {
        disbelieve(w, p);
        return;
    }
    w->untimed = false;
    w->last_tsc = p->value;
    pt_time_tsc(&w->time, p->value);
    if (w->in_psb)
        walk_restart_time(w);
    else
        walk_new_time(w, false);
    walk_doubt_over(w);
}

void walk_doubt_over(struct pt_walk *w)
{
    if (!w->doubt)
        return;
    w->doubt = false;
    w->doubted.to_time = w->now > w->doubted.from_time ? w->now : w->doubted.from_time;
    if (w->sink.loss)
        w->sink.loss(w->sink.arg, &w->doubted);
}

void walk_anchor_time(struct pt_walk *w)
{
    walk_settle(w, w->now);
    w->settled_time = w->now;
    w->by_cyc = w->late = false;
}

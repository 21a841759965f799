#include "core/trigger_policy.h"

void trigger_policy_init(struct trigger_policy *p, const struct trigger_conditions *when,
                         uint64_t armed_ns)
{
    *p = (struct trigger_policy){.when = *when, .armed_ns = armed_ns};
}

bool trigger_policy_exhausted(const struct trigger_policy *p)
{
    return p->when.max_snapshots > 0 && p->counts.fired >= p->when.max_snapshots;
}

static bool too_early(const struct trigger_policy *p, uint64_t time_ns)
{
    return time_ns < p->armed_ns || time_ns - p->armed_ns < p->when.not_before_ns;
}

static bool held_off(const struct trigger_policy *p, uint64_t time_ns)
{
    return p->counts.fired > 0 && (time_ns < p->counts.last_fire_ns ||
                                   time_ns - p->counts.last_fire_ns < p->when.hold_off_ns);
}

enum trigger_verdict trigger_policy_hit(struct trigger_policy *p, uint64_t time_ns,
                                        bool has_duration, uint64_t duration_ns, bool busy)
{
    struct trigger_counts *c = &p->counts;
    if (p->when.slower_than_ns > 0 && (!has_duration || duration_ns <= p->when.slower_than_ns)) {
        c->fast++;
        return TRIGGER_FAST;
    }
    c->hits++;
    c->last_hit_ns = time_ns;
    /* not_before 0: a hit read from before the arming was noted still counts. */
    if (p->when.not_before_ns > 0 && too_early(p, time_ns)) {
        c->early++;
        return TRIGGER_EARLY;
    }
    p->past_early++;
    if (p->when.hits > 1 && p->past_early % p->when.hits != 0) {
        c->not_nth++;
        return TRIGGER_NOT_NTH;
    }
    if (p->when.hold_off_ns > 0 && held_off(p, time_ns)) {
        c->held_off++;
        return TRIGGER_HELD_OFF;
    }
    if (trigger_policy_exhausted(p)) {
        c->spent++;
        return TRIGGER_SPENT;
    }
    if (busy) {
        c->busy++;
        return TRIGGER_BUSY;
    }
    c->fired++;
    c->last_fire_ns = time_ns;
    return TRIGGER_FIRE;
}

const char *trigger_verdict_text(enum trigger_verdict v)
{
    switch (v) {
    case TRIGGER_FIRE:
        return "fired";
    case TRIGGER_EARLY:
        return "too early";
    case TRIGGER_FAST:
        return "not slow enough";
    case TRIGGER_NOT_NTH:
        return "not the Nth hit";
    case TRIGGER_HELD_OFF:
        return "within the hold-off";
    case TRIGGER_SPENT:
        return "enough snapshots taken";
    case TRIGGER_BUSY:
        return "busy: a snapshot was being taken";
    }
    return "?";
}

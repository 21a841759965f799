#include "core/trigger/trigger_policy.h"

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
    if (p->when.not_before_full && !p->ring_full)
        return true;
    /* not_before 0: a hit read from before the arming was noted still counts. */
    if (p->when.not_before_ns == 0)
        return false;
    return time_ns < p->armed_ns || time_ns - p->armed_ns < p->when.not_before_ns;
}

static bool held_off(const struct trigger_policy *p, uint64_t time_ns)
{
    return p->counts.fired > 0 && (time_ns < p->counts.last_fire_ns ||
                                   time_ns - p->counts.last_fire_ns < p->when.hold_off_ns);
}

static enum trigger_verdict judge(struct trigger_policy *p, uint64_t time_ns, bool has_duration,
                                  uint64_t duration_ns, bool busy)
{
    if (p->when.slower_than_ns > 0 && (!has_duration || duration_ns <= p->when.slower_than_ns))
        return TRIGGER_FAST;
    if (too_early(p, time_ns))
        return TRIGGER_EARLY;
    p->past_early++;
    if (p->when.hits > 1 && p->past_early % p->when.hits != 0)
        return TRIGGER_NOT_NTH;
    if (p->when.hold_off_ns > 0 && held_off(p, time_ns))
        return TRIGGER_HELD_OFF;
    if (trigger_policy_exhausted(p))
        return TRIGGER_SPENT;
    return busy ? TRIGGER_BUSY : TRIGGER_FIRE;
}

bool trigger_policy_ready(const struct trigger_policy *p, uint64_t time_ns, bool busy)
{
    return !busy && !too_early(p, time_ns) &&
           !(p->when.hold_off_ns > 0 && held_off(p, time_ns));
}

void trigger_policy_count(struct trigger_policy *p, enum trigger_verdict verdict, uint64_t time_ns)
{
    struct trigger_counts *c = &p->counts;
    uint64_t *const counts[] = {
        [TRIGGER_FIRE] = &c->fired,        [TRIGGER_EARLY] = &c->early,
        [TRIGGER_FAST] = &c->fast,         [TRIGGER_NOT_NTH] = &c->not_nth,
        [TRIGGER_HELD_OFF] = &c->held_off, [TRIGGER_SPENT] = &c->spent,
        [TRIGGER_BUSY] = &c->busy,         [TRIGGER_UNMET] = &c->unmet,
        [TRIGGER_KNOWN] = &c->known,
    };
    ++*counts[verdict];
    if (verdict == TRIGGER_FAST || verdict == TRIGGER_UNMET || verdict == TRIGGER_KNOWN)
        return;
    c->hits++;
    c->last_hit_ns = time_ns;
    if (verdict == TRIGGER_FIRE)
        c->last_fire_ns = time_ns;
}

enum trigger_verdict trigger_policy_hit(struct trigger_policy *p, uint64_t time_ns,
                                        bool has_duration, uint64_t duration_ns, bool busy)
{
    enum trigger_verdict verdict = judge(p, time_ns, has_duration, duration_ns, busy);
    trigger_policy_count(p, verdict, time_ns);
    return verdict;
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
        return "busy with a snapshot";
    case TRIGGER_UNMET:
        return "the condition does not hold";
    case TRIGGER_KNOWN:
        return "returned; fired while it was running";
    }
    return "?";
}

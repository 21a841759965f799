/* From hits to the decision to fire. Pure: all times come with the hits (perf's clock).
 *
 * In this order a hit is: too early (not_before), not slow enough (slower_than; such a hit is not
 * counted as a hit at all), not the Nth, within the hold-off, over the maximum, busy, or it fires.
 */
#ifndef MTUI_CORE_TRIGGER_POLICY_H
#define MTUI_CORE_TRIGGER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/trigger/trigger.h"

enum trigger_verdict {
    TRIGGER_FIRE,
    TRIGGER_EARLY,
    TRIGGER_FAST, /* the call was not slower than asked */
    TRIGGER_NOT_NTH,
    TRIGGER_HELD_OFF,
    TRIGGER_SPENT, /* max_snapshots taken */
    TRIGGER_BUSY,  /* a snapshot is outstanding */
    TRIGGER_UNMET, /* the condition on registers does not hold */
    TRIGGER_KNOWN  /* the return of a call that fired while it was still running */
};

struct trigger_counts {
    uint64_t hits;  /* all that count: every verdict but FAST, UNMET, KNOWN */
    uint64_t fired; /* snapshots asked for */
    uint64_t early, fast, not_nth, held_off, spent, busy, unmet, known;
    uint64_t last_hit_ns, last_fire_ns; /* perf's clock; 0: never */
};

struct trigger_policy {
    struct trigger_conditions when;
    struct trigger_counts counts;
    uint64_t armed_ns;   /* perf's clock */
    bool ring_full;      /* for not_before_full */
    uint64_t past_early; /* hits since not_before, for the Nth */
};

void trigger_policy_init(struct trigger_policy *p, const struct trigger_conditions *when,
                         uint64_t armed_ns);

/* has_duration: the hit closes a call that lasted duration_ns. busy: a snapshot is outstanding. */
enum trigger_verdict trigger_policy_hit(struct trigger_policy *p, uint64_t time_ns,
                                        bool has_duration, uint64_t duration_ns, bool busy);

/* Whether a hit now would be judged for good: false while it would only be too early, held off or busy
 * (a call that is still running can wait for that to pass). */
bool trigger_policy_ready(const struct trigger_policy *p, uint64_t time_ns, bool busy);

/* Counts a hit that was judged elsewhere. */
void trigger_policy_count(struct trigger_policy *p, enum trigger_verdict verdict, uint64_t time_ns);

bool trigger_policy_exhausted(const struct trigger_policy *p);

/* "fired", "busy: a snapshot is being taken", … */
const char *trigger_verdict_text(enum trigger_verdict v);

#endif

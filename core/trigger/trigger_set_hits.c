/* What probes report: entries matched to returns, judged, handed on. */
#include "core/trigger/trigger_set_priv.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"

/* Losses come with many hits: looked for once in so many. */
#define HITS_TO_LOOK 1024

void trigger_set_tell_lost(struct trigger_set *s)
{
    struct probe_stats stats;
    char n[FMT_MAX];
    probe_stats(s->probe, &stats);
    if (stats.lost > 0 && s->lost_told == 0)
        trigger_set_say(s, xasprintf("%s lost: they came faster than they could be read",
                                     fmt_counted(n, stats.lost, "record of a hit or a thread was",
                                                 "records of hits or threads were")));
    s->lost_told = stats.lost;
}

bool trigger_set_distrust(struct trigger_set *s)
{
    struct probe_stats stats;
    probe_stats(s->probe, &stats);
    if (stats.lost == s->lost_matched)
        return false;
    s->lost_matched = stats.lost;
    call_match_forget_all(s->calls);
    return true;
}

/* The return, or tail jump, of a watched call. */
static bool match_return(struct trigger_set *s, struct trigger_hit *hit, bool *known)
{
    struct entry *e = &s->entries.data[hit->trigger];
    struct probe_hit *h = &hit->probe;
    struct call_open call;
    memset(h->arg, 0, sizeof h->arg); /* the registers hold something else by now */
    if (!call_match_leave(s->calls, h->tid, hit->trigger, h->sp, &call))
        /* A return whose entry was before the arming is a return all the same; a jump may be
         * anything. */
        return h->role == PROBE_RETURN && e->trigger.when.slower_than_ns == 0;
    hit->has_duration = true;
    hit->duration_ns = h->time_ns - call.time_ns;
    memcpy(h->arg, call.arg, sizeof h->arg);
    *known = call.told;
    if (!s->held)
        call_histogram_add(&e->durations, hit->duration_ns);
    return true;
}

/* Entry and return of a watched call. False: nothing for the policy. */
static bool match_call(struct trigger_set *s, struct trigger_hit *hit, bool *known)
{
    const struct probe_hit *h = &hit->probe;
    struct entry *e = &s->entries.data[hit->trigger];
    if ((h->role == PROBE_CALL || h->role == PROBE_ENTRY) && trigger_needs_return(&e->trigger))
        s->entered++;
    switch (h->role) {
    case PROBE_POINT:
        return true;
    case PROBE_CALL:
        hit->has_duration = true;
        if (trigger_needs_return(&e->trigger) && !s->held) {
            e->begun++;
            call_histogram_add(&e->durations, 0);
        }
        return true;
    case PROBE_ENTRY:
        if (trigger_needs_return(&e->trigger)) {
            struct call_open call = {
                .sp = h->sp, .time_ns = h->time_ns, .ip = h->ip, .pid = h->pid,
                .return_address = h->top, .member = h->member};
            memcpy(call.arg, h->arg, sizeof call.arg);
            e->begun += !s->held;
            call_match_enter(s->calls, h->tid, hit->trigger, &call);
            return false;
        }
        return true;
    case PROBE_RETURN:
    case PROBE_JUMP:
        break;
    }
    return match_return(s, hit, known);
}

/* A slow call is worth a look at whether hits were lost: its return may be another call's. */
static bool is_believable(struct trigger_set *s, const struct entry *e, const struct trigger_hit *hit)
{
    uint64_t d = e->trigger.when.slower_than_ns;
    return d == 0 || !hit->has_duration || hit->duration_ns <= d || !trigger_set_distrust(s);
}

void trigger_set_on_hit(void *arg, const struct probe_hit *h)
{
    struct trigger_set *s = arg;
    struct trigger_hit hit = {.probe = *h, .trigger = h->trigger};
    bool known = false;
    if (++s->hits % HITS_TO_LOOK == 0) {
        trigger_set_tell_lost(s);
        (void)trigger_set_distrust(s);
    }
    if (h->trigger >= s->entries.len || !match_call(s, &hit, &known))
        return;
    struct entry *e = &s->entries.data[h->trigger];
    bool returned = h->role != PROBE_POINT && h->role != PROBE_ENTRY;
    if (s->held || !is_believable(s, e, &hit))
        return;
    if (!trigger_if_holds(&e->trigger.condition, hit.probe.arg,
                          returned ? &hit.probe.result : NULL))
        trigger_policy_count(&e->policy, hit.verdict = TRIGGER_UNMET, h->time_ns);
    else if (known)
        trigger_policy_count(&e->policy, hit.verdict = TRIGGER_KNOWN, h->time_ns);
    else
        hit.verdict = trigger_policy_hit(&e->policy, h->time_ns, hit.has_duration, hit.duration_ns,
                                         s->snapshots > 0);
    if (hit.verdict == TRIGGER_FIRE)
        s->snapshots++;
    if (hit.verdict != TRIGGER_FAST && hit.verdict != TRIGGER_UNMET && s->callbacks.hit)
        s->callbacks.hit(s->arg, &hit);
}

/* Calls that do not return: found when they have been open for too long, looked at, and fired. */
#include "core/trigger/trigger_set_priv.h"

#define STEP_NS   5000000u /* between two looks at one call, and two rounds */
#define SEE_NS    100000000u /* a slow call is not looked at sooner: most return by themselves */
#define ROUND_NS  500000000u /* and again after that: it may have been left */
#define TRIES_MAX 40       /* then a thread whose place is not known counts as being in its call */

/* How long a call of this trigger may be open; 0: for ever. */
static uint64_t limit_ns(const struct trigger_set *s, const struct entry *e)
{
    uint64_t d = e->trigger.when.slower_than_ns, limit = TRIGGER_SET_OPEN_NS;
    if (d == 0 || trigger_if_needs_ret(&e->trigger.condition))
        return 0; /* what it will return is not known */
    if (s->lookback_ns && s->lookback_ns / 4 * 3 < limit)
        limit = s->lookback_ns / 4 * 3;
    return limit > d ? limit : d + 1;
}

static void end_check(struct trigger_set *s)
{
    thread_sp_free(s->check.reader);
    s->check = (struct open_check){0};
}

void trigger_set_end_open(struct trigger_set *s)
{
    loop_remove(s->loop, s->open_timer);
    s->open_timer = 0;
    end_check(s);
}

void trigger_set_fire_open(struct trigger_set *s, uint32_t trigger, pid_t tid,
                           const struct call_open *call, uint64_t now_ns)
{
    struct entry *e = &s->entries.data[trigger];
    struct trigger_hit hit = {
        .probe = {.time_ns = now_ns,
                  .noticed_ns = now_ns,
                  .pid = call->pid,
                  .tid = tid,
                  .ip = call->ip,
                  .sp = call->sp,
                  .trigger = trigger,
                  .member = call->member,
                  .role = PROBE_ENTRY},
        .trigger = trigger,
        .duration_ns = now_ns - call->time_ns,
        .has_duration = true,
        .still_running = true,
    };
    for (size_t i = 0; i < PROBE_ARGS; i++)
        hit.probe.arg[i] = call->arg[i];
    call_match_tell(s->calls, tid, trigger, call);
    hit.verdict = trigger_policy_hit(&e->policy, now_ns, true, hit.duration_ns, s->snapshots > 0);
    if (hit.verdict == TRIGGER_FIRE)
        s->snapshots++;
    if (s->callbacks.hit)
        s->callbacks.hit(s->arg, &hit);
}

bool trigger_set_call_was_left(const struct thread_sp *reader, const struct call_open *call, bool known,
                               uint64_t sp)
{
    uint64_t word;
    if (known && sp > call->sp && sp - call->sp <= CALL_MATCH_STACK)
        return true;
    return call->return_address && thread_sp_word(reader, call->sp, &word) &&
           word != call->return_address;
}

/* The rings were read just before. True: the check is over. */
static bool look(struct trigger_set *s, uint64_t now_ns)
{
    struct open_check *c = &s->check;
    struct entry *e = &s->entries.data[c->trigger];
    uint64_t sp = 0;
    if (!call_match_is_open(s->calls, c->tid, c->trigger, &c->call))
        return true;
    if (c->gone) { /* it had been left, and its return would have been read by now */
        call_match_drop(s->calls, c->tid, c->trigger, &c->call);
        return true;
    }
    bool known = thread_sp_read(c->reader, &sp);
    if (trigger_set_call_was_left(c->reader, &c->call, known, sp)) {
        c->gone = true;
        return false;
    }
    if (!known && ++c->tries < TRIES_MAX)
        return false;
    if (c->only_see) {
        call_match_see(s->calls, c->tid, c->trigger, &c->call);
        return true;
    }
    if (s->held || !trigger_policy_ready(&e->policy, now_ns, s->snapshots > 0))
        return false;
    trigger_set_fire_open(s, c->trigger, c->tid, &c->call, now_ns);
    return true;
}

/* Begins to look at the trigger's call that is open for longest beyond the limit: to fire it, or to see it.
 * Returns when the next one will be. */
static uint64_t check_oldest(struct trigger_set *s, uint32_t trigger, bool only_see, uint64_t limit,
                             uint64_t now_ns)
{
    const struct entry *e = &s->entries.data[trigger];
    struct call_open call;
    pid_t tid;
    while ((only_see ? call_match_oldest_unlooked : call_match_oldest)(s->calls, trigger, &tid, &call)) {
        struct thread_sp *reader;
        if (call.time_ns + limit > now_ns)
            return call.time_ns + limit;
        if (!trigger_if_holds(&e->trigger.condition, call.arg, NULL)) {
            call_match_pass_over(s->calls, tid, trigger, &call);
        } else if (thread_sp_new(tid, &reader, NULL) == 0) {
            s->check = (struct open_check){
                .reader = reader, .trigger = trigger, .tid = tid, .call = call, .only_see = only_see};
            return now_ns + STEP_NS;
        } else if (call.seen) { /* the record of its end is on its way */
            return now_ns + STEP_NS;
        } else {
            call_match_forget(s->calls, tid);
        }
    }
    return now_ns + limit; /* of one that begins right now */
}

/* Returns when the next check will be (0: none). */
static uint64_t next_check(struct trigger_set *s, uint64_t now_ns)
{
    uint64_t next = 0;
    for (uint32_t i = 0; i < s->entries.len && !s->check.reader; i++) {
        const struct entry *e = &s->entries.data[i];
        uint64_t limit = limit_ns(s, e), d = e->trigger.when.slower_than_ns;
        if (limit == 0)
            continue;
        uint64_t due = check_oldest(s, i, false, limit, now_ns);
        uint64_t see = s->check.reader ? due : check_oldest(s, i, true, d > SEE_NS ? d : SEE_NS, now_ns);
        due = see < due ? see : due;
        if (next == 0 || due < next)
            next = due;
    }
    return next;
}

static void on_open_timer(void *arg)
{
    struct trigger_set *s = arg;
    s->open_timer = 0;
    probe_drain(s->probe);
    uint64_t now = probe_now_ns(s->probe), next = now + STEP_NS;
    if (trigger_set_distrust(s))
        end_check(s);
    if (now - s->look_round_ns >= ROUND_NS) {
        s->look_round_ns = now;
        call_match_look_again(s->calls);
    }
    if (s->check.reader && look(s, now))
        end_check(s);
    if (!s->check.reader)
        next = next_check(s, now);
    if (next == 0)
        return;
    if (next > s->look_round_ns + ROUND_NS)
        next = s->look_round_ns + ROUND_NS;
    uint64_t wait = next > now + STEP_NS ? next - now : STEP_NS;
    s->open_timer = loop_add_timer(s->loop, loop_now_ns(s->loop) + wait, on_open_timer, s);
}

void trigger_set_watch_open(struct trigger_set *s)
{
    bool any = false;
    for (size_t i = 0; i < s->entries.len; i++)
        any = any || limit_ns(s, &s->entries.data[i]) > 0;
    if (any && !s->open_timer && !s->options.handed_over)
        s->open_timer = loop_add_timer(s->loop, loop_now_ns(s->loop) + STEP_NS, on_open_timer, s);
}

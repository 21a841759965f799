/* Calls that do not return: found when they have been open for too long, looked at, and fired. */
#include "core/trigger/trigger_set_priv.h"

#include "core/trigger/thread_sp.h"

#define STEP_NS   5000000u /* between two looks at one call, and two rounds */
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

static void fire(struct trigger_set *s, uint64_t now_ns)
{
    const struct open_check *c = &s->check;
    struct entry *e = &s->entries.data[c->trigger];
    struct trigger_hit hit = {
        .probe = {.time_ns = now_ns,
                  .noticed_ns = now_ns,
                  .pid = c->call.pid,
                  .tid = c->tid,
                  .ip = c->call.ip,
                  .sp = c->call.sp,
                  .trigger = c->trigger,
                  .role = PROBE_ENTRY},
        .trigger = c->trigger,
        .duration_ns = now_ns - c->call.time_ns,
        .has_duration = true,
        .still_running = true,
    };
    for (size_t i = 0; i < PROBE_ARGS; i++)
        hit.probe.arg[i] = c->call.arg[i];
    call_match_tell(s->calls, c->tid, c->trigger, &c->call);
    hit.verdict = trigger_policy_hit(&e->policy, now_ns, true, hit.duration_ns, s->snapshots > 0);
    if (hit.verdict == TRIGGER_FIRE)
        s->snapshots++;
    if (s->callbacks.hit)
        s->callbacks.hit(s->arg, &hit);
}

/* Its frame is gone when the stack pointer is above it, or when something else stands where its return
 * address was. */
static bool was_left(const struct open_check *c, bool known, uint64_t sp)
{
    uint64_t word;
    if (known && sp > c->call.sp && sp - c->call.sp <= CALL_MATCH_STACK)
        return true;
    return c->call.return_address && thread_sp_word(c->reader, c->call.sp, &word) &&
           word != c->call.return_address;
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
    if (was_left(c, known, sp)) {
        c->gone = true;
        return false;
    }
    if (!known && ++c->tries < TRIES_MAX)
        return false;
    if (s->held || !trigger_policy_ready(&e->policy, now_ns, s->snapshots > 0))
        return false;
    fire(s, now_ns);
    return true;
}

/* Begins to look at the call that is open for longest beyond its limit. Returns when the next one will
 * be (0: none is open). */
static uint64_t next_check(struct trigger_set *s, uint64_t now_ns)
{
    uint64_t next = 0;
    for (uint32_t i = 0; i < s->entries.len; i++) {
        struct entry *e = &s->entries.data[i];
        struct call_open call;
        pid_t tid;
        uint64_t limit = limit_ns(s, e), due;
        if (limit == 0)
            continue;
        due = now_ns + limit; /* of one that begins right now */
        while (call_match_oldest(s->calls, i, &tid, &call)) {
            due = call.time_ns + limit;
            if (due > now_ns)
                break;
            struct thread_sp *reader;
            if (!trigger_if_holds(&e->trigger.condition, call.arg, NULL)) {
                call_match_pass_over(s->calls, tid, i, &call);
            } else if (thread_sp_new(tid, &reader, NULL) < 0) {
                call_match_forget(s->calls, tid);
            } else {
                s->check =
                    (struct open_check){.reader = reader, .trigger = i, .tid = tid, .call = call};
                return now_ns + STEP_NS;
            }
        }
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
    if (s->check.reader && look(s, now))
        end_check(s);
    if (!s->check.reader)
        next = next_check(s, now);
    if (next == 0)
        return;
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

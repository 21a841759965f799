/* The session of triggers that watch how long calls take: how far back the rings can look, so that a
 * call that hangs is caught in time, and what the watching costs. */
#include "core/session/session_priv.h"

#include "core/trigger/hit_cost.h"
#include "core/machine/proc_stat.h"

#include <unistd.h>

#define INTERVAL_NS 100000000u
#define RATE_NS     1000000000u
#define EARLY_HITS     1000u
#define EARLY_PERMILLE 500u
#define SHARE_MIN   0.02 /* of a CPU: switches are recorded too */

uint64_t session_cpu_time_ns(const struct session *s)
{
    uint64_t tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK), sum = 0;
    for (size_t i = 0; i < s->targets.len; i++) {
        struct proc_stat stat;
        if (proc_stat_read("/proc", target_pid(s->targets.data[i]), 0, &stat, NULL) == 0)
            sum += stat.cpu_ticks * tick;
    }
    return sum;
}

/* A ring is filled by what runs: while the target waits, it lasts. A snapshot with full rings tells more
 * than an estimate from the plan. */
static uint64_t lookback_ns(const struct session *s, double share)
{
    if (s->est_lookback_ns && !s->est_at_least)
        return s->est_lookback_ns;
    double planned = (double)s->plan_lookback_ns / share;
    double seen = (double)s->est_lookback_ns;
    return (uint64_t)(planned > seen ? planned : seen);
}

void session_mark_rate(const struct session *s, struct rate_mark *out)
{
    struct probe_stats stats;
    probe_stats(trigger_set_probe(s->triggers), &stats);
    *out = (struct rate_mark){.time_ns = loop_now_ns(s->loop),
                              .hits = stats.hits + stats.lost,
                              .calls = trigger_set_entered(s->triggers),
                              .ran_ns = session_cpu_time_ns(s)};
    for (size_t i = 0; i < s->targets.len; i++)
        out->waited_ns += proc_wait_ns("/proc", target_pid(s->targets.data[i]));
}

/* Threads that have ended take what they had with them. */
static uint64_t since(uint64_t from, uint64_t now)
{
    return now > from ? now - from : 0;
}

void session_judge_rate(const struct session *s, const struct rate_mark *from, struct call_rate_result *out)
{
    struct rate_mark now;
    session_mark_rate(s, &now);
    struct call_rate_seen seen = {.hits = now.hits - from->hits,
                                  .duration_ns = now.time_ns - from->time_ns,
                                  .calls = now.calls - from->calls,
                                  .watches_calls = trigger_set_watches_calls(s->triggers),
                                  .ran_ns = since(from->ran_ns, now.ran_ns),
                                  .waited_ns = since(from->waited_ns, now.waited_ns)};
    call_rate_judge(&seen, s->hit_ns, out);
}

/* What the triggers cost now, over the last second. */
static void note_rate(struct session *s, uint64_t now)
{
    if (s->rate_from.time_ns && now - s->rate_from.time_ns < RATE_NS)
        return;
    if (s->rate_from.time_ns)
        session_judge_rate(s, &s->rate_from, &s->rate);
    session_mark_rate(s, &s->rate_from);
}

/* While the recorder starts, triggers that take most of the target's time are found out soon: it shall not suffer for as
 * long as a fair measurement takes. */
static void refuse_early(struct session *s)
{
    struct call_rate_result rate;
    if (s->state != SESSION_PREPARING || s->setup.force || !s->probed.time_ns)
        return;
    session_judge_rate(s, &s->probed, &rate);
    if (rate.seen.hits < EARLY_HITS || rate.permille < EARLY_PERMILLE)
        return;
    s->rate = rate;
    session_refuse_hot(s);
}

/* How full a ring is that was empty when the targets had so much CPU time, as if all of it were spent on one CPU:
 * that ring is full first. */
static unsigned fill_permille(const struct session *s, uint64_t from_cpu, uint64_t cpu)
{
    double ran = cpu > from_cpu ? (double)(cpu - from_cpu) : 0;
    double fill = ran * 1000.0 / (double)s->plan_lookback_ns;
    return fill >= 1000.0 ? 1000 : (unsigned)fill;
}

/* Nothing would happen, and nobody would know why. */
static void say_if_stopped(struct session *s)
{
    for (size_t i = 0; i < s->targets.len && !s->setup.argv; i++) {
        struct proc_stat stat;
        long pid = (long)target_pid(s->targets.data[i]);
        if (proc_stat_read("/proc", target_pid(s->targets.data[i]), 0, &stat, NULL) == 0 && stat.state == 'T')
            session_log(s, SESSION_WARNING, "process %ld is stopped: there is nothing to record until it goes on "
                        "(kill -CONT %ld)", pid, pid);
    }
}

void session_watch_armed(struct session *s)
{
    uint64_t cpu = session_cpu_time_ns(s);
    say_if_stopped(s);
    s->fill_cpu_ns = s->emptied_cpu_ns = cpu ? cpu : 1;
}

void session_note_fill(struct session *s)
{
    uint64_t cpu = session_cpu_time_ns(s);
    bool known = s->plan_lookback_ns && s->fill_cpu_ns;
    s->pending_fill_permille = known ? (int)fill_permille(s, s->emptied_cpu_ns, cpu) : -1;
    s->emptied_cpu_ns = cpu;
}

static void note_fill(struct session *s, uint64_t cpu)
{
    if (s->state != SESSION_ARMED || !s->plan_lookback_ns || s->fill_permille >= 1000)
        return;
    s->fill_permille = fill_permille(s, s->fill_cpu_ns, cpu);
    if (s->fill_permille >= 1000)
        trigger_set_ring_full(s->triggers);
}

static void on_interval(void *arg)
{
    struct session *s = arg;
    uint64_t now = loop_now_ns(s->loop), cpu = session_cpu_time_ns(s);
    double share = 1;
    if (s->watch_ns && now > s->watch_ns)
        share = (double)(cpu - s->watch_cpu_ns) / (double)(now - s->watch_ns);
    /* The busier of the last two intervals: time comes in ticks of the kernel. */
    double of = share > s->watch_share ? share : s->watch_share;
    of = of > 1 ? 1 : of < SHARE_MIN ? SHARE_MIN : of;
    s->watch_share = share;
    s->watch_ns = now;
    s->watch_cpu_ns = cpu;
    s->watch_timer = 0;
    if (!s->triggers || s->state > SESSION_ARMED)
        return;
    note_rate(s, now);
    refuse_early(s);
    note_fill(s, cpu);
    if (s->plan_lookback_ns)
        trigger_set_lookback(s->triggers, lookback_ns(s, of));
    s->watch_timer = loop_add_timer(s->loop, now + INTERVAL_NS, on_interval, s);
}

static void on_cost(void *arg, uint64_t hit_ns)
{
    struct session *s = arg;
    s->hit_ns = hit_ns;
    session_notify(s);
}

void session_watch(struct session *s, const struct record_plan *plan)
{
    if (s->recorder == PLAN_STEP)
        return;
    if (s->setup.n_triggers)
        s->hit_cost = hit_cost_start(s->loop, on_cost, s);
    s->plan_lookback_ns = plan_lookback_ns(plan);
    on_interval(s);
}

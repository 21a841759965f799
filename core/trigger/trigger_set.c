#include "core/trigger/trigger_set_priv.h"

#include <stdlib.h>

#include "core/base/alloc.h"

/* ---- Life ---- */

struct trigger_set *trigger_set_new(struct loop *loop, const struct trigger_set_options *options,
                                    const struct trigger_set_callbacks *callbacks, void *arg)
{
    struct trigger_set *s = xcalloc(1, sizeof *s);
    s->loop = loop;
    s->callbacks = *callbacks;
    s->arg = arg;
    if (options)
        s->options = *options;
    if (s->options.executable)
        s->executable = xstrdup(s->options.executable);
    s->calls = call_match_new();
    s->member_keys = intern_new();
    return s;
}

void trigger_set_free(struct trigger_set *s)
{
    if (!s)
        return;
    loop_remove(s->loop, s->look_timer);
    loop_remove(s->loop, s->grace_timer);
    loop_remove(s->loop, s->startup_timer);
    trigger_set_end_open(s);
    probe_free(s->probe);
    for (size_t i = 0; i < s->processes.len; i++)
        trigger_set_process_free(s, s->processes.data[i]);
    vec_free(&s->processes);
    for (size_t i = 0; i < s->stale.len; i++)
        trigger_look_free(s->stale.data[i]);
    vec_free(&s->stale);
    for (size_t i = 0; i < s->entries.len; i++) {
        trigger_fini(&s->entries.data[i].trigger);
        free(s->entries.data[i].where);
    }
    vec_free(&s->entries);
    trigger_set_free_members(s);
    vec_free(&s->cut);
    call_match_free(s->calls);
    free(s->executable);
    free(s);
}

uint32_t trigger_set_add(struct trigger_set *s, struct trigger *t)
{
    struct entry e = {.trigger = *t, .status = TRIGGER_PENDING, .where = xstrdup("not armed yet")};
    trigger_policy_init(&e.policy, &t->when, 0);
    *t = (struct trigger){0};
    vec_push(&s->entries, e);
    return (uint32_t)(s->entries.len - 1);
}

/* ---- Someone else's places ---- */

void trigger_set_hand_over(struct trigger_set *s)
{
    if (s->options.handed_over)
        return;
    s->options.handed_over = true;
    for (size_t i = 0; i < s->processes.len; i++)
        probe_set_sites(s->probe, s->processes.data[i]->pid, NULL, 0, NULL);
    if (s->callbacks.sites)
        s->callbacks.sites(s->arg);
}

int trigger_set_tell_sites(struct trigger_set *s, const struct process *p, struct err *err)
{
    const struct probe_site *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < p->armed.len; i++) {
        const struct trigger_places *places = &p->armed.data[i].places;
        for (size_t k = 0; k < places->sites.len; k++) {
            const struct probe_site *site = &places->sites.data[k];
            first = first || !site->refused ? first : site;
            n += site->refused != NULL;
        }
    }
    int rc = first ? probe_can_break(s->probe, first, n, err) : 0;
    if (rc == 0 && s->callbacks.sites)
        s->callbacks.sites(s->arg);
    return rc;
}

void trigger_set_each_site(const struct trigger_set *s,
                           void (*fn)(void *arg, const struct probe_site *site), void *arg)
{
    for (size_t p = 0; p < s->processes.len; p++)
        for (size_t i = 0; i < s->processes.data[p]->armed.len; i++) {
            const struct armed *a = &s->processes.data[p]->armed.data[i];
            for (size_t k = 0; !armed_is_gone(a) && k < a->places.sites.len; k++)
                fn(arg, &a->places.sites.data[k]);
        }
}

void trigger_set_count_hit(struct trigger_set *s, uint32_t trigger, enum trigger_verdict verdict,
                           uint64_t time_ns)
{
    if (trigger < s->entries.len)
        trigger_policy_count(&s->entries.data[trigger].policy, verdict, time_ns);
}

/* ---- Out of the program, and in again ---- */

void trigger_set_take_out(struct trigger_set *s)
{
    trigger_set_drain(s);
    trigger_set_end_calls(s, false);
    s->out = true;
    for (size_t i = 0; s->probe && i < s->processes.len; i++)
        (void)probe_set_sites(s->probe, s->processes.data[i]->pid, NULL, 0, NULL);
    call_match_forget_all(s->calls); /* their returns will not be seen */
}

int trigger_set_put_back(struct trigger_set *s, struct err *err)
{
    int rc = 0;
    s->out = false;
    for (size_t i = 0; rc == 0 && i < s->processes.len; i++) {
        rc = trigger_set_arm_process(s, s->processes.data[i], err);
        rc = rc == MTUI_E_GONE ? 0 : rc; /* its end is told in its own way */
        if (rc == 0) /* a child has had what its parent had */
            trigger_set_look_for_rest(s, s->processes.data[i]);
    }
    if (rc < 0)
        trigger_set_take_out(s);
    return rc;
}

/* ---- Snapshots and questions ---- */

void trigger_set_hold(struct trigger_set *s, bool held)
{
    if (s->held && !held && s->probe) {
        uint64_t now = probe_now_ns(s->probe);
        for (size_t i = 0; i < s->entries.len; i++)
            if (s->entries.data[i].policy.armed_ns)
                s->entries.data[i].policy.armed_ns = now;
    }
    s->held = held;
    trigger_set_tell_late(s);
}

void trigger_set_snapshot_begin(struct trigger_set *s)
{
    s->snapshots++;
}

void trigger_set_snapshot_done(struct trigger_set *s)
{
    if (s->snapshots > 0)
        s->snapshots--;
}

size_t trigger_set_count(const struct trigger_set *s)
{
    return s->entries.len;
}

size_t trigger_set_processes(const struct trigger_set *s)
{
    return s->processes.len;
}

const struct trigger *trigger_set_get(const struct trigger_set *s, uint32_t i)
{
    return &s->entries.data[i].trigger;
}

enum trigger_status trigger_set_status(const struct trigger_set *s, uint32_t i)
{
    return s->entries.data[i].status;
}

const char *trigger_set_where(const struct trigger_set *s, uint32_t i)
{
    return s->entries.data[i].where;
}

const struct trigger_counts *trigger_set_counts(const struct trigger_set *s, uint32_t i)
{
    return &s->entries.data[i].policy.counts;
}

uint64_t trigger_set_entered(const struct trigger_set *s)
{
    return s->entered;
}

bool trigger_set_watches_calls(const struct trigger_set *s)
{
    for (size_t i = 0; i < s->entries.len; i++)
        if (trigger_needs_return(&s->entries.data[i].trigger))
            return true;
    return false;
}

void trigger_set_add_calls(const struct trigger_set *s, uint32_t i, struct trigger_calls *sum)
{
    const struct entry *e = &s->entries.data[i];
    sum->begun += e->begun;
    sum->left += call_match_left(s->calls, i);
    call_histogram_merge(&sum->durations, &e->durations);
}

void trigger_set_ring_full(struct trigger_set *s)
{
    for (size_t i = 0; i < s->entries.len; i++)
        s->entries.data[i].policy.ring_full = true;
}

void trigger_set_lookback(struct trigger_set *s, uint64_t lookback_ns)
{
    s->lookback_ns = lookback_ns;
}

bool trigger_set_exhausted(const struct trigger_set *s)
{
    for (size_t i = 0; i < s->entries.len; i++)
        if (!trigger_policy_exhausted(&s->entries.data[i].policy))
            return false;
    return s->entries.len > 0;
}

const struct probe *trigger_set_probe(const struct trigger_set *s)
{
    return s->probe;
}

void trigger_set_drain(struct trigger_set *s)
{
    if (s->probe) {
        probe_drain(s->probe);
        trigger_set_tell_lost(s);
    }
}

/* Calls that the end finds open: of the recording, of their program. A slow one is a hit that is still
 * running. */
#include "core/trigger/trigger_set_priv.h"

#include <time.h>

#define LOOKS   20       /* at threads that run, of all of them together */
#define LOOK_NS 1000000u /* between two */

/* A thread that ends so shortly before its process ends with it; one that goes alone has left its calls. */
#define WITH_PROCESS_NS 100000000u

/* How long a call counts as slow; 0: not watched, or what it will return decides. */
static uint64_t slow_ns(const struct entry *e)
{
    return trigger_if_needs_ret(&e->trigger.condition) ? 0 : e->trigger.when.slower_than_ns;
}

/* Whether nothing shows that the call was left. The thread may be gone: then it has to have been seen. */
static bool is_in_call(pid_t tid, const struct call_open *call, unsigned *looks)
{
    struct thread_sp *reader;
    uint64_t sp = 0;
    if (thread_sp_new(tid, &reader, NULL) < 0)
        return call->seen;
    bool known = thread_sp_read(reader, &sp);
    for (; !known && *looks > 0; --*looks) {
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        known = thread_sp_read(reader, &sp);
    }
    bool in = (known || call->seen) && !trigger_set_call_was_left(reader, call, known, sp);
    thread_sp_free(reader);
    return in;
}

static void fire_open(struct trigger_set *s, uint32_t trigger, uint64_t now_ns, unsigned *looks)
{
    const struct entry *e = &s->entries.data[trigger];
    struct call_open call;
    pid_t tid;
    while (call_match_oldest(s->calls, trigger, &tid, &call) && now_ns > call.time_ns + slow_ns(e)) {
        if (!trigger_if_holds(&e->trigger.condition, call.arg, NULL))
            call_match_pass_over(s->calls, tid, trigger, &call);
        else if (is_in_call(tid, &call, looks))
            trigger_set_fire_open(s, trigger, tid, &call, now_ns);
        else
            call_match_drop(s->calls, tid, trigger, &call);
    }
}

void trigger_set_end_calls(struct trigger_set *s, bool target_gone)
{
    unsigned looks = LOOKS;
    if (!s->probe || s->held || s->options.handed_over)
        return;
    probe_drain(s->probe);
    (void)trigger_set_distrust(s);
    for (size_t i = 0; target_gone && i < s->processes.len; i++)
        trigger_set_fire_cut(s, s->processes.data[i]);
    uint64_t now = probe_now_ns(s->probe);
    for (uint32_t i = 0; i < s->entries.len; i++)
        if (slow_ns(&s->entries.data[i]) > 0)
            fire_open(s, i, now, &looks);
}

/* ---- Threads that end ---- */

static void forget_cut(struct trigger_set *s, uint64_t before_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->cut.len; i++)
        if (s->cut.data[i].ended_ns >= before_ns)
            s->cut.data[kept++] = s->cut.data[i];
    s->cut.len = kept;
}

void trigger_set_on_thread_ended(struct trigger_set *s, pid_t pid, pid_t tid, uint64_t time_ns)
{
    struct process *p = trigger_set_find_process(s, pid);
    if (p && time_ns > p->thread_ended_ns)
        p->thread_ended_ns = time_ns;
    forget_cut(s, time_ns > WITH_PROCESS_NS ? time_ns - WITH_PROCESS_NS : 0);
    for (uint32_t i = 0; i < s->entries.len; i++) {
        const struct entry *e = &s->entries.data[i];
        struct cut_call cut = {.trigger = i, .tid = tid, .ended_ns = time_ns};
        if (slow_ns(e) > 0 && call_match_oldest_of(s->calls, tid, i, &cut.call) && cut.call.seen &&
            time_ns > cut.call.time_ns + slow_ns(e))
            vec_push(&s->cut, cut);
    }
    call_match_forget(s->calls, tid);
}

void trigger_set_fire_cut(struct trigger_set *s, const struct process *p)
{
    for (size_t i = 0; i < s->cut.len && !s->held; i++) {
        const struct cut_call *c = &s->cut.data[i];
        if (c->call.pid == p->pid && c->ended_ns + WITH_PROCESS_NS >= p->thread_ended_ns)
            trigger_set_fire_open(s, c->trigger, c->tid, &c->call, c->ended_ns);
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->cut.len; i++)
        if (s->cut.data[i].call.pid != p->pid)
            s->cut.data[kept++] = s->cut.data[i];
    s->cut.len = kept;
}

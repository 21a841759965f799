/* Inside of core/trigger/trigger_set: what its files share. trigger_set.c is its life and what it is asked;
 * trigger_set_arm.c resolves and arms, at the beginning and when the program changes; trigger_set_hits.c
 * takes what the probes report; trigger_set_members.c tells the functions of one trigger apart; trigger_set_open.c finds calls that do not return, trigger_set_end.c those
 * that the end finds open. */
#ifndef MTUI_CORE_TRIGGER_SET_PRIV_H
#define MTUI_CORE_TRIGGER_SET_PRIV_H

#include "core/trigger/call_histogram.h"
#include "core/trigger/call_match.h"
#include "core/base/intern.h"
#include "core/symbols/modules.h"
#include "core/trigger/trigger_look.h"
#include "core/trigger/trigger_resolve.h"
#include "core/trigger/thread_sp.h"
#include "core/trigger/trigger_set.h"
#include "core/base/vec.h"

struct entry {
    struct trigger trigger;
    struct trigger_policy policy;
    enum trigger_status status;
    char *where;
    uint64_t found_in_children;
    bool watched, unseen; /* of a process that has ended: see trigger_set_why_not_found */
    uint64_t begun;                  /* calls whose returns are watched: slower-than, @return */
    struct call_histogram durations; /* of those */
};

/* A trigger in one process. Places that a new program seems to lack stay armed (a uprobe sits in a
 * file, and its libraries may only not be mapped yet), but count as pending. */
struct armed {
    struct trigger_places places;
    bool missing;
    bool former; /* of a program that was replaced: a path of its may mean another file by now */
};

/* Whether the places may not be armed anew. */
static inline bool armed_is_gone(const struct armed *a)
{
    return a->missing && a->former;
}

struct process {
    pid_t pid;
    bool child; /* that was forked while its parent was watched */
    struct modules *modules; /* NULL: not exec'ed yet, or being looked at */
    bool unread;             /* since its exec: every trigger is looked for */
    bool replaced;           /* by that exec: what is found again is said */
    bool changed;            /* mappings since the last look began */
    bool unseen;             /* mappings that no look has come through for */
    bool explain;            /* the next look says why what pends is not there */
    struct trigger_look *look; /* in progress, or NULL */
    uint64_t thread_ended_ns;  /* when its last thread so far ended; 0: none has */
    VEC(struct armed) armed; /* by trigger */
};

/* Whether the trigger is not known to be in the process. */
static inline bool process_pends(const struct process *p, size_t trigger)
{
    const struct armed *a = &p->armed.data[trigger];
    return a->missing || a->places.sites.len == 0;
}

/* The open call that is suspected to hang, while it is found out whether it is still open: an exception
 * or longjmp may have left it and no call since have shown that. */
struct open_check {
    struct thread_sp *reader; /* NULL: no check goes on */
    uint32_t trigger;
    pid_t tid;
    struct call_open call;
    unsigned tries;
    bool gone;     /* its frame was left when last seen: its return is on its way, or there is none */
    bool only_see; /* it is slow by now, and fires later: seen, it counts also when the end comes first */
};

/* A slow call that its thread had not left when it ended. */
struct cut_call {
    uint32_t trigger;
    pid_t tid;
    struct call_open call;
    uint64_t ended_ns;
};

struct trigger_set {
    struct loop *loop;
    struct trigger_set_options options;
    char *executable;
    struct trigger_set_callbacks callbacks;
    void *arg;
    struct probe *probe;
    struct call_match *calls;
    VEC(struct entry) entries;
    VEC(struct trigger_member) members; /* by number */
    struct intern *member_keys;         /* trigger and function, in the same order */
    VEC(struct process *) processes;
    VEC(struct trigger_look *) stale; /* looks at programs that are no more */
    int look_timer, grace_timer, startup_timer;
    unsigned looks; /* in progress, stale ones included */
    unsigned snapshots; /* outstanding */
    bool held;
    bool out; /* trigger_set_take_out */
    uint64_t child_execs, child_refusals; /* said of so many */
    bool late_told; /* that what is born is watched late */
    uint64_t hits, entered, lost_told; /* entered: at the beginning of a call whose return is watched too */
    uint64_t lost_matched; /* losses until the open calls were last forgotten */
    uint64_t lookback_ns;  /* 0: not known */
    int open_timer;
    uint64_t look_round_ns; /* when open calls began to be looked at again */
    struct open_check check;
    VEC(struct cut_call) cut; /* of threads that have just ended: whether their process does is to be seen */
};

/* ---- trigger_set_say.c ---- */

/* Calls trigger_set.h's message and frees the sentence. */
void trigger_set_say(struct trigger_set *s, char *sentence);
/* Of what happens to process p. Of children there may be hundreds: the first time is said, then the 10th, the 100th …,
 * with the count. Frees the sentence. */
void trigger_set_say_of(struct trigger_set *s, const struct process *p, uint64_t *of_children, char *sentence);
/* Once, what the means in use see too late. */
void trigger_set_tell_late(struct trigger_set *s);
/* What a process that ends has to say to trigger_set_why_not_found. */
void trigger_set_note_unfound(struct trigger_set *s, const struct process *p);
/* Of a program that has started. */
void trigger_set_say_not_there(struct trigger_set *s, const struct entry *e, const struct err *why);
/* Of several processes, which do not have it. */
void trigger_set_say_lacking(struct trigger_set *s, size_t trigger);
/* Of one that was replaced. */
void trigger_set_say_gone(struct trigger_set *s, size_t trigger);

/* ---- trigger_set.c ---- */

/* Handed over: tells of the places. MTUI_E_NOTSUP when more of p's need a hardware breakpoint than there are. */
int trigger_set_tell_sites(struct trigger_set *s, const struct process *p, struct err *err);

/* ---- trigger_set_arm.c ---- */

void trigger_set_process_free(struct trigger_set *s, struct process *p);
struct process *trigger_set_find_process(const struct trigger_set *s, pid_t pid);

/* The probes of what is known to be in p, unless they are to be out. */
int trigger_set_arm_process(struct trigger_set *s, struct process *p, struct err *err);
/* Looks for what is not known to be there; that is armed when it is found. */
void trigger_set_look_for_rest(struct trigger_set *s, struct process *p);

/* What the target does. */
void trigger_set_on_event(void *arg, const struct probe_event *event);

/* ---- trigger_set_members.c ---- */

/* Gives each place of a process the number of its member. */
void trigger_set_number_members(struct trigger_set *s, struct process *p);
void trigger_set_free_members(struct trigger_set *s);

/* ---- trigger_set_hits.c ---- */

void trigger_set_on_hit(void *arg, const struct probe_hit *h);
void trigger_set_tell_lost(struct trigger_set *s);
/* Records were lost since the open calls were last known to be right: forgets them all. */
bool trigger_set_distrust(struct trigger_set *s);

/* ---- trigger_set_open.c ---- */

/* From now on open calls are looked after; idempotent. */
void trigger_set_watch_open(struct trigger_set *s);
void trigger_set_end_open(struct trigger_set *s);
/* A call that is open becomes a hit that is still running. */
void trigger_set_fire_open(struct trigger_set *s, uint32_t trigger, pid_t tid,
                           const struct call_open *call, uint64_t now_ns);
/* Its frame is gone when the stack pointer (if known) is above it, or when something else stands where its
 * return address was. */
bool trigger_set_call_was_left(const struct thread_sp *reader, const struct call_open *call, bool known,
                               uint64_t sp);

/* ---- trigger_set_end.c ---- */

void trigger_set_on_thread_ended(struct trigger_set *s, pid_t pid, pid_t tid, uint64_t time_ns);
/* Of a process that has ended, before it is forgotten. */
void trigger_set_fire_cut(struct trigger_set *s, const struct process *p);

#endif


/* Triggers armed on a target: specification → sites → probes → hits → the decision to fire.
 *
 * The one object that a recording session needs of all this. It resolves (trigger_resolve.h), arms
 * (probe.h), resolves anew after an exec and at each new mapping while something is pending,
 * matches returns to entries by stack pointer (call_match.h), and decides (trigger_policy.h). A slow
 * call fires at its return, or while it runs when the ring would lose its beginning or it has run for
 * TRIGGER_SET_OPEN_NS: so a hang is caught. Whether such a call was left by longjmp or an exception is
 * seen by the thread's stack pointer then. Its return does not fire again.
 *
 * All functions and callbacks run in the loop's thread. */
#ifndef MTUI_CORE_TRIGGER_SET_H
#define MTUI_CORE_TRIGGER_SET_H

#include "core/trigger/call_histogram.h"
#include "core/trigger/probe.h"
#include "core/trigger/trigger.h"
#include "core/trigger/trigger_policy.h"

struct trigger_set;
struct trigger_prepared;

#define TRIGGER_SET_OPEN_NS 10000000000u

/* What a trigger stands for: one function of a set (a regular expression, a name that several functions have), or
 * all it is. Hits carry its number (probe.member); numbers are given at arming and stay. */
struct trigger_member {
    uint32_t trigger;
    char *function; /* as named in the program; NULL: the trigger says it all */
};

/* One hit, as hits.tsv wants it. */
struct trigger_hit {
    struct probe_hit probe;
    uint32_t trigger;
    uint64_t duration_ns; /* of the call, at a return whose entry was seen; else 0 */
    bool has_duration;
    bool still_running; /* duration_ns so far: the call has not returned when the ring would lose it */
    enum trigger_verdict verdict; /* fire, or why not */
};

/* Calls of which entry and return are watched. All zero: none. */
struct trigger_calls {
    uint64_t begun;
    uint64_t left;                   /* without a return that was seen: by an exception, longjmp */
    struct call_histogram durations; /* of those that have returned */
};

enum trigger_status {
    TRIGGER_ARMED,
    TRIGGER_PENDING, /* its file is not mapped yet */
    TRIGGER_DISARMED /* the program was replaced and no longer has it, or the target ended */
};

struct trigger_set_callbacks {
    /* Every hit that counts; verdict TRIGGER_FIRE means: snapshot now. The set then counts hits as
     * busy until trigger_set_snapshot_done. */
    void (*hit)(void *arg, const struct trigger_hit *hit);
    /* One sentence: a trigger armed late, disarmed by an exec, a thread not covered, hits lost. */
    void (*message)(void *arg, const char *sentence);
    /* The target's threads, children and mappings changed (maps to be kept); NULL allowed. */
    void (*event)(void *arg, const struct probe_event *event);
    /* Once handed over: the places are others now (trigger_set_each_site). */
    void (*sites)(void *arg);
};

struct trigger_set_options {
    struct probe_options probe;
    bool may_pend;          /* run: what does not resolve yet waits instead of being refused */
    bool shared;            /* several processes: a trigger need not be in each (trigger_set_check) */
    bool handed_over;       /* from the start: see trigger_set_hand_over */
    struct trigger_prepared *prepared; /* names resolved beforehand, to be taken from; NULL: none */
    const char *executable; /* run: the program's path, resolved before it is mapped; else NULL */
};

struct trigger_set *trigger_set_new(struct loop *loop, const struct trigger_set_options *options,
                                    const struct trigger_set_callbacks *callbacks, void *arg);
void trigger_set_free(struct trigger_set *s);

/* Takes the trigger over (t becomes empty). Before trigger_set_arm. Returns its number. */
uint32_t trigger_set_add(struct trigger_set *s, struct trigger *t);

/* Resolves and arms all triggers in pid. With none, it only watches threads and mappings. Refuses
 * as trigger_resolve and probe_set_sites do; then nothing is armed. More processes may follow. */
int trigger_set_arm(struct trigger_set *s, pid_t pid, struct err *err);

/* With `shared`, once all processes are armed: refuses a trigger that none of them has, and says of the others
 * where they are not. */
int trigger_set_check(struct trigger_set *s, struct err *err);

/* From now on someone else watches the places (the recorder that steps, whose stops decide): probes are
 * taken out, names are still resolved, the sites callback tells of each change. */
void trigger_set_hand_over(struct trigger_set *s);
/* Every place that is resolved now, of all processes. */
void trigger_set_each_site(const struct trigger_set *s,
                           void (*fn)(void *arg, const struct probe_site *site), void *arg);
/* Counts a hit that someone else has seen and judged. */
void trigger_set_count_hit(struct trigger_set *s, uint32_t trigger, enum trigger_verdict verdict,
                           uint64_t time_ns);

/* While held, hits make nothing and are not counted; calls are still matched. Hits, and times (not-before), count
 * from when it is let go. */
void trigger_set_hold(struct trigger_set *s, bool held);

/* Takes every probe out of the program: nothing is hit, and nothing costs it time, until they are put back, which may fail
 * as trigger_set_arm does (then they are all out). A slow call that is open then is a hit that is still running, as
 * with trigger_set_end_calls; what is open is forgotten. Threads, programs and mappings are watched all the while. Not for
 * places that were handed over. */
void trigger_set_take_out(struct trigger_set *s);
int trigger_set_put_back(struct trigger_set *s, struct err *err);

/* The snapshot that a TRIGGER_FIRE asked for, or one by key, begins and is done: hits between the
 * two are counted as busy. A fire begins one by itself. */
void trigger_set_snapshot_begin(struct trigger_set *s);
void trigger_set_snapshot_done(struct trigger_set *s);

size_t trigger_set_count(const struct trigger_set *s);
/* Processes that are watched now; 0: the target has ended. */
size_t trigger_set_processes(const struct trigger_set *s);
const struct trigger *trigger_set_get(const struct trigger_set *s, uint32_t i);
enum trigger_status trigger_set_status(const struct trigger_set *s, uint32_t i);
/* Why a trigger was never found, from malloc; NULL when it was, or sat, unhit, where it was expected. */
char *trigger_set_why_not_found(const struct trigger_set *s, uint32_t i);
/* "libc.so.6!malloc at 0x7f12… (uprobe)", "12 functions", "pending: …"; owned by the set. */
const char *trigger_set_where(const struct trigger_set *s, uint32_t i);
const struct trigger_counts *trigger_set_counts(const struct trigger_set *s, uint32_t i);
/* Entries of calls whose returns are watched, also those hit while held; whether some trigger watches returns. */
uint64_t trigger_set_entered(const struct trigger_set *s);
bool trigger_set_watches_calls(const struct trigger_set *s);

/* Adds the calls seen so far, of a trigger that watches returns (@return, slower-than). */
void trigger_set_add_calls(const struct trigger_set *s, uint32_t i, struct trigger_calls *sum);
/* Members of all triggers, by number; owned by the set. */
size_t trigger_set_members(const struct trigger_set *s);
const struct trigger_member *trigger_set_member(const struct trigger_set *s, size_t i);
/* The ring is full now: triggers that wait for that may fire. */
void trigger_set_ring_full(struct trigger_set *s);
/* How far back the recording can look, as known now (0: not known): a call slower than asked that has
 * been open for three quarters of it fires while it is still running. */
void trigger_set_lookback(struct trigger_set *s, uint64_t lookback_ns);
/* True when every trigger has reached its max_snapshots. */
bool trigger_set_exhausted(const struct trigger_set *s);
const struct probe *trigger_set_probe(const struct trigger_set *s);
/* Hands over what is still in the rings (at the end of a recording). */
void trigger_set_drain(struct trigger_set *s);
/* The same when the recording is about to end, or the target has: a slow call that is open then is a hit
 * that is still running. May take 20 ms. */
void trigger_set_end_calls(struct trigger_set *s, bool target_gone);

#endif

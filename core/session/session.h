/* One recording, whole: the target, the triggers on it, the recorder, and the snapshot directory.
 *
 *   PREPARING  the target is held or found, names are resolved, the recorder gets ready
 *   ARMED      it records; hits, keys and requests make snapshots
 *   STOPPING   it was asked to finish, or the target has ended; what is outstanding is written
 *   ENDED      everything that could be kept is in the directory
 *   FAILED     it never got to record, or the recorder failed; what was written is kept
 *
 * Nothing here blocks, but that starting resolves the names of triggers (milliseconds for most
 * programs, a second for very big ones), unless they were prepared in a thread. When this process is killed, recorder, probes and everything
 * else go with it and the target runs on. All functions and callbacks run in the loop's thread, which
 * must be the main thread (the recorder dies with the thread that started it). Several sessions may
 * follow one another; at most one at a time is meant to record. */
#ifndef MTUI_CORE_SESSION_H
#define MTUI_CORE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/loop.h"
#include "core/record/recorder.h"
#include "core/session/session_setup.h"
#include "core/session/snapshot_dir.h"
#include "core/trigger/call_rate.h"
#include "core/machine/target.h"
#include "core/trigger/trigger_policy.h"
#include "core/trigger/trigger_set.h"

struct session;

enum session_state { SESSION_PREPARING, SESSION_ARMED, SESSION_STOPPING, SESSION_ENDED, SESSION_FAILED };
const char *session_state_name(enum session_state s);

/* Why it ended: the sentence in one word, for programs. */
enum session_end {
    SESSION_END_NONE, /* it has not */
    SESSION_END_STOPPED,
    SESSION_END_DURATION,
    SESSION_END_SNAPSHOTS, /* as many as asked for */
    SESSION_END_SNAPSHOT_FAILED, /* and no other was to come */
    SESSION_END_TARGET_EXITED,
    SESSION_END_TARGET_KILLED, /* of a program that mtui started; of others the signal is not known */
    SESSION_END_NOT_STARTED,   /* `run`: the program cannot be executed */
    SESSION_END_REPLACED,      /* exec, by a program without the triggers */
    SESSION_END_TOO_HOT,
    SESSION_END_DISK_FULL, /* or about to be */
    SESSION_END_RECORDER
};
/* "stopped", "target-exited", … */
const char *session_end_name(enum session_end e);

/* A snapshot of this session. */
struct session_snapshot {
    unsigned number;      /* 0: the end file */
    char *data;           /* path of its perf.data; NULL when it was deleted */
    char *trigger;        /* what caused it: a SPEC, "key", "end" */
    const char *function; /* the one of the trigger's functions that it was (snapshot_hit); or NULL */
    pid_t pid;            /* of the hit, else the only target; 0: not known */
    char *comm;           /* that process's name then; or NULL */
    pid_t tid;            /* of the hit, else 0 */
    bool has_args, has_ret; /* what the registers held is known: of the hit's function */
    uint64_t arg1, arg2, ret;
    uint64_t time_ns;     /* of the hit or key, recording's clock; 0 unknown */
    int64_t unix_ns;      /* the same on the wall clock */
    uint64_t duration_ns; /* of the call that fired, where it was measured; else 0 */
    bool has_duration;    /* it was measured */
    bool still_running;   /* it had not returned: duration_ns is so far */
    uint64_t bytes;
    uint64_t hit_to_command_ns; /* from the hit to the command written; 0 without a hit */
    int est_fill_permille;      /* estimate: how full the ring was when it was asked for; −1: not known */
    /* `step`: the window in it that ended last, and why (step_end_name); NULL: none has ended. */
    const char *window_end;
    bool window_short; /* it is not the whole call */
    uint64_t window_instructions, window_wall_ns;
    char *remark;         /* truncated, not closed properly …; or NULL */
};

/* A line of the log. */
enum session_level { SESSION_INFO, SESSION_WARNING, SESSION_ERROR };
struct session_line {
    int64_t unix_ns;
    enum session_level level;
    const char *text; /* escaped */
};
#define SESSION_LOG_LINES 1000 /* older ones are forgotten */

/* A hit, as shown. */
struct session_hit {
    struct snapshot_hit hit; /* its strings belong to the session */
    int64_t unix_ns;
    enum trigger_verdict verdict;
    bool has_duration;
    bool still_running; /* see trigger_set.h */
    pid_t pid;          /* 0: not known */
    bool has_args, has_ret; /* the hit's arg1 and arg2 are its function's; ret is */
    uint64_t ret;
};
#define SESSION_HITS 256 /* older ones are only in hits.tsv */

/* What can be hit: a trigger, or each function of one that stands for several. */
struct session_member {
    const char *trigger; /* as given */
    char *function;      /* or NULL */
    uint64_t hits;       /* all that count */
};

struct session_callbacks {
    void (*changed)(void *arg); /* something that the screen shows; at most once a round of the loop */
    void (*snapshot)(void *arg, const struct session_snapshot *s);
    void (*ended)(void *arg); /* ENDED or FAILED: last call */
};

/* What is known of the machine; probed once by the program (capability_probe, perf_version_probe). Must
 * outlive the session. */
struct session_machine {
    const struct capabilities *caps;
    const struct perf_version *version; /* NULL: there is no perf that works */
    const char *xdg_state_home, *home; /* for the root of recordings; NULL: not set */
    bool interactive;                  /* someone can press keys */
    struct trigger_prepared *prepared; /* the triggers, resolved beforehand (trigger_prepare); or NULL */
    const char *program;               /* of mtui, which is the recorder `step`; NULL: this one */
};

/* Starts. The setup is copied. Refused at once: options that make no sense together, a target that is
 * not there or may not be traced, a name that does not resolve (with the nearest ones), a directory
 * that cannot be used, a perf that is not there. Nothing is left behind then. */
int session_start(struct session **out, struct loop *loop, const struct session_setup *setup,
                  const struct session_machine *machine, const struct session_callbacks *callbacks,
                  void *arg, struct err *err);

/* Before the end this cuts off what is outstanding. leave: what becomes of a program that mtui started
 * and that still runs. */
void session_free(struct session *s, enum target_leave leave);

/* Requests; they return as recorder_* do, and what comes of them shows in the status. */
/* While one is being written, the next is taken right after it, before any hit gets its turn. */
int session_snapshot(struct session *s, struct err *err);
int session_toggle_enabled(struct session *s, struct err *err);
int session_ping(struct session *s, struct err *err);
int session_give_up(struct session *s, struct err *err); /* waiting for the outstanding snapshot */
/* Finishes and keeps everything; called again it presses, as recorder_stop does. */
int session_stop(struct session *s, struct err *err);
/* The same for a reason of the program's own, which is then how it ended. */
int session_stop_since(struct session *s, enum session_end end, const char *why, struct err *err);
/* The triggers' probes leave the program, and no trigger fires any more; the recording goes on. Called again, it puts
 * them back, or fails as arming does and leaves them out. */
int session_disarm(struct session *s, struct err *err);
/* Deletes snap-N of this session. */
int session_delete(struct session *s, unsigned number, struct err *err);

/* ---- What the screen shows; pointers live until the loop runs again ---- */

struct session_status {
    enum session_state state;
    const char *sentence;       /* ENDED, FAILED: what happened; else NULL */
    enum session_end end;       /* the same in a word */
    bool too_hot;               /* FAILED because the trigger costs too much; `force` goes on */
    enum plan_recorder recorder;
    const char *recorder_why;   /* a sentence */
    enum plan_mode mode;
    uint64_t ring_bytes;
    uint64_t started_ns, ended_ns; /* loop clock; 0: not yet */
    int64_t started_unix_ns;
    uint64_t armed_ns;          /* loop clock; 0: not yet */
    bool disarmed;
    bool has_recorder;
    struct recorder_status rec; /* valid with has_recorder */
    uint64_t hits, fired, counted; /* counted: hits that made no snapshot */
    uint64_t early, not_nth; /* at the end: hits before what was asked for, and others than the Nth */
    uint64_t unmet, fast; /* at the end: calls that the condition did not hold for, or that were not slow enough */
    bool watches_calls;         /* some trigger watches returns */
    struct trigger_calls calls; /* at the end: of those that do */
    uint64_t hit_to_command_ns; /* of the last snapshot by a trigger; 0: none yet */
    unsigned est_fill_permille; /* of the ring that is filled most, an estimate from the plan; 1000: full */
    uint64_t est_full_ns;       /* estimate: when the ring was full, loop clock; 0: unknown */
    uint64_t est_lookback_ns;   /* estimate from the last snapshot of full rings; 0: unknown */
    struct call_rate_result rate; /* what the triggers cost, lately; duration_ns 0: not known */
    uint64_t hit_ns;            /* what a hit costs here, measured; 0: not known */
    bool est_at_least;          /* no snapshot had full rings: the longest span of any */
    unsigned est_from;          /* the snapshot that the estimate comes from */
    uint64_t maps_left_out;     /* files and code that could not be kept */
    const char *maps_note;
};

void session_get_status(struct session *s, struct session_status *out);
const struct session_setup *session_get_setup(const struct session *s);
struct snapshot_dir *session_dir(const struct session *s);
struct target *session_target(const struct session *s);             /* the first */
const struct trigger_set *session_triggers(const struct session *s); /* NULL after the end */

size_t session_snapshot_count(const struct session *s);
const struct session_snapshot *session_snapshot_at(const struct session *s, size_t i);
/* The time that a decoded snapshot spans, for the estimate of the look-back. */
void session_note_span(struct session *s, unsigned number, uint64_t span_ns);

/* Newest last. total: lines ever, the forgotten ones included. */
uint64_t session_log_total(const struct session *s);
size_t session_log_count(const struct session *s);
struct session_line session_log_at(const struct session *s, size_t i);
/* Those of all triggers that were found so far, in no order. */
size_t session_member_count(const struct session *s);
const struct session_member *session_member_at(const struct session *s, size_t i);
size_t session_hit_count(const struct session *s);
const struct session_hit *session_hit_at(const struct session *s, size_t i);
/* Adds a line of the program's own to the log. */
void session_log(struct session *s, enum session_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif

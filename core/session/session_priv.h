/* Inside of core/session/session: what its files share. session.c starts and ends; session_requests.c takes
 * requests; session_events.c is told by recorder, triggers and target; session_notes.c keeps log, hits,
 * snapshots and files; session_watch.c watches how long calls take; session_status.c
 * answers what it is asked; session_step.c is the `step` recorder's part. */
#ifndef MTUI_CORE_SESSION_PRIV_H
#define MTUI_CORE_SESSION_PRIV_H

#include "core/session/maps_log.h"
#include "core/trigger/perf_clock.h"
#include "core/session/session.h"
#include "core/base/vec.h"

#define SESSION_MAX_HIT_LINES 200000 /* of hits that made no snapshot, in hits.tsv */

struct log_line {
    int64_t unix_ns;
    enum session_level level;
    char *text;
};

/* A capture that waits since another of the same process was made a moment ago. */
struct capture_due {
    pid_t pid;
    uint64_t time_ns;
    const char *reason;
};

/* What triggers and targets had come to at a moment. */
struct rate_mark {
    uint64_t time_ns; /* loop clock; 0: not taken yet */
    uint64_t hits, calls, ran_ns, waited_ns;
};

struct session {
    struct loop *loop;
    struct session_setup setup;
    struct session_machine machine;
    struct session_callbacks cb;
    void *arg;

    enum session_state state;
    char sentence[512]; /* of the end; "" before */
    enum session_end end;
    bool ok, too_hot, disarmed, stop_asked, target_gone;
    uint64_t child_execs; /* of programs of children */
    enum plan_recorder recorder;
    enum plan_mode mode;
    char why[256];
    uint64_t ring_bytes;

    struct snapshot_dir *dir;
    struct session_info info;
    struct maps_writer *maps;
    struct perf_clock *clock;
    VEC(struct target *) targets;
    struct trigger_set *triggers;
    struct recorder *rec;

    uint64_t started_ns, armed_ns, ended_ns;  /* loop clock */
    int64_t started_unix_ns;
    struct rate_mark probed;                  /* when the triggers were armed */
    uint64_t anchor_perf_ns;                  /* perf's clock and the wall clock at one moment */
    int64_t anchor_unix_ns;
    uint64_t enabled_perf_ns;                 /* perf's clock: what came before is not recorded */
    int duration_timer, hot_timer, notify_timer, end_timer, maps_timer, key_timer;

    char key[4];                  /* "key": the trigger of a snapshot asked for by hand */
    bool key_waits;               /* asked for by hand while another snapshot was outstanding */
    bool firing;                  /* a snapshot is outstanding; pending is what caused it */
    struct session_hit pending;
    struct step_message step_window; /* the one that ended last and is in no snapshot yet; tid 0: none */
    char *step_dropped;              /* what the next snapshot lacks; NULL: nothing */
    bool step_short, step_cut;       /* it is not the whole call; its beginning is lost */
    uint64_t requested_perf_ns;
    uint64_t pending_perf_ns;     /* of the hit, on perf's clock whatever the recording's is */
    uint64_t hits, fired, counted, unmet, fast, early, not_nth;
    struct trigger_calls calls;   /* of all triggers, at the end */
    bool watches_calls;
    uint64_t hit_lines;
    uint64_t hit_to_command_ns;

    VEC(struct session_snapshot) snapshots;
    VEC(struct session_hit) hit_ring; /* at most SESSION_HITS, then hit_first moves */
    size_t hit_first;
    VEC(struct session_member) members; /* by their number in triggers, which they outlive */
    VEC(struct log_line) log;         /* at most SESSION_LOG_LINES, then log_first moves */
    size_t log_first;
    uint64_t log_total;
    VEC(struct capture_due) due;
    uint64_t last_capture_ns;         /* loop clock */

    uint64_t est_lookback_ns;
    unsigned est_from;
    bool est_at_least;

    struct hit_cost *hit_cost;    /* being measured; or NULL */
    uint64_t hit_ns;              /* what a hit costs; 0: not known */
    int watch_timer;
    uint64_t plan_lookback_ns;    /* of a busy CPU; 0: no ring */
    uint64_t watch_ns, watch_cpu_ns; /* loop clock and the targets' CPU time at the last look */
    struct call_rate_result rate; /* of the last second; duration_ns 0: not known */
    unsigned fill_permille;       /* of a ring, as estimated; 0 also: not known */
    uint64_t fill_cpu_ns;         /* CPU time of the targets when it began to fill; 0: not yet */
    uint64_t emptied_cpu_ns;      /* and when the last snapshot took what was in it */
    int pending_fill_permille;    /* when the outstanding snapshot was asked for; −1: not known */
    struct rate_mark rate_from;   /* when it began */
    double watch_share;           /* of a CPU that the targets had before it */
    struct maps_writer_stats maps_stats;
};

/* session_events.c */
extern const struct recorder_events session_recorder_events; /* arg to be filled in */
extern const struct trigger_set_callbacks session_trigger_callbacks;
extern const struct target_callbacks session_target_callbacks;

/* session.c */
void session_notify(struct session *s);
/* Begins to finish; a NULL sentence leaves it to the recorder to say how it ended. */
void session_begin_stop(struct session *s, enum session_end end, const char *sentence);
void session_on_recorder_ready(struct session *s);
/* Ends before it begins, since the triggers cost too much: s->rate says what. */
void session_refuse_hot(struct session *s);
/* Probes that leave the program one by one (hit_output.h) may stay for a while when they are taken out. */
void session_say_probes_left(struct session *s);
/* The recorder is done, or there will be none: ENDED or FAILED follows in the next round. */
void session_finish_later(struct session *s, bool ok, enum session_end end, const char *sentence);

/* session_watch.c */
void session_watch(struct session *s, const struct record_plan *plan);
/* It is armed: the ring fills from now on. */
void session_watch_armed(struct session *s);
/* A snapshot was asked for: notes how full the ring is, which is empty then. */
void session_note_fill(struct session *s);
/* What the triggers have cost since a mark, which is taken then. */
void session_mark_rate(const struct session *s, struct rate_mark *out);
void session_judge_rate(const struct session *s, const struct rate_mark *from, struct call_rate_result *out);
/* CPU time of all targets so far. */
uint64_t session_cpu_time_ns(const struct session *s);

/* session_notes.c */
/* What a hit was of; NULL: no such member. Its strings stay. */
struct session_member *session_member_of(struct session *s, uint32_t member);

/* session_step.c */
/* Starts the recorder that steps. */
int session_start_step(struct session *s, const struct record_plan *plan,
                       const struct recorder_events *events, struct err *err);
/* The places of the triggers have changed: the recorder gets the new list. */
void session_hand_sites(void *session);
void session_on_step(void *session, const struct step_message *m);
/* What the snapshot that has come tells of the window that ended last. */
void session_take_window(struct session *s, struct session_snapshot *snap);

/* session_events.c */
/* Free space at which a recording of everything, written that fast, is ended. */
uint64_t session_disk_reserve(uint64_t bytes_per_s);
/* Slow calls that are open now are hits: the end is near. Idempotent. */
void session_end_calls(struct session *s);
void session_fire(struct session *s, const struct session_hit *hit, uint64_t perf_ns);

/* session_notes.c */
int64_t session_unix_now(void);
int64_t session_unix_of(const struct session *s, uint64_t perf_ns);
void session_fill_info(struct session *s);
void session_note_hit(struct session *s, const struct session_hit *hit);
void session_write_hit(struct session *s, const struct session_hit *hit);
void session_add_snapshot(struct session *s, const struct recorder_snapshot *r);
void session_capture(struct session *s, pid_t pid, uint64_t time_ns, const char *reason);
/* The only process that is traced; 0: there are several. */
pid_t session_only_pid(const struct session *s);
void session_capture_all(struct session *s, uint64_t time_ns, const char *reason);
void session_free_notes(struct session *s);

#endif

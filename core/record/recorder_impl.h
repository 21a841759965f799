/* The recorder's inside, shared by the recorder_*.c files only.
 *
 * recorder.c           start, readiness, the queue of commands, requests
 * recorder_snapshot.c  one snapshot from the request to its file
 * recorder_end.c       stopping, the child's end, the last files
 * recorder_status.c    heartbeat, sizes, what the screen shows */
#ifndef MTUI_CORE_RECORDER_IMPL_H
#define MTUI_CORE_RECORDER_IMPL_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/record/aux_file.h"
#include "core/machine/child.h"
#include "core/record/recorder.h"
#include "core/base/tail.h"
#include "core/base/vec.h"

enum recorder_snap_stage {
    SNAP_NONE,
    SNAP_QUEUED,  /* the command waits for the answer to another one */
    SNAP_SENT,    /* command or signal sent: waiting for the ack, the Dump line, or idleness */
    SNAP_BARRIER, /* acked: a ping behind it, whose ack says that the data is written */
    SNAP_CARVING, /* the file is being made */
};

struct recorder_snap {
    enum recorder_snap_stage stage;
    bool given_up; /* nobody waits for it any longer, but it may still come */
    bool is_end;   /* asked for by ourselves, because the recording ends */
    char *reason;
    uint64_t requested_ns, sent_ns;
    unsigned idle_checks; /* times in a row that perf was seen idle without a result */
    bool nudged;
    int timer;
};

/* Copying a snapshot out of the growing file: in a thread, since it may be large. */
struct recorder_carve {
    struct recorder *r; /* NULL: the recorder was freed meanwhile */
    struct loop *loop;
    pthread_t thread;
    struct aux_file *aux; /* the recorder's; nobody else touches it until the thread is joined */
    char *src, *dst;
    int rc;
    struct aux_snapshot got;
    struct err err;
};

struct recorder {
    struct loop *loop;
    struct recorder_events events;
    enum recorder_state state;
    bool enabled;
    uint64_t started_ns;

    enum plan_recorder kind;
    enum plan_mode mode;
    const char *who; /* "perf", or what sentences call the other one */
    pid_t target; /* the first process or thread */
    char *dir;    /* output_dir */
    char *base;   /* output_dir/perf.data */
    char *data;   /* the file itself: base, or base/data with --kcore */
    char *command;
    char *mechanism;
    struct control_row row;    /* what perf was started for */
    struct control_row active; /* what is used: row, or its signals */

    struct child *child;
    struct control *control; /* NULL without --control */
    struct tail *tail;
    VEC(enum control_command) queue; /* commands that wait for the outstanding one */
    int ready_timer, heartbeat_timer, finish_timer;
    unsigned idle_unanswered; /* checks in a row: perf idle, ping not answered */

    struct recorder_snap snap;
    struct recorder_carve *carve; /* the one that is running, or NULL */
    struct aux_file *aux;
    unsigned numbers;   /* snap-N directories made */
    unsigned snapshots; /* finished and asked for */
    char *loose_dump;   /* a Dump that nobody asked for: the end file, if the end follows */
    uint64_t last_write_ns;

    bool stop_requested, finish_sent, was_continued;
    int finish_signal;      /* it was asked by this to finish; 0: by a command, or not yet */
    uint64_t finish_due_ns; /* loop clock: by then `stop` should have been written; 0: not yet asked */
    uint64_t pressed_ns; /* loop clock: asked again to stop, and a signal sent; 0: not yet */
    bool child_ended, finalized;
    bool target_gone; /* at the end */
    bool end_written; /* a whole file at the end: what was in the ring is in it */
    struct child_end end;
    char sentence[512];
    int complaint; /* perf_message_find's number, -1 for none */
    bool was_ready;
    bool ping_asked;           /* by the user: worth a line in the log */
    struct step_message window; /* `step`: the last word about a window in progress */
    struct control_stats acks; /* kept when the control is gone */

    /* what was last sent, for the screen */
    char last_command[16];
    uint64_t last_sent_ns, last_ack_ns;
    bool has_command, last_acked, last_overdue;
    uint64_t heartbeats_ns[RECORDER_HEARTBEATS]; /* a ring */
    size_t n_heartbeats;
    uint64_t written_files, written_base; /* bytes of finished snapshots, of the growing file */
    uint64_t rate, rate_bytes, rate_ns, disk_free;
};

/* recorder.c */
void recorder_log(struct recorder *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void recorder_set_state(struct recorder *r, enum recorder_state state);
/* Sends c now or when the outstanding command is answered; first: before others that wait. */
void recorder_queue(struct recorder *r, enum control_command c, bool first);
int recorder_signal(struct recorder *r, int sig, struct err *err);
bool recorder_is_ready(const struct recorder *r);
/* perf sits in its main loop and every signal sent to it has been dealt with. */
bool recorder_perf_is_idle(const struct recorder *r);

/* recorder_snapshot.c */
int recorder_begin_snapshot(struct recorder *r, const char *reason, bool is_end, struct err *err);
void recorder_snapshot_sent(struct recorder *r, uint64_t sent_ns);
void recorder_snapshot_acked(struct recorder *r);      /* `snapshot` was answered */
void recorder_snapshot_ping_acked(struct recorder *r); /* a ping was answered */
void recorder_snapshot_dump(struct recorder *r, const char *path);
/* The child has ended: takes what is there. True when a carve is running: called again after it. */
bool recorder_snapshot_settle(struct recorder *r);
void recorder_abandon_carve(struct recorder *r); /* waits for the thread; its result is dropped */
void recorder_snapshot_failed(struct recorder *r, const char *sentence);
/* Moves a finished perf.data (file or directory) to snap-N (or snap-end) and reports it. */
bool recorder_keep_file(struct recorder *r, const char *path, bool is_end, const char *remark);

/* recorder_end.c */
void recorder_finish(struct recorder *r);
void recorder_finish_overdue(struct recorder *r);
void recorder_child_ended(struct recorder *r);
void recorder_finalize(struct recorder *r);

/* recorder_status.c */
void recorder_start_heartbeat(struct recorder *r);
void recorder_note_sent(struct recorder *r, const char *what, uint64_t sent_ns);
void recorder_note_heartbeat(struct recorder *r, uint64_t took_ns, bool late);
void recorder_measure(struct recorder *r);

#endif

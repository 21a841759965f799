/* One recording: the child that records (perf, or mtui's own stepper, which speaks the same
 * protocol), from its start to its last file, over the event loop. Nothing here blocks.
 *
 *   SPAWNED   the child runs, not yet ready for commands or signals
 *   PINGED    it has answered (or, without commands, has been seen waiting for its events)
 *   ENABLED   it records; snapshots may be asked for
 *   DISABLED  it is paused by recorder_disable
 *   SNAPSHOT  one snapshot is being written
 *   STOPPING  it was asked to finish
 *   ENDED     it has finished, its files are in place
 *   FAILED    it ended by itself in error, or never got ready; what it wrote is kept
 *
 * Files: the child writes output_dir/perf.data; every finished snapshot is
 * output_dir/snap-N/perf.data (N from 1, in order). In trigger mode a `sample` recording leaves one
 * more file when it stops, the state at the end: output_dir/snap-end/perf.data. The modes ring and
 * whole have exactly one file, snap-1/perf.data, when the recording has ended. */
#ifndef MTUI_CORE_RECORDER_H
#define MTUI_CORE_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/record/control.h"
#include "core/base/err.h"
#include "core/base/loop.h"
#include "core/record/plan.h"
#include "core/record/step_message.h"

struct recorder;

enum recorder_state {
    RECORDER_SPAWNED,
    RECORDER_PINGED,
    RECORDER_ENABLED,
    RECORDER_DISABLED,
    RECORDER_SNAPSHOT,
    RECORDER_STOPPING,
    RECORDER_ENDED,
    RECORDER_FAILED
};

const char *recorder_state_name(enum recorder_state s); /* "spawned" ... */

struct recorder_snapshot {
    unsigned number;    /* N of snap-N; 0: the end file of trigger mode */
    bool is_end;        /* written because the recording ended, not asked for */
    const char *reason; /* as given to recorder_snapshot; "end" for is_end */
    const char *path;   /* .../snap-N/perf.data */
    uint64_t bytes;
    uint64_t requested_ns, sent_ns, done_ns; /* loop clock; 0 for requested and sent of is_end */
    const char *remark; /* NULL, or a sentence: truncated, not closed properly, ... */
};

/* Every callback may call any recorder_* function but recorder_free. Strings are valid during the
 * call, are escaped, and have no newline. NULL callbacks are skipped. */
struct recorder_events {
    void (*state)(void *arg, enum recorder_state state);
    void (*log)(void *arg, const char *line); /* for the Log pane and session log, no time stamp */
    void (*snapshot)(void *arg, const struct recorder_snapshot *s);
    /* Once a second, when bytes written, rate and free space are new; NULL allowed. */
    void (*measured)(void *arg);
    /* `step` only: what the recorder says of hits and of its clock (core/record/step_message.h). */
    void (*step)(void *arg, const struct step_message *m);
    /* The outstanding snapshot came to nothing (given up, nothing written, the child died). */
    void (*snapshot_failed)(void *arg, const char *reason, const char *sentence);
    /* Last call of all: every file is in place. ok: by our request or by the target's end. */
    void (*ended)(void *arg, bool ok, const char *sentence);
    void *arg;
};

struct recorder_options {
    const struct record_plan *plan;
    const struct perf_version *version;
    const struct pmu_intel_pt *caps; /* NULL: none */
    const struct plan_argv *argv;    /* NULL: plan_perf_argv; `step` gives its own command */
};

/* Starts the child (call from the main thread: it dies with the thread that started it). output_dir
 * must exist and hold no perf.data. MTUI_E_NOENT: no such program; MTUI_E_STATE: a recording is
 * there; MTUI_E_IO/PERM: the directory cannot be written. */
int recorder_new(struct loop *loop, const struct recorder_options *options,
                 const struct recorder_events *events, struct recorder **out, struct err *err);

/* Before the end this kills the child (SIGTERM, then SIGKILL after one second at most): for the way
 * out of a failing program. Normal: recorder_stop, wait for `ended`, then this. */
void recorder_free(struct recorder *r);

/* Requests. Each returns 0 when it was accepted; what comes of it arrives by callback.
 * MTUI_E_STATE: not now (the sentence says why), MTUI_E_BUSY: one is outstanding already,
 * MTUI_E_NOTSUP: this mode or mechanism has no such thing, MTUI_E_GONE: the child has ended. */
/* With `step`, while the snapshot of a window in progress is outstanding: ends that window now. */
int recorder_snapshot(struct recorder *r, const char *reason, struct err *err);
int recorder_enable(struct recorder *r, struct err *err);
int recorder_disable(struct recorder *r, struct err *err);
int recorder_ping(struct recorder *r, struct err *err);
/* First call: finish and keep everything; an outstanding snapshot is finished first. The next: does not wait for
 * that snapshot any longer, if it was. The next: SIGTERM, by which nothing is lost. One that comes RECORDER_PRESS_NS
 * after that, and not before: SIGKILL (`step`: SIGTERM again, since its program would die with it). A child that was
 * stopped by someone (SIGSTOP) does not answer: from the first call on it is continued, so that it can finish. */
#define RECORDER_PRESS_NS 2000000000u
int recorder_stop(struct recorder *r, struct err *err);
/* Reports what it has said by now, without waiting for the loop to come to it. */
void recorder_drain(struct recorder *r);
/* Gives up waiting for the outstanding snapshot; the recording goes on. When it comes after all it
 * is kept and reported with a remark, and until then no other can be asked for. */
int recorder_give_up(struct recorder *r, struct err *err);

#define RECORDER_HEARTBEATS 64
#define RECORDER_TAIL_LINES 16

/* What the Record screen shows. Strings belong to the recorder and live until the next call that
 * runs the loop. */
struct recorder_status {
    enum recorder_state state;
    bool enabled;
    pid_t pid;
    bool ctlfd;            /* commands are answered; false: signals */
    const char *mechanism; /* "control fd: snapshot and stop", "SIGUSR2 and SIGTERM", ... */
    const char *why;       /* one sentence */
    const char *command;   /* the command line, shell-quoted */
    uint64_t started_ns;   /* loop clock, as all times here */

    bool has_command;         /* something was sent */
    const char *last_command; /* "ping", "snapshot", "SIGUSR2" ... */
    uint64_t last_sent_ns;
    bool last_acked; /* false with has_command: waiting, or a signal */
    bool last_overdue;
    uint64_t last_ack_ns; /* time the answer took */
    struct control_stats acks;
    uint64_t heartbeats_ns[RECORDER_HEARTBEATS]; /* time each ping took, oldest first; UINT64_MAX:
                                                    late */
    size_t n_heartbeats;

    pid_t step_tid;             /* `step`: a thread that is being stepped; 0: none */
    uint64_t step_instructions; /* of its window so far */
    uint64_t step_wall_ns;

    bool snapshot_busy;
    const char *snapshot_reason;
    uint64_t snapshot_elapsed_ns;
    unsigned snapshots;     /* finished, without the end file */
    uint64_t last_write_ns; /* last snapshot: request to command written */

    uint64_t bytes_written;                /* all files of this recording */
    uint64_t bytes_per_s;                  /* over the last heartbeat */
    uint64_t disk_free;                    /* bytes, UINT64_MAX: unknown */
    bool disk_full;                        /* the recorder could not write for want of space */
    const char *tail[RECORDER_TAIL_LINES]; /* the child's last lines, oldest first, escaped */
    size_t n_tail;
    bool target_gone;                      /* when the recording ended, its target had */
    const char *sentence; /* ENDED, FAILED: what happened; else NULL */
};

void recorder_get_status(const struct recorder *r, struct recorder_status *status);

#endif

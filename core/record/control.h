/* perf's control protocol: which mechanism a perf offers, and the exchange of commands and acks
 * over the pair of descriptors of --control=fd:R,W (perf-record(1)).
 *
 * A command is one write() of a word and '\n'; the answer is "ack\n", by most versions followed by
 * a NUL byte. The ack says that perf has read the command, not that it has done it. */
#ifndef MTUI_CORE_CONTROL_H
#define MTUI_CORE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/loop.h"
#include "core/machine/perf_version.h"

struct record_plan;

/* The numbers that the recording child finds its ends of the two pipes under, so that the command
 * shown is the command run. */
#define CONTROL_CHILD_CTL_FD 3
#define CONTROL_CHILD_ACK_FD 4

enum control_command {
    CONTROL_PING,
    CONTROL_ENABLE,
    CONTROL_DISABLE,
    CONTROL_SNAPSHOT,
    CONTROL_STOP,
    CONTROL_COMMANDS
};

const char *control_command_name(enum control_command c);

/* How something is asked of perf: by a command, or, when signal is not 0, by that signal. */
struct control_action {
    enum control_command command;
    int signal;
};

/* What proves that a snapshot was written: never the ack. */
enum control_confirm {
    CONTROL_CONFIRM_DUMP, /* perf's own line "[ perf record: Dump FILE ]", and FILE */
    CONTROL_CONFIRM_AUX,  /* new AUXTRACE records in the growing perf.data */
    CONTROL_CONFIRM_END   /* the one file, when perf has ended */
};

/* One row of the table of mechanisms. */
struct control_row {
    bool ctlfd;
    const char *snapshot_option;    /* "--snapshot", "--snapshot=e", or NULL */
    bool can_snapshot;              /* snapshots on request; else only the one at the end */
    struct control_action snapshot; /* valid with can_snapshot */
    struct control_action finish;   /* ends the recording and keeps what is there */
    struct control_action fallback; /* when finish is not answered; always a signal */
    bool snapshot_before_finish;    /* ring mode of a perf that has no snapshot at its exit */
    enum control_confirm confirm;
    char why[160]; /* one sentence for the screen: this mechanism, because ... */
};

/* Chooses the row for a plan and a perf version. MTUI_E_NOTSUP: the plan insists on ctlfd and this
 * perf is too old. */
int control_select(const struct record_plan *plan, const struct perf_version *version,
                   struct control_row *row, struct err *err);

/* The row that the same recording uses when commands are not answered: `row` with each command
 * replaced by its signal, why = the reason given. perf was started for `row`, so its options stay.
 */
void control_fall_back(const struct control_row *row, const char *reason, struct control_row *out);

/* ---- the exchange ---- */

struct control;

struct control_stats {
    uint64_t count; /* answered commands */
    uint64_t last_ns, min_ns, max_ns, sum_ns;
    uint64_t late; /* answered after the deadline */
    uint64_t lost; /* given up */
};

struct control_events {
    /* c was answered took_ns after it was written; late: after its deadline. */
    void (*ack)(void *arg, enum control_command c, uint64_t took_ns, bool late);
    /* deadline_ns have passed without an answer: once for a command, which stays outstanding. */
    void (*overdue)(void *arg, enum control_command c, uint64_t deadline_ns);
    /* The other side is gone: EOF on the ack pipe, or EPIPE. At most once; reap it. */
    void (*gone)(void *arg);
    void *arg;
};

/* Takes over the two descriptors (our ends: write ctl_fd, read ack_fd; made non-blocking and
 * close-on-exec) and watches them in the loop. SIGPIPE must be ignored by the process. */
struct control *control_new(struct loop *loop, int ctl_fd, int ack_fd,
                            const struct control_events *events);

/* Closes both descriptors: only after the child is reaped, since a perf that sees its control pipe
 * closed ends in error. */
void control_free(struct control *c);

/* Writes one command. deadline_ns 0: without deadline. MTUI_E_BUSY while one is outstanding,
 * MTUI_E_GONE when the other side is gone (the gone event follows from the loop). */
int control_send(struct control *c, enum control_command command, uint64_t deadline_ns,
                 struct err *err);

/* Stops waiting for the outstanding command and counts it as lost; an ack that still comes is
 * ignored. No-op without one. */
void control_abandon(struct control *c);

/* The outstanding command and when it was written; false if there is none. */
bool control_outstanding(const struct control *c, enum control_command *command, uint64_t *sent_ns);

const struct control_stats *control_get_stats(const struct control *c);

#endif

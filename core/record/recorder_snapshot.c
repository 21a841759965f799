/* One snapshot, from the request to its file.
 *
 * `sample`: perf is told by SIGUSR2 to switch files; its Dump line names the file, which is
 * complete by then, and which is moved to snap-N/.
 *
 * `pt`: perf appends each snapshot to its one file. Two ways to get a file for each were compared
 * in tools/perf (builtin-record.c, auxtrace.c; 5.10). With --switch-output as well, SIGUSR2 makes a
 * file a snapshot; but perf never empties its index of AUX data, so every file after the first
 * carries the offsets of the files before it and perf itself refuses to read it, and `snapshot` on
 * the control fd does not switch at all. So the snapshot is copied out of the growing file
 * (core/record/aux_file.h), which also keeps every file's sideband whole from the start of the recording.
 *
 * When is it there? The ack comes before the data. But perf does one thing after the other: it acks
 * `snapshot`, then writes the data, then reads the next command. So the ack of a ping sent after
 * the ack of `snapshot` says that the data was written. With signals, perf seen idle in its main
 * loop with no signal pending says the same. In both cases only AUXTRACE records that are new in
 * the file count as a snapshot.
 *
 * A signal that arrives just before perf goes to sleep is noted by its handler but acted upon at
 * the next wake-up only: a ping, or the signal once more, wakes it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/record/recorder_impl.h"

#define IDLE_CHECK_NS 5000000u
#define IDLE_CHECKS   4 /* idle that often in a row: it is not about to act */

static void check_idle(void *arg);

static void watch_idle(struct recorder *r)
{
    loop_remove(r->loop, r->snap.timer);
    r->snap.timer = loop_add_timer(r->loop, loop_now_ns(r->loop) + IDLE_CHECK_NS, check_idle, r);
}

/* Back to normal; what was put off because of the snapshot happens now. */
static void leave(struct recorder *r)
{
    loop_remove(r->loop, r->snap.timer);
    free(r->snap.reason);
    r->snap = (struct recorder_snap){0};
    if (r->state == RECORDER_SNAPSHOT)
        recorder_set_state(r, r->enabled ? RECORDER_ENABLED : RECORDER_DISABLED);
    if (r->stop_requested && !r->child_ended)
        recorder_finish(r);
}

void recorder_snapshot_failed(struct recorder *r, const char *sentence)
{
    if (r->snap.stage == SNAP_NONE)
        return;
    char *reason = r->snap.reason;
    bool told = r->snap.given_up;
    r->snap.reason = NULL;
    recorder_log(r, "snapshot  failed: %s", sentence);
    if (!told && r->events.snapshot_failed)
        r->events.snapshot_failed(r->events.arg, reason, sentence);
    free(reason);
    leave(r);
}

/* ---- files ---- */

/* The next directory for a snapshot, made; NULL when it cannot be. The end file of trigger mode has
 * a directory of its own: it is not one of the snapshots that were asked for. */
static char *make_directory(struct recorder *r, bool is_end, unsigned *number, struct err *err)
{
    for (;;) {
        *number = is_end && r->mode == PLAN_TRIGGER ? 0 : ++r->numbers;
        char *path =
            *number ? xasprintf("%s/snap-%u", r->dir, *number) : xasprintf("%s/snap-end", r->dir);
        if (mkdir(path, 0700) == 0)
            return path;
        int e = errno;
        if (e != EEXIST || !*number) {
            err_errno(err, e, "\"%s\" cannot be made", path);
            free(path);
            return NULL;
        }
        free(path);
    }
}

static const char *health_remark(const char *path, uint64_t *bytes)
{
    switch (perf_data_check(path, bytes, NULL)) {
    case PERF_DATA_OK:
        return NULL;
    case PERF_DATA_UNFINISHED:
        return "not finished properly: the recorder ended before it closed the file";
    case PERF_DATA_TRUNCATED:
        return "truncated: shorter than its header says";
    case PERF_DATA_EMPTY:
        return "empty";
    default:
        return "no perf.data header";
    }
}

static void report(struct recorder *r, unsigned number, bool is_end, const char *path,
                   const char *remark)
{
    char took[FMT_MAX], size[FMT_MAX];
    struct recorder_snapshot s = {.number = number, .is_end = is_end, .path = path};
    const char *health = health_remark(path, &s.bytes);
    s.remark = health ? health : remark;
    r->end_written |= is_end && !health;
    s.reason = is_end || !r->snap.reason ? "end" : r->snap.reason;
    if (!is_end) {
        s.requested_ns = r->snap.requested_ns;
        s.sent_ns = r->snap.sent_ns;
        if (!s.remark && r->snap.given_up)
            s.remark = "it came after it had been given up";
    }
    s.done_ns = loop_now_ns(r->loop);
    r->written_files += s.bytes;
    r->snapshots += !is_end;
    recorder_log(r, "%s %s in %s%s%s", is_end ? "end file " : "snapshot ", fmt_size(size, s.bytes),
                 is_end ? path : fmt_duration(took, s.done_ns - s.requested_ns),
                 s.remark ? ": " : "", s.remark ? s.remark : "");
    recorder_measure(r);
    if (r->events.snapshot)
        r->events.snapshot(r->events.arg, &s);
}

bool recorder_keep_file(struct recorder *r, const char *path, bool is_end, const char *remark)
{
    struct err err;
    unsigned number;
    char *dir = make_directory(r, is_end, &number, &err);
    if (!dir) {
        recorder_log(r, "\"%s\" stays where it is: %s", path, err.text);
        return false;
    }
    char *to = xasprintf("%s/perf.data", dir);
    bool moved = rename(path, to) == 0;
    if (moved) {
        report(r, number, is_end, to, remark);
    } else {
        recorder_log(r, "\"%s\" cannot be moved: %s", path, strerror(errno));
        rmdir(dir);
    }
    free(to);
    free(dir);
    return moved;
}

/* ---- Dump lines ---- */

void recorder_snapshot_dump(struct recorder *r, const char *path)
{
    bool asked = r->snap.stage == SNAP_SENT && r->active.confirm == CONTROL_CONFIRM_DUMP;
    if (!asked) {
        /* The end file, if the end follows. If not, someone else has sent perf a SIGUSR2: a file
         * like the others, with nobody who asked for it. */
        if (r->loose_dump)
            recorder_keep_file(r, r->loose_dump, false, "asked for by a signal from outside");
        free(r->loose_dump);
        r->loose_dump = xstrdup(path);
        return;
    }
    if (recorder_keep_file(r, path, false, NULL))
        leave(r);
    else
        recorder_snapshot_failed(r, "the recorder said that it wrote the snapshot, but there is no "
                                    "such file");
}

/* ---- AUX snapshots ---- */

static void carve_done(void *arg);

static void *carve_thread(void *arg)
{
    struct recorder_carve *c = arg;
    c->rc = aux_file_carve(c->aux, c->src, c->dst, &c->got, &c->err);
    loop_post(c->loop, carve_done, c);
    return NULL;
}

static void free_carve(struct recorder_carve *c)
{
    free(c->src);
    free(c->dst);
    free(c);
}

/* Where a snapshot goes inside dir. A recording with --kcore is a directory: the same layout again,
 * the copy of kcore shared by a link. */
static char *carve_destination(struct recorder *r, const char *dir)
{
    char *inner = xasprintf("%s/perf.data", dir);
    if (!strcmp(r->data, r->base))
        return inner;
    char *link = xasprintf("%s/kcore_dir", inner), *data = xasprintf("%s/data", inner);
    if (mkdir(inner, 0700) < 0 || symlink("../../perf.data/kcore_dir", link) < 0)
        recorder_log(r, "\"%s\": %s", link, strerror(errno));
    free(link);
    free(inner);
    return data;
}

static void carve(struct recorder *r)
{
    struct err err;
    unsigned number;
    char *dir = make_directory(r, false, &number, &err);
    if (!dir) {
        recorder_snapshot_failed(r, err.text);
        return;
    }
    loop_remove(r->loop, r->snap.timer);
    r->snap.timer = 0;
    r->snap.stage = SNAP_CARVING;
    struct recorder_carve *c = xcalloc(1, sizeof *c);
    c->r = r;
    c->loop = r->loop;
    c->aux = r->aux;
    c->src = xstrdup(r->data);
    c->dst = carve_destination(r, dir);
    free(dir);
    r->carve = c;
    if (pthread_create(&c->thread, NULL, carve_thread, c)) {
        r->carve = NULL;
        free_carve(c);
        recorder_snapshot_failed(r, "no thread to copy the snapshot with");
    }
}

/* Removes the directories that were made for a snapshot that did not come. */
static void remove_empty(struct recorder *r, const char *dst)
{
    char *path = xstrdup(dst);
    size_t keep = strlen(r->dir);
    for (char *slash; (slash = strrchr(path, '/')) && (size_t)(slash - path) > keep;) {
        *slash = '\0';
        char *link = xasprintf("%s/kcore_dir", path);
        unlink(link);
        free(link);
        if (rmdir(path) < 0)
            break;
    }
    free(path);
    r->numbers--;
}

/* Nothing new in the file: either perf had nothing, or it went to sleep upon the signal. */
static bool ask_again(struct recorder *r)
{
    if (r->active.ctlfd || r->snap.nudged || r->child_ended)
        return false;
    r->snap.nudged = true;
    r->snap.stage = SNAP_SENT;
    recorder_signal(r, r->active.snapshot.signal, NULL);
    watch_idle(r);
    return true;
}

static void carve_done(void *arg)
{
    struct recorder_carve *c = arg;
    struct recorder *r = c->r;
    if (!r) {
        free_carve(c);
        return;
    }
    pthread_join(c->thread, NULL);
    r->carve = NULL;
    if (c->rc == 0 && c->got.buffers) {
        report(r, r->numbers, r->snap.is_end, c->dst, NULL);
        leave(r);
    } else {
        remove_empty(r, c->dst);
        if (c->rc < 0)
            recorder_snapshot_failed(r, c->err.text);
        else if (!ask_again(r))
            recorder_snapshot_failed(r,
                                     "perf took the request but wrote no AUX data: the target did "
                                     "not run, a filter let nothing through, or virtual machines "
                                     "(KVM) hold Intel PT on this processor");
    }
    free_carve(c);
    if (r->child_ended)
        recorder_finalize(r);
}

void recorder_abandon_carve(struct recorder *r)
{
    if (!r->carve)
        return;
    pthread_join(r->carve->thread, NULL);
    r->carve->r = NULL; /* carve_done, which is on its way, frees it */
    r->carve = NULL;
}

void recorder_snapshot_acked(struct recorder *r)
{
    if (r->snap.stage != SNAP_SENT || r->active.confirm != CONTROL_CONFIRM_AUX)
        return;
    r->snap.stage = SNAP_BARRIER;
    recorder_queue(r, CONTROL_PING, true);
}

void recorder_snapshot_ping_acked(struct recorder *r)
{
    if (r->snap.stage == SNAP_BARRIER)
        carve(r);
}

/* ---- asking ---- */

/* For requests by signal: has perf dealt with it? */
static void check_idle(void *arg)
{
    struct recorder *r = arg;
    r->snap.timer = 0;
    if (r->snap.stage != SNAP_SENT)
        return;
    r->snap.idle_checks = recorder_perf_is_idle(r) ? r->snap.idle_checks + 1 : 0;
    if (r->active.confirm == CONTROL_CONFIRM_AUX && r->snap.idle_checks) {
        carve(r);
        return;
    }
    if (r->snap.idle_checks >= IDLE_CHECKS && !r->snap.nudged) {
        r->snap.nudged = true;
        if (r->active.ctlfd)
            recorder_queue(r, CONTROL_PING, false);
        else
            recorder_signal(r, r->active.snapshot.signal, NULL);
    }
    watch_idle(r);
}

void recorder_snapshot_sent(struct recorder *r, uint64_t sent_ns)
{
    if (r->snap.stage != SNAP_QUEUED)
        return;
    r->snap.stage = SNAP_SENT;
    r->snap.sent_ns = sent_ns;
    r->last_write_ns = sent_ns - r->snap.requested_ns;
}

int recorder_begin_snapshot(struct recorder *r, const char *reason, bool is_end, struct err *err)
{
    uint64_t now = loop_now_ns(r->loop);
    r->snap = (struct recorder_snap){.stage = SNAP_QUEUED, .is_end = is_end, .requested_ns = now};
    int sig = r->active.snapshot.signal;
    int rc = 0;
    if (sig)
        rc = child_signal(r->child, sig, err);
    if (rc < 0) {
        r->snap.stage = SNAP_NONE;
        return rc;
    }
    uint64_t sent = loop_now_ns(r->loop);
    r->snap.reason = xstrdup(reason);
    recorder_set_state(r, RECORDER_SNAPSHOT);
    if (sig) {
        recorder_note_sent(r, "SIGUSR2", sent);
        recorder_snapshot_sent(r, sent);
        watch_idle(r);
    } else {
        recorder_queue(r, CONTROL_SNAPSHOT, true);
    }
    recorder_log(r, "snapshot  asked for: %s", reason);
    return 0;
}

/* The target has ended, and its recorder with it, while a snapshot was asked for: what the recorder writes of
 * itself then is just that. */
static bool keep_end_as_asked(struct recorder *r)
{
    const char *path = r->loose_dump ? r->loose_dump : r->base;
    if (r->active.confirm != CONTROL_CONFIRM_DUMP || r->snap.given_up ||
        perf_data_check(path, NULL, NULL) != PERF_DATA_OK || !recorder_keep_file(r, path, false, NULL))
        return false;
    free(r->loose_dump);
    r->loose_dump = NULL;
    leave(r);
    return true;
}

bool recorder_snapshot_settle(struct recorder *r)
{
    if (r->snap.stage == SNAP_NONE)
        return false;
    if (r->snap.stage == SNAP_CARVING)
        return true;
    if (r->active.confirm == CONTROL_CONFIRM_AUX && r->snap.stage != SNAP_QUEUED) {
        carve(r); /* what it had written before it ended */
        return r->carve != NULL;
    }
    if (!keep_end_as_asked(r))
        recorder_snapshot_failed(r, "the recorder ended before it had written the snapshot");
    return false;
}

int recorder_give_up(struct recorder *r, struct err *err)
{
    char text[FMT_MAX], sentence[128];
    if (r->snap.stage == SNAP_NONE || r->snap.given_up)
        return err_set(err, MTUI_E_STATE, "no snapshot is outstanding");
    fmt_duration(text, loop_now_ns(r->loop) - r->snap.requested_ns);
    snprintf(sentence, sizeof sentence, "given up after %s", text);
    recorder_log(r, "snapshot  %s", sentence);
    r->snap.given_up = true;
    if (r->state == RECORDER_SNAPSHOT)
        recorder_set_state(r, r->enabled ? RECORDER_ENABLED : RECORDER_DISABLED);
    if (r->events.snapshot_failed)
        r->events.snapshot_failed(r->events.arg, r->snap.reason, sentence);
    if (r->stop_requested)
        recorder_finish(r);
    return 0;
}

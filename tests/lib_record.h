/* A recording under test: a target, a directory, a recorder, and everything that it reported. */
#ifndef MTUI_TESTS_LIB_RECORD_H
#define MTUI_TESTS_LIB_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/record/recorder.h"

#define RECORD_MAX_SNAPSHOTS 16

struct record_run {
    struct loop *loop;
    struct recorder *recorder;
    struct record_plan plan;
    struct perf_version version;
    pid_t target;
    bool target_stopped; /* `run`: let go once recording is enabled */
    char dir[64];

    enum recorder_state states[64];
    int n_states;
    struct {
        unsigned number;
        bool is_end;
        char reason[32], path[256], remark[128];
        uint64_t bytes, requested_ns, sent_ns, done_ns;
    } snapshots[RECORD_MAX_SNAPSHOTS];
    int n_snapshots;  /* asked for */
    int n_end_files;  /* is_end */
    int n_all;        /* both, in `snapshots` */
    int n_failed;     /* snapshot_failed */
    char failed[256]; /* its last sentence */
    bool ended, ok;
    char sentence[512];
    char log[65536]; /* all lines; the middle is dropped when too long */
};

/* A temporary directory and a target: $MTUI_BUILD/tests/target_busy, running or (stopped) held
 * before it has done anything. The plan is ready for `sample` with cpu-clock in trigger mode. */
void record_setup(struct record_run *run, bool stopped);

/* recorder_new with run->plan; returns its result. */
int record_start(struct record_run *run, struct err *err);

/* Runs the loop until *flag or the state is there; fails the test after `seconds`. */
void record_wait_state(struct record_run *run, enum recorder_state state, double seconds);
void record_wait_snapshots(struct record_run *run, int n, double seconds);
void record_wait_failed(struct record_run *run, int n, double seconds);
void record_wait_end(struct record_run *run, double seconds);
/* ... until the log has the text. */
void record_wait_log(struct record_run *run, const char *text, double seconds);
/* Runs the loop for callbacks that are ready, once. */
void record_turn(struct record_run *run);
bool record_was_in(const struct record_run *run, enum recorder_state state);

/* Kills the target, frees the recorder, asserts that its child is gone, removes the directory. */
void record_teardown(struct record_run *run);

/* The output of a shell command, at most size-1 bytes; asserts exit status 0. */
void record_shell(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* True once the process is gone or a zombie. */
bool record_is_dead(pid_t pid);

/* ---- with tests/fakeperf.c as the perf ---- */

#define FAKE_SOON 20.0 /* a deadline on a loaded machine, not an expectation */

/* MTUI_PERF = the fake perf. */
void fake_use(void);
/* record_setup (held: for `run`), and the fake perf's modes and version. */
void fake_setup(struct record_run *run, const char *modes, const char *version, bool held);
/* record_start, which must work. */
void fake_start(struct record_run *run);
/* How often the fake perf got that command or signal. */
int fake_received(const struct record_run *run, const char *what);
/* start, one snapshot with the reason "key", stop, end. */
void fake_snapshot_and_stop(struct record_run *run);

struct recorder_status record_status(const struct record_run *run);
double record_seconds(void); /* CLOCK_MONOTONIC */

#endif

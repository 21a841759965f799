/* Whole recordings under test: a target, a machine with a fake perf, a session and what it reported. */
#ifndef MTUI_TESTS_LIB_SESSION_H
#define MTUI_TESTS_LIB_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/session/session.h"
#include "tests/lib_run.h"

#define SOON 100.0

struct bench {
    struct loop *loop;
    char *tmp;
    struct capabilities *caps;
    struct perf_version version;
    struct session_machine machine;
    struct session_setup setup;
    struct session *session;
    struct run_child target;
    bool target_hangs; /* stopped by the test */
    int snapshots, ends; /* callbacks so far, of this start */
    size_t fds;
};

/* fake_modes: see tests/fakeperf.c; NULL: the real perf. The setup attaches to a target that burns CPU. */
void bench_set_up(struct bench *b, const char *fake_modes);
int bench_start(struct bench *b, struct err *err);
/* Starts and waits until it is armed; fails the test otherwise. */
void bench_start_armed(struct bench *b);
struct session_status bench_status(struct bench *b);
/* One round of the loop. */
void bench_turn(struct bench *b);
/* For run_until, each with a round of the loop. */
bool bench_is_armed(void *arg); /* or past that */
bool bench_has_ended(void *arg);
bool bench_has_snapshot(void *arg); /* or ended */
bool bench_is_busy(void *arg);      /* a snapshot is outstanding */
bool bench_is_idle(void *arg);
/* Until the target has run for so long on a CPU from now on, so that there are samples of it. */
void bench_let_work(struct bench *b, double seconds);
/* SIGSTOP, and until it has stopped. */
void bench_hang(pid_t pid);
/* Until the end, which is reported exactly once. SHOW=1 in the environment prints the log. */
void bench_wait_end(struct bench *b);
/* What targets do: each leaves the process with the target's pid alive, but the end of the target. `other`: the
 * child that it forked, the process that has its pid now; 0: there is none. */
enum bench_change { BENCH_EXEC, BENCH_FORK, BENCH_FORK_AND_END, BENCH_REPLACED, BENCH_CHANGES };
extern const char *const bench_change_names[];
/* False: not permitted here (nothing happened). */
bool bench_change(struct bench *b, enum bench_change change, pid_t *other);
/* The other one was left alone; ends it. */
void bench_end_other(pid_t other, bool ours);
/* A line of the log has the text. */
bool bench_log_has(struct bench *b, const char *text);

struct snapshot_hit *bench_read_hits(struct bench *b, size_t *n);
/* Frees, and checks that nothing of ours is left: perf, descriptors; the target, when it was not killed,
 * runs on until now, or is as stopped as it was. */
void bench_tear_down(struct bench *b, bool target_lives);

#endif

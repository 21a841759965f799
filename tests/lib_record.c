#include "tests/lib_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void start_target(struct record_run *run, bool stopped)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/target_busy", getenv("MTUI_BUILD"));
    run->target = fork();
    if (run->target == 0) {
        signal(SIGCHLD, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (stopped)
            raise(SIGSTOP);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    assert_true(run->target > 0);
    run->target_stopped = stopped;
    if (stopped)
        assert_int_equal(waitpid(run->target, NULL, WUNTRACED), run->target);
}

void record_setup(struct record_run *run, bool stopped)
{
    *run = (struct record_run){0};
    strcpy(run->dir, "/tmp/mtui_record.XXXXXX");
    assert_non_null(mkdtemp(run->dir));
    start_target(run, stopped);
    run->loop = loop_new();
    run->plan = (struct record_plan){.recorder = PLAN_SAMPLE,
                                     .mode = PLAN_TRIGGER,
                                     .sample_by_clock = true,
                                     .freq_hz = 2000,
                                     .pids = &run->target,
                                     .n_pids = 1,
                                     .output_dir = run->dir};
}

static void on_state(void *arg, enum recorder_state state)
{
    struct record_run *run = arg;
    if (run->n_states < 64)
        run->states[run->n_states++] = state;
    if (state == RECORDER_ENABLED && run->target_stopped) {
        run->target_stopped = false;
        kill(run->target, SIGCONT);
    }
}

static void on_log(void *arg, const char *line)
{
    struct record_run *run = arg;
    size_t len = strlen(run->log), more = strlen(line);
    if (len + more + 2 > sizeof run->log) {
        size_t half = sizeof run->log / 2;
        memmove(run->log, run->log + half, len - half + 1);
        len -= half;
    }
    memcpy(run->log + len, line, more);
    memcpy(run->log + len + more, "\n", 2);
    for (const char *s = line; *s; s++)
        assert_true((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void on_snapshot(void *arg, const struct recorder_snapshot *s)
{
    struct record_run *run = arg;
    assert_true(run->n_all < RECORD_MAX_SNAPSHOTS);
    int i = run->n_all++;
    run->n_snapshots += !s->is_end;
    run->n_end_files += s->is_end;
    run->snapshots[i].number = s->number;
    run->snapshots[i].is_end = s->is_end;
    run->snapshots[i].bytes = s->bytes;
    run->snapshots[i].requested_ns = s->requested_ns;
    run->snapshots[i].sent_ns = s->sent_ns;
    run->snapshots[i].done_ns = s->done_ns;
    snprintf(run->snapshots[i].reason, sizeof run->snapshots[i].reason, "%s", s->reason);
    snprintf(run->snapshots[i].path, sizeof run->snapshots[i].path, "%s", s->path);
    snprintf(run->snapshots[i].remark, sizeof run->snapshots[i].remark, "%s",
             s->remark ? s->remark : "");
    assert_int_equal(access(s->path, R_OK), 0);
}

static void on_failed(void *arg, const char *reason, const char *sentence)
{
    struct record_run *run = arg;
    assert_non_null(reason);
    run->n_failed++;
    snprintf(run->failed, sizeof run->failed, "%s", sentence);
}

static void on_ended(void *arg, bool ok, const char *sentence)
{
    struct record_run *run = arg;
    assert_false(run->ended);
    run->ended = true;
    run->ok = ok;
    snprintf(run->sentence, sizeof run->sentence, "%s", sentence);
}

int record_start(struct record_run *run, struct err *err)
{
    int rc = perf_version_probe(perf_program(), 20000, &run->version, err);
    if (rc < 0)
        return rc;
    struct recorder_options options = {.plan = &run->plan, .version = &run->version};
    struct recorder_events events = {.state = on_state,
                                     .log = on_log,
                                     .snapshot = on_snapshot,
                                     .snapshot_failed = on_failed,
                                     .ended = on_ended,
                                     .arg = run};
    return recorder_new(run->loop, &options, &events, &run->recorder, err);
}

static enum recorder_state state_of(const struct record_run *run)
{
    struct recorder_status s;
    recorder_get_status(run->recorder, &s);
    return s.state;
}

static void give_up_test(struct record_run *run, const char *what, const char *detail)
{
    print_error("still waiting for %s %s; state %s; log:\n%s", what, detail,
                recorder_state_name(state_of(run)), run->log);
    fail();
}

#define WAIT_FOR(run, condition, seconds, what, detail)                                            \
    do {                                                                                           \
        uint64_t limit_ = now_ns() + (uint64_t)((seconds)*1e9);                                    \
        while (!(condition)) {                                                                     \
            if (now_ns() > limit_)                                                                 \
                give_up_test(run, what, detail);                                                   \
            loop_run_once((run)->loop, 50000000);                                                  \
        }                                                                                          \
    } while (0)

void record_wait_state(struct record_run *run, enum recorder_state state, double seconds)
{
    WAIT_FOR(run, state_of(run) == state, seconds, "state", recorder_state_name(state));
}

void record_wait_snapshots(struct record_run *run, int n, double seconds)
{
    WAIT_FOR(run, run->n_snapshots >= n, seconds, "a snapshot", "");
}

void record_wait_failed(struct record_run *run, int n, double seconds)
{
    WAIT_FOR(run, run->n_failed >= n, seconds, "the failure of a snapshot", "");
}

void record_wait_end(struct record_run *run, double seconds)
{
    WAIT_FOR(run, run->ended, seconds, "the end", "");
}

void record_wait_log(struct record_run *run, const char *text, double seconds)
{
    WAIT_FOR(run, strstr(run->log, text), seconds, "in the log:", text);
}

void record_turn(struct record_run *run)
{
    loop_run_once(run->loop, 0);
}

bool record_was_in(const struct record_run *run, enum recorder_state state)
{
    for (int i = 0; i < run->n_states; i++)
        if (run->states[i] == state)
            return true;
    return false;
}

bool record_is_dead(pid_t pid)
{
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    bool dead = !f;
    while (f && fgets(line, sizeof line, f))
        dead |= !strncmp(line, "State:\tZ", 8);
    if (f)
        fclose(f);
    return dead;
}

void record_teardown(struct record_run *run)
{
    struct recorder_status s = {0};
    if (run->recorder) {
        recorder_get_status(run->recorder, &s);
        recorder_free(run->recorder);
        assert_int_equal(kill(s.pid, 0), -1); /* reaped */
    }
    kill(run->target, SIGKILL);
    waitpid(run->target, NULL, 0);
    loop_run_once(run->loop, 0);
    loop_free(run->loop);
    char out[256];
    record_shell(out, sizeof out, "rm -rf %s", run->dir);
}

void record_shell(char *out, size_t size, const char *fmt, ...)
{
    char command[2048], rest[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(out, 1, size - 1, f);
    out[n] = '\0';
    while (fread(rest, 1, sizeof rest, f) > 0)
        ;
    int rc = pclose(f);
    /* With SIGCHLD ignored there is no status to be had. */
    if (rc > 0)
        print_error("%s: status %d: %s\n", command, rc, out);
    assert_true(rc <= 0);
}

struct recorder_status record_status(const struct record_run *run)
{
    struct recorder_status s;
    recorder_get_status(run->recorder, &s);
    return s;
}

double record_seconds(void)
{
    return (double)now_ns() / 1e9;
}

void fake_use(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/fakeperf", getenv("MTUI_BUILD"));
    setenv("MTUI_PERF", path, 1);
}

void fake_setup(struct record_run *run, const char *modes, const char *version, bool held)
{
    char text[128];
    record_setup(run, held);
    snprintf(text, sizeof text, "%s/fake.log", run->dir);
    setenv("FAKEPERF_LOG", text, 1);
    setenv("FAKEPERF", modes, 1);
    snprintf(text, sizeof text, "perf version %s", version);
    setenv("FAKEPERF_VERSION", text, 1);
}

void fake_start(struct record_run *run)
{
    struct err err = {0};
    if (record_start(run, &err) < 0)
        print_error("%s\n", err.text);
    assert_non_null(run->recorder);
}

int fake_received(const struct record_run *run, const char *what)
{
    char path[128], line[128];
    snprintf(path, sizeof path, "%s/fake.log", run->dir);
    FILE *f = fopen(path, "r");
    int n = 0;
    while (f && fgets(line, sizeof line, f))
        n += !strncmp(line, what, strlen(what)) && line[strlen(what)] == '\n';
    if (f)
        fclose(f);
    return n;
}

void fake_snapshot_and_stop(struct record_run *run)
{
    fake_start(run);
    record_wait_state(run, RECORDER_ENABLED, FAKE_SOON);
    assert_int_equal(recorder_snapshot(run->recorder, "key", NULL), 0);
    record_wait_snapshots(run, 1, FAKE_SOON);
    assert_int_equal(recorder_stop(run->recorder, NULL), 0);
    record_wait_end(run, FAKE_SOON);
}

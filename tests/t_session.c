/* Whole recordings against a fake perf: what is written, what is said, and that nothing stays
 * behind, however perf, the target or the user end it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/session.h"
#include "tests/lib_run.h"

#define SOON 30.0

struct bench {
    struct loop *loop;
    char *tmp;
    struct capabilities *caps;
    struct perf_version version;
    struct session_machine machine;
    struct session_setup setup;
    struct session *session;
    struct run_child target;
    int snapshots, ends;
    size_t fds;
};

static size_t open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static bool has_exec(void *arg)
{
    struct bench *b = arg;
    char *path = xasprintf("/proc/%ld/comm", (long)b->target.pid);
    char *comm = run_read_file(path, NULL);
    bool yes = comm && !strcmp(comm, "target_busy\n");
    free(comm);
    free(path);
    return yes;
}

static void set_up(struct bench *b, const char *fake_modes)
{
    memset(b, 0, sizeof *b);
    char *fake = run_tool("fakeperf"), *busy = run_tool("target_busy");
    setenv("MTUI_PERF", fake, 1);
    setenv("FAKEPERF", fake_modes, 1);
    b->fds = open_fds();
    b->loop = loop_new();
    b->tmp = run_temp_dir();
    b->caps = xcalloc(1, sizeof *b->caps);
    b->caps->cpus_online = 1;
    b->version = (struct perf_version){.major = 6, .minor = 1, .text = "6.1.0"};
    b->machine = (struct session_machine){
        .caps = b->caps, .version = &b->version, .xdg_state_home = b->tmp, .interactive = true};
    b->target = run_start((char *[]){busy, NULL});
    assert_true(run_until(has_exec, b, SOON));
    b->setup.auto_recorder = true;
    b->setup.auto_mode = true;
    b->setup.pids = xmalloc(sizeof(pid_t));
    b->setup.pids[0] = b->target.pid;
    b->setup.n_pids = 1;
    free(fake);
    free(busy);
}

static void on_snapshot(void *arg, const struct session_snapshot *s)
{
    struct bench *b = arg;
    (void)s;
    b->snapshots++;
}

static void on_ended(void *arg)
{
    struct bench *b = arg;
    b->ends++;
}

static int start(struct bench *b, struct err *err)
{
    static const struct session_callbacks callbacks = {.snapshot = on_snapshot, .ended = on_ended};
    *err = (struct err){0};
    b->ends = b->snapshots = 0;
    return session_start(&b->session, b->loop, &b->setup, &b->machine, &callbacks, b, err);
}

static struct session_status status(struct bench *b)
{
    struct session_status s;
    session_get_status(b->session, &s);
    return s;
}

static void turn(struct bench *b)
{
    loop_run_once(b->loop, 10000000);
}

static bool is_armed(void *arg)
{
    turn(arg);
    return status(arg).state != SESSION_PREPARING;
}

static bool has_ended(void *arg)
{
    struct bench *b = arg;
    turn(b);
    return b->ends > 0;
}

static bool has_snapshot(void *arg)
{
    struct bench *b = arg;
    turn(b);
    return b->snapshots > 0 || b->ends > 0;
}

static void start_armed(struct bench *b)
{
    struct err err;
    if (start(b, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(run_until(is_armed, b, SOON));
    if (status(b).state != SESSION_ARMED) {
        for (size_t i = 0; i < session_log_count(b->session); i++)
            print_error("%s\n", session_log_at(b->session, i).text);
        fail_msg("not armed");
    }
}

static void wait_end(struct bench *b)
{
    assert_true(run_until(has_ended, b, SOON));
    assert_int_equal(b->ends, 1);
    if (getenv("SHOW"))
        for (size_t i = 0; i < session_log_count(b->session); i++)
            print_message("    %s\n", session_log_at(b->session, i).text);
}

/* The end of every test: nothing of ours is left, and the target, when it was not killed, runs on.
 */
static void tear_down(struct bench *b, bool target_lives)
{
    pid_t perf = 0;
    if (b->session) {
        perf = status(b).rec.pid;
        session_free(b->session, TARGET_LEAVE);
    }
    if (perf > 0)
        assert_int_equal(kill(perf, 0), -1);
    loop_free(b->loop);
    fflush(stdout);
    if (target_lives) {
        assert_int_equal(waitpid(b->target.pid, NULL, WNOHANG), 0);
        run_kill(&b->target);
    } else {
        close(b->target.in);
        fclose(b->target.out);
    }
    assert_int_equal(open_fds(), b->fds);
    session_setup_free(&b->setup);
    free(b->caps);
    run_remove_tree(b->tmp);
    free(b->tmp);
}

static struct snapshot_hit *read_hits(struct bench *b, size_t *n)
{
    struct snapshot_hit *hits;
    size_t bad;
    assert_int_equal(snapshot_dir_read_hits(session_dir(b->session), &hits, n, &bad, NULL), 0);
    assert_int_equal(bad, 0);
    return hits;
}

/* ---- The normal course ---- */

static void test_key(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    set_up(&b, "");
    b.setup.command_line = xstrdup("mtui attach -p it");
    start_armed(&b);
    struct session_status st = status(&b);
    assert_int_equal(st.recorder, PLAN_SAMPLE);
    assert_int_equal(st.mode, PLAN_TRIGGER);
    assert_true(st.rec.pid > 0);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(has_snapshot, &b, SOON));
    assert_int_equal(session_snapshot_count(b.session), 1);
    const struct session_snapshot *snap = session_snapshot_at(b.session, 0);
    assert_int_equal(snap->number, 1);
    assert_string_equal(snap->trigger, "key");
    assert_int_equal(access(snap->data, R_OK), 0);
    assert_true(snap->bytes > 0);
    assert_int_equal(session_stop(b.session, &err), 0);
    wait_end(&b);
    st = status(&b);
    assert_int_equal(st.state, SESSION_ENDED);
    assert_non_null(st.sentence);
    assert_true(session_snapshot(b.session, &err) == MTUI_E_GONE);

    size_t n;
    struct snapshot_hit *hits = read_hits(&b, &n);
    assert_int_equal(n, 1);
    assert_string_equal(hits[0].trigger, "key");
    assert_int_equal(hits[0].snapshot, 1);
    snapshot_dir_free_hits(hits, n);

    struct session_info info;
    assert_int_equal(snapshot_dir_read_info(session_dir(b.session), &info, &err), 0);
    assert_string_equal(info.recorder, "sample");
    assert_string_equal(info.clock, "perf");
    assert_string_equal(info.comm, "target_busy");
    assert_string_equal(info.command_line, "mtui attach -p it");
    assert_non_null(strstr(info.perf_command, "record"));
    assert_int_equal(info.npids, 1);
    assert_int_equal(info.pids[0], b.target.pid);
    assert_false(info.started);
    session_info_free(&info);
    tear_down(&b, true);
}

static void test_ring(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    set_up(&b, "");
    b.setup.auto_mode = false;
    b.setup.mode = PLAN_RING;
    start_armed(&b);
    assert_true(session_snapshot(b.session, &err) < 0); /* only the one at the end */
    assert_true(err.text[0] != '\0');
    assert_int_equal(session_stop(b.session, &err), 0);
    wait_end(&b);
    assert_int_equal(session_snapshot_count(b.session), 1);
    assert_int_equal(session_snapshot_at(b.session, 0)->number, 1);
    tear_down(&b, true);
}

static void test_limits(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    set_up(&b, "");
    b.setup.when.max_snapshots = 1;
    start_armed(&b);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    wait_end(&b);
    assert_non_null(strstr(status(&b).sentence, "1 snapshot"));
    session_free(b.session, TARGET_LEAVE);
    b.setup.when.max_snapshots = 0;
    b.setup.duration_ns = 50000000;
    start_armed(&b);
    wait_end(&b);
    assert_non_null(strstr(status(&b).sentence, "50.0 ms"));
    tear_down(&b, true);
}

static void test_second_never_overwrites(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    set_up(&b, "");
    char *paths[2];
    for (int i = 0; i < 2; i++) {
        start_armed(&b);
        assert_int_equal(session_snapshot(b.session, &err), 0);
        assert_true(run_until(has_snapshot, &b, SOON));
        session_stop(b.session, &err);
        wait_end(&b);
        paths[i] = xstrdup(session_snapshot_at(b.session, 0)->data);
        session_free(b.session, TARGET_LEAVE);
        b.session = NULL;
    }
    assert_string_not_equal(paths[0], paths[1]);
    assert_int_equal(access(paths[0], R_OK), 0);
    assert_int_equal(access(paths[1], R_OK), 0);
    /* By name: refused. */
    paths[0][strlen(paths[0]) - strlen("/snap-1/perf.data")] = '\0';
    b.setup.output = xstrdup(paths[0]);
    assert_int_equal(start(&b, &err), MTUI_E_STATE);
    assert_non_null(strstr(err.text, "overwrites none"));
    free(paths[0]);
    free(paths[1]);
    tear_down(&b, true);
}

static void test_delete(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    set_up(&b, "");
    start_armed(&b);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(has_snapshot, &b, SOON));
    char *data = xstrdup(session_snapshot_at(b.session, 0)->data);
    assert_int_equal(session_delete(b.session, 1, &err), 0);
    assert_int_equal(access(data, F_OK), -1);
    assert_null(session_snapshot_at(b.session, 0)->data);
    assert_int_equal(session_delete(b.session, 9, &err), MTUI_E_NOENT);
    free(data);
    session_stop(b.session, &err);
    wait_end(&b);
    tear_down(&b, true);
}

/* ---- Refusals ---- */

static void test_refused(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    set_up(&b, "");
    b.setup.pids[0] = INT_MAX;
    assert_int_equal(start(&b, &err), MTUI_E_GONE);
    b.setup.pids[0] = b.target.pid;

    session_setup_add_trigger(&b.setup, "iner");
    assert_int_equal(start(&b, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "inner"));
    session_setup_remove_trigger(&b.setup, "iner");

    b.machine.version = NULL;
    snprintf(b.caps->line[CAP_PERF].reason, 64, "no such program");
    assert_int_equal(start(&b, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "no such program"));
    b.machine.version = &b.version;

    b.setup.auto_recorder = false;
    b.setup.recorder = PLAN_PT;
    assert_int_equal(start(&b, &err), MTUI_E_NOTSUP);
    assert_non_null(strstr(err.text, "Intel PT"));
    b.setup.auto_recorder = true;

    b.setup.output = xstrdup("/proc/nowhere/at/all");
    assert_true(start(&b, &err) < 0);

    /* Nothing was left behind by any of them. */
    char *root = xasprintf("%s/mtui", b.tmp);
    DIR *dir = opendir(root);
    size_t n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    if (dir)
        closedir(dir);
    assert_int_equal(n, 0);
    free(root);
    tear_down(&b, true);
}

/* ---- Faults ---- */

static void test_perf_is_killed(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    set_up(&b, "");
    start_armed(&b);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(has_snapshot, &b, SOON));
    kill(status(&b).rec.pid, SIGKILL);
    wait_end(&b);
    struct session_status st = status(&b);
    assert_int_equal(st.state, SESSION_FAILED);
    assert_true(st.sentence[0] != '\0');
    assert_int_equal(access(session_snapshot_at(b.session, 0)->data, R_OK), 0);
    tear_down(&b, true);
}

static void test_perf_is_killed_with_nothing_written(void **state)
{
    (void)state;
    struct bench b;
    set_up(&b, "");
    start_armed(&b);
    kill(status(&b).rec.pid, SIGKILL);
    wait_end(&b);
    assert_int_equal(status(&b).state, SESSION_FAILED);
    tear_down(&b, true);
}

static void test_perf_refuses(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    set_up(&b, "refuse");
    assert_int_equal(start(&b, &err), 0);
    wait_end(&b);
    assert_int_equal(status(&b).state, SESSION_FAILED);
    assert_non_null(strstr(status(&b).sentence, "perf_event_mlock_kb"));
    tear_down(&b, true);
}

static void test_target_dies(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    set_up(&b, "");
    start_armed(&b);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(has_snapshot, &b, SOON));
    kill(b.target.pid, SIGKILL);
    waitpid(b.target.pid, NULL, 0);
    wait_end(&b);
    struct session_status st = status(&b);
    assert_int_equal(st.state, SESSION_ENDED);
    assert_non_null(strstr(st.sentence, "program"));
    assert_int_equal(access(session_snapshot_at(b.session, 0)->data, R_OK), 0);
    tear_down(&b, false);
}

static bool is_busy(void *arg)
{
    turn(arg);
    return status(arg).rec.snapshot_busy;
}

static bool is_idle(void *arg)
{
    turn(arg);
    return !status(arg).rec.snapshot_busy;
}

/* A snapshot that never comes: it is shown as running, and can be given up; the recording goes on.
 */
static void test_give_up(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    size_t n;
    set_up(&b, "hang-dump");
    start_armed(&b);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(is_busy, &b, SOON));
    assert_true(session_snapshot(b.session, &err) < 0);
    assert_int_equal(session_give_up(b.session, &err), 0);
    assert_true(run_until(is_idle, &b, SOON));
    assert_int_equal(status(&b).state, SESSION_ARMED);
    struct snapshot_hit *hits = read_hits(&b, &n);
    assert_int_equal(n, 1);
    assert_int_equal(hits[0].snapshot, 0);
    snapshot_dir_free_hits(hits, n);
    session_stop(b.session, &err);
    session_stop(b.session, &err);
    session_stop(b.session, &err);
    wait_end(&b);
    tear_down(&b, true);
}

static void test_free_while_recording(void **state)
{
    (void)state;
    struct bench b;
    set_up(&b, "");
    start_armed(&b);
    tear_down(&b, true);
}

/* ---- run ---- */

static void test_run(void **state)
{
    (void)state;
    struct bench b;
    set_up(&b, "");
    free(b.setup.pids);
    b.setup.pids = NULL;
    b.setup.n_pids = 0;
    b.setup.argv = xcalloc(4, sizeof *b.setup.argv);
    b.setup.argv[0] = xstrdup("sh");
    b.setup.argv[1] = xstrdup("-c");
    b.setup.argv[2] = xstrdup("echo hello; exit 3");
    b.setup.auto_mode = false;
    b.setup.mode = PLAN_WHOLE;
    struct err err;
    if (start(&b, &err) < 0)
        fail_msg("%s", err.text);
    wait_end(&b);
    assert_non_null(strstr(status(&b).sentence, "exited with status 3"));
    const char *dir = snapshot_dir_path(session_dir(b.session));
    char *path = xasprintf("%s/output", dir);
    char *output = run_read_file(path, NULL);
    assert_non_null(output);
    assert_non_null(strstr(output, "hello"));
    char *name = xasprintf("/sh-%ld-", (long)target_pid(session_target(b.session)));
    assert_non_null(strstr(dir, name));
    struct session_info info;
    assert_int_equal(snapshot_dir_read_info(session_dir(b.session), &info, &err), 0);
    assert_true(info.started);
    assert_string_equal(info.comm, "sh");
    session_info_free(&info);
    free(name);
    free(output);
    free(path);
    tear_down(&b, true);
}

/* ---- Triggers ---- */

static bool uprobes_work(void)
{
    return geteuid() == 0 && access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0;
}

static void test_trigger(void **state)
{
    (void)state;
    struct bench b;
    size_t n;
    if (!uprobes_work())
        skip();
    set_up(&b, "");
    session_setup_add_trigger(&b.setup, "outer");
    b.setup.force = true; /* it is called all the time */
    b.setup.when.max_snapshots = 1;
    start_armed(&b);
    wait_end(&b);
    assert_true(session_snapshot_count(b.session) >= 1);
    const struct session_snapshot *snap = session_snapshot_at(b.session, 0);
    assert_string_equal(snap->trigger, "outer");
    assert_int_equal(snap->tid, b.target.pid);
    assert_true(snap->time_ns > 0);
    assert_true(snap->hit_to_command_ns > 0 && snap->hit_to_command_ns < 1000000000);
    struct snapshot_hit *hits = read_hits(&b, &n);
    size_t snapped = 0;
    for (size_t i = 0; i < n; i++) {
        snapped += hits[i].snapshot == 1;
        assert_true(hits[i].arg1 == 20000 || hits[i].snapshot == 0); /* outer(20000) */
        assert_int_equal(hits[i].tid, b.target.pid);
    }
    assert_int_equal(snapped, 1);
    snapshot_dir_free_hits(hits, n);
    tear_down(&b, true);
}

static void test_too_hot(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    if (!uprobes_work())
        skip();
    set_up(&b, "");
    session_setup_add_trigger(&b.setup, "outer");
    session_setup_add_trigger(&b.setup, "inner");
    session_setup_add_trigger(&b.setup, "work");
    if (start(&b, &err) < 0)
        fail_msg("%s", err.text);
    wait_end(&b);
    assert_int_equal(status(&b).state, SESSION_FAILED);
    assert_true(status(&b).too_hot);
    assert_non_null(strstr(status(&b).sentence, "times a second"));
    tear_down(&b, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_second_never_overwrites),
        cmocka_unit_test(test_delete),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_perf_is_killed),
        cmocka_unit_test(test_perf_is_killed_with_nothing_written),
        cmocka_unit_test(test_perf_refuses),
        cmocka_unit_test(test_target_dies),
        cmocka_unit_test(test_give_up),
        cmocka_unit_test(test_free_while_recording),
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_trigger),
        cmocka_unit_test(test_too_hot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Whole recordings against a fake perf: what is written, what is said, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tests/lib_session.h"

/* ---- The normal course ---- */

static void test_key(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "");
    b.setup.command_line = xstrdup("mtui attach -p it");
    bench_start_armed(&b);
    struct session_status st = bench_status(&b);
    assert_int_equal(st.recorder, PLAN_SAMPLE);
    assert_int_equal(st.mode, PLAN_TRIGGER);
    assert_true(st.rec.pid > 0);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(bench_has_snapshot, &b, SOON));
    assert_int_equal(session_snapshot_count(b.session), 1);
    const struct session_snapshot *snap = session_snapshot_at(b.session, 0);
    assert_int_equal(snap->number, 1);
    assert_string_equal(snap->trigger, "key");
    assert_int_equal(access(snap->data, R_OK), 0);
    assert_true(snap->bytes > 0);
    assert_int_equal(session_stop(b.session, &err), 0);
    bench_wait_end(&b);
    st = bench_status(&b);
    assert_int_equal(st.state, SESSION_ENDED);
    assert_non_null(st.sentence);
    assert_true(session_snapshot(b.session, &err) == MTUI_E_GONE);

    size_t n;
    struct snapshot_hit *hits = bench_read_hits(&b, &n);
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
    bench_tear_down(&b, true);
}

static void test_ring(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "");
    b.setup.auto_mode = false;
    b.setup.mode = PLAN_RING;
    bench_start_armed(&b);
    assert_true(session_snapshot(b.session, &err) < 0); /* only the one at the end */
    assert_true(err.text[0] != '\0');
    assert_int_equal(session_stop(b.session, &err), 0);
    bench_wait_end(&b);
    assert_int_equal(session_snapshot_count(b.session), 1);
    assert_int_equal(session_snapshot_at(b.session, 0)->number, 1);
    bench_tear_down(&b, true);
}

static bool has_two(void *arg)
{
    struct bench *b = arg;
    return bench_has_snapshot(b) && session_snapshot_count(b->session) == 2;
}

/* A key pressed while a snapshot is being written is not lost: it has its turn right after it. */
static void test_key_waits_for_its_turn(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "");
    bench_start_armed(&b);
    for (int i = 0; i < 3; i++) /* the third asks for what is asked for already */
        assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(has_two, &b, SOON));
    assert_string_equal(session_snapshot_at(b.session, 1)->trigger, "key");
    assert_int_equal(session_stop(b.session, &err), 0);
    bench_wait_end(&b);
    size_t numbered = 0;
    for (size_t i = 0; i < session_snapshot_count(b.session); i++)
        numbered += session_snapshot_at(b.session, i)->number != 0;
    assert_int_equal(numbered, 2);
    bench_tear_down(&b, true);
}

static void test_limits(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "");
    b.setup.when.max_snapshots = 1;
    bench_start_armed(&b);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    bench_wait_end(&b);
    assert_non_null(strstr(bench_status(&b).sentence, "1 snapshot"));
    session_free(b.session, TARGET_LEAVE);
    b.setup.when.max_snapshots = 0;
    b.setup.duration_ns = 50000000;
    bench_start_armed(&b);
    bench_wait_end(&b);
    assert_non_null(strstr(bench_status(&b).sentence, "50.0 ms"));
    bench_tear_down(&b, true);
}

static void field_A15_nothing_is_overwritten(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "");
    char *paths[2];
    for (int i = 0; i < 2; i++) {
        bench_start_armed(&b);
        assert_int_equal(session_snapshot(b.session, &err), 0);
        assert_true(run_until(bench_has_snapshot, &b, SOON));
        session_stop(b.session, &err);
        bench_wait_end(&b);
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
    assert_int_equal(bench_start(&b, &err), MTUI_E_STATE);
    assert_non_null(strstr(err.text, "overwrites none"));
    free(paths[0]);
    free(paths[1]);
    bench_tear_down(&b, true);
}

/* A small file system of our own below b->tmp; skips where none can be mounted. */
static char *mount_small(struct bench *b, const char *options)
{
    char *dir = xasprintf("%s/small", b->tmp);
    char *command = xasprintf("mkdir %s && mount -t tmpfs -o %s none %s 2>/dev/null", dir, options, dir);
    int rc = system(command);
    free(command);
    if (rc != 0) {
        free(dir);
        bench_tear_down(b, true);
        skip();
    }
    return dir;
}

static void unmount(char *dir)
{
    char *command = xasprintf("umount %s", dir);
    assert_int_equal(system(command), 0);
    free(command);
    free(dir);
}

/* A recording of everything ends by itself, well, before it has filled the disk. */
static void field_G5_a_whole_recording_stops_before_the_disk_is_full(void **state)
{
    (void)state;
    struct bench b;
    bench_set_up(&b, "");
    char *dir = mount_small(&b, "size=32m");
    b.setup.auto_mode = false;
    b.setup.mode = PLAN_WHOLE;
    b.setup.output = xasprintf("%s/rec", dir);
    bench_start_armed(&b);
    struct session_status st = bench_status(&b);
    assert_true(st.rec.disk_free > 16 << 20 && st.rec.disk_free <= 32 << 20);
    char *command = xasprintf("head -c 20000000 /dev/zero >%s/filler", dir); /* someone else fills it */
    assert_int_equal(system(command), 0);
    bench_wait_end(&b);
    st = bench_status(&b);
    assert_int_equal(st.state, SESSION_ENDED);
    assert_non_null(strstr(st.sentence, "stopped before the disk was full"));
    assert_int_equal(session_snapshot_count(b.session), 1);
    assert_int_equal(access(session_snapshot_at(b.session, 0)->data, R_OK), 0);
    session_free(b.session, TARGET_LEAVE);
    b.session = NULL;
    /* And does not begin where there is no room for it. */
    struct err err;
    free(b.setup.output);
    b.setup.output = xasprintf("%s/second", dir);
    assert_int_equal(bench_start(&b, &err), MTUI_E_LIMIT);
    assert_non_null(strstr(err.text, "another directory"));
    unmount(dir);
    free(command);
    bench_tear_down(&b, true);
}

static void field_A14_read_only_output_is_refused(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "");
    char *dir = mount_small(&b, "size=64k,ro");
    b.setup.output = xasprintf("%s/rec", dir);
    assert_true(bench_start(&b, &err) < 0);
    assert_non_null(strstr(err.text, "Read-only file system"));
    assert_non_null(strstr(err.text, dir));
    unmount(dir);
    bench_tear_down(&b, true);
}

static void test_delete(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "");
    bench_start_armed(&b);
    assert_int_equal(session_snapshot(b.session, &err), 0);
    assert_true(run_until(bench_has_snapshot, &b, SOON));
    char *data = xstrdup(session_snapshot_at(b.session, 0)->data);
    assert_int_equal(session_delete(b.session, 1, &err), 0);
    assert_int_equal(access(data, F_OK), -1);
    assert_null(session_snapshot_at(b.session, 0)->data);
    assert_int_equal(session_delete(b.session, 9, &err), MTUI_E_NOENT);
    free(data);
    session_stop(b.session, &err);
    bench_wait_end(&b);
    bench_tear_down(&b, true);
}

/* ---- Refusals ---- */

static void test_refused(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    bench_set_up(&b, "");
    b.setup.pids[0] = INT_MAX;
    assert_int_equal(bench_start(&b, &err), MTUI_E_GONE);
    b.setup.pids[0] = b.target.pid;

    session_setup_add_trigger(&b.setup, "iner");
    assert_int_equal(bench_start(&b, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "inner"));
    session_setup_remove_trigger(&b.setup, "iner");

    b.machine.version = NULL;
    snprintf(b.caps->line[CAP_PERF].reason, 64, "no such program");
    assert_int_equal(bench_start(&b, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "no such program"));
    b.machine.version = &b.version;

    b.setup.auto_recorder = false;
    b.setup.recorder = PLAN_PT;
    assert_int_equal(bench_start(&b, &err), MTUI_E_NOTSUP);
    assert_non_null(strstr(err.text, "Intel PT"));
    b.setup.auto_recorder = true;

    b.setup.output = xstrdup("/proc/nowhere/at/all");
    assert_true(bench_start(&b, &err) < 0);

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
    bench_tear_down(&b, true);
}

/* ---- run ---- */

static void test_run(void **state)
{
    (void)state;
    struct bench b;
    bench_set_up(&b, "");
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
    if (bench_start(&b, &err) < 0)
        fail_msg("%s", err.text);
    bench_wait_end(&b);
    assert_non_null(strstr(bench_status(&b).sentence, "exited with status 3"));
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
    bench_tear_down(&b, true);
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
    bench_set_up(&b, "");
    session_setup_add_trigger(&b.setup, "outer");
    b.setup.force = true; /* it is called all the time */
    b.setup.when.max_snapshots = 1;
    uint64_t before_ns = loop_now_ns(b.loop);
    bench_start_armed(&b);
    bench_wait_end(&b);
    uint64_t elapsed_ns = loop_now_ns(b.loop) - before_ns; /* microseconds where nothing else runs */
    assert_true(session_snapshot_count(b.session) >= 1);
    const struct session_snapshot *snap = session_snapshot_at(b.session, 0);
    assert_string_equal(snap->trigger, "outer");
    assert_int_equal(snap->tid, b.target.pid);
    assert_true(snap->time_ns > 0);
    assert_true(snap->hit_to_command_ns > 0 && snap->hit_to_command_ns < elapsed_ns);
    struct snapshot_hit *hits = bench_read_hits(&b, &n);
    size_t snapped = 0;
    for (size_t i = 0; i < n; i++) {
        snapped += hits[i].snapshot == 1;
        assert_true(hits[i].arg1 == 20000 || hits[i].snapshot == 0); /* outer(20000) */
        assert_int_equal(hits[i].tid, b.target.pid);
    }
    assert_int_equal(snapped, 1);
    snapshot_dir_free_hits(hits, n);
    bench_tear_down(&b, true);
}

/* A hot trigger fires before the ring has filled, and it is said how little was in it; the next one is closer still. */
static void field_B4_fill_is_known_when_a_trigger_fires(void **state)
{
    (void)state;
    struct bench b;
    if (!uprobes_work())
        skip();
    for (int wait_full = 0; wait_full < 2; wait_full++) {
        bench_set_up(&b, "");
        session_setup_add_trigger(&b.setup, "outer");
        b.setup.force = true;
        b.setup.when.max_snapshots = 2;
        /* Samples of 320 bytes, 9,999 a second: 3.2 MB a second of CPU time fill one in minutes, the other soon. */
        b.setup.ring_bytes = wait_full ? 128u << 10 : 512u << 20;
        b.setup.when.not_before_full = wait_full;
        bench_start_armed(&b);
        bench_wait_end(&b);
        assert_true(session_snapshot_count(b.session) >= 2);
        const struct session_snapshot *first = session_snapshot_at(b.session, 0);
        char *said = xasprintf("the ring was est. %d %% full", first->est_fill_permille / 10);
        assert_true(bench_log_has(&b, said));
        free(said);
        if (wait_full)
            assert_int_equal(first->est_fill_permille, 1000);
        else
            assert_true(first->est_fill_permille >= 0 && first->est_fill_permille < 500);
        bench_tear_down(&b, true);
    }
}

static void test_a_stopped_target_is_named(void **state)
{
    for (int stopped = 0; stopped < 2; stopped++) {
        struct bench b;
        char text[64];
        bench_set_up(&b, "");
        if (stopped)
            bench_hang(b.target.pid);
        b.target_hangs = stopped;
        bench_start_armed(&b);
        snprintf(text, sizeof text, "process %ld is stopped: ", (long)b.target.pid);
        assert_int_equal(bench_log_has(&b, text), stopped);
        session_stop(b.session, NULL);
        bench_wait_end(&b);
        bench_tear_down(&b, true);
    }
    (void)state;
}

static void test_too_hot(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    if (!uprobes_work())
        skip();
    bench_set_up(&b, "");
    session_setup_add_trigger(&b.setup, "outer");
    session_setup_add_trigger(&b.setup, "inner");
    session_setup_add_trigger(&b.setup, "work");
    /* What is judged is a share of the wall time: on a machine that gives the target little of it, each call
     * counts twice more, and the target goes first. */
    (void)setpriority(PRIO_PROCESS, (id_t)b.target.pid, -20);
    session_setup_add_trigger(&b.setup, "outer@return");
    session_setup_add_trigger(&b.setup, "inner@return");
    session_setup_add_trigger(&b.setup, "work@return");
    for (int attempt = 0; attempt < 20; attempt++) {
        if (bench_start(&b, &err) < 0)
            fail_msg("%s", err.text);
        assert_true(run_until(bench_is_armed, &b, SOON));
        if (bench_status(&b).state != SESSION_ARMED)
            break;
        assert_false(bench_status(&b).rate.costly); /* it did not run enough to be slowed */
        session_free(b.session, TARGET_LEAVE);
        b.session = NULL;
    }
    assert_non_null(b.session);
    bench_wait_end(&b);
    assert_int_equal(bench_status(&b).state, SESSION_FAILED);
    assert_true(bench_status(&b).too_hot);
    assert_true(bench_status(&b).rate.costly);
    assert_non_null(strstr(bench_status(&b).sentence, "not armed: "));
    bench_tear_down(&b, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key),     cmocka_unit_test(test_ring),
        cmocka_unit_test(test_key_waits_for_its_turn),
        cmocka_unit_test(test_limits),  cmocka_unit_test(field_A15_nothing_is_overwritten),
        cmocka_unit_test(field_G5_a_whole_recording_stops_before_the_disk_is_full),
        cmocka_unit_test(field_A14_read_only_output_is_refused),
        cmocka_unit_test(test_delete),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_run),     cmocka_unit_test(test_trigger),
        cmocka_unit_test(field_B4_fill_is_known_when_a_trigger_fires),
        cmocka_unit_test(test_too_hot), cmocka_unit_test(test_a_stopped_target_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

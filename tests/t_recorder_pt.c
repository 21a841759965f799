/* core/record/recorder with `pt`: snapshots out of a growing file, from a perf without the hardware
 * (tests/fakeperf.c), judged by perf itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib_record.h"

/* ---- pt ---- */

static int dumped(const char *path, const char *what)
{
    char out[64];
    record_shell(out, sizeof out, "perf report -D -i '%s' 2>/dev/null | grep -c '%s' || true", path,
                 what);
    return atoi(out);
}

/* Snapshots cut out of the growing file, judged by perf itself: only their own AUX buffers, all of
 * the sideband so far. The fake perf numbers the first byte of each buffer. */
static void pt_snapshots(void **state)
{
    (void)state;
    for (int signals = 0; signals < 2; signals++) {
        struct record_run run;
        char base[128];
        fake_setup(&run, "", "6.1.0", false);
        run.plan.recorder = PLAN_PT;
        run.plan.control = signals ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
        fake_start(&run);
        record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
        for (int i = 1; i <= 3; i++) {
            assert_int_equal(recorder_snapshot(run.recorder, "hit", NULL), 0);
            record_wait_snapshots(&run, i, FAKE_SOON);
            const char *path = run.snapshots[i - 1].path;
            assert_string_equal(run.snapshots[i - 1].remark, "");
            assert_int_equal(run.snapshots[i - 1].number, i);
            assert_int_equal(dumped(path, "PERF_RECORD_AUXTRACE "), 2);
            assert_int_equal(dumped(path, "PERF_RECORD_COMM"), 1 + i);
            /* Header, COMM, AUXTRACE_INFO, two buffers with their records, i COMMs, the feature. */
            uint64_t expected = 256 + 56 + 152 + 2 * (48 + 4096) + (uint64_t)i * 56 + 24;
            assert_int_equal(run.snapshots[i - 1].bytes, expected);
            FILE *f = fopen(path, "rb");
            /* This snapshot's first buffer stands behind the COMMs of the ones before. */
            fseek(f, 256 + 56 + 152 + (i - 1) * 56 + 48, SEEK_SET);
            assert_int_equal(fgetc(f), i);
            fclose(f);
        }
        snprintf(base, sizeof base, "%s/perf.data", run.dir);
        assert_int_equal(access(base, F_OK), 0); /* recording goes on */
        recorder_stop(run.recorder, NULL);
        record_wait_end(&run, FAKE_SOON);
        assert_true(run.ok);
        assert_int_equal(run.n_all, 3);
        assert_int_equal(access(base, F_OK), -1); /* all of it stands in the snapshots */
        assert_int_equal(fake_received(&run, "snapshot"), signals ? 0 : 3);
        assert_int_equal(fake_received(&run, "SIGUSR2"), signals ? 3 : 0);
        record_teardown(&run);
    }
}

/* The ack is not the snapshot. */
static void field_H2_pt_without_data(void **state)
{
    (void)state;
    for (int signals = 0; signals < 2; signals++) {
        struct record_run run;
        fake_setup(&run, "no-file", "6.1.0", false);
        run.plan.recorder = PLAN_PT;
        run.plan.control = signals ? PLAN_CONTROL_SIGNALS : PLAN_CONTROL_AUTO;
        fake_start(&run);
        record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
        assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
        record_wait_failed(&run, 1, FAKE_SOON);
        assert_non_null(strstr(run.failed, "no AUX data: the target did not run"));
        assert_non_null(strstr(run.failed, "(KVM)"));
        assert_int_equal(record_status(&run).state, RECORDER_ENABLED);
        assert_int_equal(record_status(&run).snapshots, 0);
        char path[128];
        snprintf(path, sizeof path, "%s/snap-1", run.dir);
        assert_int_equal(access(path, F_OK), -1);
        recorder_stop(run.recorder, NULL);
        record_wait_end(&run, FAKE_SOON);
        assert_true(run.ok);
        assert_int_equal(run.n_all, 0);
        record_teardown(&run);
    }
}

static void pt_ring(void **state)
{
    (void)state;
    static const struct {
        const char *version, *snapshot_option;
        int commands, usr2;
    } t[] = {{"6.1.0", "--snapshot=e ", 1, 0},
             {"5.4.0", "--snapshot=e ", 0, 0},
             {"5.3.0", "--snapshot ", 0, 1}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct record_run run;
        struct err err;
        fake_setup(&run, "", t[i].version, false);
        run.plan.recorder = PLAN_PT;
        run.plan.mode = PLAN_RING;
        fake_start(&run);
        assert_non_null(strstr(record_status(&run).command, t[i].snapshot_option));
        record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
        assert_int_equal(recorder_snapshot(run.recorder, "key", &err), MTUI_E_NOTSUP);
        recorder_stop(run.recorder, NULL);
        record_wait_end(&run, FAKE_SOON);
        assert_true(run.ok);
        assert_int_equal(run.n_all, 1);
        assert_true(run.snapshots[0].is_end);
        assert_int_equal(run.snapshots[0].number, 1);
        assert_int_equal(dumped(run.snapshots[0].path, "PERF_RECORD_AUXTRACE "), 2);
        assert_int_equal(fake_received(&run, "stop"), t[i].commands);
        assert_int_equal(fake_received(&run, "SIGUSR2"), t[i].usr2);
        record_teardown(&run);
    }
}

/* --kernel: perf.data is a directory; each snapshot gets one with the same kcore. */
static void field_C18_directory_with_kcore(void **state)
{
    (void)state;
    struct record_run run;
    struct stat st;
    char path[256];
    fake_setup(&run, "", "6.1.0", false);
    run.plan.recorder = PLAN_PT;
    run.plan.kernel = true;
    fake_start(&run);
    record_wait_state(&run, RECORDER_ENABLED, FAKE_SOON);
    assert_int_equal(recorder_snapshot(run.recorder, "key", NULL), 0);
    record_wait_snapshots(&run, 1, FAKE_SOON);
    recorder_stop(run.recorder, NULL);
    record_wait_end(&run, FAKE_SOON);
    assert_true(run.ok);
    snprintf(path, sizeof path, "%s/snap-1/perf.data/data", run.dir);
    assert_string_equal(run.snapshots[0].path, path);
    assert_int_equal(dumped(path, "PERF_RECORD_AUXTRACE "), 2);
    snprintf(path, sizeof path, "%s/snap-1/perf.data/kcore_dir", run.dir);
    assert_int_equal(stat(path, &st), 0); /* the link leads somewhere */
    assert_true(S_ISDIR(st.st_mode));
    record_teardown(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pt_snapshots),
        cmocka_unit_test(field_H2_pt_without_data),
        cmocka_unit_test(pt_ring),
        cmocka_unit_test(field_C18_directory_with_kcore),
    };
    fake_use();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

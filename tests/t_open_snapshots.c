/* decode/open/open with snapshot directories: which snapshot is opened, its hits, what was asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/export/export.h"
#include "decode/open/open.h"
#include "tests/lib_open.h"
#include "tests/lib_perf.h"
#include "tests/lib_perfwriter.h"

static const struct open_options plain = {.stdin_fd = -1};

/* One recording for all tests of this file; NULL where perf cannot record. */
static char *dir;
static char data[300];

static int setup(void **state)
{
    (void)state;
    dir = open_record_forker(data, sizeof data);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (dir)
        lib_rmdir(dir);
    return 0;
}

static void snapshots_and_hits(void **state)
{
    (void)state;
    if (!dir)
        skip();
    struct recording *r = open_or_fail(data, &plain);
    uint64_t first = trace_info(r->trace)->first_ns, last = trace_info(r->trace)->last_ns;
    size_t samples = sample_log_count(r->samples);
    recording_free(r);

    char session[400], path[500];
    struct snapshot_dir *d = NULL;
    struct err err = {0};
    snprintf(session, sizeof session, "%s/session", dir);
    assert_int_equal(snapshot_dir_create_at(&d, session, &err), 0);
    pid_t pid = 4711;
    char sample[] = "sample", mode[] = "trigger";
    struct session_info info = {.recorder = sample, .mode = mode, .pids = &pid, .npids = 1};
    assert_int_equal(snapshot_dir_write_info(d, &info, &err), 0);
    for (unsigned i = 1; i <= 2; i++) {
        int status = 1;
        free(lib_run(&status, NULL, "mkdir %s/snap-%u && cp %s %s/snap-%u/perf.data", session, i, data,
                     session, i));
        assert_int_equal(status, 0);
    }
    char spin[] = "spin", one[] = "one_of_it", key[] = "key";
    const struct snapshot_hit hits[] = {
        {first + 1000, 77, spin, 0x401000, 5, 6, 2500000, 1, true, 4100000, NULL},
        {first + 2000, 78, spin, 0x401000, 0, 0, 3000000, 0, false, 0, one},
        {last + 400, 0, key, 0, 0, 0, 0, 2, false, 0, NULL},
        {last + 9000000000, 77, spin, 0x401000, 0, 0, 0, 2, false, 0, NULL}, /* a clock gone wrong */
    };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(snapshot_dir_add_hit(d, &hits[i], &err), 0);
    snapshot_dir_close(d);

    r = open_or_fail(session, &plain);
    assert_true(r->has_session);
    assert_string_equal(r->session.recorder, "sample");
    assert_int_equal(r->nsnapshots, 1);
    assert_int_equal(r->snapshots[0], 2);
    size_t n = 0, seen = 0;
    const struct mark *m = trace_marks(r->trace, &n);
    for (size_t i = 0; i < n; i++) {
        if (m[i].kind == MARK_TRIGGER && m[i].tid == 77) {
            assert_string_equal(m[i].detail, "spin, still running, 2.50 ms so far, took 4.10 ms in the end, arguments 0x5 0x6");
            seen |= 1;
        } else if (m[i].kind == MARK_HIT) {
            assert_string_equal(m[i].detail, "one_of_it (spin), took 3.00 ms, counted only");
            seen |= 2;
        } else if (m[i].kind == MARK_SNAPSHOT) {
            assert_int_equal(m[i].time_ns, last + 400);
            seen |= 4;
        }
    }
    assert_int_equal(seen, 7);
    assert_int_equal(trace_info(r->trace)->last_ns, last + 400);
    assert_true(open_has_note(r, "1 trigger hit lies outside"));
    recording_free(r);

    /* Both: the second file repeats the first, so it adds nothing, and says so. */
    struct open_options o = {.stdin_fd = -1, .snapshot = OPEN_ALL};
    r = open_or_fail(session, &o);
    assert_int_equal(r->nsnapshots, 2);
    assert_int_equal(sample_log_count(r->samples), 2 * samples + 1);
    assert_true(open_has_note(r, "stand in two snapshots"));
    recording_free(r);
    o.snapshot = 1;
    r = open_or_fail(session, &o);
    assert_int_equal(r->snapshots[0], 1);
    recording_free(r);
    /* A path inside of it. */
    snprintf(path, sizeof path, "%s/snap-1/perf.data", session);
    r = open_or_fail(path, &plain);
    assert_true(r->has_session);
    assert_int_equal(r->snapshots[0], 1);
    recording_free(r);
    o.snapshot = 9;
    r = NULL;
    assert_int_equal(open_recording(&r, session, &o, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "no snapshot 9: the last one is 2"));
}

/* A sample of two frames in user code, below two in the kernel, and one of the kernel alone. */
static void write_kernel_stacks(const char *path)
{
    static const uint64_t both[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000100, 0xffffffff81000200,
                                    PERF_CONTEXT_USER, 0x1010, 0x1020};
    struct perf_writer w = pw_file(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                   PERF_SAMPLE_CALLCHAIN);
    for (uint64_t i = 0; i < 2; i++) {
        size_t n = i ? 3 : 6;
        pw_begin(&w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
        pw_u64(&w, both[1]);
        pw_u32(&w, 7);
        pw_u32(&w, 7);
        pw_u64(&w, 1000 * (i + 1));
        pw_u64(&w, n);
        for (size_t k = 0; k < n; k++)
            pw_u64(&w, both[k]);
        pw_end(&w);
    }
    pw_finish(&w);
    lib_write(path, w.data, w.len);
    pw_free(&w);
}

static void kernel_code_only_where_asked_for(void **state)
{
    (void)state;
    char *tmp = lib_mkdtemp(), session[300], path[400];
    static const size_t frames[2][2] = {{4, 2}, {2, 1}};
    for (int user_only = 0; user_only <= 1; user_only++) {
        struct snapshot_dir *d = NULL;
        struct err err = {0};
        struct session_info info = {.user_only = user_only};
        snprintf(session, sizeof session, "%s/session%d", tmp, user_only);
        assert_int_equal(snapshot_dir_create_at(&d, session, &err), 0);
        assert_int_equal(snapshot_dir_write_info(d, &info, &err), 0);
        snapshot_dir_close(d);
        snprintf(path, sizeof path, "%s/snap-1", session);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%s/snap-1/perf.data", session);
        write_kernel_stacks(path);
        struct recording *r = open_or_fail(session, &plain);
        const struct sample_event *e = sample_log_events(r->samples);
        assert_int_equal(sample_log_count(r->samples), 2);
        for (size_t i = 0; i < 2; i++) {
            char text[512];
            size_t n = 0;
            open_stack_of(r, &e[i], text, sizeof text);
            for (const char *c = text; (c = strchr(c, ';')); c++)
                n++;
            assert_int_equal(n, frames[user_only][i]);
            if (user_only && i == 1)
                assert_string_equal(text, "[kernel];");
        }
        recording_free(r);
    }
    lib_rmdir(tmp);
}

static void snapshot_names(void **state)
{
    (void)state;
    unsigned n = 7;
    struct err err = {0};
    assert_int_equal(open_parse_snapshot("last", &n, &err), 0);
    assert_int_equal(n, OPEN_LAST);
    assert_int_equal(open_parse_snapshot("all", &n, &err), 0);
    assert_true(n == OPEN_ALL);
    assert_int_equal(open_parse_snapshot("12", &n, &err), 0);
    assert_int_equal(n, 12);
    assert_int_equal(open_parse_snapshot("0", &n, &err), MTUI_E_INVAL);
    assert_int_equal(open_parse_snapshot("x", &n, &err), MTUI_E_INVAL);
    assert_int_equal(n, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_and_hits),
        cmocka_unit_test(kernel_code_only_where_asked_for),
        cmocka_unit_test(snapshot_names),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

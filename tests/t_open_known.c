/* Timed calls between samples: where they stand, and that those that hostile recordings make up cost time in proportion
 * to their number, and no more. What is right is counted from how the files were made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/session/snapshot_dir.h"
#include "tests/lib_open.h"
#include "tests/lib_perf.h"
#include "tests/lib_perfwriter.h"
#include "tests/lib_run.h"

#define PID      77
#define BASE     0x400000u /* of this program, in the process that there never was */
#define FIRST_NS 1000000000u
#define LAST_NS  11000000000u
#define MANY     100000u
#define CPU_S    20.0 /* of all of it; in proportion to the square of MANY it would be minutes */

extern const char __executable_start[]; /* ld(1) */

static void nested(void **state);
static void overlapping(void **state);

static uint64_t address(void (*function)(void **))
{
    return BASE + ((uintptr_t)function - (uintptr_t)__executable_start);
}

/* Many samples, an exit behind each where exits is set. */
static void write_samples(struct perf_writer *w, bool exits)
{
    for (uint64_t i = 0; i <= MANY; i++) {
        uint64_t time_ns = FIRST_NS + (LAST_NS - FIRST_NS) / MANY * i;
        pw_sample_ip(w, PID, address(overlapping), time_ns);
        if (!exits)
            continue;
        pw_begin(w, PERF_RECORD_EXIT, 0);
        for (int k = 0; k < 4; k++) /* pid, ppid, tid, ptid */
            pw_u32(w, PID);
        pw_u64(w, time_ns);
        pw_end_id(w, PID, PID, time_ns);
    }
}

static void put_switch(struct perf_writer *w, uint16_t misc, uint64_t time_ns)
{
    pw_begin(w, PERF_RECORD_SWITCH, misc);
    pw_end_id(w, PID, PID, time_ns);
}

/* It is sampled, preempted, comes back for 5 us without a sample, and waits. */
static void write_last_run(struct perf_writer *w, bool ignored)
{
    (void)ignored;
    pw_sample_ip(w, PID, address(overlapping), FIRST_NS);
    pw_sample_ip(w, PID, address(overlapping), FIRST_NS + 100000);
    put_switch(w, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, FIRST_NS + 150000);
    put_switch(w, 0, FIRST_NS + 200000);
    put_switch(w, PERF_RECORD_MISC_SWITCH_OUT, FIRST_NS + 205000);
    pw_sample_ip(w, PID + 1, address(overlapping), LAST_NS); /* of another process */
}

static char *make_session(void (*write_events)(struct perf_writer *, bool), bool exits)
{
    char *dir = run_temp_dir(), path[300] = "";
    struct perf_writer w = pw_file(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
    pw_comm(&w, PID, PID, "program", 1, FIRST_NS);
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    pw_mmap2(&w, PID, BASE, 1u << 30, 0, path, FIRST_NS);
    write_events(&w, exits);
    pw_finish(&w);
    struct snapshot_dir *d = NULL;
    char sample[] = "sample", mode[] = "trigger";
    pid_t pid = PID;
    struct session_info info = {.recorder = sample, .mode = mode, .pids = &pid, .npids = 1};
    assert_int_equal(snapshot_dir_create_at(&d, dir, NULL), 0);
    assert_int_equal(snapshot_dir_write_info(d, &info, NULL), 0);
    snapshot_dir_close(d);
    snprintf(path, sizeof path, "%s/snap-1", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/snap-1/perf.data", dir);
    FILE *f = fopen(path, "we");
    assert_true(f && fwrite(w.data, 1, w.len, f) == w.len && fclose(f) == 0);
    pw_free(&w);
    return dir;
}

static FILE *begin_hits(const char *dir)
{
    char path[300];
    snprintf(path, sizeof path, "%s/hits.tsv", dir);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs("time_ns\ttid\ttrigger\taddress\targ1\targ2\tduration_ns\tsnapshot\n", f);
    return f;
}

static void add_hit(FILE *f, uint64_t from_ns, uint64_t to_ns)
{
    fprintf(f, "%" PRIu64 "\t%d\tf\t%" PRIx64 "\t0\t0\t%" PRIu64 "\t0\n", to_ns, PID, address(nested), to_ns - from_ns);
}

static struct recording *open_timed(const char *dir)
{
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    struct recording *r = open_or_fail(dir, &(struct open_options){.stdin_fd = -1});
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double took = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    print_message("%u calls: %.2f s\n", MANY, took);
    assert_true(took < CPU_S);
    return r;
}

static void forget(struct recording *r, char *dir)
{
    recording_free(r);
    lib_rmdir(dir);
}

/* Each in the one before: the outermost ones are shown, and it is said how many are not. */
static void nested(void **state)
{
    (void)state;
    char *dir = make_session(write_samples, false), said[80];
    FILE *f = begin_hits(dir);
    for (uint64_t i = 0; i < MANY; i++)
        add_hit(f, FIRST_NS + 1000 + i * 1000, LAST_NS - 1000 - i * 1000);
    fclose(f);
    struct recording *r = open_timed(dir);
    snprintf(said, sizeof said, "%u,%03u timed calls", (MANY - 128) / 1000, (MANY - 128) % 1000);
    assert_true(open_has_note(r, said));
    assert_int_equal(trace_thread_count(r->trace), 1);
    assert_int_equal(trace_thread(r->trace, 0)->depths, 128 + 1); /* the samples are of another function */
    forget(r, dir);
}

/* Each begins and ends a little later than the one before, and the thread exits again and again. */
static void overlapping(void **state)
{
    (void)state;
    char *dir = make_session(write_samples, true);
    FILE *f = begin_hits(dir);
    for (uint64_t i = 0; i < MANY; i++)
        add_hit(f, FIRST_NS + 1000 + i * 1000, LAST_NS - 1000000000 + i * 1000);
    fclose(f);
    struct recording *r = open_timed(dir);
    assert_false(open_has_note(r, "timed calls"));
    forget(r, dir);
}

/* A call that had not returned when the snapshot was taken is there to the end, and what its thread waits for. */
static void runs_on(void **state)
{
    (void)state;
    const uint64_t from_ns = FIRST_NS + 50000;
    char *dir = make_session(write_last_run, false);
    FILE *f = begin_hits(dir);
    fprintf(f, "%" PRIu64 "\t%d\tf\t%" PRIx64 "\t0\t0\t%" PRIu64 "\t1\trunning\n", (uint64_t)LAST_NS, PID,
            address(nested), LAST_NS - from_ns);
    fclose(f);
    struct recording *r = open_or_fail(dir, &(struct open_options){.stdin_fd = -1});
    const struct functions *names = trace_functions(r->trace);
    size_t thread = trace_thread(r->trace, 0)->tid == PID ? 0 : 1, n;
    const struct span *s = trace_row(r->trace, thread, 1, &n); /* below what the samples are of */
    assert_true(n > 0);
    assert_string_equal(functions_get(names, s[n - 1].fn)->name, "nested");
    assert_true(s[n - 1].start_ns >= from_ns && s[n - 1].start_ns < FIRST_NS + 205000);
    assert_int_equal(s[n - 1].end_ns, LAST_NS);
    const struct span *below = trace_row(r->trace, thread, 2, &n);
    assert_true(n > 0);
    assert_string_equal(functions_get(names, below[n - 1].fn)->name, "[off cpu]");
    assert_int_equal(below[n - 1].start_ns, FIRST_NS + 205000);
    assert_int_equal(below[n - 1].end_ns, LAST_NS);
    forget(r, dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested),
        cmocka_unit_test(overlapping),
        cmocka_unit_test(runs_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

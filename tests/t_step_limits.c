/* The limits of stepping that were measured, each held by a test: where a window begins, what it costs and
 * where it ends, what the target may never notice, and that it always runs on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/proc_stat.h"
#include "core/record/aux_file.h"
#include "core/record/step_message.h"
#include "core/step/perf_writer.h"
#include "core/step/step_anchors.h"
#include "core/step/step_thread.h"
#include "lib_stepper.h"

#define SOON 20.0

static const struct step_recorder_options calls = {.tracer = {.at_sites = true, .budget = 200000}};

/* A running scenario whose function is armed. */
static void begin(struct stepper *s, const char *scenario, const char *function,
                  const struct step_recorder_options *o)
{
    stepper_start(s, scenario);
    stepper_site(s, function);
    stepper_record(s, o, true);
    stepper_command(s, "enable");
}

static void stop(struct stepper *s)
{
    stepper_command(s, "stop");
    stepper_stop(s);
}

static struct step_message wait_hit(struct stepper *s)
{
    struct step_message m;
    const char *line = stepper_wait(s, "mtui step: hit");
    assert_true(step_message_parse(line, strlen(line), &m));
    return m;
}

/* The dump that the recorder has announced. */
static char *wait_dump(struct stepper *s, unsigned number)
{
    char words[32];
    snprintf(words, sizeof words, ".%u ]", number);
    const char *line = stepper_wait(s, words);
    assert_non_null(strstr(line, "[ perf record: Dump "));
    return xasprintf("%s.%u", s->data, number);
}

/* The first line of the truth that has this kind: its from, to and sp. */
static bool truth_first(const struct stepper *s, const char *wanted, uint64_t *from, uint64_t *to)
{
    char line[256], kind[16];
    FILE *f = fopen(s->truth, "r");
    bool found = false;
    assert_non_null(f);
    while (!found && fgets(line, sizeof line, f))
        found = sscanf(line, "%*u\t%*d\t%15s\t%" SCNx64 "\t%" SCNx64, kind, from, to) == 3 &&
                strcmp(kind, wanted) == 0;
    fclose(f);
    return found;
}

/* The stop comes behind the first instruction, and the probe's int3 shows in memory: the recording begins
 * at the function all the same, and its first instruction is the true one. */
static void begins_at_the_function(void **state)
{
    struct stepper s;
    uint64_t from, to;
    (void)state;
    stepper_start(&s, "plain");
    stepper_site(&s, "work");
    struct step_recorder_options once = calls;
    once.one_file = true;
    once.when.max_snapshots = 1;
    stepper_record(&s, &once, true);
    stepper_command(&s, "enable");
    struct step_message hit = wait_hit(&s);
    stepper_wait(&s, "ended: returned");
    assert_int_equal(hit.address, stepper_address(&s, "work"));
    assert_int_equal(hit.tid, s.target.pid);
    assert_int_equal(hit.clock, STEP_CLOCK_START);
    assert_int_equal(hit.verdict, TRIGGER_FIRE);
    assert_true(hit.arg1 > 0 && hit.arg1 < 1000000); /* work(rounds) */
    stop(&s);
    assert_true(truth_first(&s, "begin", &from, &to));
    assert_int_equal(to, hit.address);
    assert_true(stepper_compare(&s, s.data) > 5); /* perf decodes from the file's bytes, not from 0xCC */
    stepper_runs_free(&s, "work");
    stepper_end(&s);
}

/* Attaching, arming, disarming and letting go again and again breaks no system call off: the victim's
 * sleepers count each EINTR as an error. */
static void breaks_no_call_off(void **state)
{
    struct stepper s;
    (void)state;
    stepper_start(&s, "wait");
    stepper_site(&s, "leaf");
    for (int i = 0; i < 3; i++) {
        stepper_record(&s, &calls, true);
        stepper_command(&s, "enable");
        stepper_command(&s, "disable");
        stepper_command(&s, "enable");
        stepper_command(&s, "stop");
        stepper_stop(&s);
        stepper_runs_free(&s, "leaf");
    }
    stepper_end(&s);
}

/* A window ends at its budget of instructions, exactly, and the call goes on at full speed. */
static void budget_of_instructions(void **state)
{
    struct stepper s;
    (void)state;
    struct step_recorder_options o = calls;
    o.tracer.budget = 5000;
    begin(&s, "many", "work", &o);
    stepper_command(&s, "snapshot");
    assert_non_null(strstr(stepper_wait(&s, "ended: "), "5,000 instructions"));
    char *dump = wait_dump(&s, 1);
    stop(&s);
    stepper_runs_free(&s, "work");
    assert_true(stepper_end(&s) > 1);
    free(dump);
}

/* A window is over by wall time even while its thread sleeps in the kernel, and the sleep is not cut. */
static void budget_of_time(void **state)
{
    struct stepper s;
    (void)state;
    struct step_recorder_options o = calls;
    o.tracer.budget_wall_ns = 50000000;
    o.when.max_snapshots = 1;
    begin(&s, "wait", "work", &o);
    stepper_command(&s, "snapshot");
    assert_non_null(strstr(stepper_wait(&s, "ended: "), "ended: time"));
    char *dump = wait_dump(&s, 1);
    stop(&s);
    stepper_compare(&s, dump);
    assert_true(stepper_end(&s) > 0);
    free(dump);
}

/* A call that longjmp leaves: the window ends with it, and that is said. */
static void left_by_a_jump(void **state)
{
    struct stepper s;
    (void)state;
    stepper_start_gated(&s, "leave");
    stepper_site(&s, "jump_out");
    struct step_recorder_options o = calls;
    o.one_file = true;
    o.when.max_snapshots = 1;
    stepper_record(&s, &o, true);
    stepper_command(&s, "enable");
    stepper_go(&s);
    assert_non_null(strstr(stepper_wait(&s, "ended: "), "ended: left"));
    stepper_stop(&s);
    stepper_runs_free(&s, "jump_out");
    assert_true(stepper_compare(&s, s.data) > 1);
    assert_true(stepper_end(&s) > 1);
}

/* A timer faster than stepping starves the program: the window ends, and it gets on. */
static void starvation(void **state)
{
    struct stepper s;
    (void)state;
    struct step_recorder_options o = calls;
    o.tracer.budget = 0;
    o.when.max_snapshots = 1;
    begin(&s, "starve", "work", &o);
    assert_non_null(strstr(stepper_wait(&s, "ended: "), "ended: starved"));
    stop(&s);
    stepper_runs_free(&s, "work");
    assert_true(stepper_end(&s) > 1);
}

/* Only the Nth hit is stepped, and each N after; others are told, and cost a stop. */
static void nth_hit(void **state)
{
    struct stepper s;
    (void)state;
    struct step_recorder_options o = calls;
    o.when.hits = 3;
    o.when.max_snapshots = 1;
    begin(&s, "plain", "work", &o);
    struct step_message m[4];
    for (int i = 0; i < 3; i++)
        m[i] = wait_hit(&s);
    assert_int_equal(m[0].verdict, TRIGGER_NOT_NTH);
    assert_int_equal(m[1].verdict, TRIGGER_NOT_NTH);
    assert_int_equal(m[2].verdict, TRIGGER_FIRE);
    assert_int_equal(m[2].arg1, m[0].arg1 + 2); /* no round was missed */
    stepper_command(&s, "snapshot");
    char *dump = wait_dump(&s, 1);
    stop(&s);
    assert_true(stepper_compare(&s, dump) > 5);
    stepper_end(&s);
    free(dump);
}

/* String instructions of millions of iterations are one instruction each, and take no longer than at full speed. */
static void long_strings(void **state)
{
    struct stepper s;
    struct step_message m;
    (void)state;
    stepper_start_gated(&s, "repeat");
    stepper_site(&s, "work");
    struct step_recorder_options o = calls;
    o.one_file = true;
    o.when.max_snapshots = 1;
    stepper_record(&s, &o, true);
    stepper_command(&s, "enable");
    stepper_go(&s);
    assert_non_null(strstr(stepper_wait(&s, "instructions in"), "ended: returned"));
    const char *line = stepper_wait(&s, "mtui step: ended");
    assert_true(step_message_parse(line, strlen(line), &m));
    assert_in_range(m.instructions, 100, 10000); /* 9,000,000 iterations; the rest is the C library's */
    stepper_command(&s, "stop");
    stepper_stop(&s);
    stepper_runs_free(&s, "work");
    assert_true(stepper_compare(&s, s.data) > 10);
    assert_true(stepper_end(&s) > 1);
}

/* A snapshot asked for twice ends the window in progress and is written. */
static void window_in_progress(void **state)
{
    struct stepper s;
    (void)state;
    struct step_recorder_options o = calls;
    o.tracer.budget = 0;
    o.when.max_snapshots = 1;
    begin(&s, "many", "work", &o);
    assert_int_equal(wait_hit(&s).verdict, TRIGGER_FIRE);
    stepper_command(&s, "snapshot");
    stepper_wait(&s, "mtui step: window "); /* its progress is told while it goes on */
    stepper_command(&s, "snapshot");
    assert_non_null(strstr(stepper_wait(&s, "ended: "), "ended: stopped"));
    char *dump = wait_dump(&s, 1);
    stop(&s);
    assert_true(stepper_compare(&s, dump) > 100);
    stepper_runs_free(&s, "work");
    stepper_end(&s);
    free(dump);
}

/* So many threads have been stepped far enough to have come to a branch. */
static void wait_busy_windows(struct stepper *s, size_t n)
{
    pid_t seen[8];
    size_t found = 0;
    while (found < n) {
        struct step_message m;
        const char *line = stepper_wait(s, "mtui step: window ");
        assert_true(step_message_parse(line, strlen(line), &m));
        bool fresh = m.tid && m.instructions > 100 && found < sizeof seen / sizeof *seen;
        for (size_t i = 0; i < found; i++)
            fresh &= seen[i] != m.tid;
        if (fresh)
            seen[found++] = m.tid;
    }
}

/* Without sites every thread is stepped from now on; a snapshot has what was stepped so far. */
static void every_thread(void **state)
{
    struct stepper s;
    (void)state;
    stepper_start(&s, "plain");
    struct step_recorder_options o = {.tracer = {.ring_bytes = 1 << 20}};
    stepper_record(&s, &o, true);
    stepper_command(&s, "enable");
    wait_busy_windows(&s, 3);
    stepper_command(&s, "snapshot");
    char *dump = wait_dump(&s, 1);
    stepper_command(&s, "snapshot");
    char *second = wait_dump(&s, 2);
    stepper_command(&s, "disable");
    stepper_wait(&s, "ended: stopped");
    stop(&s);
    char command[1024];
    int status;
    snprintf(command, sizeof command,
             "perf script -i %s --itrace=b -F tid 2>/dev/null | sort -u | wc -l", second);
    char *threads = run_output(command, &status);
    assert_int_equal(strtol(threads, NULL, 10), 3); /* the sleepers too */
    stepper_runs_free(&s, NULL);
    stepper_end(&s);
    free(threads);
    free(dump);
    free(second);
}

static bool is_untraced(void *arg)
{
    char value[32];
    return proc_status_value("/proc", *(pid_t *)arg, "TracerPid", value, sizeof value) &&
           strcmp(value, "0") == 0;
}

/* How the only window of the recording ended. */
static enum step_end window_end(const struct stepper *s)
{
    struct step_anchor_window *w = NULL;
    size_t n = 0;
    assert_int_equal(step_anchors_read(s->anchors, &w, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(w->tid, s->target.pid);
    assert_true(w->start_clock == STEP_CLOCK_START && w->end_clock > w->start_clock);
    enum step_end why = w->why;
    free(w);
    return why;
}

/* The other side of the pipes is gone, as when mtui is killed by SIGKILL, in the middle of a window: the
 * recorder lets go and ends, the target runs on, and what was stepped is a snapshot. */
static void mtui_is_killed(void **state)
{
    struct stepper s;
    (void)state;
    struct step_recorder_options o = calls;
    o.tracer.budget = 0;
    begin(&s, "many", "work", &o);
    assert_int_equal(wait_hit(&s).verdict, TRIGGER_FIRE);
    wait_busy_windows(&s, 1);
    close(s.ctl);
    close(s.ack);
    close(s.say);
    s.ctl = s.ack = s.say = -1;
    assert_true(run_until(is_untraced, &s.target.pid, SOON));
    stepper_stop(&s);
    stepper_runs_free(&s, "work");
    char *kept = xasprintf("%s/snap-1/perf.data", s.dir);
    assert_true(stepper_compare(&s, kept) > 10);
    assert_int_equal(window_end(&s), STEP_END_ABANDONED);
    assert_true(stepper_end(&s) > 1);
    free(kept);
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

/* Three windows of 40,000 bytes into files of at most `limit`. Returns what the file has then, 0: it is
 * gone. *whole: what it had with its first window, and the end that every file has. */
static uint64_t write_limited(rlim_t limit, uint64_t *whole, struct err *err)
{
    static uint8_t packets[40000]; /* PAD packets */
    struct rlimit before, now;
    struct perf_writer *w;
    struct perf_writer_options o = {.encoding = pt_encode_options_default()};
    char *dir = run_temp_dir(), *path = xasprintf("%s/perf.data", dir);
    uint64_t size = 0;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    now = (struct rlimit){limit, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
    int rc = perf_writer_open(&w, path, &o, err);
    for (uint32_t i = 0; rc == 0 && i < 3; i++) {
        perf_writer_auxtrace(w, (struct perf_writer_id){1, 1, -1, 1}, i, 0, packets, sizeof packets);
        if (i == 0)
            *whole = perf_writer_bytes(w) + 24; /* a section header, a count */
    }
    if (rc == 0)
        rc = perf_writer_close(w, err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(rc, MTUI_E_IO);
    if (access(path, F_OK) == 0) {
        assert_int_equal(perf_data_check(path, &size, NULL), PERF_DATA_OK);
        assert_int_equal(size, size_of(path));
    }
    run_remove_tree(dir);
    free(path);
    free(dir);
    return size;
}

/* Of a file that does not fit, the windows that do are kept; without one, there is no file. */
static void windows_that_fit_are_kept(void **state)
{
    struct err err;
    uint64_t whole = 0;
    (void)state;
    assert_int_equal(write_limited(30000, &whole, &err), 0);
    assert_non_null(strstr(err.text, "the limit on the size of files (ulimit -f) ("));
    assert_null(strstr(err.text, "kept"));
    uint64_t got = write_limited(70000, &whole, &err);
    assert_true(whole > 40000 && got == whole);
    assert_non_null(strstr(err.text, "written whole; what fits of it is kept)"));
}

/* One buffer of packets, larger than what fits: a PSB every 1,000 bytes, and the number of each behind it. Returns the
 * numbers of the first and the last one kept. */
static void write_one_limited(bool newest, rlim_t limit, unsigned *first, unsigned *last)
{
    static uint8_t packets[40000];
    struct rlimit before, now;
    struct perf_writer *w;
    struct perf_writer_options o = {.encoding = pt_encode_options_default(), .newest = newest};
    char *dir = run_temp_dir(), *path = xasprintf("%s/perf.data", dir);
    struct err err;
    uint64_t size = 0;
    size_t len;
    for (unsigned i = 0; i < 40; i++) {
        memcpy(packets + 1000 * i, "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82", 16);
        packets[1000 * i + 16] = (uint8_t)i;
    }
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    now = (struct rlimit){limit, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
    assert_int_equal(perf_writer_open(&w, path, &o, &err), 0);
    perf_writer_auxtrace(w, (struct perf_writer_id){1, 1, -1, 1}, 0, 5000, packets, sizeof packets);
    assert_int_equal(perf_writer_close(w, &err), MTUI_E_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_non_null(strstr(err.text, "what fits of it is kept"));
    assert_int_equal(perf_data_check(path, &size, NULL), PERF_DATA_OK);
    assert_int_equal(size, size_of(path));
    char *file = run_read_file(path, &len);
    const char *psb = memmem(file, len, packets, 16);
    uint64_t head[3]; /* in front of it: the record's size, its offset; then reference, idx, tid, cpu, reserved */
    assert_non_null(psb);
    memcpy(head, psb - 40, sizeof head);
    *first = (uint8_t)psb[16];
    *last = *first + (unsigned)(head[0] / 1000) - 1;
    assert_int_equal(head[0] % 1000, 0); /* whole stretches */
    assert_int_equal(head[1], 5000 + 1000 * *first);
    assert_memory_equal(psb, packets + 1000 * *first, head[0]);
    free(file);
    run_remove_tree(dir);
    free(path);
    free(dir);
}

/* Of a buffer that does not fit, the beginning or the end is kept, in whole stretches: of 20,000 bytes some fifteen,
 * less what heads and ends of the file take. */
static void of_a_buffer_a_part_is_kept(void **state)
{
    unsigned first, last;
    (void)state;
    write_one_limited(false, 20000, &first, &last);
    assert_int_equal(first, 0);
    assert_in_range(last, 12, 16);
    write_one_limited(true, 20000, &first, &last);
    assert_int_equal(last, 39);
    assert_in_range(first, 23, 27);
}

/* A file that cannot be written whole ends the recording, with status 1: the target is let go of, what was
 * written before is kept, and of the file itself nothing is left. */
static void no_room_for_a_file(void **state)
{
    struct stepper s;
    int status;
    (void)state;
    begin(&s, "plain", "work", &calls);
    stepper_command(&s, "snapshot");
    char *first = wait_dump(&s, 1), *second = xasprintf("%s.2", s.data);
    uint64_t before = size_of(first);
    struct rlimit limit = {100, 100};
    assert_int_equal(prlimit(s.pid, RLIMIT_FSIZE, &limit, NULL), 0);
    stepper_command(&s, "snapshot");
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid); /* not told to */
    s.pid = 0;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_int_equal(access(second, F_OK), -1);
    assert_true(before > 100 && size_of(first) == before);
    stepper_runs_free(&s, "work");
    assert_true(stepper_end(&s) > 1);
    free(second);
    free(first);
}

/* Nobody reads what the recorder says: the target is not held up. */
static void nobody_listens(void **state)
{
    struct stepper s;
    (void)state;
    stepper_start(&s, "many");
    stepper_site(&s, "leaf"); /* three million calls a round, each a line */
    struct step_recorder_options o = calls;
    o.when.not_before_ns = UINT64_MAX / 2;
    stepper_record(&s, &o, true);
    stepper_command(&s, "enable");
    char value[32];
    uint64_t until = 0;
    assert_true(proc_status_value("/proc", s.pid, "VmRSS", value, sizeof value));
    until = strtoull(value, NULL, 10) + 900; /* more than a pipe holds waits in the recorder */
    for (uint64_t kb = 0; kb < until; kb = strtoull(value, NULL, 10))
        assert_true(proc_status_value("/proc", s.pid, "VmRSS", value, sizeof value));
    stepper_command(&s, "ping");
    stepper_command(&s, "disable");
    stepper_stop(&s);
    stepper_runs_free(&s, "leaf");
    stepper_end(&s);
}

/* Times: a line for the beginning, each system call, and the end, on both clocks. */
static void anchors(void **state)
{
    struct stepper s;
    (void)state;
    struct step_recorder_options o = calls;
    o.when.max_snapshots = 1;
    begin(&s, "wait", "work", &o);
    stepper_wait(&s, "ended: returned");
    stop(&s);
    char *text = run_read_file(s.anchors, NULL), *next = text;
    uint64_t clock, perf, wall, first_perf = 0;
    char what[32];
    int tid;
    unsigned n = 0;
    for (char *line; (line = strsep(&next, "\n"));) {
        if (sscanf(line, "%" SCNu64 "\t%" SCNu64 "\t%d\t%31s\t%" SCNu64, &clock, &perf, &tid, what,
                   &wall) != 5)
            continue;
        assert_int_equal(tid, s.target.pid);
        assert_string_equal(what, n == 0 ? "begin" : n == 1 ? "syscall:230" : "end");
        if (n == 0)
            first_perf = perf;
        if (n == 1) /* the sleep of one second, and next to no instructions */
            assert_true(wall >= 1000000000 && clock < STEP_CLOCK_START + 1000);
        if (n == 2)
            assert_true(perf >= first_perf + 1000000000);
        n++;
    }
    assert_int_equal(n, 3);
    free(text);
    stepper_end(&s);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_step_limits: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_at_the_function),
        cmocka_unit_test(breaks_no_call_off),
        cmocka_unit_test(budget_of_instructions),
        cmocka_unit_test(budget_of_time),
        cmocka_unit_test(left_by_a_jump),
        cmocka_unit_test(starvation),
        cmocka_unit_test(long_strings),
        cmocka_unit_test(nth_hit),
        cmocka_unit_test(window_in_progress),
        cmocka_unit_test(every_thread),
        cmocka_unit_test(mtui_is_killed),
        cmocka_unit_test(windows_that_fit_are_kept),
        cmocka_unit_test(of_a_buffer_a_part_is_kept),
        cmocka_unit_test(no_room_for_a_file),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(anchors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* core/base/tail, core/record/perf_message, core/record/perf_ready: what perf says and what /proc says about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/record/perf_message.h"
#include "core/record/perf_ready.h"
#include "core/base/tail.h"

static bool add(struct tail *t, const char *line)
{
    return tail_add(t, line, strlen(line));
}

static void last_lines(void **state)
{
    (void)state;
    struct tail *t = tail_new(3);
    assert_int_equal(tail_count(t), 0);
    assert_true(add(t, "one"));
    for (int i = 0; i < 14; i++)
        assert_int_equal(add(t, "full"), i == 0);
    assert_string_equal(tail_line(t, 1), "full x14");
    assert_false(add(t, ""));
    assert_false(add(t, " \r"));
    assert_true(add(t, "esc\x1b[31m\ttab\xff"));
    assert_string_equal(tail_line(t, 2), "esc\\x1b[31m\\ttab\\xff");
    assert_true(add(t, "full x14")); /* the text, not the count */
    assert_int_equal(tail_count(t), 3);
    assert_string_equal(tail_line(t, 0), "full x14");
    assert_string_equal(tail_line(t, 2), "full x14");
    char big[10000];
    memset(big, 'x', sizeof big);
    assert_true(tail_add(t, big, sizeof big));
    assert_false(tail_add(t, big, sizeof big));
    assert_true(strlen(tail_line(t, 2)) < 500);
    tail_free(t);
}

static void dump_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line, *base, *suffix;
    } t[] = {
        {"[ perf record: Dump /d/perf.data.2026112916394494 ]", "/d/perf.data",
         ".2026112916394494"},
        {"[ perf record: Dump perf.data.2026112916394494 ]", "perf.data", ".2026112916394494"},
        {"[ perf record: Dump /a ] b/perf.data.1 ]", "/a ] b/perf.data", ".1"},
        {"[ perf record: Dump /d/perf.data.1 ]", "/other/perf.data", NULL},
        {"[ perf record: Dump /d/perf.data/../../etc/passwd ]", "/d/perf.data", NULL},
        {"[ perf record: Dump /d/perf.data.1", "/d/perf.data", NULL},
        {"[ perf record: Dump ]", "/d/perf.data", NULL},
        {"[ perf record: dump data: Woken up 1 times ]", "/d/perf.data", NULL},
        {"", "", NULL},
        {"[ perf record: Dump /d/perf.data.000000000000000000000000000000000000000000000 ]",
         "/d/perf.data", NULL}, /* longer than suffix */
    };
    char suffix[32];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        bool is =
            perf_message_is_dump(t[i].line, strlen(t[i].line), t[i].base, suffix, sizeof suffix);
        assert_int_equal(is, t[i].suffix != NULL);
        if (is)
            assert_string_equal(suffix, t[i].suffix);
    }
    const char nul[] = "[ perf record: Dump /d/perf.data.1\0.2 ]";
    assert_false(perf_message_is_dump(nul, sizeof nul - 1, "/d/perf.data", suffix, sizeof suffix));
}

static void complaints(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
        bool loss;
    } t[] = {
        {"failed to write perf data, error: No space left on device", "the disk is full", true},
        {"Permission error mapping pages.", "locked memory", false},
        {"Couldn't create thread/CPU maps: No such process", "does not exist", false},
        {"event syntax error: 'intel_pt//u'", "does not know the event", false},
        {"No AUX area tracing to snapshot", "Intel PT cannot be recorded", false},
        {"failed to mmap with 12 (Cannot allocate memory)", "not enough memory for the ring",
         false},
        {"Error: unknown option `control'", "too old", false},
        {"The sys_perf_event_open() syscall returned with 16 (Device or resource busy)", "in use",
         false},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        int c = perf_message_find(t[i].line);
        assert_true(c >= 0);
        assert_non_null(strstr(perf_message_sentence(c), t[i].says));
        assert_int_equal(perf_message_is_loss(c), t[i].loss);
    }
    assert_int_equal(perf_message_find("[ perf record: Woken up 1 times to write data ]"), -1);
    assert_int_equal(perf_message_find("[ perf record: Captured and wrote 0.1 MB x ]"), -1);
    assert_false(perf_message_is_loss(-1));
    /* The cause has a lower number than what follows from it. */
    assert_true(perf_message_find("No space left on device") <
                perf_message_find("failed to write perf data, error: something"));
}

static void endings(void **state)
{
    (void)state;
    char text[128];
    perf_message_end("perf", &(struct child_end){.known = true, .code = 255}, text, sizeof text);
    assert_string_equal(text, "perf exited with status 255");
    perf_message_end("perf", &(struct child_end){.known = true, .signaled = true, .code = SIGKILL}, text,
                     sizeof text);
    assert_string_equal(text, "perf was killed by signal 9 (Killed)");
    perf_message_end("perf", &(struct child_end){0}, text, sizeof text);
    assert_non_null(strstr(text, "not known"));
}

/* ---- readiness, from files as /proc has them ---- */

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Lines seen of perf 6.1: before its handlers, before its main loop, in it, with a signal pending.
 */
static void readiness(void **state)
{
    (void)state;
#define STATUS(pending, ignored, caught)                                                           \
    "Name:\tperf\nState:\tS (sleeping)\nSigQ:\t0/1\nSigPnd:\t0000000000000000\nShdPnd:\t" pending  \
    "\nSigBlk:\t0\nSigIgn:\t" ignored "\nSigCgt:\t" caught "\nCapInh:\t0\n"
#define NONE "0000000000000000"
#define PERF "0000000000014c02"
#define POLL "7 0x56019ebc7c10 0x3 0xffffffff 0x7fe98a02c8d0 0x56019ebcd1b0 0x0 0x7ffc 0x7fe9\n"
    static const struct {
        const char *status, *syscall;
        bool handlers, waiting, pending, idle;
    } t[] = {
        {STATUS(NONE, NONE, NONE), "0 0x3 0x7ffcb3f1b4d8 0x340 0x0 0x7ff 0x0 0x7ff 0x7f\n", false,
         false, false, false},
        {STATUS(NONE, NONE, PERF), "running\n", true, false, false, false},
        {STATUS(NONE, NONE, PERF), POLL, true, true, false, true},
        {STATUS("0000000000000800", NONE, PERF), POLL, true, true, true, false}, /* SIGUSR2 */
        {STATUS("0000000000004000", NONE, PERF), POLL, true, true, true, false}, /* SIGTERM */
        {STATUS(NONE, NONE, NONE), POLL, false, true, false, false},
        {STATUS(NONE, "0000000000000800", "0000000000014402"), POLL, true, true, false, true},
        {STATUS(NONE, NONE, PERF), "7 0x1 0x3 0x64 0x0 0x0 0x0 0x7ffc 0x7fe9\n", true, false, false,
         false}, /* poll with a time limit */
        {STATUS(NONE, NONE, PERF), "-1 0x7ffcb3f1aed8 0x7fe98ad5f932\n", true, false, false, false},
        {"", "", false, false, false, false},
    };
#ifndef __x86_64__
    skip(); /* the numbers of system calls above */
#endif
    char root[] = "/tmp/t_ready.XXXXXX", dir[64];
    assert_non_null(mkdtemp(root));
    snprintf(dir, sizeof dir, "%s/42", root);
    assert_int_equal(mkdir(dir, 0700), 0);
    struct perf_ready r;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        put_file(dir, "status", t[i].status);
        put_file(dir, "syscall", t[i].syscall);
        perf_ready_check(root, 42, &r);
        assert_int_equal(r.handlers, t[i].handlers);
        assert_int_equal(r.waiting, t[i].waiting);
        assert_int_equal(r.pending, t[i].pending);
        assert_int_equal(perf_ready_is_idle(&r), t[i].idle);
    }
    char path[80];
    snprintf(path, sizeof path, "%s/syscall", dir);
    unlink(path); /* may not be read */
    put_file(dir, "status", t[2].status);
    perf_ready_check(root, 42, &r);
    assert_true(r.coarse && perf_ready_is_idle(&r));
    put_file(dir, "status", t[3].status);
    perf_ready_check(root, 42, &r);
    assert_false(perf_ready_is_idle(&r));
    put_file(dir, "status", "Name:\tperf\nState:\tT (stopped)\nSigIgn:\t0\nSigCgt:\t" PERF "\n");
    put_file(dir, "syscall", POLL); /* where it was stopped */
    perf_ready_check(root, 42, &r);
    assert_true(r.stopped && !perf_ready_is_idle(&r));
    unlink(path);
    put_file(dir, "status", "Name:\tperf\nState:\tR (running)\nSigIgn:\t0\nSigCgt:\t" PERF "\n");
    perf_ready_check(root, 42, &r);
    assert_true(r.handlers);
    assert_false(r.waiting);
    perf_ready_check(root, 43, &r); /* gone */
    assert_false(r.handlers || r.waiting || r.pending);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_lines), cmocka_unit_test(dump_lines), cmocka_unit_test(complaints),
        cmocka_unit_test(endings),    cmocka_unit_test(readiness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A set of triggers armed on a running program, on a terminal: their hits are counted, three snapshots are taken,
 * the second is opened while the recording goes on, the program is killed, and all three can still be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/alloc.h"
#include "tests/lib_walk.h"

static const char three_by_trigger[] = "wait armed 100s\n"
                                       "wait snapshots 3 100s\n";

/* Two triggers of three are reached, each fires once. */
static const char third_by_key[] = "wait armed 100s\n"
                                   "wait snapshots 2 100s\n"
                                   "snapshot\n"
                                   "wait snapshots 3 100s\n";

static const char recording[] = ""
                                "save-screen %s/counts\n"
                                "wait decoded 2 100s\n"
                                "first\n"
                                "down\n"
                                "enter\n"
                                "wait screen timeline 100s\n"
                                "wait text \"snap 2\" 100s\n"
                                "save-screen %s/second\n"
                                "back\n"
                                "wait screen record 100s\n"
                                "wait text [ENABLED] 100s\n"
                                "save-screen %s/mark\n";

/* Then the program is killed. */
static const char browsing[] = "wait ended 100s\n"
                               "log\n"
                               "wait text \"Log\" 100s\n"
                               "save-screen %s/log\n"
                               "log\n"
                               "wait decoded 3 100s\n"
                               "first\nenter\nwait screen timeline 100s\nwait text \"snap 1\" 100s\n"
                               "wait text batch_target 100s\nsave-screen %s/browse1\nback\n"
                               "first\ndown\nenter\nwait screen timeline 100s\nwait text \"snap 2\" 100s\n"
                               "save-screen %s/browse2\nback\n"
                               "first\ndown\ndown\nenter\nwait screen timeline 100s\n"
                               "wait text \"snap 3\" 100s\nsave-screen %s/browse3\nquit\n";

/* What the log says of a trigger at the end: "trigger T: 1,234 hits, 3 snapshots". */
static uint64_t counted(struct walk *b, const char *trigger)
{
    char *path = walk_path(b, "log"), *screen = run_read_file(path, NULL);
    char *begin = xasprintf("trigger %s: ", trigger), *at = screen ? strstr(screen, begin) : NULL;
    if (!at)
        fail_msg("no '%s' on\n%s", begin, screen ? screen : "nothing");
    uint64_t hits = 0;
    char *p = at + strlen(begin);
    for (; (*p >= '0' && *p <= '9') || *p == ','; p++)
        if (*p != ',')
            hits = hits * 10 + (uint64_t)(*p - '0');
    assert_int_equal(strncmp(p, " hit", 4), 0);
    free(begin);
    free(screen);
    free(path);
    return hits;
}

/* Lines of hits.tsv with this trigger. */
static uint64_t written(const struct walk *b, const char *trigger)
{
    char *command = xasprintf("awk -F'\\t' -v t='%s' 'NR > 1 && $3 == t' %s/mtui/*/hits.tsv | wc -l", trigger, b->tmp);
    char *out = run_output(command, NULL);
    uint64_t n = strtoull(out, NULL, 10);
    free(out);
    free(command);
    return n;
}

static void check_counts(struct walk *b, bool steps)
{
    uint64_t requests = counted(b, "/^handle_re/"), computed = counted(b, "batch_target:compute");
    assert_true(requests > 0);
    /* Every request computes once; two threads may be between the two. */
    if (!steps) /* a stepped call tells nothing of those inside of it */
        assert_true(computed <= requests + 2 && requests <= computed + 2);
    assert_int_equal(written(b, "/^handle_re/"), requests);
    assert_int_equal(written(b, "batch_target:compute"), computed);
    assert_int_equal(written(b, "batch_target:main"), 0);
}

static void walk(const char *const *options, int rows, int cols, const char *snapshots)
{
    static const char *const browsed[][2] = {{"browse1", "snap 1"}, {"browse2", "snap 2"}, {"browse3", "snap 3"}};
    struct walk b;
    char *script = xasprintf("%s%s%s", snapshots, recording, browsing);
    walk_start(&b, options, rows, cols, script);
    free(script);
    walk_wait_mark(&b);
    assert_true(walk_is_alive(b.target.pid));
    assert_false(walk_no_perf(&b)); /* it still records */
    kill(b.target.pid, SIGKILL);
    waitpid(b.target.pid, NULL, 0);
    walk_wait_for(&b, "<<EXIT 0 modes=same>>");
    walk_assert_screen(&b, "counts", (const char *const[]){"/^handle_re/ [", "REC", "Snapshots", NULL});
    walk_assert_screen(&b, "second", (const char *const[]){"snap 2", "batch_target", NULL});
    walk_assert_screen(&b, "log", (const char *const[]){"the traced program", NULL});
    for (size_t i = 0; i < 3; i++)
        walk_assert_screen(&b, browsed[i][0], (const char *const[]){browsed[i][1], "batch_target", NULL});
    check_counts(&b, snapshots == three_by_trigger);
    walk_tear_down(&b, false);
}

#define SET "-t", "/^handle_re/", "-t", "batch_target:compute", "-t", "batch_target:main", "--hold-off"

static void test_sampled(void **state)
{
    (void)state;
    if (!walk_can_record())
        skip();
    walk((const char *const[]){"-r", "sample", SET, "1h", NULL}, 30, 100, third_by_key);
}

static void test_sampled_on_a_small_terminal(void **state)
{
    (void)state;
    if (!walk_can_record())
        skip();
    walk((const char *const[]){"-r", "sample", SET, "1h", NULL}, 24, 80, third_by_key);
}

static void test_stepped(void **state)
{
    (void)state;
    if (!walk_can_record())
        skip();
    walk((const char *const[]){"-r", "step", "--budget", "20000", SET, "200ms", NULL}, 30, 100, three_by_trigger);
}

/* ---- One after the other ---- */

/* A call this short may not have been sampled at all: its trigger's mark is there always, among the events. */
static const char again[] = "wait armed 100s\n"
                            "wait snapshots 1 100s\n"
                            "save-screen %s/recording1\n"
                            "start-stop\n"
                            "wait ended 100s\n"
                            "save-screen %s/ended1\n"
                            "wait decoded 1 100s\n"
                            "first\nenter\nwait screen timeline 100s\nwait text batch_target 100s\n"
                            "events\nwait screen events 100s\nwait text handle_request 100s\nrecord\n"
                            "start-stop\n"
                            "wait armed 100s\n"
                            "wait text [ENABLED] 100s\n"
                            "wait snapshots 1 100s\n"
                            "save-screen %s/recording2\n"
                            "snapshot\n"
                            "wait snapshots 2 100s\n"
                            "wait decoded 2 100s\n"
                            "first\ndown\nenter\nwait screen timeline 100s\nwait text \"snap 2\" 100s\n"
                            "wait text batch_target 100s\nback\n"
                            "start-stop\n"
                            "wait ended 100s\n"
                            "save-screen %s/ended2\n"
                            "first\nenter\nwait screen timeline 100s\nwait text \"snap 1\" 100s\n"
                            "wait text batch_target 100s\nsave-screen %s/timeline2\n"
                            "events\nwait screen events 100s\nwait text handle_request 100s\nquit\n";

static uint64_t count(const struct walk *b, const char *command)
{
    char *whole = xasprintf("cd %s/mtui && %s", b->tmp, command), *out = run_output(whole, NULL);
    uint64_t n = strtoull(out, NULL, 10);
    free(out);
    free(whole);
    return n;
}

/* The second recording in one run of mtui works like the first, in a directory of its own. */
static void test_two_recordings_in_a_row(void **state)
{
    (void)state;
    if (!walk_can_record())
        skip();
    static const char *const recorded[] = {"[ENABLED]", "perf pid", "Heartbeat", "handle_request", "[hits ",
                                           "from the last hit to the command", "REC", NULL};
    static const char *const ended[] = {"[ENDED]", "stopped, as asked for", NULL};
    struct walk b;
    walk_start(&b, walk_options, 30, 100, again);
    walk_wait_for(&b, "<<EXIT 0 modes=same>>");
    walk_assert_screen(&b, "recording1", recorded);
    walk_assert_screen(&b, "ended1", ended);
    walk_assert_screen(&b, "recording2", recorded);
    walk_assert_screen(&b, "ended2", ended);
    walk_assert_screen(&b, "timeline2", (const char *const[]){"snap 1", "batch_target", NULL});
    assert_int_equal(count(&b, "ls -d */ | wc -l"), 2);
    assert_int_equal(count(&b, "ls */session.ini | wc -l"), 2);
    assert_int_equal(count(&b, "ls */snap-[0-9]*/perf.data | wc -l"), 3);
    /* Each has the hit that made its first snapshot. */
    assert_int_equal(count(&b, "awk -F'\\t' '$3 == \"handle_request\" && $8 == 1' */hits.tsv | wc -l"), 2);
    walk_tear_down(&b, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sampled),
        cmocka_unit_test(test_sampled_on_a_small_terminal),
        cmocka_unit_test(test_stepped),
        cmocka_unit_test(test_two_recordings_in_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

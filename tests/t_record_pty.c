/* The whole job on a terminal, with the real perf: attach, a hit, a snapshot by trigger and by key,
 * the timeline; and perf, target and mtui killed in the middle of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tests/lib_walk.h"

static void kill_perf(struct walk *b)
{
    char *command = xasprintf("pkill -9 -f 'record .*-p %ld$'", (long)b->target.pid);
    int status;
    free(run_output(command, &status));
    assert_int_equal(status, 0);
    free(command);
}

static void start(struct walk *b, const char *script)
{
    walk_start(b, walk_options, 30, 100, script);
}

static void field_A16_B3_whole_job_without_the_picker(void **state)
{
    (void)state;
    struct walk b;
    if (!walk_can_record())
        skip();
    start(&b, "wait armed 100s\n"
              "wait hits 1 100s\n"
              "wait snapshots 1 100s\n"
              "snapshot\n"
              "wait snapshots 2 100s\n"
              "wait decoded 2 100s\n"
              "save-screen %s/recording\n"
              "start-stop\n"
              "wait ended 100s\n"
              "save-screen %s/ended\n"
              "key 4\n"
              "wait text \"Enter on one opens it\" 100s\n"
              "key 3\n"
              "first\n"
              "enter\n"
              "wait screen timeline 100s\n"
              "wait text handle_request 100s\n"
              "save-screen %s/timeline\n"
              "quit\n");
    walk_wait_for(&b, "<<EXIT 0 modes=same>>");
    walk_assert_screen(&b, "recording",
                  (const char *const[]){"[ENABLED]", "perf pid", "Heartbeat", "handle_request",
                                        "[hits ", "from the last hit to the command", " key ",
                                        "done ", "REC", NULL});
    walk_assert_screen(&b, "ended", (const char *const[]){"[ENDED]", "stopped, as asked for", NULL});
    walk_assert_screen(&b, "timeline",
                  (const char *const[]){"SAMPLED", "snap 1", "handle_request", NULL});
    walk_tear_down(&b, true);
}

static void field_A8_perf_killed(void **state)
{
    (void)state;
    struct walk b;
    if (!walk_can_record())
        skip();
    start(&b, "wait snapshots 1 100s\n"
              "save-screen %s/mark\n"
              "wait ended 100s\n"
              "save-screen %s/ended\n"
              "wait decoded 1 100s\n"
              "quit\n");
    walk_wait_mark(&b);
    kill_perf(&b);
    walk_wait_for(&b, "<<EXIT 0 modes=same>>");
    walk_assert_screen(&b, "ended",
                  (const char *const[]){"[FAILED]", "perf was killed by signal 9", NULL});
    walk_tear_down(&b, true);
}

static void field_A6_target_killed(void **state)
{
    (void)state;
    struct walk b;
    if (!walk_can_record())
        skip();
    start(&b, "wait snapshots 1 100s\n"
              "save-screen %s/mark\n"
              "wait ended 100s\n"
              "save-screen %s/ended\n"
              "wait decoded 1 100s\n"
              "first\n"
              "enter\n"
              "wait screen timeline 100s\n"
              "wait text handle_request 100s\n"
              "save-screen %s/timeline\n"
              "quit\n");
    walk_wait_mark(&b);
    kill(b.target.pid, SIGKILL);
    waitpid(b.target.pid, NULL, 0);
    walk_wait_for(&b, "<<EXIT 0 modes=same>>");
    walk_assert_screen(&b, "ended", (const char *const[]){"the traced program", NULL});
    walk_assert_screen(&b, "timeline", (const char *const[]){"snap 1", "handle_request", NULL});
    walk_tear_down(&b, false);
}

static void test_mtui_killed(void **state)
{
    (void)state;
    struct walk b;
    if (!walk_can_record())
        skip();
    start(&b, "wait snapshots 1 100s\n"
              "save-screen %s/mark\n");
    walk_wait_mark(&b);
    kill(b.p->program, SIGKILL);
    walk_wait_for(&b, "<<SIGNAL 9");
    assert_true(run_until(walk_no_perf, &b, WALK_SOON / 1000));
    walk_tear_down(&b, true);
}

/* ^Z goes to the editor as well; the recording goes on behind it, and the screen comes back afterwards. */
static void field_F10_suspended_in_an_editor_while_recording(void **state)
{
    (void)state;
    struct walk b;
    if (!walk_can_record())
        skip();
    for (int alone = 0; alone < 2; alone++) {
        start(&b, "wait snapshots 1 100s\n"
                  "wait decoded 1 100s\n"
                  "first\n"
                  "enter\n"
                  "wait screen timeline 100s\n"
                  "search handle_request\n"
                  "wait text handle_request 100s\n"
                  "save-screen %s/mark\n");
        walk_wait_mark(&b);
        char *ed = walk_path(&b, "ed"), *command = xasprintf(":set editor \"sh %s\"\r", ed);
        run_write_file(ed, alone ? "echo EDITING\nkill -STOP $$\nread line\necho GOT-$line\n"
                                 : "echo EDITING\nread line\necho GOT-$line\n");
        pty_type(b.p, command);
        bool edits = false;
        for (int i = 0; i < 10 && !edits; i++) { /* the line is not known at once */
            pty_type(b.p, "O");
            edits = pty_wait(b.p, "EDITING", 5000);
        }
        if (!edits)
            fail_msg("no editor: %s", b.p->text + (b.p->text_len > 600 ? b.p->text_len - 600 : 0));
        if (!alone)
            pty_type(b.p, "\x1a");
        walk_wait_for(&b, "<<STOPPED modes=same>>");
        assert_false(walk_no_perf(&b));
        pty_type(b.p, "\n");
        pty_type(b.p, "hello\r");
        walk_wait_for(&b, "GOT-hello");
        pty_type(b.p, "3");
        walk_wait_for(&b, "[ENABLED]"); /* it still records */
        kill(b.p->program, SIGTERM);
        walk_wait_for(&b, "modes=same>>");
        free(command);
        free(ed);
        walk_tear_down(&b, true);
    }
}

/* The terminal goes away in the middle of a recording: it is finished and kept. */
static void field_F11_hang_up_while_recording(void **state)
{
    (void)state;
    struct walk b;
    if (!walk_can_record())
        skip();
    start(&b, "wait snapshots 1 100s\n"
              "save-screen %s/mark\n");
    walk_wait_mark(&b);
    assert_true(pty_hang_up(b.p, 2000 + WALK_SOON / 10));
    assert_true(run_until(walk_no_perf, &b, WALK_SOON / 1000));
    char *command = xasprintf("ls %s/mtui/*/snap-1/perf.data %s/mtui/*/snap-end/perf.data", b.tmp, b.tmp);
    int status;
    free(run_output(command, &status));
    assert_int_equal(status, 0);
    free(command);
    walk_tear_down(&b, true);
}

/* Leaving while it records asks, and finishes first. */
static void test_quit_while_recording(void **state)
{
    (void)state;
    struct walk b;
    if (!walk_can_record())
        skip();
    start(&b, "wait snapshots 1 100s\n"
              "quit\n"
              "wait text \"Finish it and quit?\" 100s\n"
              "key y\n"
              "wait text nothing-of-the-kind 100s\n");
    walk_wait_for(&b, "<<EXIT 0 modes=same>>");
    char *command =
        xasprintf("ls %s/mtui/*/snap-1/perf.data %s/mtui/*/snap-end/perf.data", b.tmp, b.tmp);
    int status;
    free(run_output(command, &status));
    assert_int_equal(status, 0);
    free(command);
    walk_tear_down(&b, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_A16_B3_whole_job_without_the_picker),
        cmocka_unit_test(field_A8_perf_killed),
        cmocka_unit_test(field_A6_target_killed),
        cmocka_unit_test(field_F10_suspended_in_an_editor_while_recording),
        cmocka_unit_test(field_F11_hang_up_while_recording),
        cmocka_unit_test(test_mtui_killed),
        cmocka_unit_test(test_quit_while_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

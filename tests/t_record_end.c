/* How a recording on the Record screen ends: by a key, by the program, by a perf that fails, with mtui itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/doctor/capability_probe.h"
#include "core/machine/target.h"
#include "tests/lib_record_panel.h"

static bool wants_quit(void *arg)
{
    struct record_panel *b = arg;
    loop_run_once(b->loop, 10000000);
    return b->m->want.quit;
}

static bool is_stopping(void *arg)
{
    struct record_panel *b = arg;
    struct session_status st;
    loop_run_once(b->loop, 1000000);
    session_get_status(b->m->session, &st);
    return st.state >= SESSION_STOPPING;
}

/* A recording of a program that is started for it. */
static void run_program(struct record_panel *b, struct session_setup *setup, const char *fake_modes)
{
    panel_set_up(b, fake_modes, 30, 100);
    *setup = (struct session_setup){.auto_recorder = true, .mode = PLAN_RING};
    setup->argv = xcalloc(2, sizeof *setup->argv);
    setup->argv[0] = run_tool("target_busy");
    b->m->preset = setup;
    panel_wait_text(b, "[ENABLED]");
    panel_wait_text(b, "the program runs");
}

static void kill_program(struct record_panel *b)
{
    struct err err;
    assert_int_equal(target_signal(session_target(b->m->session), SIGKILL, &err), 0);
}

/* What there is to ask when leaving is about what still runs. */
static void test_quit_with_a_program(void **state)
{
    (void)state;
    struct record_panel b;
    struct session_setup setup;
    char question[100];

    /* The program has ended, and the recording with it. */
    run_program(&b, &setup, "");
    kill_program(&b);
    panel_wait_text(&b, "[ENDED]");
    assert_false(view_record.action(b.view, ACT_QUIT, NULL)); /* the ui quits */
    assert_null(b.m->want.question);
    panel_tear_down(&b);
    session_setup_free(&setup);

    /* The recording is on its way to its end: nothing to choose, it is waited for. */
    run_program(&b, &setup, "slow-dump=300");
    kill_program(&b);
    assert_true(run_until(is_stopping, &b, PANEL_SOON));
    bool waits = view_record.action(b.view, ACT_QUIT, NULL);
    assert_null(b.m->want.question);
    assert_true(!waits || run_until(wants_quit, &b, PANEL_SOON));
    assert_null(b.m->want.question);
    panel_tear_down(&b);
    session_setup_free(&setup);

    /* The recording is over and the program runs: to leave it or to end it. It ends while that is asked. */
    run_program(&b, &setup, "");
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENDED]");
    panel_act(&b, ACT_QUIT);
    snprintf(question, sizeof question, "Leave the program running? (pid %ld; n ends it)",
             (long)target_pid(session_target(b.m->session)));
    assert_non_null(b.m->want.question);
    assert_string_equal(b.m->want.question, question);
    kill_program(&b);
    assert_true(run_until(wants_quit, &b, PANEL_SOON));
    assert_null(b.m->want.question);
    panel_tear_down(&b);
    session_setup_free(&setup);

    /* The recording ends while the question is whether to finish it. */
    run_program(&b, &setup, "");
    panel_act(&b, ACT_QUIT);
    assert_string_equal(b.m->want.question, "A recording is running. Finish it and quit?");
    kill_program(&b);
    panel_wait_text(&b, "[ENDED]");
    assert_non_null(b.m->want.question);
    assert_string_equal(b.m->want.question, "The recording has ended. Quit?");
    assert_false(b.m->want.quit);
    b.m->want.answer(b.m->want.answer_arg, true);
    assert_true(b.m->want.quit);
    panel_tear_down(&b);
    session_setup_free(&setup);

    /* Both run: one question after the other. */
    run_program(&b, &setup, "");
    pid_t pid = target_pid(session_target(b.m->session));
    panel_act(&b, ACT_QUIT);
    assert_string_equal(b.m->want.question, "A recording is running. Finish it and quit?");
    b.m->want.answer(b.m->want.answer_arg, true);
    panel_wait_text(&b, "[ENDED]");
    snprintf(question, sizeof question, "Leave the program running? (pid %ld; n ends it)", (long)pid);
    assert_string_equal(b.m->want.question, question);
    b.m->want.answer(b.m->want.answer_arg, false);
    assert_true(b.m->want.quit);
    panel_tear_down(&b);
    assert_int_equal(kill(pid, 0), -1); /* ended, as was chosen */
    session_setup_free(&setup);
}

static void test_perf_dies(void **state)
{
    (void)state;
    struct record_panel b;
    panel_set_up(&b, "", 30, 100);
    panel_choose_target(&b);
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENABLED]");
    struct session_status st;
    panel_wait_text(&b, "armed");
    session_get_status(b.m->session, &st);
    kill(st.rec.pid, SIGKILL);
    panel_wait_text(&b, "[FAILED]");
    panel_wait_text(&b, "lost: all that was held");
    assert_false(b.m->recording);
    assert_int_equal(b.m->say_severity, SAY_ERROR);
    assert_true(b.m->say[0] != '\0');
    panel_tear_down(&b);
}

/* Without perf: a key says which program is missing, and how another is named. */
static void field_A9_a_missing_perf_is_named(void **state)
{
    (void)state;
    struct record_panel b;
    panel_set_up(&b, "", 30, 100);
    setenv("MTUI_PERF", "/nonexistent/perf", 1);
    struct capability_paths paths = capability_paths_default();
    capability_try_perf(&paths, b.caps);
    panel_choose_target(&b);
    panel_act(&b, ACT_START_STOP);
    assert_false(b.m->recording);
    assert_int_equal(b.m->say_severity, SAY_ERROR);
    if (!strstr(b.m->say, "/nonexistent/perf") || !strstr(b.m->say, "MTUI_PERF"))
        fail_msg("%s", b.m->say);
    panel_tear_down(&b);
}

static bool has_given_up(void *arg)
{
    struct record_panel *b = arg;
    struct session_status st;
    loop_run_once(b->loop, 10000000);
    session_get_status(b->m->session, &st);
    return !st.rec.snapshot_busy;
}

/* ^C gives up the snapshot that is being written, then ends the recording as Space does; while it ends the screen says
 * what Space does. */
static void test_interrupt(void **state)
{
    (void)state;
    struct record_panel b;
    panel_set_up(&b, "no-file,no-ack-stop", 30, 100); /* takes snapshots, and nothing comes of them */
    assert_false(view_record.action(b.view, ACT_INTERRUPT, NULL)); /* nothing to end */
    panel_choose_target(&b);
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENABLED]");
    panel_wait_text(&b, "  armed");
    panel_act(&b, ACT_SNAPSHOT);
    panel_wait_text(&b, "; ^C gives it up");
    panel_act(&b, ACT_INTERRUPT);
    assert_true(run_until(has_given_up, &b, PANEL_SOON));
    assert_true(b.m->recording);
    assert_int_equal(view_record.condition(b.view, "armed", ""), 1);
    panel_act(&b, ACT_INTERRUPT);
    panel_wait_text(&b, "[STOPPING]");
    assert_true(panel_row_of(&b, " Stopping    Space again presses: gives up the snapshot, then SIGTERM, SIGKILL") >= 0);
    panel_wait_text(&b, "[ENDED]");
    panel_wait_text(&b, "stopped, as asked for");
    assert_false(view_record.action(b.view, ACT_INTERRUPT, NULL));
    panel_tear_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quit_with_a_program),
        cmocka_unit_test(test_perf_dies),
        cmocka_unit_test(field_A9_a_missing_perf_is_named),
        cmocka_unit_test(test_interrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The Record screen: what it draws before and while it records, and how its plan is edited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tests/lib_record_panel.h"
#include "tui/term/theme.h"

static void test_idle(void **state)
{
    (void)state;
    struct record_panel b;
    panel_set_up(&b, "", 30, 100);
    panel_draw(&b);
    golden_check(b.s, "record_idle", "record_idle  100x30 tier=ascii no target");
    model_set_target(b.m, 4711, 0, "demo-server");
    model_add_trigger(b.m, "handle_request");
    assert_true(view_record.action(
        b.view, ACT_OPTIONS,
        "--max-snapshots 10 --duration 5m --slower-than 2ms -s 3M --freq 999 -t f"));
    assert_true(view_record.action(b.view, ACT_MODE, "trigger"));
    panel_draw(&b);
    golden_check(b.s, "record_plan", "record_plan  100x30 tier=ascii target and options");
    panel_tear_down(&b);
}

static void test_small(void **state)
{
    (void)state;
    for (int rows = 0; rows <= 30; rows += 3) {
        struct record_panel b;
        panel_set_up(&b, "", rows + 3, 20 + rows * 2);
        panel_draw(&b);
        panel_act(&b, ACT_PANE_NEXT);
        panel_draw(&b);
        panel_act(&b, ACT_LOG);
        panel_draw(&b);
        panel_tear_down(&b);
    }
}

static void test_recording(void **state)
{
    (void)state;
    struct record_panel b;
    panel_set_up(&b, "", 30, 100);
    panel_choose_target(&b);
    panel_act(&b, ACT_START_STOP);
    assert_true(b.m->recording);
    panel_wait_text(&b, "[ENABLED]");
    panel_wait_text(&b, "perf pid");
    panel_wait_text(&b, "armed");
    char out[256] = "";
    view_record.state(b.view, out, sizeof out);
    assert_non_null(strstr(out, "REC 00:00:"));
    panel_act(&b, ACT_SNAPSHOT);
    assert_true(run_until(panel_has_snapshot, &b, PANEL_SOON));
    panel_draw(&b);
    assert_true(panel_row_with(&b, "    1 ", " key "));
    assert_int_equal(view_record.condition(b.view, "snapshots", "2"), 0);
    assert_int_equal(view_record.condition(b.view, "nonsense", ""), -1);

    /* The plan cannot be edited now, and that is said. */
    static const enum action edits[] = {ACT_MODE, ACT_BUFFER, ACT_TRIGGERS, ACT_OPTIONS};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        model_say(b.m, "%s", "");
        panel_act(&b, edits[i]);
        assert_non_null(strstr(b.m->say, "not while recording"));
        assert_null(b.m->want.line); /* at once: nothing is asked for */
    }

    /* Quitting asks; no goes on. */
    panel_act(&b, ACT_QUIT);
    assert_non_null(b.m->want.question);
    b.m->want.answer(b.m->want.answer_arg, false);
    assert_true(b.m->recording);
    assert_false(b.m->want.quit);

    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENDED]");
    panel_wait_text(&b, "stopped, as asked for");
    assert_false(b.m->recording);
    assert_int_equal(view_record.condition(b.view, "ended", ""), 1);

    /* Deleting asks, and does it. */
    panel_act(&b, ACT_FIRST);
    panel_act(&b, ACT_DELETE_SNAPSHOT);
    assert_non_null(strstr(b.m->want.question, "snapshot 1"));
    b.m->want.answer(b.m->want.answer_arg, true);
    panel_wait_text(&b, "deleted");

    /* A question whose recording has ended meanwhile becomes another. */
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENABLED]");
    panel_act(&b, ACT_QUIT);
    assert_non_null(b.m->want.question);
    session_stop(b.m->session, NULL);
    panel_wait_text(&b, "[ENDED]");
    assert_string_equal(b.m->want.question, "The recording has ended. Quit?");
    b.m->want.answer(b.m->want.answer_arg, false);
    assert_false(b.m->want.quit);

    /* Another recording in the same run. */
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENABLED]");
    panel_act(&b, ACT_QUIT);
    b.m->want.answer(b.m->want.answer_arg, true);
    panel_wait_text(&b, "[ENDED]");
    assert_true(b.m->want.quit);
    panel_tear_down(&b);
}

/* On 24 rows the newest lines of the log stand below the snapshots, in every state; l shows all of them. */
static void test_log_in_a_low_window(void **state)
{
    (void)state;
    struct record_panel b;
    panel_set_up(&b, "", 24, 80);
    panel_choose_target(&b);
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENABLED]");
    panel_wait_text(&b, "  armed");
    assert_true(panel_row_of(&b, "  armed") > panel_row_of(&b, "Snapshots"));
    assert_true(panel_row_of(&b, "snapshots by key") >= 0); /* what triggers, of the plan */
    panel_act(&b, ACT_SNAPSHOT);
    assert_true(run_until(panel_has_snapshot, &b, PANEL_SOON));
    panel_draw(&b);
    assert_true(panel_row_with(&b, "    1 ", " key "));
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENDED]");
    assert_true(panel_row_of(&b, "Ended") >= 0 && panel_row_of(&b, "Ended") < panel_row_of(&b, "Snapshots"));
    assert_true(panel_row_of(&b, "Buffer") >= 0); /* the next one's plan is whole */
    size_t lines = session_log_count(b.m->session);
    char begin[40];
    snprintf(begin, sizeof begin, "%s", session_log_at(b.m->session, lines - 1).text);
    assert_true(panel_row_of(&b, begin) > panel_row_of(&b, "Snapshots"));
    assert_true(panel_row_of(&b, "l shows all") >= 0);
    panel_act(&b, ACT_LOG);
    panel_draw(&b);
    for (size_t i = 0; i < 4; i++) { /* more than the pane had */
        snprintf(begin, 16, "%s", session_log_at(b.m->session, lines - 1 - i).text);
        assert_true(panel_row_of(&b, begin) >= 0);
    }
    panel_tear_down(&b);
}

/* Too low for any pane of the log: its newest line is the status. */
static void test_log_without_a_pane(void **state)
{
    (void)state;
    struct record_panel b;
    char out[400] = "";
    panel_set_up(&b, "", 16, 80);
    panel_choose_target(&b);
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENABLED]");
    session_log(b.m->session, SESSION_INFO, "a line of the log");
    panel_draw(&b);
    assert_int_equal(panel_row_of(&b, "- Log"), -1);
    view_record.status(b.view, out, sizeof out);
    assert_string_equal(out, "a line of the log");
    panel_tear_down(&b);
}

static void field_F16_refusals_are_said(void **state)
{
    (void)state;
    struct record_panel b;
    panel_set_up(&b, "", 30, 100);
    panel_act(&b, ACT_START_STOP); /* no process */
    assert_false(b.m->recording);
    assert_non_null(strstr(b.m->say, "no process"));
    assert_false(view_record.action(b.view, ACT_SNAPSHOT, NULL));
    panel_act(&b, ACT_PING);
    assert_non_null(strstr(b.m->say, "Space starts"));
    panel_choose_target(&b);
    model_add_trigger(b.m, "no_such_function_anywhere");
    panel_act(&b, ACT_START_STOP); /* in a thread */
    for (uint64_t end = panel_deadline(&b); b.m->say_severity != SAY_ERROR;)
        panel_wait_some(&b, end);
    assert_false(b.m->recording);
    assert_non_null(strstr(b.m->say, "no_such_function_anywhere"));
    panel_act(&b, ACT_START_STOP);
    panel_act(&b, ACT_START_STOP);
    assert_non_null(strstr(b.m->say, "not started"));
    /* The pid means another process by now. */
    model_clear_triggers(b.m);
    model_set_target(b.m, b.target.pid, 1, "target_busy");
    panel_act(&b, ACT_START_STOP);
    assert_non_null(strstr(b.m->say, "has ended"));
    panel_tear_down(&b);
}

/* With -o DIR each further recording has a directory of its own, and what is there is left alone. */
static void test_next_directory(void **state)
{
    (void)state;
    static const char *const suffix[] = {"", "-2", "-3"};
    struct record_panel b;
    panel_set_up(&b, "", 30, 100);
    char *dir = xasprintf("%s/rec", b.tmp), *option = xasprintf("-o %s", dir), *first = NULL;
    char *ini = xasprintf("%s/session.ini", dir);
    panel_choose_target(&b);
    assert_true(view_record.action(b.view, ACT_OPTIONS, option));
    for (size_t i = 0; i < 3; i++) {
        char *expected = xasprintf("%s%s", dir, suffix[i]);
        panel_act(&b, ACT_START_STOP);
        panel_wait_text(&b, "[ENABLED]");
        panel_wait_text(&b, "  armed");
        assert_string_equal(snapshot_dir_path(session_dir(b.m->session)), expected);
        panel_act(&b, ACT_SNAPSHOT);
        for (uint64_t end = panel_deadline(&b); view_record.condition(b.view, "snapshots", "1") == 0;)
            panel_wait_some(&b, end);
        panel_act(&b, ACT_START_STOP);
        panel_wait_text(&b, "[ENDED]");
        char *data = xasprintf("%s/snap-1/perf.data", expected);
        assert_int_equal(access(data, R_OK), 0);
        free(data);
        if (i == 0)
            first = run_read_file(ini, NULL);
        free(expected);
    }
    char *now = run_read_file(ini, NULL);
    assert_string_equal(now, first);
    free(now);
    free(first);
    free(ini);
    free(option);
    free(dir);
    panel_tear_down(&b);
}

static void test_prompts(void **state)
{
    (void)state;
    struct record_panel b;
    panel_set_up(&b, "", 30, 100);
    model_add_trigger(b.m, "main");
    model_add_trigger(b.m, "ns::f(int, char)");
    panel_act(&b, ACT_TRIGGERS);
    assert_string_equal(b.m->want.prompt_initial, "main \"ns::f(int, char)\"");
    b.m->want.line(b.m->want.line_arg, "\"ns::f(int, char)\" g@return");
    assert_int_equal(b.m->triggers.len, 2);
    assert_string_equal(b.m->triggers.data[0], "ns::f(int, char)");
    assert_string_equal(b.m->triggers.data[1], "g@return");
    panel_act(&b, ACT_TRIGGERS);
    b.m->want.line(b.m->want.line_arg, "/(/"); /* no regex: nothing changes */
    assert_int_equal(b.m->triggers.len, 2);
    assert_int_equal(b.m->say_severity, SAY_ERROR);
    panel_act(&b, ACT_BUFFER);
    b.m->want.line(b.m->want.line_arg, "8M");
    panel_act(&b, ACT_OPTIONS);
    assert_non_null(strstr(b.m->want.prompt_initial, "--size 8388608"));
    b.m->want.line(b.m->want.line_arg, "--freqq 7");
    assert_non_null(strstr(b.m->say, "--freq?"));
    panel_act(&b, ACT_COPY);
    assert_non_null(strstr(b.m->want.copy, "mtui attach "));
    assert_non_null(strstr(b.m->want.copy, "-t 'ns::f(int, char)' -t g@return --hold-off 1s --size 8388608"));
    panel_tear_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_recording),
        cmocka_unit_test(test_log_in_a_low_window),
        cmocka_unit_test(test_log_without_a_pane),
        cmocka_unit_test(field_F16_refusals_are_said),
        cmocka_unit_test(test_next_directory),
        cmocka_unit_test(test_prompts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

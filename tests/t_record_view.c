/* The Record screen against a fake perf: what each pane shows in each state, keys, questions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/doctor/capability_probe.h"
#include "core/machine/target.h"
#include "core/session/session.h"
#include "core/trigger/uprobe.h"
#include "tests/lib_golden.h"
#include "tests/lib_run.h"
#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"
#include "tui/term/theme.h"
#include "tui/record/v_record.h"

#define SOON 100.0

struct bench {
    struct loop *loop;
    struct settings *settings;
    struct model *m;
    void *view;
    struct surface *s;
    struct capabilities *caps;
    struct run_child target;
    char *tmp;
    const char *wanted;
};

static void set_up(struct bench *b, const char *fake_modes, int rows, int cols)
{
    memset(b, 0, sizeof *b);
    b->tmp = run_temp_dir();
    char *fake = run_tool("fakeperf"), *busy = run_tool("target_busy");
    setenv("MTUI_PERF", fake, 1);
    setenv("FAKEPERF", fake_modes, 1);
    setenv("XDG_STATE_HOME", b->tmp, 1);
    setenv("TZ", "UTC", 1);
    b->loop = loop_new();
    b->settings = settings_new();
    b->m = model_new(b->loop, b->settings);
    b->m->glyphs = glyphs_of(GLYPHS_ASCII);
    b->caps = xcalloc(1, sizeof *b->caps);
    b->caps->cpus_online = 8;
    snprintf(b->caps->line[CAP_INTEL_PT].reason, 64, "the kernel has no intel_pt PMU");
    b->m->caps = b->caps;
    b->target = run_start((char *[]){busy, NULL});
    b->view = view_record.create(b->m);
    b->s = surface_new(rows, cols);
    surface_set_replacement(b->s, '?', false);
    free(fake);
    free(busy);
}

static void tear_down(struct bench *b)
{
    view_record.destroy(b->view);
    surface_free(b->s);
    model_free(b->m);
    settings_free(b->settings);
    loop_free(b->loop);
    run_kill(&b->target);
    free(b->caps);
    run_remove_tree(b->tmp);
    free(b->tmp);
}

static void draw(struct bench *b)
{
    struct rect r = {1, 0, surface_rows(b->s) - 3, surface_cols(b->s)};
    surface_clear(b->s);
    view_record.draw(b->view, b->s, r);
}

static bool shows(void *arg)
{
    struct bench *b = arg;
    loop_run_once(b->loop, 10000000);
    draw(b);
    return golden_find(b->s, b->wanted);
}

static uint64_t deadline(const struct bench *b)
{
    return loop_now_ns(b->loop) + UINT64_C(60000000000);
}

static void wait_some(struct bench *b, uint64_t end)
{
    if (loop_now_ns(b->loop) >= end) {
        draw(b);
        fail_msg("waited in vain, last said: %s", b->m->say);
    }
    loop_run_once(b->loop, 100000000);
}

static void wait_text(struct bench *b, const char *text)
{
    b->wanted = text;
    if (run_until(shows, b, SOON))
        return;
    char *dump = golden_dump(b->s, "what was shown");
    print_error("%s", dump);
    free(dump);
    fail_msg("\"%s\" does not come", text);
}

static bool has_snapshot(void *arg)
{
    struct bench *b = arg;
    loop_run_once(b->loop, 10000000);
    return view_record.condition(b->view, "snapshots", "1") == 1;
}

/* One row that begins with the one text (behind the pointer) and has the other. */
static bool row_with(struct bench *b, const char *start, const char *text)
{
    bool found = false;
    for (int i = 0; i < surface_rows(b->s); i++) {
        char *row = golden_row(b->s, i);
        found |=
            strlen(row) > 1 && !strncmp(row + 1, start + 1, strlen(start) - 1) && strstr(row, text);
        free(row);
    }
    return found;
}

static void choose_target(struct bench *b)
{
    model_set_target(b->m, b->target.pid, 0, "target_busy");
}

static void act(struct bench *b, enum action a)
{
    assert_true(view_record.action(b->view, a, NULL));
}

static void test_idle(void **state)
{
    (void)state;
    struct bench b;
    set_up(&b, "", 30, 100);
    draw(&b);
    golden_check(b.s, "record_idle", "record_idle  100x30 tier=ascii no target");
    model_set_target(b.m, 4711, 0, "demo-server");
    model_add_trigger(b.m, "handle_request");
    assert_true(view_record.action(
        b.view, ACT_OPTIONS,
        "--max-snapshots 10 --duration 5m --slower-than 2ms -s 3M --freq 999 -t f"));
    assert_true(view_record.action(b.view, ACT_MODE, "trigger"));
    draw(&b);
    golden_check(b.s, "record_plan", "record_plan  100x30 tier=ascii target and options");
    tear_down(&b);
}

static void test_small(void **state)
{
    (void)state;
    for (int rows = 0; rows <= 30; rows += 3) {
        struct bench b;
        set_up(&b, "", rows + 3, 20 + rows * 2);
        draw(&b);
        act(&b, ACT_PANE_NEXT);
        draw(&b);
        act(&b, ACT_LOG);
        draw(&b);
        tear_down(&b);
    }
}

static void test_recording(void **state)
{
    (void)state;
    struct bench b;
    set_up(&b, "", 30, 100);
    choose_target(&b);
    act(&b, ACT_START_STOP);
    assert_true(b.m->recording);
    wait_text(&b, "[ENABLED]");
    wait_text(&b, "perf pid");
    wait_text(&b, "armed");
    char out[256] = "";
    view_record.state(b.view, out, sizeof out);
    assert_non_null(strstr(out, "REC 00:00:"));
    act(&b, ACT_SNAPSHOT);
    assert_true(run_until(has_snapshot, &b, SOON));
    draw(&b);
    assert_true(row_with(&b, "    1 ", " key "));
    assert_int_equal(view_record.condition(b.view, "snapshots", "2"), 0);
    assert_int_equal(view_record.condition(b.view, "nonsense", ""), -1);

    /* The plan cannot be edited now, and that is said. */
    act(&b, ACT_MODE);
    assert_non_null(strstr(b.m->say, "not while recording"));

    /* Quitting asks; no goes on. */
    act(&b, ACT_QUIT);
    assert_non_null(b.m->want.question);
    b.m->want.answer(b.m->want.answer_arg, false);
    assert_true(b.m->recording);
    assert_false(b.m->want.quit);

    act(&b, ACT_START_STOP);
    wait_text(&b, "[ENDED]");
    wait_text(&b, "stopped, as asked for");
    assert_false(b.m->recording);
    assert_int_equal(view_record.condition(b.view, "ended", ""), 1);

    /* Deleting asks, and does it. */
    act(&b, ACT_FIRST);
    act(&b, ACT_DELETE_SNAPSHOT);
    assert_non_null(strstr(b.m->want.question, "snapshot 1"));
    b.m->want.answer(b.m->want.answer_arg, true);
    wait_text(&b, "deleted");

    /* A question whose recording has ended meanwhile becomes another. */
    act(&b, ACT_START_STOP);
    wait_text(&b, "[ENABLED]");
    act(&b, ACT_QUIT);
    assert_non_null(b.m->want.question);
    session_stop(b.m->session, NULL);
    wait_text(&b, "[ENDED]");
    assert_string_equal(b.m->want.question, "The recording has ended. Quit?");
    b.m->want.answer(b.m->want.answer_arg, false);
    assert_false(b.m->want.quit);

    /* Another recording in the same run. */
    act(&b, ACT_START_STOP);
    wait_text(&b, "[ENABLED]");
    act(&b, ACT_QUIT);
    b.m->want.answer(b.m->want.answer_arg, true);
    wait_text(&b, "[ENDED]");
    assert_true(b.m->want.quit);
    tear_down(&b);
}

static bool wants_quit(void *arg)
{
    struct bench *b = arg;
    loop_run_once(b->loop, 10000000);
    return b->m->want.quit;
}

static bool is_stopping(void *arg)
{
    struct bench *b = arg;
    struct session_status st;
    loop_run_once(b->loop, 1000000);
    session_get_status(b->m->session, &st);
    return st.state >= SESSION_STOPPING;
}

/* A recording of a program that is started for it. */
static void run_program(struct bench *b, struct session_setup *setup, const char *fake_modes)
{
    set_up(b, fake_modes, 30, 100);
    *setup = (struct session_setup){.auto_recorder = true, .mode = PLAN_RING};
    setup->argv = xcalloc(2, sizeof *setup->argv);
    setup->argv[0] = run_tool("target_busy");
    b->m->preset = setup;
    wait_text(b, "[ENABLED]");
    wait_text(b, "the program runs");
}

static void kill_program(struct bench *b)
{
    struct err err;
    assert_int_equal(target_signal(session_target(b->m->session), SIGKILL, &err), 0);
}

/* What there is to ask when leaving is about what still runs. */
static void test_quit_with_a_program(void **state)
{
    (void)state;
    struct bench b;
    struct session_setup setup;
    char question[100];

    /* The program has ended, and the recording with it. */
    run_program(&b, &setup, "");
    kill_program(&b);
    wait_text(&b, "[ENDED]");
    assert_false(view_record.action(b.view, ACT_QUIT, NULL)); /* the ui quits */
    assert_null(b.m->want.question);
    tear_down(&b);
    session_setup_free(&setup);

    /* The recording is on its way to its end: nothing to choose, it is waited for. */
    run_program(&b, &setup, "slow-dump=300");
    kill_program(&b);
    assert_true(run_until(is_stopping, &b, SOON));
    bool waits = view_record.action(b.view, ACT_QUIT, NULL);
    assert_null(b.m->want.question);
    assert_true(!waits || run_until(wants_quit, &b, SOON));
    assert_null(b.m->want.question);
    tear_down(&b);
    session_setup_free(&setup);

    /* The recording is over and the program runs: to leave it or to end it. It ends while that is asked. */
    run_program(&b, &setup, "");
    act(&b, ACT_START_STOP);
    wait_text(&b, "[ENDED]");
    act(&b, ACT_QUIT);
    snprintf(question, sizeof question, "Leave the program running? (pid %ld; n ends it)",
             (long)target_pid(session_target(b.m->session)));
    assert_non_null(b.m->want.question);
    assert_string_equal(b.m->want.question, question);
    kill_program(&b);
    assert_true(run_until(wants_quit, &b, SOON));
    assert_null(b.m->want.question);
    tear_down(&b);
    session_setup_free(&setup);

    /* The recording ends while the question is whether to finish it. */
    run_program(&b, &setup, "");
    act(&b, ACT_QUIT);
    assert_string_equal(b.m->want.question, "A recording is running. Finish it and quit?");
    kill_program(&b);
    wait_text(&b, "[ENDED]");
    assert_non_null(b.m->want.question);
    assert_string_equal(b.m->want.question, "The recording has ended. Quit?");
    assert_false(b.m->want.quit);
    b.m->want.answer(b.m->want.answer_arg, true);
    assert_true(b.m->want.quit);
    tear_down(&b);
    session_setup_free(&setup);

    /* Both run: one question after the other. */
    run_program(&b, &setup, "");
    pid_t pid = target_pid(session_target(b.m->session));
    act(&b, ACT_QUIT);
    assert_string_equal(b.m->want.question, "A recording is running. Finish it and quit?");
    b.m->want.answer(b.m->want.answer_arg, true);
    wait_text(&b, "[ENDED]");
    snprintf(question, sizeof question, "Leave the program running? (pid %ld; n ends it)", (long)pid);
    assert_string_equal(b.m->want.question, question);
    b.m->want.answer(b.m->want.answer_arg, false);
    assert_true(b.m->want.quit);
    tear_down(&b);
    assert_int_equal(kill(pid, 0), -1); /* ended, as was chosen */
    session_setup_free(&setup);
}

/* The lowest row that has the text, or −1. */
static int row_of(struct bench *b, const char *text)
{
    int found = -1;
    for (int i = 0; i < surface_rows(b->s); i++) {
        char *row = golden_row(b->s, i);
        if (strstr(row, text))
            found = i;
        free(row);
    }
    return found;
}

/* On 24 rows the newest lines of the log stand below the snapshots, in every state; l shows all of them. */
static void test_log_in_a_low_window(void **state)
{
    (void)state;
    struct bench b;
    set_up(&b, "", 24, 80);
    choose_target(&b);
    act(&b, ACT_START_STOP);
    wait_text(&b, "[ENABLED]");
    wait_text(&b, "  armed");
    assert_true(row_of(&b, "  armed") > row_of(&b, "Snapshots"));
    assert_true(row_of(&b, "snapshots by key") >= 0); /* what triggers, of the plan */
    act(&b, ACT_SNAPSHOT);
    assert_true(run_until(has_snapshot, &b, SOON));
    draw(&b);
    assert_true(row_with(&b, "    1 ", " key "));
    act(&b, ACT_START_STOP);
    wait_text(&b, "[ENDED]");
    assert_true(row_of(&b, "Ended") >= 0 && row_of(&b, "Ended") < row_of(&b, "Snapshots"));
    assert_true(row_of(&b, "Buffer") >= 0); /* the next one's plan is whole */
    size_t lines = session_log_count(b.m->session);
    char begin[40];
    snprintf(begin, sizeof begin, "%s", session_log_at(b.m->session, lines - 1).text);
    assert_true(row_of(&b, begin) > row_of(&b, "Snapshots"));
    assert_true(row_of(&b, "l shows all") >= 0);
    act(&b, ACT_LOG);
    draw(&b);
    for (size_t i = 0; i < 4; i++) { /* more than the pane had */
        snprintf(begin, 16, "%s", session_log_at(b.m->session, lines - 1 - i).text);
        assert_true(row_of(&b, begin) >= 0);
    }
    tear_down(&b);
}

/* Too low for any pane of the log: its newest line is the status. */
static void test_log_without_a_pane(void **state)
{
    (void)state;
    struct bench b;
    char out[400] = "";
    set_up(&b, "", 16, 80);
    choose_target(&b);
    act(&b, ACT_START_STOP);
    wait_text(&b, "[ENABLED]");
    session_log(b.m->session, SESSION_INFO, "a line of the log");
    draw(&b);
    assert_int_equal(row_of(&b, "- Log"), -1);
    view_record.status(b.view, out, sizeof out);
    assert_string_equal(out, "a line of the log");
    tear_down(&b);
}

static void test_perf_dies(void **state)
{
    (void)state;
    struct bench b;
    set_up(&b, "", 30, 100);
    choose_target(&b);
    act(&b, ACT_START_STOP);
    wait_text(&b, "[ENABLED]");
    struct session_status st;
    wait_text(&b, "armed");
    session_get_status(b.m->session, &st);
    kill(st.rec.pid, SIGKILL);
    wait_text(&b, "[FAILED]");
    wait_text(&b, "lost: all that was held");
    assert_false(b.m->recording);
    assert_int_equal(b.m->say_severity, SAY_ERROR);
    assert_true(b.m->say[0] != '\0');
    tear_down(&b);
}

static void field_F16_refusals_are_said(void **state)
{
    (void)state;
    struct bench b;
    set_up(&b, "", 30, 100);
    act(&b, ACT_START_STOP); /* no process */
    assert_false(b.m->recording);
    assert_non_null(strstr(b.m->say, "no process"));
    assert_false(view_record.action(b.view, ACT_SNAPSHOT, NULL));
    act(&b, ACT_PING);
    assert_non_null(strstr(b.m->say, "Space starts"));
    choose_target(&b);
    model_add_trigger(b.m, "no_such_function_anywhere");
    act(&b, ACT_START_STOP); /* in a thread */
    for (uint64_t end = deadline(&b); b.m->say_severity != SAY_ERROR;)
        wait_some(&b, end);
    assert_false(b.m->recording);
    assert_non_null(strstr(b.m->say, "no_such_function_anywhere"));
    act(&b, ACT_START_STOP);
    act(&b, ACT_START_STOP);
    assert_non_null(strstr(b.m->say, "not started"));
    /* The pid means another process by now. */
    model_clear_triggers(b.m);
    model_set_target(b.m, b.target.pid, 1, "target_busy");
    act(&b, ACT_START_STOP);
    assert_non_null(strstr(b.m->say, "has ended"));
    tear_down(&b);
}

/* Without perf: a key says which program is missing, and how another is named. */
static void field_A9_a_missing_perf_is_named(void **state)
{
    (void)state;
    struct bench b;
    set_up(&b, "", 30, 100);
    setenv("MTUI_PERF", "/nonexistent/perf", 1);
    struct capability_paths paths = capability_paths_default();
    capability_try_perf(&paths, b.caps);
    choose_target(&b);
    act(&b, ACT_START_STOP);
    assert_false(b.m->recording);
    assert_int_equal(b.m->say_severity, SAY_ERROR);
    if (!strstr(b.m->say, "/nonexistent/perf") || !strstr(b.m->say, "MTUI_PERF"))
        fail_msg("%s", b.m->say);
    tear_down(&b);
}

/* Durations of watched calls, the threshold among them, and what the watching costs; with real probes. */
static void test_durations(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    if (uprobe_self_test(&err) < 0)
        skip();
    set_up(&b, "", 34, 100);
    choose_target(&b);
    model_add_trigger(b.m, "work if arg1 != 1");
    act(&b, ACT_OPTIONS);
    b.m->want.line(b.m->want.line_arg, "--slower-than 9s --not-before full --force");
    wait_text(&b, "slower than 9.00 s, not before the ring is full");
    act(&b, ACT_START_STOP);
    wait_text(&b, "looking for the functions");
    wait_text(&b, "Calls");
    wait_text(&b, "watching costs 2 x ");
    wait_text(&b, " calls, half < ");
    wait_text(&b, "slower than 9.00 s: 0");
    wait_text(&b, "17.2 s"); /* the end of the axis: the power of two above the threshold */
    wait_text(&b, "100 % full");
    act(&b, ACT_COPY);
    assert_non_null(strstr(b.m->want.copy, "-t 'work if arg1 != 1' --slower-than 9s"));
    assert_non_null(strstr(b.m->want.copy, "--not-before full"));
    tear_down(&b);
}

/* The functions of a set, the busiest first; with real probes. Each of target_busy calls the next one once, so all
 * have the same number of hits, and keep their order. */
static void test_counts(void **state)
{
    (void)state;
    struct bench b;
    struct err err;
    if (uprobe_self_test(&err) < 0)
        skip();
    set_up(&b, "", 24, 80);
    choose_target(&b);
    model_add_trigger(b.m, "/^(work|outer|main)$/"); /* main is not called again */
    act(&b, ACT_OPTIONS);
    b.m->want.line(b.m->want.line_arg, "--force");
    act(&b, ACT_START_STOP);
    wait_text(&b, "ENABLED");
    act(&b, ACT_PANE_NEXT);
    act(&b, ACT_PANE_NEXT);
    wait_text(&b, "2 of 3 hit");
    int row[3] = {-1, -1, -1};
    static const char *const names[] = {"work", "outer", "main"};
    for (int i = 0; i < surface_rows(b.s); i++) {
        char *text = golden_row(b.s, i);
        for (size_t k = 0; k < 3; k++) {
            char name[16];
            snprintf(name, sizeof name, " %s ", names[k]);
            if (strstr(text, name) && strstr(text, "/^("))
                row[k] = i;
        }
        free(text);
    }
    assert_true(row[0] > 0 && row[1] > 0);
    assert_true(row[2] > row[0] && row[2] > row[1]);
    act(&b, ACT_START_STOP);
    wait_text(&b, "ended");
    draw(&b);
    assert_true(golden_find(b.s, "2 of 3 hit")); /* also after the end */
    tear_down(&b);
}

/* Triggers that cost too much, with real probes: while the question stands nothing has failed, the screen says
 * what it waits for; yes arms, no leaves it at that. */
static void test_too_hot_is_a_question(void **state)
{
    (void)state;
    static const char *const hot[] = {"work", "work@return", "outer", "outer@return", "inner", "inner@return"};
    struct bench b;
    struct err err;
    if (uprobe_self_test(&err) < 0)
        skip();
    set_up(&b, "", 24, 80);
    choose_target(&b);
    (void)setpriority(PRIO_PROCESS, (id_t)b.target.pid, -20); /* judged is its share of the wall time */
    for (size_t i = 0; i < sizeof hot / sizeof *hot; i++)
        model_add_trigger(b.m, hot[i]);
    for (int answer = 0; answer < 2; answer++) {
        char out[100] = "";
        for (int attempt = 0; attempt < 20 && !b.m->want.question; attempt++) {
            act(&b, ACT_START_STOP);
            uint64_t end = deadline(&b);
            while (!b.m->session || (!b.m->want.question && !view_record.condition(b.view, "armed", "")))
                wait_some(&b, end);
            if (!b.m->want.question) { /* the machine gave it too little time to be slowed */
                act(&b, ACT_START_STOP);
                wait_text(&b, "[ENDED]");
            }
        }
        assert_non_null(strstr(b.m->want.question, "arm all the same?"));
        draw(&b);
        view_record.state(b.view, out, sizeof out);
        assert_string_equal(out, "asking");
        assert_true(row_of(&b, "waiting for the answer") >= 0);
        assert_int_equal(row_of(&b, "FAILED"), -1);
        assert_int_equal(row_of(&b, "lost"), -1);
        model_answer_fn *fn = b.m->want.answer;
        b.m->want.answer = NULL;
        free(b.m->want.question);
        b.m->want.question = NULL;
        fn(b.m->want.answer_arg, answer == 1);
        draw(&b);
        assert_int_equal(row_of(&b, "waiting for the answer"), -1);
        view_record.state(b.view, out, sizeof out);
        if (answer == 0)
            assert_string_equal(out, "not armed");
        else
            wait_text(&b, "[ENABLED]");
        assert_int_equal(row_of(&b, "lost"), -1);
    }
    tear_down(&b);
}

static bool has_given_up(void *arg)
{
    struct bench *b = arg;
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
    struct bench b;
    set_up(&b, "no-file,no-ack-stop", 30, 100); /* takes snapshots, and nothing comes of them */
    assert_false(view_record.action(b.view, ACT_INTERRUPT, NULL)); /* nothing to end */
    choose_target(&b);
    act(&b, ACT_START_STOP);
    wait_text(&b, "[ENABLED]");
    wait_text(&b, "  armed");
    act(&b, ACT_SNAPSHOT);
    wait_text(&b, "; ^C gives it up");
    act(&b, ACT_INTERRUPT);
    assert_true(run_until(has_given_up, &b, SOON));
    assert_true(b.m->recording);
    assert_int_equal(view_record.condition(b.view, "armed", ""), 1);
    act(&b, ACT_INTERRUPT);
    wait_text(&b, "[STOPPING]");
    assert_true(row_of(&b, " Stopping    Space again presses: gives up the snapshot, then SIGTERM, SIGKILL") >= 0);
    wait_text(&b, "[ENDED]");
    wait_text(&b, "stopped, as asked for");
    assert_false(view_record.action(b.view, ACT_INTERRUPT, NULL));
    tear_down(&b);
}

/* With -o DIR each further recording has a directory of its own, and what is there is left alone. */
static void test_next_directory(void **state)
{
    (void)state;
    static const char *const suffix[] = {"", "-2", "-3"};
    struct bench b;
    set_up(&b, "", 30, 100);
    char *dir = xasprintf("%s/rec", b.tmp), *option = xasprintf("-o %s", dir), *first = NULL;
    char *ini = xasprintf("%s/session.ini", dir);
    choose_target(&b);
    assert_true(view_record.action(b.view, ACT_OPTIONS, option));
    for (size_t i = 0; i < 3; i++) {
        char *expected = xasprintf("%s%s", dir, suffix[i]);
        act(&b, ACT_START_STOP);
        wait_text(&b, "[ENABLED]");
        wait_text(&b, "  armed");
        assert_string_equal(snapshot_dir_path(session_dir(b.m->session)), expected);
        act(&b, ACT_SNAPSHOT);
        for (uint64_t end = deadline(&b); view_record.condition(b.view, "snapshots", "1") == 0;)
            wait_some(&b, end);
        act(&b, ACT_START_STOP);
        wait_text(&b, "[ENDED]");
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
    tear_down(&b);
}

static void test_prompts(void **state)
{
    (void)state;
    struct bench b;
    set_up(&b, "", 30, 100);
    model_add_trigger(b.m, "main");
    model_add_trigger(b.m, "ns::f(int, char)");
    act(&b, ACT_TRIGGERS);
    assert_string_equal(b.m->want.prompt_initial, "main \"ns::f(int, char)\"");
    b.m->want.line(b.m->want.line_arg, "\"ns::f(int, char)\" g@return");
    assert_int_equal(b.m->triggers.len, 2);
    assert_string_equal(b.m->triggers.data[0], "ns::f(int, char)");
    assert_string_equal(b.m->triggers.data[1], "g@return");
    act(&b, ACT_TRIGGERS);
    b.m->want.line(b.m->want.line_arg, "/(/"); /* no regex: nothing changes */
    assert_int_equal(b.m->triggers.len, 2);
    assert_int_equal(b.m->say_severity, SAY_ERROR);
    act(&b, ACT_BUFFER);
    b.m->want.line(b.m->want.line_arg, "8M");
    act(&b, ACT_OPTIONS);
    assert_non_null(strstr(b.m->want.prompt_initial, "--size 8388608"));
    b.m->want.line(b.m->want.line_arg, "--freqq 7");
    assert_non_null(strstr(b.m->say, "--freq?"));
    act(&b, ACT_COPY);
    assert_non_null(strstr(b.m->want.copy, "mtui attach "));
    assert_non_null(strstr(b.m->want.copy, "-t 'ns::f(int, char)' -t g@return --hold-off 1s --size 8388608"));
    tear_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_recording),
        cmocka_unit_test(test_quit_with_a_program),
        cmocka_unit_test(test_log_in_a_low_window),
        cmocka_unit_test(test_log_without_a_pane),
        cmocka_unit_test(test_perf_dies),
        cmocka_unit_test(test_too_hot_is_a_question),
        cmocka_unit_test(field_F16_refusals_are_said),
        cmocka_unit_test(field_A9_a_missing_perf_is_named),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_next_directory),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Triggers on the Record screen, with real probes: what they cost, how long calls took, what was hit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/fmt.h"
#include "core/trigger/uprobe.h"
#include "tests/lib_record_panel.h"
#include "tests/lib_victim.h"

/* The screen with a target and a trigger to record by; skips the test where no probe can be set. */
static void set_up(struct record_panel *b, int rows, int cols, const char *trigger, const char *options)
{
    struct err err;
    if (uprobe_self_test(&err) < 0)
        skip();
    panel_set_up(b, "", rows, cols);
    panel_choose_target(b);
    model_add_trigger(b->m, trigger);
    if (!options)
        return;
    panel_act(b, ACT_OPTIONS);
    b->m->want.line(b->m->want.line_arg, options);
}

/* Durations of watched calls, the threshold among them, and what the watching costs; with real probes. */
static void test_durations(void **state)
{
    (void)state;
    struct record_panel b;
    set_up(&b, 34, 100, "work if arg1 != 1", "--slower-than 9s --not-before full --force");
    panel_wait_text(&b, "slower than 9.00 s, not before the ring is full");
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "looking for the functions");
    panel_wait_text(&b, "Calls");
    panel_wait_text(&b, "watching costs 2 x ");
    panel_wait_text(&b, " calls, half < ");
    panel_wait_text(&b, "slower than 9.00 s: 0");
    panel_wait_text(&b, "17.2 s"); /* the end of the axis: the power of two above the threshold */
    panel_wait_text(&b, "100 % full");
    panel_act(&b, ACT_COPY);
    assert_non_null(strstr(b.m->want.copy, "-t 'work if arg1 != 1' --slower-than 9s"));
    assert_non_null(strstr(b.m->want.copy, "--not-before full"));
    panel_tear_down(&b);
}

/* The functions of a set, the busiest first; with real probes. Each of target_busy calls the next one once, so all
 * have the same number of hits, and keep their order. */
static void test_counts(void **state)
{
    (void)state;
    struct record_panel b;
    set_up(&b, 24, 80, "/^(work|outer|main)$/", "--force"); /* main is not called again */
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "ENABLED");
    panel_act(&b, ACT_PANE_NEXT);
    panel_act(&b, ACT_PANE_NEXT);
    panel_wait_text(&b, "2 of 3 hit");
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
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENDED]");
    panel_draw(&b);
    assert_true(golden_find(b.s, "2 of 3 hit")); /* also after the end */
    char hits[64], n[FMT_MAX];
    struct session_status st;
    session_get_status(b.m->session, &st);
    assert_true(st.hits > 0);
    snprintf(hits, sizeof hits, "[hits %s]", fmt_count(n, st.hits));
    assert_int_equal(panel_row_of(&b, hits), panel_row_of(&b, " Trigger "));
    assert_true(panel_row_of(&b, hits) > 0);
    char logged[80]; /* and the log says the same */
    snprintf(logged, sizeof logged, "trigger /^(work|outer|main)$/: %s hits, ", fmt_count(n, st.hits));
    bool said = false;
    for (size_t i = 0; i < session_log_count(b.m->session); i++)
        said |= strstr(session_log_at(b.m->session, i).text, logged) != NULL;
    assert_true(said);
    model_add_trigger(b.m, "inner"); /* of the next recording: it has no hits yet */
    panel_draw(&b);
    snprintf(hits, sizeof hits, "/^(work|outer|main)$/ [%s], inner, ", fmt_count_short(n, st.hits));
    assert_int_equal(panel_row_of(&b, hits), panel_row_of(&b, " Trigger "));
    assert_true(panel_row_of(&b, hits) > 0);
    panel_tear_down(&b);
}

struct place {
    struct record_panel *panel;
    uint64_t address;
};

static bool is_out(void *arg)
{
    struct place *p = arg;
    loop_run_once(p->panel->loop, 10000000);
    return victim_byte(p->panel->target.pid, p->address) != 0xcc;
}

static void count_until(struct record_panel *b, uint64_t hits)
{
    struct session_status st = {0};
    for (uint64_t end = panel_deadline(b); st.hits < hits; session_get_status(b->m->session, &st))
        panel_wait_some(b, end);
}

/* d takes the probes out of the program, which its memory tells, and puts them back. */
static void test_disarm(void **state)
{
    (void)state;
    struct record_panel b;
    struct session_status st;
    set_up(&b, 30, 100, "work", "--force");
    panel_act(&b, ACT_START_STOP);
    panel_wait_text(&b, "[ENABLED]");
    const char *at = strstr(trigger_set_where(session_triggers(b.m->session), 0), " at 0x");
    assert_non_null(at);
    struct place work = {&b, strtoull(at + 4, NULL, 16)};
    for (int round = 0; round < 2; round++) {
        assert_int_equal(victim_byte(b.target.pid, work.address), 0xcc);
        session_get_status(b.m->session, &st);
        count_until(&b, st.hits + 1);
        panel_act(&b, ACT_DISARM);
        panel_draw(&b);
        assert_int_equal(panel_row_of(&b, "] disarmed"), panel_row_of(&b, " Trigger "));
        assert_true(run_until(is_out, &work, PANEL_SOON));
        panel_act(&b, ACT_DISARM);
        assert_int_equal(victim_byte(b.target.pid, work.address), 0xcc);
        panel_draw(&b);
        assert_int_equal(panel_row_of(&b, "] disarmed"), -1);
    }
    session_get_status(b.m->session, &st);
    count_until(&b, st.hits + 1);
    panel_tear_down(&b);
}

/* Triggers that cost too much, with real probes: while the question stands nothing has failed, the screen says
 * what it waits for; yes arms, no leaves it at that. */
static void test_too_hot_is_a_question(void **state)
{
    (void)state;
    static const char *const hot[] = {"work", "work@return", "outer", "outer@return", "inner", "inner@return"};
    struct record_panel b;
    set_up(&b, 24, 80, hot[0], NULL);
    (void)setpriority(PRIO_PROCESS, (id_t)b.target.pid, -20); /* judged is its share of the wall time */
    for (size_t i = 1; i < sizeof hot / sizeof *hot; i++)
        model_add_trigger(b.m, hot[i]);
    for (int answer = 0; answer < 2; answer++) {
        char out[100] = "";
        for (int attempt = 0; attempt < 20 && !b.m->want.question; attempt++) {
            panel_act(&b, ACT_START_STOP);
            uint64_t end = panel_deadline(&b);
            while (!b.m->session || (!b.m->want.question && !view_record.condition(b.view, "armed", "")))
                panel_wait_some(&b, end);
            if (!b.m->want.question) { /* the machine gave it too little time to be slowed */
                panel_act(&b, ACT_START_STOP);
                panel_wait_text(&b, "[ENDED]");
            }
        }
        assert_non_null(strstr(b.m->want.question, "arm all the same?"));
        panel_draw(&b);
        view_record.state(b.view, out, sizeof out);
        assert_string_equal(out, "asking");
        assert_true(panel_row_of(&b, "waiting for the answer") >= 0);
        assert_int_equal(panel_row_of(&b, "FAILED"), -1);
        assert_int_equal(panel_row_of(&b, "lost"), -1);
        model_answer_fn *fn = b.m->want.answer;
        b.m->want.answer = NULL;
        free(b.m->want.question);
        b.m->want.question = NULL;
        fn(b.m->want.answer_arg, answer == 1);
        panel_draw(&b);
        assert_int_equal(panel_row_of(&b, "waiting for the answer"), -1);
        view_record.state(b.view, out, sizeof out);
        if (answer == 0)
            assert_string_equal(out, "not armed");
        else
            panel_wait_text(&b, "[ENABLED]");
        assert_int_equal(panel_row_of(&b, "lost"), -1);
    }
    panel_tear_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_disarm),
        cmocka_unit_test(test_too_hot_is_a_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

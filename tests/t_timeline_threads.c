/* Threads and processes on the Timeline screen: order, pinned, hidden, collapsed, their CPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib_gentrace.h"
#include "tests/lib_golden.h"
#include "tests/lib_timeline.h"
#include "tui/term/glyph.h"
#include "tui/timeline/v_timeline.h"

static void threads(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    act(&r, ACT_THREAD_NEXT);
    assert_int_equal(r.m->cursor_tid, 4714);
    act(&r, ACT_COLLAPSE);
    draw(&r);
    assert_true(golden_find(r.s, "(collapsed)"));
    act(&r, ACT_CALLEE); /* moving inside opens it */
    draw(&r);
    assert_false(golden_find(r.s, "(collapsed)"));
    act(&r, ACT_PIN);
    draw(&r);
    char *row = golden_row(r.s, r.tl->at.rows.row);
    assert_non_null(strstr(row, "4714 worker-1"));
    assert_non_null(strstr(row, "pinned"));
    free(row);
    act(&r, ACT_HIDE);
    assert_int_equal(r.m->cursor_tid, 4713);
    draw(&r);
    assert_false(golden_find(r.s, "worker-1"));
    act(&r, ACT_HIDE);
    assert_string_equal(r.m->say, "the last thread stays");
    act(&r, ACT_UNHIDE);
    draw(&r);
    assert_true(golden_find(r.s, "worker-1"));
    act_with(&r, ACT_FILTER, "worker-1");
    draw(&r);
    assert_false(golden_find(r.s, "worker-0"));
    assert_int_equal(r.m->cursor_tid, 4714);
    act_with(&r, ACT_FILTER, "");
    draw(&r);
    assert_true(golden_find(r.s, "worker-0"));
    rig_close(&r);
}

/* The row that a text stands in, from the top of the threads; −1: it is not shown. */
static int row_with(struct rig *r, const char *text)
{
    int found = -1;
    draw(r);
    for (int row = r->tl->at.rows.rows; row-- > 0;) {
        char *line = golden_row(r->s, r->tl->at.rows.row + row);
        if (strstr(line, text))
            found = row;
        free(line);
    }
    return found;
}

static const char two_processes[] =
    "thread 4000 server\n+ 1000 main\n - 9000\n"
    "thread 4001 zeta\n+ 1000 work\n + 1500 more\n - 1600\n - 3000\n"
    "thread 4002 alpha\n+ 1000 work\n - 2000\n"
    "thread 5001 helper\n+ 1000 work\n - 9000\n"
    "mark 4000 migration from CPU 2 to CPU 5\n";

/* Each process has a rule above its threads, which says how many they are, and folds them away. */
static void threads_of_several_processes(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, two_processes);
    assert_int_equal(row_with(&r, "process 4000 server"), 0);
    assert_int_equal(row_with(&r, "3 threads  4 spans"), 0);
    assert_int_equal(row_with(&r, "4000 server   "), 1);
    int second = row_with(&r, "process 5000 helper");
    assert_int_equal(second + 1, row_with(&r, "5001 helper"));
    assert_int_equal(row_with(&r, "of 5000"), -1);
    act_with(&r, ACT_COLLAPSE, "process");
    assert_int_equal(row_with(&r, "(collapsed)"), 0);
    assert_int_equal(row_with(&r, "process 5000"), 1);
    assert_int_equal(row_with(&r, "4001 zeta"), -1);
    /* Going along the threads leaves it folded; moving inside opens it. */
    act(&r, ACT_THREAD_NEXT);
    assert_int_equal(r.m->cursor_tid, 4001);
    assert_int_equal(row_with(&r, "4001 zeta"), -1);
    act(&r, ACT_CALLEE);
    assert_true(row_with(&r, "4001 zeta") > 0);
    /* Pinned ones stand apart and name their process. */
    act(&r, ACT_PIN);
    assert_int_equal(row_with(&r, "4001 zeta   of 4000 server"), 0);
    act(&r, ACT_PIN);
    act_with(&r, ACT_COLLAPSE, "all");
    assert_int_equal(row_with(&r, "4001 zeta"), 2);
    assert_int_equal(row_with(&r, "4002 alpha"), 3);
    struct mouse m = {MOUSE_DOWN, r.tl->at.rows.row, 5, 1, 0};
    assert_true(view_timeline.mouse(r.tl, &m, (struct rect){1, 0, 27, 100}));
    assert_int_equal(row_with(&r, "process 5000"), 1);
    rig_close(&r);
}

static void order_of_threads(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, two_processes);
    act_with(&r, ACT_COLLAPSE, "all");
    static const struct {
        const char *by, *rows[3];
    } orders[] = {{"name", {"4002 alpha", "4000 server   ", "4001 zeta"}},
                  {"spans", {"4001 zeta", "4000 server   ", "4002 alpha"}},
                  {"busy", {"4000 server   ", "4001 zeta", "4002 alpha"}},
                  {"tid", {"4000 server   ", "4001 zeta", "4002 alpha"}}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        act_with(&r, ACT_SORT, orders[i].by);
        for (int k = 0; k < 3; k++)
            assert_int_equal(row_with(&r, orders[i].rows[k]), 1 + k);
    }
    act_with(&r, ACT_SORT, "spans");
    act_with(&r, ACT_GOTO, "0us");
    assert_int_equal(r.m->cursor_tid, 4000);
    act(&r, ACT_THREAD_PREV); /* as they stand */
    assert_int_equal(r.m->cursor_tid, 4001);
    act_with(&r, ACT_SORT, "colour");
    assert_int_equal(r.m->say_severity, SAY_ERROR);
    rig_close(&r);
}

/* The mark belongs to the last thread named, which moves from CPU 2 to 5 at 4000. */
static void cpus(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, two_processes);
    assert_int_equal(trace_cpu_at(r.t, 3, 1000), 2);
    assert_int_equal(trace_cpu_at(r.t, 3, 3999), 2);
    assert_int_equal(trace_cpu_at(r.t, 3, 4000), 5);
    assert_int_equal(trace_cpu_at(r.t, 3, 9000), 5);
    assert_int_equal(trace_cpu_at(r.t, 0, 5000), -1);
    act(&r, ACT_THREAD_PREV);
    assert_int_equal(r.m->cursor_tid, 5001);
    draw(&r);
    assert_true(golden_find(r.s, "cpu 2   depth 0"));
    rig_close(&r);
}

/* A thread that is gone to shows from its top, not as the tail of the screen. */
static void whole_threads_come_into_view(void **state)
{
    (void)state;
    struct rig r;
    char text[2000] = "", *at = text;
    for (int thread = 1; thread <= 3; thread++) {
        at += sprintf(at, "thread 400%d t%d\n", thread, thread);
        for (int d = 0; d < 14; d++)
            at += sprintf(at, "+ %d f%d\n", 1000 + d, d);
        for (int d = 0; d < 14; d++)
            at += sprintf(at, " - %d\n", 9000 + d);
    }
    opened(&r, text);
    draw(&r);
    for (int d = 0; d < 16; d++)
        act(&r, ACT_CALLER);
    act(&r, ACT_THREAD_NEXT);
    draw(&r);
    char *row = golden_row(r.s, r.tl->at.rows.row);
    assert_non_null(strstr(row, "4002 t2"));
    free(row);
    rig_close(&r);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads),
        cmocka_unit_test(threads_of_several_processes),
        cmocka_unit_test(order_of_threads),
        cmocka_unit_test(cpus),
        cmocka_unit_test(whole_threads_come_into_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

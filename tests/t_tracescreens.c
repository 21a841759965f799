/* The Functions and Events screens driven by actions; the look-up of source lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib_gentrace.h"
#include "tests/lib_golden.h"
#include "tests/lib_timeline.h"
#include "tui/analysis/function_pane.h"
#include "tui/analysis/function_rows.h"
#include "tui/term/glyph.h"
#include "tui/trace/source_finder.h"
#include "tui/analysis/v_event.h"
#include "tui/analysis/v_function.h"

static const char server[] =
    "thread 4713 worker-0\n"
    "+ 1000000 worker_main /usr/bin/demo-server s\n"
    "+ 1205000 handle_request\n"
    "+ 1206000 parse_headers\n + 1209000 scan_line\n - 1212000\n + 1213000 scan_line\n - 1217000\n"
    "- 1226000\n"
    "+ 1240280 eval_block\n + 1241440 str_append\n - 1241480\n + 1243000 str_append\n - 1246000\n - 1250000\n"
    "+ 1250000 eval_block\n + 1251000 str_append\n - 1260000\n - 1285000\n"
    "- 1320000\n"
    "gap 1325000 1329000 overflow\n"
    "mark 1205000 trigger handle_request entry\n"
    "+ 1330000 epoll_wait /lib/libc.so.6\n - 1340000\n"
    "- 1400000\n"
    "thread 4714 worker-1\n"
    "+ 1000000 fib\n + 1020000 fib\n + 1030000 fib\n - 1060000\n - 1080000\n - 1090000\n";

/* What stands in the row of the pointer. */
static bool chosen_has(struct rig *r, const char *text)
{
    bool has = false;
    for (int row = 3; row < surface_rows(r->s) - 2 && !has; row++) {
        if (surface_at(r->s, row, 0)->cp != glyph(r->m->glyphs, GLYPH_POINTER))
            continue;
        char *line = golden_row(r->s, row);
        has = strstr(line, text) != NULL;
        free(line);
        break;
    }
    return has;
}

/* The pane wraps a sentence that is too long for a line; below it length, bytes and time, then the stack. */
static void gap_in_events(void **state)
{
    (void)state;
    for (int cols = 80; cols <= 100; cols += 20) {
        struct rig r;
        rig_open_view(&r, &view_event,
                 "thread 5 a\n+ 0 main\n- 3000\n"
                 "gap 3000 5000 no-image /home/someone/project/program is not the file that ran: its build-id is "
                 "0123456789ab, recorded was ba9876543210; not used\n"
                 "+ 5000 g\n- 9000\n",
                 cols == 80 ? 24 : 30, cols);
        act_drawn(&r, ACT_FILTER, "kind=gap");
        act_drawn(&r, ACT_FIRST, NULL);
        assert_true(chosen_has(&r, "GAP"));
        assert_true(golden_find(r.s, " /home/someone/project/program is not the file that ran: its build-id is"));
        assert_true(golden_find(r.s, "ba9876543210; not used"));
        assert_true(golden_find(r.s, "2.00 us  4,096 B   clock 3000"));
        rig_close(&r);
    }
}

static void functions_table(void **state)
{
    (void)state;
    struct rig r;
    rig_open_view(&r, &view_function, server, 30, 100);
    draw(&r);
    golden_check(r.s, "functions_100x30", "100x30 unicode 256, server trace");
    assert_true(golden_find(r.s, "8 of 8 functions"));
    /* Recursion counts once: three calls of fib in 90 us. */
    act_drawn(&r, ACT_SORT, "calls");
    assert_true(golden_find(r.s, "sort: CALLS"));
    act_drawn(&r, ACT_FILTER, "fib");
    assert_true(golden_find(r.s, "1 of 8 functions"));
    assert_true(chosen_has(&r, "3 90.0 us 90.0 us"));
    act_drawn(&r, ACT_FILTER, "self>=30us module=demo");
    assert_true(golden_find(r.s, "4 of 8 functions")); /* worker_main, handle_request, eval_block, fib */
    act_drawn(&r, ACT_FILTER, "self>=soon");
    assert_true(r.m->say_severity == SAY_ERROR);
    act_drawn(&r, ACT_FILTER, "^(scan|str)_");
    assert_true(golden_find(r.s, "2 of 8 functions"));
    act_drawn(&r, ACT_CANCEL, NULL);
    assert_true(golden_find(r.s, "8 of 8 functions"));
    act_drawn(&r, ACT_SORT, "function"); /* counted anew: the row that was chosen still is */
    act_drawn(&r, ACT_FIRST, NULL);
    act_drawn(&r, ACT_DOWN, NULL);
    assert_true(chosen_has(&r, " eval_block"));
    act_drawn(&r, ACT_RELOAD, NULL);
    assert_true(chosen_has(&r, " eval_block"));
    rig_close(&r);
}

static size_t lines_of(const char *path, char first[1000])
{
    char line[1000];
    size_t n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (n++ == 0)
            memcpy(first, line, sizeof line);
    fclose(f);
    return n;
}

static void exports_what_is_shown(void **state)
{
    (void)state;
    struct rig r;
    char dir[] = "/tmp/mtui-x-XXXXXX", path[64], command[100], first[1000];
    assert_non_null(mkdtemp(dir));
    rig_open_view(&r, &view_function, server, 30, 100);
    act_drawn(&r, ACT_EXPORT, NULL); /* by key: asks, with a proposal */
    assert_string_equal(r.m->want.prompt_initial, "functions snap-1-functions.tsv");
    snprintf(path, sizeof path, "%s/f.tsv", dir);
    snprintf(command, sizeof command, "functions %s", path);
    r.m->want.line(r.m->want.line_arg, command);
    assert_int_equal(r.m->say_severity, SAY_INFO);
    assert_non_null(strstr(r.m->say, path));
    assert_int_equal(lines_of(path, first), 1 + 8);
    assert_int_equal(strncmp(first, "calls\ttotal_ns\t", 15), 0);

    act_drawn(&r, ACT_EXPORT, command); /* never over a file that is there */
    assert_int_equal(r.m->say_severity, SAY_ERROR);
    act_drawn(&r, ACT_EXPORT, "nonsense");
    assert_int_equal(r.m->say_severity, SAY_ERROR);
    unlink(path);
    model_set_range(r.m, 1325000, 1345000); /* in it: worker_main and epoll_wait */
    act_drawn(&r, ACT_EXPORT, command);
    assert_non_null(strstr(r.m->say, "range A-B"));
    assert_true(lines_of(path, first) < 1 + 8);
    unlink(path);
    rig_close(&r);

    rig_open_view(&r, &view_event, server, 30, 100);
    act_drawn(&r, ACT_EXPORT, NULL);
    assert_string_equal(r.m->want.prompt_initial, "spans snap-1-spans.tsv");
    rig_close(&r);
    assert_int_equal(rmdir(dir), 0);
}

static void triggers_are_a_kind_of_event(void **state)
{
    (void)state;
    struct rig r;
    rig_open_view(&r, &view_event, server, 30, 100);
    act_drawn(&r, ACT_FILTER, "kind=trigger");
    assert_int_not_equal(r.m->say_severity, SAY_ERROR);
    assert_true(golden_find(r.s, "TRIGGER"));
    assert_true(golden_find(r.s, "handle_request entry"));
    assert_false(golden_find(r.s, "epoll_wait"));
    rig_close(&r);
}

static void field_F14_functions_lead_to_calls(void **state)
{
    (void)state;
    struct rig r;
    rig_open_view(&r, &view_function, server, 30, 100);
    act_drawn(&r, ACT_FILTER, "str_append");
    act_drawn(&r, ACT_OPEN, NULL);
    assert_string_equal(r.m->want.screen, "timeline");
    assert_int_equal(r.m->cursor_ns, 1251000);
    assert_int_equal(r.m->cursor_tid, 4713);
    assert_int_equal(r.m->cursor_depth, 3);
    act_drawn(&r, ACT_CALL_NEXT, NULL);
    act_drawn(&r, ACT_OPEN, NULL);
    assert_int_equal(r.m->cursor_ns, 1243000);
    act_drawn(&r, ACT_CALL_PREV, NULL);
    act_drawn(&r, ACT_OPEN, NULL);
    assert_int_equal(r.m->cursor_ns, 1251000);
    assert_true(golden_find(r.s, "eval_block"));
    /* Callers and callees of a function. */
    act_drawn(&r, ACT_FILTER, "eval_block");
    assert_true(golden_find(r.s, "100.0 %  handle_request"));
    assert_true(golden_find(r.s, "100.0 %  str_append"));
    rig_close(&r);
}

static void functions_of_a_range(void **state)
{
    (void)state;
    struct rig r;
    char text[100];
    rig_open_view(&r, &view_function, server, 30, 100);
    model_set_range(r.m, 1206000, 1226000);
    r.ops->changed(r.view, MODEL_CURSOR);
    draw(&r);
    r.ops->state(r.view, text, sizeof text);
    assert_non_null(strstr(text, "A-B"));
    /* worker_main, handle_request, parse_headers, scan_line. */
    assert_true(golden_find(r.s, "4 of 4 functions"));
    model_set_range(r.m, 0, 0);
    model_set_cursor(r.m, 4714, 1030000);
    r.ops->changed(r.view, MODEL_CURSOR);
    act_drawn(&r, ACT_OPTIONS, NULL);
    assert_true(golden_find(r.s, "1 of 1 function "));
    model_set_trace(r.m, NULL, NULL, NULL, NULL);
    r.ops->changed(r.view, MODEL_TRACE);
    draw(&r);
    assert_true(golden_find(r.s, "No trace is open"));
    rig_close(&r);
}

static void events_follow(void **state)
{
    (void)state;
    struct rig r;
    rig_open_view(&r, &view_event, server, 30, 100);
    model_set_cursor(r.m, 4713, 1241440);
    r.ops->changed(r.view, MODEL_CURSOR);
    draw(&r);
    assert_true(chosen_has(&r, "str_append"));
    assert_true(chosen_has(&r, "call"));
    golden_check(r.s, "events_100x30", "100x30 unicode 256, server trace, cursor at 241.44 us");
    act_drawn(&r, ACT_DOWN, NULL);
    assert_true(chosen_has(&r, "40 ns"));
    assert_int_equal(r.m->cursor_ns, 1241480);
    act_drawn(&r, ACT_CALL_NEXT, NULL);
    assert_int_equal(r.m->cursor_ns, 1243000);
    act_drawn(&r, ACT_CALL_NEXT, NULL);
    assert_int_equal(r.m->cursor_ns, 1251000);
    act_drawn(&r, ACT_CALL_PREV, NULL);
    assert_int_equal(r.m->cursor_ns, 1243000);
    act_drawn(&r, ACT_GAP_NEXT, NULL);
    assert_true(chosen_has(&r, "overflow"));
    assert_true(chosen_has(&r, "GAP           0")); /* inside worker_main alone */
    assert_true(golden_find(r.s, " the ring wrapped") && golden_find(r.s, "4.00 us  4,096 B   clock"));
    assert_int_equal(r.m->cursor_ns, 1325000);
    act_drawn(&r, ACT_OPEN, NULL);
    assert_string_equal(r.m->want.screen, "timeline");
    rig_close(&r);
}

/* Where one call ends as the next begins, Events stands on the one that the cursor means. */
static void events_stand_on_the_call(void **state)
{
    (void)state;
    static const struct {
        size_t depth;
        const char *kind, *name;
        size_t leads_to;
    } cases[] = {{SIZE_MAX, "ret", "f", 1}, {1, "call", "g", 1}, {2, "call", "h", 2}, {3, "ret", "f", 1}};
    struct rig r;
    rig_open_view(&r, &view_event,
                  "thread 7 a\n+ 0 main\n+ 100 f\n- 200\n+ 200 g\n+ 200 h\n- 300\n- 300\n- 1000\n"
                  "thread 8 b\n+ 0 main\n+ 200 other\n- 300\n- 1000\n",
                  30, 100);
    for (int all = 0; all < 2; all++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            model_set_cursor(r.m, 7, 0);
            r.ops->changed(r.view, MODEL_CURSOR);
            model_set_cursor_call(r.m, 7, 200, cases[i].depth);
            r.ops->changed(r.view, MODEL_CURSOR);
            draw(&r);
            char row[40];
            snprintf(row, sizeof row, "%-9s %5zu", cases[i].kind, cases[i].kind[0] == 'r' ? 1 : cases[i].depth);
            assert_true(chosen_has(&r, row) && chosen_has(&r, cases[i].name));
            act_drawn(&r, ACT_OPEN, NULL);
            assert_int_equal(r.m->cursor_depth, cases[i].leads_to);
            assert_int_equal(r.m->cursor_ns, cases[i].kind[0] == 'r' ? 100 : 200);
        }
        act_drawn(&r, ACT_THREADS, NULL);
    }
    rig_close(&r);
}

static void events_ends_and_filters(void **state)
{
    (void)state;
    struct rig r;
    rig_open_view(&r, &view_event, server, 30, 100);
    act_drawn(&r, ACT_FIRST, NULL);
    assert_true(chosen_has(&r, "worker_main"));
    act_drawn(&r, ACT_UP, NULL);
    assert_true(chosen_has(&r, "worker_main"));
    act_drawn(&r, ACT_LAST, NULL);
    assert_true(chosen_has(&r, "400.000 us"));
    for (int i = 0; i < 5; i++)
        act_drawn(&r, ACT_DOWN, NULL);
    assert_true(chosen_has(&r, "400.000 us"));
    act_drawn(&r, ACT_PAGE_UP, NULL);
    act_drawn(&r, ACT_PAGE_UP, NULL);
    act_drawn(&r, ACT_PAGE_UP, NULL);
    assert_true(chosen_has(&r, "0.000 us") || chosen_has(&r, "0 ns"));
    act_drawn(&r, ACT_FILTER, "kind=gap,mark");
    act_drawn(&r, ACT_FIRST, NULL);
    assert_true(chosen_has(&r, "TRIGGER"));
    act_drawn(&r, ACT_DOWN, NULL);
    assert_true(chosen_has(&r, "GAP"));
    act_drawn(&r, ACT_FILTER, "tid=4714");
    act_drawn(&r, ACT_FIRST, NULL);
    assert_true(chosen_has(&r, "fib"));
    act_drawn(&r, ACT_FILTER, "scan tid=4713 kind=call");
    act_drawn(&r, ACT_FIRST, NULL);
    assert_true(chosen_has(&r, "scan_line"));
    static const char *const wrong[] = {"dur>1us", "depth=1", "time>10us", "bogus=3", "kind>call", "kind="};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        r.m->say[0] = '\0';
        act_drawn(&r, ACT_FILTER, wrong[i]);
        assert_int_equal(r.m->say_severity, SAY_ERROR);
        assert_non_null(strstr(r.m->say, i == 4 ? "kind takes =" : i == 5 ? "kind= what?" : "kind tid name"));
        assert_true(chosen_has(&r, "scan_line")); /* as before */
    }
    act_drawn(&r, ACT_FILTER, "name=scan tid=4713 kind=ret");
    act_drawn(&r, ACT_FIRST, NULL);
    assert_true(chosen_has(&r, "scan_line"));
    act_drawn(&r, ACT_FILTER, "kind=song");
    assert_string_equal(r.m->say, "kinds are call ret gap mark trigger hit frequency ptwrite migration snapshot note, not song");
    act_drawn(&r, ACT_FILTER, "tid=1");
    assert_string_equal(r.m->say, "no thread 1 in this trace");
    act_drawn(&r, ACT_CANCEL, NULL);
    act_drawn(&r, ACT_GOTO, "206us");
    assert_true(chosen_has(&r, "parse_headers"));
    for (int rows = 4; rows < 40; rows += 5)
        for (int cols = 4; cols < 130; cols += 21) {
            surface_resize(r.s, rows, cols);
            draw(&r);
        }
    rig_close(&r);
}

extern char __executable_start;

__attribute__((noinline)) static int a_function_with_a_line(int x)
{
    return x * 3;
}
static const int its_line = __LINE__ - 4;

static void ready(void *arg)
{
    ++*(int *)arg;
}

static void source_lines(void **state)
{
    (void)state;
    int news = 0;
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    struct function f = {.name = "a_function_with_a_line", .raw = "a_function_with_a_line", .module = self};
    f.addr = (uint64_t)((uintptr_t)a_function_with_a_line - (uintptr_t)&__executable_start);
    struct functions *fns = functions_new();
    functions_set_file(fns, self, self);
    struct source_finder *finder = source_finder_new(NULL, ready, &news);
    const struct source_answer *a = source_find(finder, fns, &f, NULL, 0);
    assert_non_null(a);
    assert_int_equal(news, 1);
    assert_non_null(a->function.path);
    assert_non_null(strstr(a->function.path, "tests/t_tracescreens.c"));
    assert_int_equal(a->function.line, its_line);
    assert_non_null(source_find(finder, fns, &f, NULL, 0)->function.path);
    assert_int_equal(news, 1);
    f.module = "/no/such/file";
    assert_null(source_find(finder, fns, &f, NULL, 0)->function.path);
    f.module = "[vdso]";
    assert_null(source_find(finder, fns, &f, NULL, 0)->function.path);
    source_finder_free(finder);
    functions_free(fns);
    assert_int_equal(a_function_with_a_line(2), 6);
}

/* With too few rows empty buckets go, then the first row has all that are shorter than what it says. */
/* The column of Functions: a power of two a cell where it is wide, else several. */
static void histogram_in_a_column(void **state)
{
    (void)state;
    const struct glyphs *g = glyphs_of(GLYPHS_UNICODE);
    struct function_stats f = {.histogram = {[3] = 4, [4] = 8, [6] = 1, [20] = 2}};
    uint32_t cells[24];
    function_histogram(&f, g, cells, 24);
    for (int c = 0; c < 24; c++) /* in eighths of the most, rounded up */
        assert_int_equal(cells[c], c == 0    ? glyph(g, GLYPH_BAR1 + 3)
                                   : c == 1  ? glyph(g, GLYPH_BAR1 + 7)
                                   : c == 3  ? glyph(g, GLYPH_BAR1)
                                   : c == 17 ? glyph(g, GLYPH_BAR1 + 1)
                                             : ' ');
    function_histogram(&f, g, cells, 6); /* 18 powers, three a cell: 12, 1, 0, 0, 0, 2 calls */
    for (int c = 0; c < 6; c++)
        assert_int_equal(cells[c], c == 0   ? glyph(g, GLYPH_BAR1 + 7)
                                   : c == 1 ? glyph(g, GLYPH_BAR1)
                                   : c == 5 ? glyph(g, GLYPH_BAR1 + 1)
                                            : ' ');
}

static void histogram_folds_the_shortest(void **state)
{
    (void)state;
    const struct glyphs *g = glyphs_of(GLYPHS_ASCII);
    struct function_stats f = {.calls = 16};
    f.histogram[3] = 4;
    f.histogram[4] = 2;
    f.histogram[6] = 10;
    struct surface *s = surface_new(8, 60);
    function_pane_histogram(s, (struct rect){0, 0, 4, 60}, &f, 64, false, g);
    assert_false(golden_find(s, "<"));
    assert_true(golden_find(s, "    8 ns") && golden_find(s, "   16 ns") && golden_find(s, "   64 ns"));
    assert_false(golden_find(s, "32 ns"));
    assert_int_equal(surface_at(s, 3, 0)->cp, '>');
    surface_clear(s);
    function_pane_histogram(s, (struct rect){0, 0, 3, 60}, &f, 9, false, g);
    assert_true(golden_find(s, "<32 ns"));
    assert_true(golden_find(s, "  6"));
    assert_false(golden_find(s, " 8 ns"));
    assert_int_equal(surface_at(s, 1, 0)->cp, '>'); /* 9 ns is one of these */
    assert_true(golden_find(s, "   64 ns"));
    assert_true(golden_find(s, "  10"));
    surface_clear(s);
    function_pane_histogram(s, (struct rect){0, 0, 2, 60}, &f, UINT64_MAX, false, g);
    assert_true(golden_find(s, "<128 ns"));
    assert_true(golden_find(s, "  16"));
    surface_clear(s);
    function_pane_histogram(s, (struct rect){0, 0, 5, 60}, &f, UINT64_MAX, false, g);
    assert_false(golden_find(s, "<"));
    assert_true(golden_find(s, " 8 ns"));
    surface_free(s);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exports_what_is_shown), cmocka_unit_test(triggers_are_a_kind_of_event),
        cmocka_unit_test(functions_table),
        cmocka_unit_test(gap_in_events),
        cmocka_unit_test(field_F14_functions_lead_to_calls),
        cmocka_unit_test(functions_of_a_range),  cmocka_unit_test(events_follow),
        cmocka_unit_test(events_stand_on_the_call), cmocka_unit_test(events_ends_and_filters), cmocka_unit_test(source_lines),
        cmocka_unit_test(histogram_in_a_column),
        cmocka_unit_test(histogram_folds_the_shortest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

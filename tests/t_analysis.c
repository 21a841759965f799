/* Compare and Calls: from the Timeline, Functions, Events and each other, over the whole ui. */
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

#include "core/base/loop.h"
#include "tests/lib_gentrace.h"
#include "tests/lib_golden.h"
#include "tests/lib_screens.h"
#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/ui/ui.h"

static const char three_calls[] = GENTRACE_THREE_CALLS "thread 1001 other\n+ 0 run\n + 100 g\n - 105\n - 1000\n";

static void open_with(struct screens *r, struct trace *t, struct loop *loop, enum glyph_tier glyphs, int rows,
                      int cols)
{
    screens_open(r, &(struct screens_setup){.t = t, .loop = loop, .glyphs = glyphs, .rows = rows, .cols = cols});
}

static void compare_from_the_timeline(void **state)
{
    (void)state;
    struct screens r;
    open_with(&r, gentrace_parse(three_calls), NULL, GLYPHS_UNICODE, 30, 100);
    screens_command(&r, "goto 350");
    screens_press(&r, "k"); /* from g to f */
    screens_press(&r, "k");
    screens_press(&r, "j");
    screens_press(&r, "M");
    assert_string_equal(ui_screen(r.ui), "compare");
    golden_check(r.s, "compare_100x30", "100x30 unicode 256, a call of f that was slow");
    /* g is first: +120 self, +2 calls. */
    assert_true(screens_see(&r, "+120 ns"));
    screens_press(&r, "Enter");
    assert_string_equal(ui_screen(r.ui), "timeline");
    assert_int_equal(r.m->cursor_ns, 310);
    screens_press(&r, "q"); /* back to where it was asked */
    assert_string_equal(ui_screen(r.ui), "compare");
    screens_press(&r, "Tab");
    screens_press(&r, "Enter");
    assert_int_equal(r.m->cursor_ns, 710);
    screens_press(&r, "q");
    screens_press(&r, "j"); /* k: the median call has none */
    screens_press(&r, "Enter");
    assert_string_equal(ui_screen(r.ui), "compare");
    assert_true(screens_see(&r, "the median call does not call it"));
    screens_press(&r, "j"); /* f itself: the median call */
    screens_press(&r, "Enter");
    assert_int_equal(r.m->cursor_ns, 700);
    assert_int_equal(r.m->cursor_depth, 1);
    screens_press(&r, "M"); /* compared with itself */
    assert_true(screens_see(&r, "of 3 calls: this very call"));
    screens_close(&r);
}

static void compare_is_a_list(void **state)
{
    (void)state;
    struct screens r;
    char dir[] = "/tmp/mtui-c-XXXXXX", path[64], line[200] = "";
    assert_non_null(mkdtemp(dir));
    open_with(&r, gentrace_parse(three_calls), NULL, GLYPHS_ASCII, 24, 80);
    screens_command(&r, "goto 305");
    screens_press(&r, "M");
    assert_true(screens_see(&r, "4 of 4 functions"));
    golden_check(r.s, "compare_80x24_ascii", "80x24 ascii 256, a call of f that was slow");
    screens_command(&r, "filter ^[gk]$");
    assert_true(screens_see(&r, "2 of 4 functions"));
    screens_command(&r, "filter (");
    assert_true(r.m->say_severity == SAY_ERROR);
    assert_true(screens_see(&r, "2 of 4 functions"));
    screens_press(&r, "Esc");
    assert_true(screens_see(&r, "4 of 4 functions"));
    screens_command(&r, "sort call diff");
    assert_true(screens_see(&r, "sort: CALL DIFF"));
    screens_command(&r, "sort nonsense");
    assert_true(r.m->say_severity == SAY_ERROR);
    screens_press(&r, ">");
    screens_press(&r, "I");
    assert_true(screens_see(&r, "inverted"));
    screens_command(&r, "sort function");
    snprintf(path, sizeof path, "%s/c.tsv", dir);
    snprintf(line, sizeof line, "export %s", path);
    screens_command(&r, line);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "self_diff_ns\tself_ns\tmedian_self_ns\tcalls_diff\tcalls\tmedian_calls\t"
                              "total_diff_ns\ttotal_ns\tmedian_total_ns\tfunction\n");
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "70\t70\t0\t1\t1\t0\t90\t90\t0\tk\n");
    fclose(f);
    unlink(path);
    rmdir(dir);
    screens_press(&r, "g"); /* the first row: k */
    screens_press(&r, "L");
    assert_string_equal(ui_screen(r.ui), "calls");
    assert_true(screens_see(&r, "calls of k"));
    screens_close(&r);
}

/* Numbers for programs, whatever the screen shows. */
static void calls_are_exported_as_numbers(void **state)
{
    (void)state;
    static const char want[] = "duration_ns\ttimes_p50\tstart_ns\ttid\tnote\tcaller\n"
                               "100\t5.00\t310\t1000\t\tf\n50\t2.50\t420\t1000\t\tf\n"
                               "30\t1.50\t710\t1000\t\tf\n20\t1.00\t110\t1000\t\tf\n"
                               "10\t0.50\t320\t1000\t\tg\n5\t0.25\t100\t1001\t\trun\n";
    struct screens r;
    char dir[] = "/tmp/mtui-calls-XXXXXX", path[64], line[100], got[sizeof want + 64] = "";
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/g.tsv", dir);
    snprintf(line, sizeof line, "export %s", path);
    open_with(&r, gentrace_parse(three_calls), NULL, GLYPHS_UNICODE, 30, 100);
    screens_press(&r, "5");
    screens_command(&r, "filter ^g$");
    screens_press(&r, "L");
    screens_command(&r, line);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    fread(got, 1, sizeof got - 1, f);
    fclose(f);
    assert_string_equal(got, want);
    unlink(path);
    rmdir(dir);
    screens_close(&r);
}

static void calls_of_a_function(void **state)
{
    (void)state;
    struct screens r;
    open_with(&r, gentrace_parse(three_calls), NULL, GLYPHS_UNICODE, 30, 100);
    screens_press(&r, "5");
    screens_command(&r, "filter ^g$");
    screens_press(&r, "L");
    assert_string_equal(ui_screen(r.ui), "calls");
    golden_check(r.s, "calls_100x30", "100x30 unicode 256, the calls of g");
    /* 100 50 30 20 10 5: g of g counts, as a call. */
    assert_true(screens_see(&r, "6 calls   min 5 ns  p50 20 ns  mean 36 ns  p99 100 ns  max 100 ns"));
    screens_press(&r, "j");
    screens_press(&r, "Enter");
    assert_string_equal(ui_screen(r.ui), "timeline");
    assert_int_equal(r.m->cursor_ns, 420);
    screens_press(&r, "q");
    screens_command(&r, "filter >=20 <=50");
    assert_true(screens_see(&r, "3 of 6 calls"));
    screens_command(&r, "filter tid=1001");
    assert_true(screens_see(&r, "1 of 6 calls"));
    screens_command(&r, "filter ^(g|run)$");
    assert_true(screens_see(&r, "2 of 6 calls"));
    screens_command(&r, "filter >=soon");
    assert_true(r.m->say_severity == SAY_ERROR);
    screens_press(&r, "Esc");
    assert_true(screens_see(&r, "6 of 6 calls"));
    screens_command(&r, "sort start");
    screens_press(&r, "Enter");
    assert_int_equal(r.m->cursor_ns, 100); /* of tid 1001 */
    assert_int_equal(r.m->cursor_tid, 1001);
    screens_press(&r, "q");
    screens_press(&r, "o"); /* that thread alone */
    assert_true(screens_see(&r, "1 of 1 call"));
    screens_press(&r, "o");
    model_set_range(r.m, 400, 600);
    ui_draw(r.ui, r.s);
    assert_true(screens_see(&r, "range A-B"));
    assert_true(screens_see(&r, "2 of 2 calls"));
    model_set_range(r.m, 0, 0);
    ui_draw(r.ui, r.s);
    screens_command(&r, "sort duration");
    screens_press(&r, "M"); /* the longest against the median, 20 long */
    assert_string_equal(ui_screen(r.ui), "compare");
    assert_true(screens_see(&r, "of 6 calls"));
    assert_true(screens_see(&r, "20 ns  at"));
    screens_close(&r);
}

/* Calls of f of 300 million instructions, 40 million and 5; numbers stand whole at both widths. */
static const char many_instructions[] = "instructions\nthread 1000 main\n+ 0 main\n"
                                        "+ 100 f\n + 200 g\n - 150000200\n - 300000100\n"
                                        "+ 300000200 f\n + 300000300 g\n - 310000300\n - 340000200\n"
                                        "+ 340000300 f\n - 340000305\n- 400000000\n";

static void instructions_stand_whole(void **state)
{
    (void)state;
    static const int rows[] = {30, 24}, cols[] = {100, 80};
    for (size_t i = 0; i < 2; i++) {
        struct screens r;
        open_with(&r, gentrace_parse(many_instructions), NULL, GLYPHS_ASCII, rows[i], cols[i]);
        screens_command(&r, "search =f");
        screens_command(&r, "longest-call");
        screens_press(&r, "L");
        assert_true(screens_see(&r, ">  300,000,000      7.50              100     1000"));
        assert_true(screens_see(&r, "    40,000,000      1.00      300,000,200     1000"));
        assert_true(screens_see(&r, "             5      0.00      340,000,300     1000"));
        screens_press(&r, "M");
        assert_true(screens_see(&r, "this    300,000,000 insn  at 100  tid 1000"));
        assert_true(screens_see(&r, "median  40,000,000 insn  at 300,000,200  tid 1000   of 3 calls"));
        /* g: 150 million against 10; f itself: 150 against 30. */
        assert_true(screens_see(&r, " +140M       150M      10.0M "));
        assert_true(screens_see(&r, " +120M       150M      30.0M "));
        screens_command(&r, "events");
        screens_press(&r, "g");
        assert_true(screens_see(&r, " 150,000,200  150M insn    1000 ret           2"));
        assert_true(screens_see(&r, " 300,000,100  150M insn    1000 ret           1"));
        assert_true(screens_see(&r, " 310,000,300 10.0M insn    1000 ret           2"));
        assert_true(screens_see(&r, " 340,000,305     5 insn    1000 ret           1"));
        screens_close(&r);
    }
}

/* Hours at the nanosecond: TIME gets wider, its header with it, and the names come behind. */
static void events_of_hours(void **state)
{
    (void)state;
    struct screens r;
    open_with(&r, gentrace_parse("thread 1000 main\n+ 5 f\n+ 12345678901239 g\n- 12345678901251\n- 12345678901255\n"),
             NULL, GLYPHS_ASCII, 24, 80);
    screens_command(&r, "events");
    screens_press(&r, "G");
    assert_true(screens_see(&r, "              TIME      DELTA     TID KIND      DEPTH SYMBOL"));
    assert_true(screens_see(&r, "               0 ns       0 ns    1000 call          0 f"));
    assert_true(screens_see(&r, " 12345.678901234 s    12346 s    1000 call          1   g"));
    assert_true(screens_see(&r, " 12345.678901246 s      12 ns    1000 ret           1   g"));
    assert_true(screens_see(&r, "> 12345.678901250 s       4 ns    1000 ret           0 f"));
    screens_close(&r);
}

static void asked_from_everywhere(void **state)
{
    (void)state;
    struct screens r;
    open_with(&r, gentrace_parse(three_calls), NULL, GLYPHS_UNICODE, 30, 100);
    screens_command(&r, "compare"); /* of what the timeline has chosen */
    assert_true(screens_see(&r, "main: this call"));
    screens_command(&r, "events");
    screens_command(&r, "filter k");
    screens_press(&r, "g");
    screens_press(&r, "L");
    assert_true(screens_see(&r, "calls of k"));
    screens_command(&r, "functions");
    screens_command(&r, "filter h");
    screens_press(&r, "M");
    assert_true(screens_see(&r, "h: this call"));
    screens_command(&r, "timeline");
    screens_press(&r, "F");
    screens_command(&r, "search k");
    screens_press(&r, "L");
    assert_true(screens_see(&r, "calls of k"));
    assert_true(screens_see(&r, "1 of 1 call"));
    screens_command(&r, "timeline");
    assert_true(screens_see(&r, "merged: all threads"));
    screens_press(&r, "q");
    assert_false(screens_see(&r, "merged: all threads"));
    /* Folded rows: the outermost of a chain is meant. */
    screens_press(&r, "r");
    screens_command(&r, "goto 325");
    screens_press(&r, "M");
    assert_true(screens_see(&r, "g: this call"));
    assert_true(screens_see(&r, "100 ns  at 310 ns"));
    model_set_trace(r.m, NULL, NULL, NULL, NULL);
    ui_draw(r.ui, r.s);
    assert_true(screens_see(&r, "No call was chosen"));
    screens_command(&r, "timeline");
    struct err err;
    assert_true(ui_command(r.ui, "calls", &err) < 0);
    screens_close(&r);
}

/* While a trace is being decoded it is replaced by one that has more: what is shown stays. */
static void grows(void **state)
{
    (void)state;
    struct screens r;
    char longer[sizeof three_calls + 100];
    snprintf(longer, sizeof longer, "%sthread 1000 main\n+ 1010 main\n + 1020 f\n + 1030 g\n - 1040\n - 1500\n - 1600\n",
             three_calls);
    open_with(&r, gentrace_parse(three_calls), NULL, GLYPHS_UNICODE, 30, 100);
    screens_command(&r, "goto 305");
    screens_press(&r, "M");
    screens_press(&r, "j");
    struct trace *old = r.t;
    r.t = gentrace_parse(longer);
    r.m->trace = r.t;
    model_set_cursor(r.m, 1000, 350); /* any news, with another trace in the model */
    ui_draw(r.ui, r.s);
    assert_true(screens_see(&r, "of 4 calls"));
    assert_true(screens_see(&r, "300 ns  at 300 ns"));
    screens_press(&r, "L"); /* k, the second row */
    assert_true(screens_see(&r, "calls of k"));
    screens_close(&r);
    trace_free(old);
}

static void in_the_background(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct screens r;
    const struct gentrace g = {.spans = 600000, .threads = 2, .depth = 12, .functions = 9, .base_ns = 1000,
                               .step_ns = 30, .seed = 11};
    open_with(&r, gentrace_random(&g), loop, GLYPHS_UNICODE, 30, 100);
    screens_command(&r, "calls");
    assert_true(screens_see(&r, "counting..."));
    screens_press(&r, "^C");
    assert_false(screens_see(&r, "counting..."));
    screens_command(&r, "timeline");
    screens_command(&r, "compare");
    assert_true(screens_see(&r, "comparing..."));
    for (int i = 0; i < 4000 && ui_condition(r.ui, "compare", "") != 1; i++)
        loop_run_once(loop, 20000000);
    ui_draw(r.ui, r.s);
    assert_true(screens_see(&r, "9 of 9 functions"));
    screens_press(&r, "L");
    for (int i = 0; i < 4000 && ui_condition(r.ui, "calls", "") != 1; i++)
        loop_run_once(loop, 20000000);
    ui_draw(r.ui, r.s);
    assert_false(screens_see(&r, "counting..."));
    screens_press(&r, "o");
    model_set_trace(r.m, NULL, NULL, NULL, NULL); /* in the middle of it */
    ui_draw(r.ui, r.s);
    assert_true(screens_see(&r, "No function was chosen"));
    screens_close(&r);
    loop_free(loop);
}

static void any_size(void **state)
{
    (void)state;
    struct screens r;
    open_with(&r, gentrace_parse(three_calls), NULL, GLYPHS_ASCII, 30, 100);
    for (int k = 0; k < 2; k++) {
        screens_command(&r, "timeline");
        screens_command(&r, k ? "compare" : "calls");
        for (int rows = 16; rows < 40; rows += 3)
            for (int cols = 60; cols < 200; cols += 13) {
                surface_resize(r.s, rows, cols);
                ui_draw(r.ui, r.s);
            }
        for (int row = 1; row < 37; row++) {
            struct mouse click = {.kind = row % 2 ? MOUSE_DOWN : MOUSE_DOUBLE, .button = 1, .row = row, .col = 30};
            ui_mouse(r.ui, &click);
        }
    }
    screens_close(&r);
}

/* The longest calls at every width: a number stands there whole, or does not. */
static void longest_calls_stand_whole(void **state)
{
    (void)state;
    struct screens r;
    open_with(&r, gentrace_parse("thread 24752 spinner\n+ 0 main\n+ 241268267 wait\n- 2241268267\n"
                                "+ 2500000001 wait\n- 2500000041\n- 3000000000\n"),
             NULL, GLYPHS_UNICODE, 24, 80);
    screens_command(&r, "functions");
    screens_command(&r, "filter ^wait$");
    static const char *const all[] = {"2.00 s  at 241.268267 ms  tid 24752", " 40 ns  at 2.500000001 s  tid 24752"};
    for (int cols = 60; cols <= 100; cols++) {
        surface_resize(r.s, 24, cols);
        ui_draw(r.ui, r.s);
        for (size_t i = 0; i < 2; i++) {
            char fact[64];
            snprintf(fact, sizeof fact, "%.*s", (int)(strstr(all[i], "  at") - all[i]), all[i]);
            assert_true(screens_see(&r, fact));
            assert_true(cols < 80 || screens_see(&r, all[i]));
            for (int row = 0; row < 24; row++) {
                char *line = golden_row(r.s, row), *at = strstr(line, fact);
                if (at && (at = strstr(at, "  at ")))
                    assert_true(strstr(all[i], at) != NULL &&
                                (strstr(at, "tid 24752") || strcmp(at + strlen(at) - 2, i ? " s" : "ms") == 0));
                free(line);
            }
        }
    }
    screens_close(&r);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compare_from_the_timeline), cmocka_unit_test(compare_is_a_list),
        cmocka_unit_test(calls_of_a_function),       cmocka_unit_test(asked_from_everywhere),
        cmocka_unit_test(instructions_stand_whole),  cmocka_unit_test(longest_calls_stand_whole),
        cmocka_unit_test(in_the_background),         cmocka_unit_test(any_size),
        cmocka_unit_test(grows), cmocka_unit_test(events_of_hours),                     cmocka_unit_test(calls_are_exported_as_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

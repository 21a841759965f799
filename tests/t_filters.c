/* What can be typed into the filters of Functions, Calls, Compare and Events, and where it is said; marks and what
 * they are good for; the arrow of the sort column; Events that follow again. By keys, read from the screen. */
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
#include "tests/lib_run.h"
#include "tests/lib_screens.h"
#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/ui/ui.h"

/*              calls total self self%  min avg max
 * main             1  1000  835  59.6
 * run              1   400  300  21.4
 * f                4   160  160  11.4   10  40 100   10 at 10, 20 at 100, 30 at 200; 100 at 50 in thread 200
 * g                2   100  100   7.1   40  50  60
 * vector<int>::push 1    5    5   0.4
 *                            1400 */
static const char program[] = "thread 100 main\n"
                              "+ 0 main /bin/app\n"
                              "+ 10 f /lib/libf.so\n - 20\n+ 100 f /lib/libf.so\n - 120\n+ 200 f /lib/libf.so\n - 230\n"
                              "+ 300 g /bin/app\n - 340\n+ 400 g /bin/app\n - 460\n+ 500 vector<int>::push /bin/app\n - 505\n"
                              "- 1000\n"
                              "mark 150 trigger f entry\nmark 160 note something else\n"
                              "thread 200 other\n"
                              "+ 0 run /bin/app\n+ 50 f /lib/libf.so\n - 150\n- 400\n";

static char *clipboard;

static bool copy(void *arg, const char *text)
{
    (void)arg;
    free(clipboard);
    clipboard = strdup(text);
    return true;
}

static const struct ui_hooks hooks = {.copy = copy};

static void open_program(struct screens *r)
{
    screens_open(r, &(struct screens_setup){.t = gentrace_parse(program), .hooks = &hooks, .rows = 40, .cols = 130,
                                            .glyphs = GLYPHS_ASCII});
}

/* The text of the first row that begins so, or "". */
static const char *row_with(struct screens *r, const char *beginning)
{
    static char row[600];
    for (int i = 1; i < 37; i++) {
        char *line = golden_row(r->s, i);
        snprintf(row, sizeof row, "%s", line);
        free(line);
        if (strncmp(row, beginning, strlen(beginning)) == 0)
            return row;
    }
    return "";
}

/* ---- Filters ---- */

struct filter_case {
    const char *text;
    int kept; /* −1: refused */
};

static void check(struct screens *r, const struct filter_case *cases, size_t n, const char *of)
{
    char want[80], before[80] = "";
    for (size_t i = 0; i < n; i++) {
        r->m->say[0] = '\0';
        screens_type(r, "\\", cases[i].text);
        if (cases[i].kept >= 0) {
            snprintf(want, sizeof want, " %d of %s", cases[i].kept, of);
            if (r->m->say[0])
                fail_msg("%s: %s", cases[i].text, r->m->say);
            snprintf(before, sizeof before, "%s", want);
        } else if (r->m->say_severity != SAY_ERROR || !r->m->say[0]) {
            fail_msg("%s was not refused", cases[i].text);
        }
        ui_draw(r->ui, r->s);
        if (!screens_see(r, before)) /* refused: those of before stay */
            fail_msg("%s: not '%s'", cases[i].text, before);
    }
}

#define CHECK(r, cases, of) check(r, cases, sizeof cases / sizeof *cases, of)

static void of_functions(void **state)
{
    (void)state;
    static const struct filter_case cases[] = {
        {"calls>1", 2},   {"calls>=2", 2},      {"calls<2", 3},        {"calls<=2", 4},  {"calls=4", 1},
        {"calls > 1", 2}, {"calls >=2", 2},     {"total>100", 3},      {"total>=100ns", 4}, {"total=100", 1},
        {"self<=100", 2}, {"self%>10", 3},      {"self%<7.2%", 2},     {"self%=7.1", 1}, {"min>=40", 3},
        {"avg>39ns", 4},  {"max<100", 2},       {"total>0.15us", 3},   {"module=libf", 1}, {"f", 1},
        {"^(f|g)$", 2},   {"name=^(f|g)$", 2},  {"vector<int>", 1},    {"name=vector<int>", 1},
        {"calls>1 module=libf", 1}, {"calls>1 calls<4", 1}, {"p50>=40 g", 1}, {"", 5},
        {"bogus=3", -1},  {"totals>1us", -1},   {"calls=abc", -1},     {"module>x", -1}, {"self%>x", -1},
        {"calls>", -1},   {"module=", -1},      {"total>soon", -1},    {"dur>1us", -1},
    };
    struct screens r;
    open_program(&r);
    screens_command(&r, "functions");
    CHECK(&r, cases, "5 functions");
    screens_type(&r, "\\", "bogus=3");
    assert_string_equal(r.m->say, "bogus is none of name module calls total self self% min avg p50 p99 max; "
                                  "name=TEXT takes any text");
    screens_close(&r);
}

static void of_calls_and_compare(void **state)
{
    (void)state;
    static const struct filter_case calls[] = {
        {">10", 3},         {">=20 <=30", 2}, {"<30", 2},         {"=20", 1},    {"duration>20", 2}, {"duration <= 20ns", 2},
        {"tid=200", 1},     {"start>=100", 2}, {"caller=main", 3}, {"caller=run", 1}, {"main", 3},  {"^(main|run)$", 4},
        {"main >10", 2},    {"", 4},          {"bogus=3", -1},    {"dur>1us", -1}, {">soon", -1}, {"caller>x", -1},
    };
    static const struct filter_case compare[] = {
        {"calls=1", 2},    {"calls=2", 1},  {"calls>2", 1}, {"selfdiff=0", 4}, {"selfdiff>0", 0}, {"self>=100", 2},
        {"total<101", 3}, {"med.call>=3", 1}, {"g", 1},  {"vector<int>", 1},   {"", 4},
        {"bogus=1", -1},   {"max>1", -1},
    };
    struct screens r;
    open_program(&r);
    screens_command(&r, "functions");
    screens_type(&r, "\\", "name=f");
    screens_press(&r, "L");
    assert_string_equal(ui_screen(r.ui), "calls");
    CHECK(&r, calls, "4 calls");
    screens_command(&r, "functions");
    screens_type(&r, "\\", "main");
    screens_press(&r, "M"); /* its one call, which is the median: f 60 in 3 calls, g 100 in 2, push 5, itself 835 */
    assert_string_equal(ui_screen(r.ui), "compare");
    CHECK(&r, compare, "4 functions");
    screens_close(&r);
}

static void kinds_of_marks(void **state)
{
    (void)state;
    struct screens r;
    open_program(&r);
    screens_command(&r, "events");
    screens_type(&r, "\\", "kind=trigger tid=all");
    assert_true(screens_see(&r, "TRIGGER") && !screens_see(&r, "something else"));
    screens_type(&r, "\\", "kind=note");
    assert_true(!screens_see(&r, "TRIGGER") && screens_see(&r, "something else"));
    screens_type(&r, "\\", "kind=mark");
    assert_true(screens_see(&r, "TRIGGER") && screens_see(&r, "something else"));
    screens_close(&r);
}

/* Above the prompt, and in the help of each screen; that lists no key which does nothing there. */
static void said_where_it_is_needed(void **state)
{
    (void)state;
    static const struct {
        const char *screen, *prompt, *help, *lacks;
    } cases[] = {
        {"functions", "TEXT  module=TEXT  calls>10", "percent of all self time", "follow"},
        {"events", "kind=call,ret,gap,mark,trigger", "one thread; tid=all: every one", "mark the row"},
        {"calls", ">=1us  <2ms  TEXT of the caller", "in the caller's name, or pattern", "follow"},
        {"compare", "selfdiff>1us", "selfdiff totaldiff: the amount", "columns, options"},
        {"timeline", "TEXT in the name or id of a thread", "in name or id of thread, process", "mark the row"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct screens r;
        open_program(&r);
        if (i == 2 || i == 3)
            screens_command(&r, "functions");
        screens_command(&r, cases[i].screen);
        screens_press(&r, "\\");
        if (!screens_see(&r, cases[i].prompt))
            fail_msg("%s: nothing about filters", cases[i].screen);
        screens_press(&r, "x");
        assert_true(screens_see(&r, cases[i].prompt)); /* while it is typed, too */
        screens_press(&r, "Esc");
        assert_false(screens_see(&r, cases[i].prompt));
        screens_press(&r, "?");
        assert_false(screens_see(&r, cases[i].lacks));
        screens_type(&r, "/", cases[i].help);
        if (!screens_see(&r, cases[i].help))
            fail_msg("%s: its help", cases[i].screen);
        screens_close(&r);
    }
}

/* Where the clock counts instructions, lengths are numbers of them; what stands there can be typed. */
static void lengths_in_instructions(void **state)
{
    (void)state;
    static const struct {
        const char *screen, *prompt, *meaning, *words, *typed;
    } cases[] = {{"functions", "self>=1k  self%<5", "total self min avg p50 p99 max", "self>=1k ", "self>=1k"},
                 {"calls", ">=1k  <2M  TEXT of the caller", "the same", "duration<2M ", ">=1k <2M"},
                 {"compare", "selfdiff>1k ", "totaldiff: the amount", "selfdiff>1k ", "selfdiff>1k"}};
    char *text;
    assert_true(asprintf(&text, "instructions\n%s", program) > 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct screens r;
        screens_open(&r, &(struct screens_setup){.t = gentrace_parse(text), .rows = 40, .cols = 130, .glyphs = GLYPHS_ASCII});
        screens_command(&r, "functions");
        screens_command(&r, cases[i].screen);
        screens_press(&r, "\\");
        assert_true(screens_see(&r, cases[i].prompt));
        screens_press(&r, "Esc");
        screens_type(&r, "\\", cases[i].typed);
        assert_string_equal(r.m->say, "");
        screens_press(&r, "?");
        screens_type(&r, "/", cases[i].meaning);
        assert_true(screens_see(&r, cases[i].words));
        screens_close(&r);
    }
    free(text);
}

/* ---- Marks ---- */

/* Calls of f, the longest first: 100 in thread 200, 30, 20, 10. */
static void a_mark_stays_on_its_call(void **state)
{
    (void)state;
    struct screens r;
    open_program(&r);
    screens_command(&r, "functions");
    screens_type(&r, "\\", "name=f");
    screens_press(&r, "L Space j Space"); /* 100 and, one row on, 20: Space goes to the next row */
    assert_non_null(strstr(row_with(&r, "*  "), "100 ns"));
    assert_true(screens_see(&r, "2 marked"));
    screens_command(&r, "sort start"); /* 10 at 10, 100 at 50, 20 at 100, 30 at 200 */
    assert_non_null(strstr(row_with(&r, "*  "), "100 ns"));
    screens_press(&r, "o"); /* thread 100: the other call is not shown */
    assert_true(screens_see(&r, "1 marked"));
    screens_press(&r, "g");
    assert_non_null(strstr(row_with(&r, "*  "), " 20 ns"));
    screens_press(&r, "o");
    assert_true(screens_see(&r, "2 marked"));
    screens_press(&r, "G");
    assert_non_null(strstr(row_with(&r, "*  "), "100 ns"));
    /* More of the trace is there: other objects, the same calls. */
    struct trace *more = gentrace_parse(program);
    r.m->loading.active = r.m->loading.part = true;
    model_grow_trace(r.m, more, NULL, NULL, NULL);
    ui_draw(r.ui, r.s);
    assert_true(screens_see(&r, "2 marked"));
    assert_non_null(strstr(row_with(&r, "*  "), "100 ns"));
    screens_press(&r, "Esc");
    assert_false(screens_see(&r, "marked"));
    trace_free(r.t);
    r.t = more;
    screens_close(&r);
}

static void marks_are_what_is_copied_and_written(void **state)
{
    (void)state;
    struct screens r;
    char *dir = run_temp_dir(), path[300], line[320];
    open_program(&r);
    screens_command(&r, "functions");
    screens_command(&r, "sort self"); /* main, run, f, g, push */
    screens_press(&r, "y");
    assert_string_equal(r.m->say, "copied: main");
    assert_string_equal(clipboard, "main");
    screens_press(&r, "Space j Space y");
    assert_string_equal(r.m->say, "copied 2 names");
    assert_string_equal(clipboard, "main\nf");
    free(clipboard);
    clipboard = NULL;
    screens_type(&r, "\\", "name=f");
    screens_press(&r, "L");
    screens_press(&r, "Space j Space");
    snprintf(path, sizeof path, "%s/calls.tsv", dir);
    snprintf(line, sizeof line, "export %s", path);
    screens_command(&r, line);
    assert_non_null(strstr(r.m->say, "2 marked calls written to"));
    char *text = run_read_file(path, NULL);
    assert_string_equal(text, "duration_ns\ttimes_p50\tstart_ns\ttid\tnote\tcaller\n"
                              "100\t5.00\t50\t200\t\trun\n20\t1.00\t100\t100\t\tmain\n");
    /* With its format; and a format of the trace is not the name of a file. */
    unlink(path);
    snprintf(line, sizeof line, "export tsv %s", path);
    screens_command(&r, line);
    assert_non_null(strstr(r.m->say, path));
    char *again = run_read_file(path, NULL);
    assert_string_equal(again, text);
    screens_command(&r, "export json x.json");
    assert_string_equal(r.m->say, "lists are written as tsv; the trace as json: on the timeline");
    assert_int_equal(access("json x.json", F_OK), -1);
    screens_press(&r, "x");
    assert_true(screens_see(&r, "Export (FORMAT FILE): tsv calls.tsv"));
    screens_press(&r, "Esc");
    free(again);
    free(text);
    run_remove_tree(dir);
    free(dir);
    screens_close(&r);
}

/* ---- Orders ---- */

static void the_arrow_shows_the_way(void **state)
{
    (void)state;
    struct screens r;
    open_program(&r);
    screens_command(&r, "functions");
    assert_true(screens_see(&r, "vSELF ") && !screens_see(&r, "^"));
    screens_press(&r, "I");
    assert_true(screens_see(&r, "^SELF "));
    screens_press(&r, "I");
    screens_press(&r, "F6");
    assert_true(screens_see(&r, ":sort"));
    for (const char *p = "function"; *p; p++)
        ui_key(r.ui, (struct key){(uint32_t)*p, 0});
    screens_press(&r, "Enter");
    assert_true(screens_see(&r, "sort: FUNCTION") && screens_see(&r, "FUNCTION^")); /* f, g, main, ... */
    screens_type(&r, "\\", "name=f");
    screens_press(&r, "L");
    assert_true(screens_see(&r, "vDURATION"));
    screens_press(&r, "F6");
    assert_true(screens_see(&r, ":sort"));
    screens_press(&r, "Esc");
    screens_command(&r, "sort start");
    assert_true(screens_see(&r, "^START"));
    screens_press(&r, "I");
    assert_true(screens_see(&r, "vSTART"));
    screens_close(&r);
}

/* ---- Of a range ---- */

static void whole_calls_in_a_range(void **state)
{
    (void)state;
    struct screens r;
    open_program(&r);
    screens_command(&r, "functions");
    assert_false(screens_see(&r, "whole calls"));
    model_set_range(r.m, 110, 210);
    ui_draw(r.ui, r.s);
    assert_true(screens_see(&r, "TOTAL, SELF within A-B; MIN to MAX of whole calls; no gaps in here"));
    screens_close(&r);
}

/* ---- Events ---- */

static void events_follow_again(void **state)
{
    (void)state;
    struct screens r;
    open_program(&r);
    screens_command(&r, "goto 10");
    screens_command(&r, "events");
    screens_press(&r, "f");
    screens_command(&r, "timeline");
    screens_command(&r, ":400"); /* a time alone is one to go to */
    assert_int_equal(r.m->cursor_ns, 400);
    screens_command(&r, "events");
    assert_true(strstr(row_with(&r, ">"), " f") != NULL);
    assert_false(screens_see(&r, "following the timeline's cursor"));
    screens_press(&r, "f");
    assert_true(screens_see(&r, "following the timeline's cursor"));
    assert_true(strstr(row_with(&r, ">"), " g") != NULL);
    screens_press(&r, "f"); /* off: what else is changed leaves the place */
    screens_command(&r, "goto 100");
    screens_press(&r, "o");
    assert_true(strstr(row_with(&r, ">"), " f") != NULL);
    assert_int_equal(r.m->cursor_ns, 400);
    screens_close(&r);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_functions),
        cmocka_unit_test(of_calls_and_compare),
        cmocka_unit_test(kinds_of_marks),
        cmocka_unit_test(said_where_it_is_needed),
        cmocka_unit_test(lengths_in_instructions),
        cmocka_unit_test(a_mark_stays_on_its_call),
        cmocka_unit_test(marks_are_what_is_copied_and_written),
        cmocka_unit_test(the_arrow_shows_the_way),
        cmocka_unit_test(whole_calls_in_a_range),
        cmocka_unit_test(events_follow_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

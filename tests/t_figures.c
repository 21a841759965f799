/* The figures that screens show of a trace agree with one another: gaps, means, depths; and what they ask to be typed
 * is in the clock's unit. Each worked out by hand from the trace's text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/lib_gentrace.h"
#include "tests/lib_screens.h"
#include "tui/record/v_record.h"
#include "tui/timeline/ruler.h"

static void open_text(struct screens *x, const char *text)
{
    screens_open(x, &(struct screens_setup){.t = gentrace_parse(text), .glyphs = GLYPHS_ASCII, .rows = 30, .cols = 160});
}

/* Of three gaps two overlap, and the third lasts no time. */
static void gaps_are_counted_as_they_are_listed(void **state)
{
    (void)state;
    struct screens x;
    open_text(&x, "thread 1000 main\n+ 0 f\n- 1000\n"
                  "gap 100 300 overflow\ngap 200 400 error\ngap 700 700 lost\n"
                  "thread 1001 other\n+ 0 g\n- 1000\n"
                  "gap 500 600 overflow\n");
    screens_command(&x, "functions");
    assert_true(screens_see(&x, "Totals leave out 4 gaps (400 ns); "));
    screens_press(&x, "o g"); /* one thread; the next key drops what was said */
    assert_true(screens_see(&x, "Totals leave out 3 gaps (300 ns); "));
    screens_command(&x, "timeline");
    screens_command(&x, "range 600 701");
    assert_true(screens_see(&x, "gaps 1"));
    screens_command(&x, "functions");
    assert_true(screens_see(&x, "totals leave out 1 gap (0 ns); "));
    screens_command(&x, "timeline");
    screens_command(&x, "range 600 700"); /* what is at its end lies outside */
    assert_true(screens_see(&x, "gaps 0"));
    screens_command(&x, "functions");
    assert_true(screens_see(&x, "no gaps in here; "));
    screens_command(&x, "timeline");
    screens_command(&x, "range 700 800"); /* what is at its start, inside */
    assert_true(screens_see(&x, "gaps 1"));
    screens_close(&x);
}

static void means_are_rounded(void **state)
{
    (void)state;
    static const struct {
        uint64_t sum, n;
        const char *time, *count;
    } cases[] = {
        {0, 0, "0 ns", "0"},
        {12, 3, "4 ns", "4"},
        {4 * 95427 + 3, 95428, "4.0 ns", "4.0"}, /* 3.99999 */
        {19, 2, "9.5 ns", "9.5"},
        {995, 100, "10 ns", "10"}, /* 9.95: as a tenth it would be 10.0 */
        {2, 3, "0.7 ns", "0.7"},
        {21, 2, "11 ns", "11"},
        {41, 4, "10 ns", "10"},
        {1999, 2, "1.00 us", "1.0k"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[FMT_MAX], insn[FMT_MAX];
        assert_string_equal(ruler_mean_short(text, cases[i].sum, cases[i].n, false), cases[i].time);
        assert_string_equal(ruler_mean(text, cases[i].sum, cases[i].n, false), cases[i].time);
        assert_string_equal(ruler_mean_short(text, cases[i].sum, cases[i].n, true), cases[i].count);
        if (cases[i].sum < 1000) {
            snprintf(insn, sizeof insn, "%s insn", cases[i].count);
            assert_string_equal(ruler_mean(text, cases[i].sum, cases[i].n, true), insn);
        }
    }
}

/* f took 4, 4 and 3; g, once, 3.8 in the mean of five. By the mean f comes first. */
static void means_in_tables(void **state)
{
    (void)state;
    struct screens x;
    open_text(&x, "instructions\nthread 1000 main\n"
                  "+ 0 g\n- 3\n+ 3 g\n- 7\n+ 7 g\n- 11\n+ 11 g\n- 15\n+ 15 g\n- 18\n" /* 18/5 = 3.6 */
                  "+ 20 f\n- 24\n+ 24 f\n- 28\n+ 28 f\n- 31\n");                      /* 11/3 = 3.67 */
    screens_command(&x, "functions");
    screens_command(&x, "sort avg");
    screens_press(&x, "g L");
    assert_true(screens_see(&x, "3 calls   min 3 insn  p50 4 insn  mean 3.7 insn  p99 4 insn  max 4 insn"));
    screens_command(&x, "functions");
    assert_true(screens_see(&x, "    3.7  "));
    assert_true(screens_see(&x, "    3.6  "));
    screens_close(&x);
}

/* A mark or a gap stands as deep as the call that it lies in. */
static void depths_of_marks_and_gaps(void **state)
{
    (void)state;
    struct screens x;
    open_text(&x, "thread 1000 main\n+ 10 f\n+ 20 g\n- 30\n- 90\n"
                  "mark 5 note before\nmark 20 trigger g entry\nmark 40 hit in f\ngap 25 28 lost\n");
    screens_command(&x, "events");
    assert_true(screens_see(&x, "1000 call          1   g"));
    assert_true(screens_see(&x, "1000 TRIGGER       1 g entry"));
    assert_true(screens_see(&x, "1000 GAP           1 lost"));
    assert_true(screens_see(&x, "1000 hit           0 in f"));
    assert_true(screens_see(&x, "1000 note          - before"));
    screens_close(&x);
}

static void examples_in_the_unit_of_the_clock(void **state)
{
    (void)state;
    static const char *const texts[] = {"thread 1000 main\n+ 0 f\n- 100000000\n",
                                        "instructions\nthread 1000 main\n+ 0 f\n- 100000000\n"};
    static const char *const want[][2] = {{"goto needs a time: goto 1.25ms", "range needs two times: range 1.25ms 1.5ms"},
                                          {"goto needs a time: goto 1.2k", "range needs two times: range 1.2k 1.5k"}};
    for (size_t i = 0; i < 2; i++) {
        struct screens x;
        open_text(&x, texts[i]);
        screens_command(&x, "range 5");
        assert_string_equal(x.m->say, want[i][1]);
        screens_command(&x, "goto");
        assert_string_equal(x.m->say, want[i][0]);
        screens_command(&x, strstr(want[i][1], "range 1"));
        assert_true(x.m->range_end_ns > x.m->range_start_ns);
        screens_command(&x, "events");
        screens_command(&x, "goto");
        assert_string_equal(x.m->say, want[i][0]);
        screens_command(&x, strstr(want[i][0], "goto 1"));
        assert_string_equal(x.m->say, "");
        screens_close(&x);
    }
}

/* Two modules have an f, and code without symbols. */
static void names_that_read_the_same(void **state)
{
    (void)state;
    struct screens x;
    open_text(&x, "thread 1000 main\n+ 0 main /bin/prog\n"
                  "+ 10 f /lib/liba.so\n + 12 [unknown] /lib/liba.so\n - 15\n- 20\n"
                  "+ 30 f /lib/libb.so\n + 32 [unknown] /lib/libb.so\n - 39\n- 40\n- 90\n");
    screens_command(&x, "functions");
    assert_true(screens_see(&x, " f liba.so"));
    assert_true(screens_see(&x, " f libb.so"));
    assert_true(screens_see(&x, " [unknown] liba.so"));
    assert_true(screens_see(&x, " main ")); /* there is but one */
    assert_false(screens_see(&x, "main prog"));
    screens_command(&x, "filter ^f$"); /* the name, the module apart */
    assert_true(screens_see(&x, "2 of 5 functions"));
    screens_command(&x, "filter ^main$");
    screens_press(&x, "g M"); /* the only call: with itself */
    assert_true(screens_see(&x, " f liba.so"));
    assert_true(screens_see(&x, " f libb.so"));
    screens_close(&x);
}

/* What is set for the next recording is said, since another screen may be shown; 16 MiB is a power of two of pages. */
static void sizes_and_modes_are_said(void **state)
{
    (void)state;
    static const struct {
        const char *line, *said;
    } cases[] = {
        {"buffer 16M", "the ring of the next recording: 16.0M"},
        {"buffer 9M", "the ring of the next recording: 16.0M (rounded up)"},
        {"buffer 0", "a ring of no bytes holds nothing"},
        {"buffer x", "'x' is no size: write bytes or 64K, 16M, 1G"},
        {"mode whole", "the mode of the next recording: whole"},
    };
    struct loop *loop = loop_new();
    struct settings *settings = settings_new();
    struct screens x;
    screens_open(&x, &(struct screens_setup){.t = gentrace_parse("thread 1000 main\n+ 0 f\n- 10\n"), .loop = loop,
                                             .settings = settings, .more = &view_record, .glyphs = GLYPHS_ASCII,
                                             .rows = 24, .cols = 80});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        screens_command(&x, cases[i].line);
        assert_string_equal(x.m->say, cases[i].said);
    }
    screens_close(&x);
    settings_free(settings);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gaps_are_counted_as_they_are_listed),
        cmocka_unit_test(means_are_rounded),
        cmocka_unit_test(means_in_tables),
        cmocka_unit_test(depths_of_marks_and_gaps),
        cmocka_unit_test(names_that_read_the_same),
        cmocka_unit_test(sizes_and_modes_are_said),
        cmocka_unit_test(examples_in_the_unit_of_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

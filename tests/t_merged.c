/* The merged flame graph on the Timeline screen: its picture, its keys, the way there and back. */
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
#include "tests/lib_timeline.h"
#include "tui/term/glyph.h"
#include "tui/timeline/timeline_merged.h"
#include "tui/timeline/v_timeline.h"

/* worker-0: main 1000 { request 300 { parse 100, render 150 { append 60 } }, idle 100,
 *                       request 400 { parse 50, render 300 { append 200 } } }
 * worker-1: main 500 { fib 300 { fib 200 { leaf 50 } } } */
static const char two_workers[] =
    "thread 4713 worker-0\n"
    "+ 0 main\n"
    "+ 100 request\n + 110 parse\n - 210\n + 220 render\n + 230 append\n - 290\n - 370\n - 400\n"
    "+ 400 idle\n - 500\n"
    "+ 500 request\n + 510 parse\n - 560\n + 580 render\n + 600 append\n - 800\n - 880\n - 900\n"
    "- 1000\n"
    "thread 4714 worker-1\n"
    "+ 0 main\n + 100 fib\n + 150 fib\n + 200 leaf\n - 250\n - 350\n - 400\n - 500\n";

static bool chosen(struct rig *r, const char *name)
{
    return view_timeline.condition(r->tl, "selection", name) == 1;
}

static void screens(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum glyph_tier glyphs;
        enum color_tier color;
        int rows, cols;
    } looks[] = {
        {"merged_100x30_unicode_256", GLYPHS_UNICODE, COLOR_256, 30, 100},
        {"merged_80x24_ascii_mono", GLYPHS_ASCII, COLOR_MONO, 24, 80},
        {"merged_80x24_vga_16", GLYPHS_VGA, COLOR_16, 24, 80},
        {"merged_200x60_unicode_256", GLYPHS_UNICODE, COLOR_256, 60, 200},
        {"merged_60x16_unicode_mono", GLYPHS_UNICODE, COLOR_MONO, 16, 60},
    };
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        struct rig r;
        char header[100];
        rig_open(&r, gentrace_parse(two_workers), looks[i].glyphs, looks[i].color, looks[i].rows,
                 looks[i].cols);
        draw(&r);
        act_drawn(&r, ACT_MERGED, NULL);
        snprintf(header, sizeof header, "%dx%d, two workers, all threads merged", looks[i].cols,
                 looks[i].rows);
        golden_check(r.s, looks[i].name, header);
        rig_close(&r);
    }
}

static void there_and_back(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse(two_workers), GLYPHS_UNICODE, COLOR_256, 30, 100);
    draw(&r);
    act_drawn(&r, ACT_GOTO, "650"); /* the second append, 200 long */
    const struct span *before = selected(&r);
    assert_int_equal(before->start_ns, 600);
    act_drawn(&r, ACT_MERGED, NULL);
    assert_true(chosen(&r, "append"));
    assert_true(golden_find(r.s, "total 260 ns"));
    assert_true(golden_find(r.s, "2 calls"));
    assert_int_equal(r.m->cursor_ns, 650); /* the screens' cursor is of the timeline */
    act_drawn(&r, ACT_MERGED, NULL);
    assert_ptr_equal(selected(&r), before);

    /* Another stack chosen there: its longest call is chosen here. */
    act_drawn(&r, ACT_MERGED, NULL);
    act_drawn(&r, ACT_CALLER, NULL);
    act_drawn(&r, ACT_SPAN_NEXT, NULL);
    assert_true(chosen(&r, "parse"));
    act_drawn(&r, ACT_BACK, NULL);
    assert_int_equal(selected(&r)->start_ns, 110);
    /* And a call of the other thread there again. */
    act_drawn(&r, ACT_THREAD_NEXT, NULL);
    act_drawn(&r, ACT_GOTO, "220");
    act_drawn(&r, ACT_MERGED, NULL);
    assert_true(chosen(&r, "leaf"));
    assert_true(golden_find(r.s, "main > fib > fib > [leaf]"));
    rig_close(&r);
}

static void keys_mean_the_same(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse(two_workers), GLYPHS_UNICODE, COLOR_256, 30, 100);
    draw(&r);
    act_drawn(&r, ACT_MERGED, NULL);
    assert_true(chosen(&r, "main"));
    assert_true(golden_find(r.s, "total 1.50 us (100.0 % of all)"));
    assert_true(golden_find(r.s, "self 400 ns (26.7 %)"));
    act_drawn(&r, ACT_LONGEST_CHILD, NULL);
    assert_true(chosen(&r, "request"));
    act_drawn(&r, ACT_ZOOM_FIT, NULL);
    struct timeline *in = r.tl->merged->tl;
    assert_int_equal(viewport_time_at(&in->view, 0), 0);
    assert_true(viewport_length_ns(&in->view) >= 700 && viewport_length_ns(&in->view) < 710);
    act_drawn(&r, ACT_VIEW_BACK, NULL);
    assert_true(viewport_is_whole(&in->view));
    act_drawn(&r, ACT_SEARCH, "leaf");
    assert_true(chosen(&r, "leaf"));
    act_drawn(&r, ACT_ZOOM_IN, NULL);
    act_drawn(&r, ACT_PAN_LEFT, NULL);
    act_drawn(&r, ACT_ZOOM_ALL, NULL);
    act_drawn(&r, ACT_RANGE, NULL); /* on its own axis: the trace's range stays what it is */
    act_drawn(&r, ACT_TRACE_START, NULL);
    act_drawn(&r, ACT_RANGE, NULL);
    assert_int_equal(r.m->range_end_ns, 0);
    act_drawn(&r, ACT_CANCEL, NULL);
    act_drawn(&r, ACT_COLOR_BY, "module");
    act_drawn(&r, ACT_COMPACT, NULL);
    act_drawn(&r, ACT_COMPACT, NULL);
    act_drawn(&r, ACT_DETAILS, NULL); /* with source */
    assert_true(golden_find(r.s, "of all)"));
    act_drawn(&r, ACT_DETAILS, NULL);
    assert_false(golden_find(r.s, "of all)"));
    act_drawn(&r, ACT_DETAILS, NULL);
    /* The mouse: a click on the widest of row 1. */
    int row = 3;
    while (!surface_at(r.s, row, 0) || surface_at(r.s, row, 2)->cp != 'm')
        row++; /* "merged: all threads" */
    struct mouse click = {.kind = MOUSE_DOWN, .button = 1, .row = row + 2, .col = 10};
    assert_true(view_timeline.mouse(r.tl, &click, (struct rect){1, 0, 27, 100}));
    assert_true(chosen(&r, "request"));
    rig_close(&r);
}

static void scopes(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse(two_workers), GLYPHS_UNICODE, COLOR_256, 30, 100);
    draw(&r);
    act_drawn(&r, ACT_MERGED, NULL);
    assert_true(golden_find(r.s, "merged: all threads   whole trace   9 stacks   1.50 us in all"));
    act_drawn(&r, ACT_THREAD_NEXT, NULL);
    assert_true(golden_find(r.s, "merged: 4713 worker-0   whole trace   6 stacks   1.00 us in all"));
    act_drawn(&r, ACT_THREAD_NEXT, NULL);
    assert_true(golden_find(r.s, "merged: 4714 worker-1   whole trace   4 stacks   500 ns in all"));
    act_drawn(&r, ACT_RECURSION, NULL);
    assert_true(golden_find(r.s, "3 stacks   500 ns in all   recursion folded"));
    act_drawn(&r, ACT_THREAD_NEXT, NULL);
    assert_true(golden_find(r.s, "all threads"));
    act_drawn(&r, ACT_RECURSION, NULL);
    act_drawn(&r, ACT_THREAD_PREV, NULL);
    assert_true(golden_find(r.s, "4714 worker-1"));
    act_drawn(&r, ACT_MERGED, "4713");
    assert_true(golden_find(r.s, "4713 worker-0"));
    /* [500, 900): request 400 of main. */
    model_set_range(r.m, 500, 900);
    view_timeline.changed(r.tl, MODEL_CURSOR);
    draw(&r);
    assert_true(golden_find(r.s, "range A-B   5 stacks   400 ns in all"));
    model_set_range(r.m, 0, 0);
    view_timeline.changed(r.tl, MODEL_CURSOR);
    act_drawn(&r, ACT_MERGED, "all");
    assert_true(golden_find(r.s, "all threads   whole trace   9 stacks"));
    act_drawn(&r, ACT_MERGED, "17");
    assert_true(r.m->say_severity == SAY_ERROR);
    act_drawn(&r, ACT_MERGED, "some");
    assert_true(r.m->say_severity == SAY_ERROR);
    assert_string_equal(r.m->say, "merged takes nothing, all or the number of a thread");
    model_set_trace(r.m, NULL, NULL, NULL, NULL);
    view_timeline.changed(r.tl, MODEL_TRACE);
    draw(&r);
    assert_true(golden_find(r.s, "No trace is open."));
    rig_close(&r);
}

/* 80 columns hold the figures of twenty million instructions. */
static void instructions_fit_80_columns(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse("instructions\nthread 5 worker\n+ 0 main /bin/x p\n"
                                "+ 2000000 load /bin/x p\n- 12483112\n- 20483112\n"), GLYPHS_UNICODE, COLOR_256, 24, 80);
    act_drawn(&r, ACT_MERGED, NULL);
    assert_true(golden_find(r.s, "total 20.5M insn (100.0 %)  self 10.0M (48.8 %)  1 call  20.5M each"));
    rig_close(&r);
}

/* Time between samples is not what `folded` counts: the screen says so. */
static void sampled_says_what_it_weighs(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse("sampled 100\nthread 5 worker\n+ 0 main /bin/x p\n+ 100 load /bin/x p\n- 300\n- 400\n"),
             GLYPHS_UNICODE, COLOR_256, 24, 80);
    act_drawn(&r, ACT_MERGED, NULL);
    assert_true(golden_find(r.s, "Width is estimated time; folded weighs samples.  t: thread  r: recursion"));
    rig_close(&r);
}

static void folded_timeline(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse(two_workers), GLYPHS_UNICODE, COLOR_256, 30, 100);
    draw(&r);
    act_drawn(&r, ACT_RECURSION, NULL);
    act_drawn(&r, ACT_THREAD_NEXT, NULL);
    act_drawn(&r, ACT_GOTO, "220");
    assert_int_equal(selected(&r)->depth, 2);
    act_drawn(&r, ACT_MERGED, NULL);
    assert_true(chosen(&r, "leaf"));
    assert_true(golden_find(r.s, "main > fib > [leaf]"));
    act_drawn(&r, ACT_CALLER, NULL);
    act_drawn(&r, ACT_MERGED, NULL);
    assert_int_equal(selected(&r)->start_ns, 100);
    assert_int_equal(selected(&r)->depth, 1);
    rig_close(&r);
}

static void exported_as_folded(void **state)
{
    (void)state;
    struct rig r;
    char dir[] = "/tmp/mtui-m-XXXXXX", path[64], command[100], line[200] = "";
    assert_non_null(mkdtemp(dir));
    rig_open(&r, gentrace_parse(two_workers), GLYPHS_UNICODE, COLOR_256, 30, 100);
    act_drawn(&r, ACT_MERGED, "4714");
    act_drawn(&r, ACT_EXPORT, NULL);
    assert_string_equal(r.m->want.prompt_initial, "folded snap-1.folded");
    snprintf(path, sizeof path, "%s/f", dir);
    snprintf(command, sizeof command, "folded %s", path);
    act_drawn(&r, ACT_EXPORT, command);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "main 200\n");
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "main;fib 100\n");
    fclose(f);
    unlink(path);
    rmdir(dir);
    rig_close(&r);
}

/* With a loop it is made in the background; ^C leaves it. */
static void in_the_background(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct rig r;
    const struct gentrace g = {.spans = 400000, .threads = 4, .depth = 12, .functions = 40, .gaps = 4,
                               .base_ns = 1000, .step_ns = 30, .seed = 7};
    rig_open_on(&r, loop, gentrace_random(&g), GLYPHS_UNICODE, COLOR_256, 30, 100);
    act_drawn(&r, ACT_MERGED, NULL);
    assert_true(golden_find(r.s, "merging the calls of equal stacks"));
    assert_int_equal(view_timeline.condition(r.tl, "merged", ""), 0);
    act_drawn(&r, ACT_INTERRUPT, NULL);
    assert_false(golden_find(r.s, "merging the calls"));
    assert_false(tl_merged_shown(r.tl));
    act_drawn(&r, ACT_MERGED, NULL);
    for (int i = 0; i < 4000 && view_timeline.condition(r.tl, "merged", "") != 1; i++)
        loop_run_once(loop, 20000000);
    assert_int_equal(view_timeline.condition(r.tl, "merged", ""), 1);
    draw(&r);
    assert_true(golden_find(r.s, "merged: all threads"));
    act_drawn(&r, ACT_RECURSION, NULL);
    model_set_trace(r.m, NULL, NULL, NULL, NULL); /* in the middle of it */
    view_timeline.changed(r.tl, MODEL_TRACE);
    draw(&r);
    rig_close(&r);
}

static void any_size(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse(two_workers), GLYPHS_ASCII, COLOR_MONO, 30, 100);
    act_drawn(&r, ACT_MERGED, NULL);
    for (int rows = 4; rows < 40; rows += 3)
        for (int cols = 4; cols < 130; cols += 13) {
            surface_resize(r.s, rows, cols);
            draw(&r);
        }
    model_set_range(r.m, 2000, 3000);
    view_timeline.changed(r.tl, MODEL_CURSOR);
    draw(&r);
    assert_true(golden_find(r.s, "No calls in here."));
    view_timeline.action(r.tl, ACT_CALLER, NULL);
    view_timeline.action(r.tl, ACT_ZOOM_IN, NULL);
    view_timeline.action(r.tl, ACT_MERGED, NULL);
    rig_close(&r);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(screens),         cmocka_unit_test(there_and_back),
        cmocka_unit_test(keys_mean_the_same), cmocka_unit_test(scopes),
        cmocka_unit_test(folded_timeline), cmocka_unit_test(sampled_says_what_it_weighs),
        cmocka_unit_test(instructions_fit_80_columns), cmocka_unit_test(exported_as_folded),
        cmocka_unit_test(in_the_background), cmocka_unit_test(any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

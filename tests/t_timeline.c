/* The Timeline screen driven by actions, keys of the mouse and traces, read from the surface: what is selected,
 * searched, marked, zoomed. */
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

static void opens_at_the_trigger(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse(timeline_server), GLYPHS_UNICODE, COLOR_256, 30, 100);
    draw(&r);
    assert_string_equal(selected_name(&r), "handle_request");
    assert_int_equal(selected(&r)->start_ns, 1345000);
    assert_int_equal(r.m->cursor_ns, 1345000);
    assert_int_equal(r.m->cursor_tid, 4713);
    assert_true(viewport_col_of(&r.tl->view, 1345000) >= 0);
    assert_true(viewport_col_of(&r.tl->view, 1400000) <= 100);
    golden_check(r.s, "timeline_trigger", "100x30 unicode 256, server trace, opened at its trigger");
    rig_close(&r);
}

/* Hits behind the one that fired were counted while its snapshot was written: not what it was taken for. */
static void opens_at_the_trigger_that_fired(void **state)
{
    (void)state;
    static const char text[] = "thread 7 worker\n+ 0 main\n+ 100 f\n- 200\n+ 300 f\n- 400\n+ 500 f\n- 600\n- 1000\n"
                               "mark 100 hit f, counted only\nmark 300 trigger f\nmark 500 hit f, counted only\n";
    struct rig r;
    rig_open(&r, gentrace_parse(text), GLYPHS_UNICODE, COLOR_256, 30, 100);
    draw(&r);
    assert_string_equal(selected_name(&r), "f");
    assert_int_equal(selected(&r)->start_ns, 300);
    assert_int_equal(r.tl->triggers.len, 1);
    rig_close(&r);
    /* None fired, as when all is recorded: the last. */
    rig_open(&r, gentrace_parse("thread 7 worker\n+ 0 main\n+ 100 f\n- 200\n- 400\nmark 100 hit f, counted only\n"),
             GLYPHS_UNICODE, COLOR_256, 30, 100);
    draw(&r);
    assert_int_equal(selected(&r)->start_ns, 100);
    rig_close(&r);
}

static void family(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    act_with(&r, ACT_GOTO, "239us");
    assert_string_equal(selected_name(&r), "render_template");
    act(&r, ACT_CALLER);
    assert_string_equal(selected_name(&r), "handle_request");
    assert_int_equal(selected(&r)->start_ns, 1205000);
    act(&r, ACT_CALLEE);
    assert_string_equal(selected_name(&r), "render_template");
    act(&r, ACT_SPAN_PREV);
    assert_string_equal(selected_name(&r), "route");
    act(&r, ACT_SPAN_PREV);
    assert_string_equal(selected_name(&r), "parse_headers");
    act(&r, ACT_SPAN_PREV);
    assert_string_equal(r.m->say, "first span on this depth");
    act(&r, ACT_CALLER);
    act(&r, ACT_LONGEST_CHILD);
    assert_string_equal(selected_name(&r), "render_template");
    act(&r, ACT_LONGEST_CHILD);
    assert_int_equal(selected(&r)->start_ns, 1250000);
    act(&r, ACT_LONGEST_CHILD);
    assert_int_equal(selected(&r)->start_ns, 1262000);
    act(&r, ACT_CALLEE);
    assert_string_equal(r.m->say, "no calls below");
    act(&r, ACT_SHALLOWEST);
    assert_string_equal(selected_name(&r), "worker_main");
    act(&r, ACT_CALLER);
    assert_string_equal(r.m->say, "outermost call: no caller");
    act(&r, ACT_DEEPEST);
    assert_string_equal(selected_name(&r), "str_append");
    assert_true(selection_on_screen(&r));
    rig_close(&r);
}

static void same_function(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    act_with(&r, ACT_GOTO, "241460ns");
    assert_string_equal(selected_name(&r), "str_append");
    act(&r, ACT_CALL_NEXT);
    assert_int_equal(selected(&r)->start_ns, 1243000);
    act(&r, ACT_CALL_NEXT);
    assert_int_equal(selected(&r)->start_ns, 1251000);
    act(&r, ACT_LONGEST_CALL);
    assert_int_equal(selected(&r)->start_ns, 1262000);
    assert_string_equal(r.m->say, "longest of 4 calls: 18.0 us");
    act(&r, ACT_CALL_NEXT);
    assert_string_equal(r.m->say, "no further call of str_append in this thread");
    act(&r, ACT_CALL_PREV);
    act(&r, ACT_CALL_PREV);
    act(&r, ACT_CALL_PREV);
    assert_int_equal(selected(&r)->start_ns, 1241440);
    /* worker_main runs in both threads from the same instant. */
    act(&r, ACT_SHALLOWEST);
    act(&r, ACT_CALL_NEXT_ANY);
    assert_int_equal(r.m->cursor_tid, 4714);
    act(&r, ACT_CALL_PREV_ANY);
    assert_int_equal(r.m->cursor_tid, 4713);
    rig_close(&r);
}

static void searching(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    act_with(&r, ACT_SEARCH, "append");
    draw(&r);
    assert_string_equal(selected_name(&r), "str_append");
    assert_true(golden_find(r.s, "Search /append/"));
    assert_true(golden_find(r.s, "of 4"));
    act_with(&r, ACT_GOTO, "0us");
    draw(&r);
    assert_true(golden_find(r.s, "4 matches"));
    act(&r, ACT_SEARCH_NEXT);
    draw(&r);
    assert_true(golden_find(r.s, "match 1 of 4"));
    act(&r, ACT_SEARCH_NEXT);
    draw(&r);
    assert_true(golden_find(r.s, "match 2 of 4"));
    act(&r, ACT_SEARCH_PREV);
    assert_int_equal(selected(&r)->start_ns, 1241440);
    act_with(&r, ACT_SEARCH, "no such name");
    assert_string_equal(r.m->say, "no function matches \"no such name\"");
    act_with(&r, ACT_SEARCH, "[a-");
    assert_non_null(strstr(r.m->say, "no function has \"[a-\" in its name, and it is no pattern: "
                                     "regular expression, at character 3: missing terminating ]"));
    act(&r, ACT_SEARCH_FUNCTION);
    draw(&r);
    assert_true(golden_find(r.s, "match 1 of 4"));
    act(&r, ACT_CANCEL);
    draw(&r);
    assert_false(golden_find(r.s, "Search /"));
    /* A text as wide as the screen leaves what was found. */
    char pattern[120];
    memset(pattern, 'x', sizeof pattern);
    memcpy(pattern, "str_append|", 11);
    pattern[sizeof pattern - 1] = '\0';
    act_with(&r, ACT_SEARCH, pattern);
    draw(&r);
    assert_true(golden_find(r.s, "Search /str_append|xxx"));
    assert_true(golden_find(r.s, "…/ ") && golden_find(r.s, " match 1 of 4"));
    rig_close(&r);
    /* As it is shown, so it is found. */
    opened(&r, "thread 7 a\n+ 0 main /bin/prog s\n+ 100 helper /a/libplug.so s\n- 200\n+ 300 helper /b/libplug.so s\n"
               "- 400\n- 1000\n");
    act_with(&r, ACT_SEARCH, "helper b/libplug.so");
    assert_int_equal(selected(&r)->start_ns, 300);
    act_with(&r, ACT_SEARCH, "=helper a/libplug.so");
    assert_int_equal(selected(&r)->start_ns, 100);
    act_with(&r, ACT_SEARCH, "helper");
    draw(&r);
    assert_true(golden_find(r.s, "match 1 of 2"));
    rig_close(&r);
}

static void window_moves(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    struct viewport_place whole = r.tl->view.place;
    act_with(&r, ACT_GOTO, "241460ns");
    act(&r, ACT_ZOOM_FIT);
    int from = viewport_col_of(&r.tl->view, 1241440), to = viewport_col_of(&r.tl->view, 1241480);
    assert_true(from >= 0 && to <= 100 && to - from > 95);
    act(&r, ACT_VIEW_BACK);
    assert_true(r.tl->view.place.start_fp == whole.start_fp && r.tl->view.place.col_fp == whole.col_fp);
    act(&r, ACT_VIEW_FORWARD);
    int col = viewport_col_of(&r.tl->view, r.tl->cursor_ns);
    act(&r, ACT_ZOOM_OUT);
    act(&r, ACT_ZOOM_OUT);
    assert_int_equal(viewport_col_of(&r.tl->view, r.tl->cursor_ns), col);
    act(&r, ACT_PAN_RIGHT);
    act(&r, ACT_PAN_LEFT);
    assert_int_equal(viewport_col_of(&r.tl->view, r.tl->cursor_ns), col);
    act(&r, ACT_PAN_RIGHT_PAGE);
    act(&r, ACT_PAN_LEFT_PAGE);
    assert_int_equal(viewport_col_of(&r.tl->view, r.tl->cursor_ns), col);
    act(&r, ACT_TRACE_END);
    assert_true(viewport_col_of(&r.tl->view, r.tl->view.last_ns) <= 100);
    act(&r, ACT_TRACE_START);
    assert_int_equal(r.m->cursor_ns, r.tl->view.first_ns);
    rig_close(&r);
}

/* At the whole of a long trace slivers share a column: Enter goes to the longest of them. */
static void aggregates(void **state)
{
    (void)state;
    char text[4000] = "thread 7 a\n+ 0 main\n", line[100];
    for (unsigned i = 0; i < 30; i++) {
        snprintf(line, sizeof line, "+ %u f%u\n- %u\n", 1000 + 20 * i, i % 3, 1000 + 20 * i + (i == 17 ? 15 : 5));
        strcat(text, line);
    }
    strcat(text, "- 1000000\n");
    struct rig r;
    opened(&r, text);
    act(&r, ACT_LONGEST_CHILD);
    act(&r, ACT_SPAN_PREV);
    draw(&r);
    assert_true(golden_find(r.s, "in this column: 30 calls"));
    assert_true(golden_find(r.s, "longest f2 15 ns"));
    assert_true(selection_on_screen(&r));
    act(&r, ACT_ZOOM_FIT);
    assert_int_equal(selected(&r)->start_ns, 1000 + 20 * 17);
    int width = viewport_col_of(&r.tl->view, selected(&r)->end_ns) -
                viewport_col_of(&r.tl->view, selected(&r)->start_ns);
    assert_in_range(width, 30, 36);
    /* Of a call that was asked for itself, Enter shows all, whatever shares its column: the first of f1. */
    act(&r, ACT_ZOOM_ALL);
    act(&r, ACT_LONGEST_CHILD);
    act(&r, ACT_TRACE_START);
    act_with(&r, ACT_SEARCH, "f1");
    assert_int_equal(selected(&r)->start_ns, 1000 + 20 * 1);
    act(&r, ACT_ZOOM_ALL);
    draw(&r);
    assert_true(golden_find(r.s, "in this column: 30 calls"));
    assert_true(golden_find(r.s, "Enter fits this call"));
    act(&r, ACT_OPEN);
    assert_int_equal(selected(&r)->start_ns, 1000 + 20 * 1);
    assert_int_equal(viewport_col_of(&r.tl->view, 1020), 30); /* 5 ns of 8 columns, the most, in the middle of 100 */
    assert_int_equal(viewport_col_of(&r.tl->view, 1025), 70);
    /* A step beside it, and it is the column again. */
    act(&r, ACT_ZOOM_ALL);
    act(&r, ACT_SPAN_NEXT);
    draw(&r);
    assert_true(golden_find(r.s, "Enter zooms there"));
    act(&r, ACT_OPEN);
    assert_int_equal(selected(&r)->start_ns, 1000 + 20 * 17);
    rig_close(&r);
}

/* Off the CPU, on any depth, is not busy, nor is a gap. */
static void busy_is_on_the_cpu(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, "sampled 100\nthread 7 a\n+ 1000 main\n+ 1100 f\n- 1300\n+ 1300 [off] [kernel] o\n- 1500\n"
               "+ 1500 g\n+ 1600 [off] [kernel] o\n- 1650\n- 1800\n- 2000\n"
               "gap 1850 1950 lost\ngap* 1900 1960 lost\n");
    model_set_range(r.m, 1000, 2000); /* 1,000 - 200 - 50 - 110 */
    draw(&r);
    assert_true(golden_find(r.s, "busy 64.0 %  switches 2  gaps 2"));
    model_set_range(r.m, 1400, 1900); /* 500 - 100 - 50 - 50 */
    draw(&r);
    assert_true(golden_find(r.s, "busy 60.0 %  switches 2  gaps 1"));
    model_set_range(r.m, 1700, 1800);
    draw(&r);
    assert_true(golden_find(r.s, "busy 100.0 %  switches 0  gaps 0"));
    rig_close(&r);
    /* A gap that lies in a wait is taken off once. Where nobody was seen to wait, nothing is said of it. */
    opened(&r, "sampled 100\nthread 7 a\n+ 1000 main\n+ 1300 [off] [kernel] o\n- 1500\n- 2000\n"
               "gap 1400 1600 lost\n");
    model_set_range(r.m, 1000, 2000);
    draw(&r);
    assert_true(golden_find(r.s, "busy 70.0 %  switches 1  gaps 1"));
    rig_close(&r);
    opened(&r, "sampled 100\nthread 7 a\n+ 1000 main\n- 2000\n");
    model_set_range(r.m, 1000, 2000);
    draw(&r);
    assert_true(golden_find(r.s, "busy 100.0 %  gaps 0"));
    rig_close(&r);
    /* A column of 10 us: f 2 us, a wait of 4, g of 1 with 0.4 of waiting inside. */
    opened(&r, "sampled 100\nthread 7 a\n+ 1000 main\n+ 2000 f\n- 4000\n+ 4000 [off] [kernel] o\n- 8000\n"
               "+ 8000 g\n+ 8200 [off] [kernel] o\n- 8600\n- 9000\n- 1001000\n");
    act(&r, ACT_LONGEST_CHILD);
    draw(&r);
    assert_true(golden_find(r.s, "in this column: 2 calls, 1 time off the CPU, 26.0 % busy, longest f 2.00 us"));
    rig_close(&r);
}

static void ranges_and_marks(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    act_with(&r, ACT_RANGE, "200us 325us");
    assert_int_equal(r.m->range_start_ns, 1200000);
    assert_int_equal(r.m->range_end_ns, 1325000);
    draw(&r);
    /* worker_main, handle_request and the fourteen calls below it. */
    assert_true(golden_find(r.s, "delta 125 us"));
    assert_true(golden_find(r.s, "thread 4713: 16 spans"));
    assert_true(golden_find(r.s, "gaps 0"));
    act(&r, ACT_ZOOM_RANGE);
    assert_in_range(viewport_col_of(&r.tl->view, 1200000), 0, 1);
    assert_in_range(viewport_col_of(&r.tl->view, 1325000), 99, 100);
    act(&r, ACT_CANCEL);
    assert_int_equal(r.m->range_end_ns, 0);
    act(&r, ACT_ZOOM_ALL);
    act_with(&r, ACT_GOTO, "100us");
    act(&r, ACT_RANGE);
    act_with(&r, ACT_GOTO, "50us");
    draw(&r);
    assert_true(golden_find(r.s, "delta 50.0 us"));
    act(&r, ACT_RANGE);
    assert_int_equal(r.m->range_start_ns, 1050000);
    assert_int_equal(r.m->range_end_ns, 1100000);
    act_with(&r, ACT_RANGE, "50us 50us");
    assert_string_equal(r.m->say, "A and B are the same time: no range is set");
    assert_int_equal(r.m->range_start_ns, 0);
    assert_int_equal(r.m->range_end_ns, 0);
    act_with(&r, ACT_RANGE, "50us 60us 70us");
    assert_string_equal(r.m->say, "range needs two times: range 1.25ms 1.5ms");
    act_with(&r, ACT_MARK_SET, "q");
    assert_string_equal(r.m->say, "mark q at 50.000 us");
    act_with(&r, ACT_GOTO, "350us");
    draw(&r);
    assert_true(golden_find(r.s, "mark q"));
    assert_true(golden_find(r.s, "cursor +300 us"));
    act_with(&r, ACT_MARK_SET, "b");
    assert_non_null(strstr(r.m->say, ", 300 us after q"));
    act_with(&r, ACT_GOTO, "q");
    act_with(&r, ACT_MARK_SET, "q");
    assert_non_null(strstr(r.m->say, ", 300 us before b"));
    act_with(&r, ACT_MARK_GOTO, "q");
    assert_int_equal(r.m->cursor_ns, 1050000);
    act_with(&r, ACT_MARK_GOTO, "x");
    assert_string_equal(r.m->say, "mark x is not set");
    act_with(&r, ACT_GOTO, "q");
    assert_int_equal(r.m->cursor_ns, 1050000);
    act_with(&r, ACT_GOTO, "5s");
    assert_string_equal(r.m->say, "5s lies outside of the trace, which is 400 us long");
    act_with(&r, ACT_GOTO, "soon");
    assert_true(r.m->say_severity == SAY_ERROR);
    act_with(&r, ACT_GOTO, "1345000");
    assert_int_equal(r.m->cursor_ns, 1345000);
    rig_close(&r);
}

static void recursion(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    act(&r, ACT_THREAD_NEXT);
    act_with(&r, ACT_GOTO, "45us");
    assert_string_equal(selected_name(&r), "leaf");
    assert_int_equal(r.tl->sel.depth, 4);
    act(&r, ACT_RECURSION);
    assert_string_equal(selected_name(&r), "leaf");
    assert_int_equal(r.tl->sel.depth, 2);
    assert_int_equal(r.m->cursor_ns, 1045000);
    act(&r, ACT_CALLER);
    assert_string_equal(selected_name(&r), "fib");
    act(&r, ACT_CALLER);
    assert_string_equal(selected_name(&r), "worker_main");
    act(&r, ACT_RECURSION);
    assert_int_equal(trace_thread(r.tl->trace, 1)->depths, 5);
    assert_true(selection_on_screen(&r));
    rig_close(&r);
}

static bool send(struct rig *r, enum mouse_kind kind, int row, int col, uint32_t mods)
{
    struct mouse m = {.kind = kind, .row = row, .col = col, .button = 1, .mods = mods};
    bool used = view_timeline.mouse(r->tl, &m, (struct rect){0});
    draw(r);
    return used;
}

/* Eleven nanoseconds on a hundred columns: one call all along, so that every column is as busy as the others. */
static void a_map_finer_than_a_nanosecond(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, "thread 5 a\n+ 0 main\n- 10\n");
    draw(&r);
    const struct rect map = r.tl->at.minimap;
    int busy = 0;
    for (int c = 0; c < map.cols; c++)
        busy += surface_at(r.s, map.row + map.rows - 1, map.col + c)->cp == glyph(r.m->glyphs, GLYPH_BAR1 + 7);
    assert_true(busy > map.cols * 10 / 11 - 2);
    rig_close(&r);
}

static void mouse(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    int row = r.tl->at.rows.row;
    int col = viewport_col_of(&r.tl->view, 1240000);
    assert_true(send(&r, MOUSE_DOWN, row + 3, col, 0));
    assert_string_equal(selected_name(&r), "render_template");
    assert_true(send(&r, MOUSE_DOUBLE, row + 3, col, 0));
    assert_in_range(viewport_col_of(&r.tl->view, 1237960), 0, 2);
    act(&r, ACT_ZOOM_ALL);
    draw(&r);
    /* Drag on the ruler: a range. */
    int ruler = r.tl->at.ruler.row;
    send(&r, MOUSE_DOWN, ruler, 20, 0);
    send(&r, MOUSE_DRAG, ruler, 30, 0);
    send(&r, MOUSE_DRAG, ruler, 40, 0);
    send(&r, MOUSE_UP, ruler, 40, 0);
    assert_int_equal(viewport_col_of(&r.tl->view, r.m->range_start_ns), 20);
    assert_int_equal(viewport_col_of(&r.tl->view, r.m->range_end_ns), 40);
    /* Wheel over the ruler, or with Ctrl, zooms at the pointer. */
    uint64_t under = viewport_time_at(&r.tl->view, 33);
    send(&r, MOUSE_WHEEL_UP, ruler, 33, 0);
    send(&r, MOUSE_WHEEL_UP, row + 2, 33, K_CTRL);
    assert_int_equal(viewport_col_of(&r.tl->view, under), 33);
    assert_int_equal(viewport_zoom_level(&r.tl->view), 2);
    /* Drag in rows pans, Shift-wheel too. */
    send(&r, MOUSE_DOWN, row + 8, 33, 0);
    send(&r, MOUSE_DRAG, row + 8, 43, 0);
    send(&r, MOUSE_UP, row + 8, 43, 0);
    assert_int_equal(viewport_col_of(&r.tl->view, under), 43);
    send(&r, MOUSE_WHEEL_DOWN, row + 2, 33, K_SHIFT);
    assert_int_equal(viewport_col_of(&r.tl->view, under), 30);
    /* The minimap jumps. */
    struct rect map = r.tl->at.minimap;
    send(&r, MOUSE_DOWN, map.row, map.col + map.cols / 2, 0);
    assert_in_range(viewport_col_of(&r.tl->view, 1200000), 45, 55);
    send(&r, MOUSE_UP, map.row, map.col, 0);
    /* A header folds its thread. */
    send(&r, MOUSE_DOWN, row, 4, 0);
    assert_true(golden_find(r.s, "(collapsed)"));
    assert_false(send(&r, MOUSE_DOWN, 28, 4, 0));
    rig_close(&r);
}

static void selection_always_on_screen(void **state)
{
    (void)state;
    static const enum action moves[] = {
        ACT_SPAN_PREV,  ACT_SPAN_NEXT, ACT_CALLER,        ACT_CALLEE,        ACT_LONGEST_CHILD,
        ACT_CALL_NEXT,  ACT_CALL_PREV, ACT_CALL_NEXT_ANY, ACT_CALL_PREV_ANY, ACT_THREAD_NEXT,
        ACT_SHALLOWEST, ACT_DEEPEST,   ACT_LONGEST_CALL,  ACT_ZOOM_FIT};
    static const enum action others[] = {ACT_ZOOM_IN,  ACT_ZOOM_OUT, ACT_COMPACT, ACT_COLOR_BY,
                                         ACT_PAN_LEFT, ACT_PIN,      ACT_DETAILS, ACT_RECURSION};
    uint64_t seed = 12;
    for (unsigned round = 0; round < 4; round++) {
        struct rig r;
        rig_open(&r, gentrace_random(&(struct gentrace){.spans = 4000,
                                                         .threads = 5,
                                                         .depth = 14,
                                                         .functions = 60,
                                                         .gaps = 10,
                                                         .base_ns = UINT64_C(1) << (20 + 14 * round),
                                                         .step_ns = 400,
                                                         .seed = round + 1}),
                 round % 2 ? GLYPHS_ASCII : GLYPHS_UNICODE, COLOR_256, 24 + (int)round * 5, 80);
        draw(&r);
        for (int i = 0; i < 400; i++) {
            if (gen_random(&seed) % 3 == 0)
                view_timeline.action(r.tl, others[gen_random(&seed) % 8], NULL);
            draw(&r);
            enum action move = moves[gen_random(&seed) % 14];
            view_timeline.action(r.tl, move, NULL);
            if (!selection_on_screen(&r)) {
                char *dump = golden_dump(r.s, action_info(move)->command);
                fail_msg("%s\nspan %llu-%llu depth %zu thread %zu", dump, (unsigned long long)selected(&r)->start_ns,
                         (unsigned long long)selected(&r)->end_ns, r.tl->sel.depth, r.tl->sel.thread);
            }
        }
        rig_close(&r);
    }
}

static int cancelled;

static void cancel_loading(void *arg)
{
    (void)arg;
    cancelled++;
}

static void without_a_trace(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    model_set_trace(r.m, NULL, NULL, NULL, NULL);
    view_timeline.changed(r.tl, MODEL_TRACE);
    draw(&r);
    assert_true(golden_find(r.s, "No trace is open."));
    assert_true(golden_find(r.s, ":open PATH"));
    assert_false(view_timeline.action(r.tl, ACT_ZOOM_IN, NULL));
    struct model_loading l = {.active = true, .percent = 62, .what = "snap 3", .cancel = cancel_loading};
    model_set_loading(r.m, &l);
    draw(&r);
    assert_true(golden_find(r.s, "decoding snap 3  62 %"));
    assert_true(view_timeline.action(r.tl, ACT_INTERRUPT, NULL));
    assert_int_equal(cancelled, 1);
    /* From a pipe, and when all is decoded, no number is made up. */
    l = (struct model_loading){.active = true, .endless = true, .spans = 1, .what = "pipe"};
    char line[100];
    for (int finishing = 0; finishing < 2; finishing++) {
        l.finishing = finishing;
        model_set_loading(r.m, &l);
        draw(&r);
        assert_true(golden_find(r.s, finishing ? "finishing pipe" : "decoding pipe"));
        assert_false(golden_find(r.s, "%"));
        model_loading_text(r.m, line, sizeof line);
        assert_string_equal(line, finishing ? "finishing pipe, 1 span" : "decoding pipe, 1 span");
        l.read_bytes = UINT64_C(12) << 20;
        model_set_loading(r.m, &l);
        draw(&r);
        assert_int_equal(golden_find(r.s, "decoding pipe  12.0M read"), !finishing);
        model_loading_text(r.m, line, sizeof line);
        assert_string_equal(line, finishing ? "finishing pipe, 1 span" : "decoding pipe: 12.0M read, 1 span");
        model_loading_short(r.m, line, sizeof line);
        assert_string_equal(line, finishing ? "finishing" : "decoding 12.0M");
        l.read_bytes = 0;
        l.endless = false;
    }
    l = (struct model_loading){.failed = "snap 3: no sync point in 200 bytes"};
    model_set_loading(r.m, &l);
    draw(&r);
    assert_true(golden_find(r.s, "no sync point in 200 bytes"));
    rig_close(&r);
}

/* An index that comes with the trace is used, and left alone. */
static void an_index_that_is_there(void **state)
{
    (void)state;
    struct rig r;
    struct pyramid *p;
    opened(&r, timeline_server);
    assert_int_equal(pyramid_new(&p, r.t, NULL, NULL), 0);
    model_set_indexed_trace(r.m, r.t, p, "snap 1", NULL, NULL);
    view_timeline.changed(r.tl, MODEL_TRACE);
    assert_ptr_equal(r.tl->pyramid, p);
    assert_null(r.tl->made);
    act(&r, ACT_RECURSION);
    assert_ptr_not_equal(r.tl->pyramid, p);
    act(&r, ACT_RECURSION);
    assert_ptr_equal(r.tl->pyramid, p);
    assert_true(selection_on_screen(&r));
    rig_close(&r);
    pyramid_free(p);
}

static void field_F14_follows_other_screens(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    model_set_cursor_call(r.m, 4714, 1100000, 2);
    view_timeline.changed(r.tl, MODEL_CURSOR);
    assert_string_equal(selected_name(&r), "leaf");
    assert_int_equal(selected(&r)->start_ns, 1100000);
    /* A call too small to be seen comes to a third of the width. */
    model_set_cursor_call(r.m, 4713, 1241440, 4);
    view_timeline.changed(r.tl, MODEL_CURSOR);
    assert_int_equal(selected(&r)->start_ns, 1241440);
    int width = viewport_col_of(&r.tl->view, 1241480) - viewport_col_of(&r.tl->view, 1241440);
    assert_in_range(width, 30, 36);
    rig_close(&r);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_at_the_trigger),
        cmocka_unit_test(opens_at_the_trigger_that_fired),
        cmocka_unit_test(family),
        cmocka_unit_test(same_function),
        cmocka_unit_test(searching),
        cmocka_unit_test(window_moves),
        cmocka_unit_test(aggregates),
        cmocka_unit_test(busy_is_on_the_cpu),
        cmocka_unit_test(ranges_and_marks),
        cmocka_unit_test(recursion),
        cmocka_unit_test(a_map_finer_than_a_nanosecond),
        cmocka_unit_test(mouse),
        cmocka_unit_test(selection_always_on_screen),
        cmocka_unit_test(without_a_trace),
        cmocka_unit_test(an_index_that_is_there),
        cmocka_unit_test(field_F14_follows_other_screens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

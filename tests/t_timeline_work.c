/* Work that goes on between the frames of the Timeline screen, driven by a loop as in the program: recursion
 * folded, matches looked for in thousands of rows, a range written. */
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
#include "tui/term/glyph.h"
#include "tui/timeline/v_timeline.h"

#define DEADLINE_NS 60000000000u

static void open_on_loop(struct rig *r, struct trace *t)
{
    rig_open_on(r, loop_new(), t, GLYPHS_UNICODE, COLOR_256, 30, 100);
    act(r, ACT_ZOOM_ALL);
}

static bool is_busy(const struct rig *r)
{
    return tl_is_folding(r->tl) || r->tl->indexer || r->tl->job.timer || trace_stats_busy(r->tl->stats);
}

static void settle(struct rig *r)
{
    uint64_t end = loop_now_ns(r->loop) + DEADLINE_NS;
    for (draw(r); is_busy(r); draw(r)) {
        if (loop_now_ns(r->loop) > end)
            fail_msg("still at work after a minute");
        loop_run_once(r->loop, 100000000);
    }
}

/* f calls itself `levels` deep, n times over; each innermost one calls a leaf. */
static struct trace *recursive(size_t n, size_t levels)
{
    struct functions *fns = functions_new();
    fn_id main_fn = functions_intern(fns, "/bin/x", "main", "main", 0, FN_USER);
    fn_id f = functions_intern(fns, "/bin/x", "f", "f", 16, FN_USER);
    fn_id leaf = functions_intern(fns, "/bin/x", "leaf", "leaf", 32, FN_USER);
    struct trace_builder *b = trace_builder_new(fns);
    size_t thread = trace_builder_thread(b, 7, 7);
    uint64_t now = 1000;
    struct trace *t;
    trace_builder_enter(b, thread, now++, main_fn, 0);
    for (size_t i = 0; i < n; i++) {
        for (size_t d = 0; d < levels; d++)
            trace_builder_enter(b, thread, now++, f, 0);
        trace_builder_enter(b, thread, now++, leaf, 0);
        for (size_t d = 0; d <= levels; d++)
            trace_builder_leave(b, thread, now++, 0);
    }
    trace_builder_leave(b, thread, now, 0);
    assert_int_equal(trace_builder_finish(b, &t, NULL), 0);
    trace_builder_free(b);
    return t;
}

static void folding_goes_on_beside_the_keys(void **state)
{
    (void)state;
    struct rig r;
    char line[100] = "";
    open_on_loop(&r, recursive(50000, 8));
    settle(&r);
    /* The leaf of the first call: 8 levels of f below main. */
    act_with(&r, ACT_SEARCH, "leaf");
    settle(&r);
    assert_int_equal(r.tl->sel.depth, 9);
    uint64_t start = selected(&r)->start_ns;
    act(&r, ACT_RECURSION);
    assert_true(tl_is_folding(r.tl));
    view_timeline.state(r.tl, line, sizeof line);
    assert_non_null(strstr(line, "folding "));
    assert_non_null(strstr(line, "^C stops"));
    /* What is there can be used meanwhile. */
    act(&r, ACT_CALLER);
    assert_int_equal(r.tl->sel.depth, 8);
    act(&r, ACT_CALLEE);
    assert_string_equal(selected_name(&r), "leaf");
    settle(&r);
    assert_string_equal(selected_name(&r), "leaf");
    assert_int_equal(r.tl->sel.depth, 2);
    assert_int_equal(selected(&r)->start_ns, start);
    assert_int_equal(trace_thread(r.tl->trace, 0)->spans, 1 + 2 * 50000);
    assert_true(selection_on_screen(&r));
    assert_non_null(r.tl->search); /* a search outlives it */
    assert_int_equal(search_count(r.tl->search), 50000);
    act(&r, ACT_RECURSION);
    settle(&r);
    assert_ptr_equal(r.tl->trace, r.t);
    assert_int_equal(r.tl->sel.depth, 9);
    assert_int_equal(selected(&r)->start_ns, start);
    rig_close(&r);
}

static void folding_is_stopped(void **state)
{
    (void)state;
    struct rig r;
    open_on_loop(&r, recursive(50000, 8));
    act(&r, ACT_RECURSION);
    assert_true(tl_is_folding(r.tl));
    act(&r, ACT_INTERRUPT);
    assert_false(tl_is_folding(r.tl));
    assert_string_equal(r.m->say, "every level of recursion shows");
    assert_ptr_equal(r.tl->trace, r.t);
    assert_false(view_timeline.action(r.tl, ACT_INTERRUPT, NULL)); /* nothing left to stop */
    act(&r, ACT_RECURSION);
    act(&r, ACT_CANCEL);
    assert_false(tl_is_folding(r.tl));
    act(&r, ACT_RECURSION);
    act(&r, ACT_RECURSION); /* the key itself takes it back */
    assert_false(tl_is_folding(r.tl));
    act(&r, ACT_RECURSION);
    rig_close(&r); /* and leaving does */
}

/* The trace grows under it: the folded one stays on the screen until more of it is folded. */
static void folding_while_it_grows(void **state)
{
    (void)state;
    struct rig r;
    open_on_loop(&r, recursive(1000, 4));
    act(&r, ACT_RECURSION);
    settle(&r);
    act_with(&r, ACT_SEARCH, "leaf");
    settle(&r);
    const struct span before = *selected(&r);
    const struct trace *shown = r.tl->trace;
    struct trace *more = recursive(50000, 4), *old = r.t;
    r.t = more;
    model_grow_trace(r.m, more, NULL, NULL, NULL);
    view_timeline.changed(r.tl, MODEL_TRACE_GREW);
    trace_free(old); /* nothing shown may refer to it */
    assert_ptr_equal(r.tl->trace, shown);
    draw(&r);
    act(&r, ACT_CALLER);
    act(&r, ACT_CALLEE);
    tl_name_subject(r.tl);
    assert_int_equal(r.m->subject.depth, 5); /* in the whole trace */
    settle(&r);
    assert_ptr_not_equal(r.tl->trace, shown);
    assert_int_equal(trace_thread(r.tl->trace, 0)->spans, 1 + 2 * 50000);
    assert_int_equal(r.tl->sel.depth, 2);
    assert_int_equal(selected(&r)->start_ns, before.start_ns);
    /* Taken back while more is being folded. */
    struct trace *still_more = recursive(60000, 4);
    old = r.t;
    r.t = still_more;
    model_grow_trace(r.m, still_more, NULL, NULL, NULL);
    view_timeline.changed(r.tl, MODEL_TRACE_GREW);
    trace_free(old);
    assert_true(tl_is_folding(r.tl));
    act(&r, ACT_RECURSION);
    assert_ptr_equal(r.tl->trace, still_more);
    assert_int_equal(r.tl->sel.depth, 5);
    assert_int_equal(selected(&r)->start_ns, before.start_ns);
    settle(&r);
    rig_close(&r);
}

static struct trace *many_rows(void)
{
    return gentrace_random(&(struct gentrace){.spans = 200000,
                                              .threads = 1500,
                                              .depth = 20,
                                              .functions = 50,
                                              .base_ns = UINT64_C(1) << 40,
                                              .step_ns = 50,
                                              .seed = 7});
}

/* What is found in parts is what is found at once; keys that come before it is found are answered in turn. */
static void matches_are_found_between_frames(void **state)
{
    (void)state;
    struct rig r, at_once;
    static const enum action keys[] = {ACT_SEARCH_NEXT, ACT_SEARCH_NEXT, ACT_CALL_NEXT_ANY, ACT_SEARCH_PREV,
                                       ACT_CALL_PREV_ANY, ACT_SEARCH_NEXT, ACT_CALL_NEXT, ACT_SEARCH_NEXT};
    open_on_loop(&r, many_rows());
    rig_open(&at_once, many_rows(), GLYPHS_UNICODE, COLOR_256, 30, 100);
    settle(&r);
    act_with(&r, ACT_SEARCH, "handle_request");
    act_with(&at_once, ACT_SEARCH, "handle_request");
    unsigned waited = 0;
    for (size_t i = 0; i < 40; i++) {
        act(&r, keys[i % 8]);
        waited += r.tl->job.find.search != NULL;
        act(&at_once, keys[i % 8]);
        if (i % 3 == 0) {
            settle(&r);
            assert_null(r.tl->job.find.search);
            assert_int_equal(selected(&r)->start_ns, selected(&at_once)->start_ns);
            assert_int_equal(r.tl->sel.thread, at_once.tl->sel.thread);
            assert_int_equal(r.tl->sel.depth, at_once.tl->sel.depth);
            assert_int_equal(r.tl->sel.index, at_once.tl->sel.index);
        }
    }
    assert_true(waited > 0);
    act(&r, ACT_SEARCH_NEXT);
    rig_close(&r); /* also in the middle of it */
    rig_close(&at_once);
}

static size_t lines_of(const char *path)
{
    size_t n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;)
        n += c == '\n';
    fclose(f);
    return n;
}

/* A range that is still open is what is taken, from A to the cursor, as its totals stand there. */
static void an_open_range_is_taken(void **state)
{
    (void)state;
    struct rig r;
    char dir[] = "/tmp/mtui-range-XXXXXX", path[64], command[100];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/f.tsv", dir);
    snprintf(command, sizeof command, "functions %s", path);
    opened(&r, "thread 7 a\n+ 0 main\n+ 100 f\n- 200\n+ 300 g\n- 400\n+ 500 h\n- 600\n- 1000\n");
    act_with(&r, ACT_GOTO, "350ns");
    act(&r, ACT_RANGE);
    act_with(&r, ACT_EXPORT, command);
    assert_string_equal(r.m->say, "the range has no length yet: move the cursor, or drop it with Esc");
    assert_int_equal(access(path, F_OK), -1);
    act_with(&r, ACT_GOTO, "250ns");
    draw(&r);
    assert_true(golden_find(r.s, "thread 7: 2 spans"));
    act_with(&r, ACT_EXPORT, command);
    assert_non_null(strstr(r.m->say, "(the range A-B only)"));
    assert_int_equal(lines_of(path), 1 + 2); /* main and g, below the titles */
    assert_int_equal(r.m->range_start_ns, 250);
    assert_int_equal(r.m->range_end_ns, 350);
    assert_int_equal(unlink(path), 0);
    /* So is it with all that is done with a range. */
    static const enum action others[] = {ACT_MERGED, ACT_CALLS, ACT_ZOOM_RANGE};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        act(&r, ACT_CANCEL);
        act_with(&r, ACT_GOTO, "350ns");
        act(&r, ACT_RANGE);
        assert_int_equal(r.m->range_end_ns, 0);
        act_with(&r, ACT_GOTO, "250ns");
        view_timeline.action(r.tl, others[i], NULL);
        assert_int_equal(r.m->range_start_ns, 250);
        assert_int_equal(r.m->range_end_ns, 350);
        if (others[i] == ACT_MERGED)
            act(&r, ACT_MERGED);
    }
    assert_int_equal(rmdir(dir), 0);
    rig_close(&r);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding_goes_on_beside_the_keys),
        cmocka_unit_test(folding_is_stopped),
        cmocka_unit_test(folding_while_it_grows),
        cmocka_unit_test(matches_are_found_between_frames),
        cmocka_unit_test(an_open_range_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

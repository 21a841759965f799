/* Every key of the Timeline in the merged flame graph, at three sizes, of an exact, a stepped and a sampled trace:
 * what is chosen, seen and said after each was worked out by hand. */
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
#include "tui/timeline/timeline_merged.h"
#include "tui/timeline/v_timeline.h"

/* worker-0: main 1000 { request 300 { parse 100, render 150 { append 60 } }, idle 100,
 *                       request 400 { parse 50 of which 20 in a gap, render 300 { append 200 } } }
 * worker-1: main 500 { fib 300 { fib 200 { leaf 50 } } }
 *
 * merged:   main 1480 [0
 *             request 680 [0: render 450 [0: append 260], parse 130 [450, itself 100
 *             fib 300 [680: fib 200 [680: leaf 50 [680
 *             idle 100 [980                                  main itself: the last 400 */
static const char two_workers[] =
    "thread 4713 worker-0\n"
    "+ 0 main\n"
    "+ 100 request\n + 110 parse\n - 210\n + 220 render\n + 230 append\n - 290\n - 370\n - 400\n"
    "+ 400 idle\n - 500\n"
    "+ 500 request\n + 510 parse\n gap 520 540 overflow\n - 560\n + 580 render\n + 600 append\n - 800\n - 880\n - 900\n"
    "- 1000\n"
    "thread 4714 worker-1\n"
    "+ 0 main\n + 100 fib\n + 150 fib\n + 200 leaf\n - 250\n - 350\n - 400\n - 500\n";

#define NOWHERE UINT64_MAX

struct step {
    enum action act;
    const char *arg;
    const char *chosen; /* NULL: as before */
    uint64_t start;     /* of it; NOWHERE: not looked at */
    const char *see;    /* on the screen, with what is said; NULL: nothing special */
};

static const struct step steps[] = {
    /* From a stack to its callee, siblings, caller. */
    {ACT_CALLEE, NULL, "request", 0, "main > [request]"},
    {ACT_SPAN_NEXT, NULL, "fib", 680, "main > [fib]"},
    {ACT_SPAN_NEXT, NULL, "idle", 980, NULL},
    {ACT_SPAN_NEXT, NULL, "idle", 980, "last span on this depth"},
    {ACT_SPAN_PREV, NULL, "fib", 680, NULL},
    {ACT_CALLEE, NULL, "fib", 680, "main > fib > [fib]"},
    {ACT_CALLEE, NULL, "leaf", 680, "main > fib > fib > [leaf]"},
    {ACT_CALLEE, NULL, "leaf", 680, "no calls below"},
    {ACT_SHALLOWEST, NULL, "main", 0, NULL},
    {ACT_CALLER, NULL, "main", 0, "outermost call: no caller"},
    {ACT_DEEPEST, NULL, "leaf", 680, NULL},
    {ACT_TRACE_START, NULL, NULL, NOWHERE, NULL},
    {ACT_DEEPEST, NULL, "append", 0, NULL},
    {ACT_SHALLOWEST, NULL, "main", 0, NULL},
    {ACT_LONGEST_CHILD, NULL, "request", 0, NULL},
    {ACT_LONGEST_CHILD, NULL, "render", 0, NULL},
    {ACT_SPAN_NEXT, NULL, "parse", 450, NULL},
    {ACT_SPAN_PREV, NULL, "render", 0, NULL},
    {ACT_LONGEST_CHILD, NULL, "append", 0, NULL},
    {ACT_LONGEST_CHILD, NULL, "append", 0, "no calls below"},
    /* The same function: fib stands in two stacks. */
    {ACT_SEARCH, "fib", "fib", 680, "Search /fib/"},
    {ACT_LONGEST_CALL, NULL, "fib", 680, "widest of 2 stacks: "},
    {ACT_CALL_NEXT, NULL, "fib", 680, "main > fib > [fib]"},
    {ACT_CALL_NEXT, NULL, "fib", 680, "no further stack of fib"},
    {ACT_CALL_PREV, NULL, "fib", 680, "main > [fib]"},
    {ACT_CALL_NEXT_ANY, NULL, "fib", 680, "main > fib > [fib]"},
    {ACT_CALL_PREV_ANY, NULL, "fib", 680, "main > [fib]"},
    {ACT_SEARCH_NEXT, NULL, "fib", 680, "main > fib > [fib]"},
    {ACT_SEARCH_PREV, NULL, "fib", 680, "main > [fib]"},
    {ACT_CANCEL, NULL, NULL, NOWHERE, NULL},
    /* Places on its own axis, marks, a range. */
    {ACT_GOTO, "500", "parse", 450, NULL},
    {ACT_MARK_SET, "a", "parse", 450, NULL},
    {ACT_GOTO, "700", "leaf", 680, "mark a"},
    {ACT_MARK_GOTO, "a", "parse", 450, NULL},
    {ACT_GOTO, "0", "append", 0, NULL},
    {ACT_RANGE, NULL, NULL, NOWHERE, NULL},
    {ACT_GOTO, "680", NULL, NOWHERE, NULL},
    {ACT_RANGE, NULL, NULL, NOWHERE, "(45.9 % of all)  5 stacks"}, /* 680 of 1,480 */
    {ACT_ZOOM_RANGE, NULL, NULL, NOWHERE, NULL},
    {ACT_VIEW_BACK, NULL, NULL, NOWHERE, "(100.0 %)"},
    {ACT_VIEW_FORWARD, NULL, NULL, NOWHERE, NULL},
    {ACT_ZOOM_ALL, NULL, NULL, NOWHERE, "(100.0 %)"},
    {ACT_CANCEL, NULL, NULL, NOWHERE, NULL},
    /* Zoom and pan. */
    {ACT_GOTO, "100", "append", 0, NULL},
    {ACT_CALLER, NULL, "render", 0, NULL},
    {ACT_CALLER, NULL, "request", 0, NULL},
    {ACT_ZOOM_FIT, NULL, "request", 0, NULL},
    {ACT_ZOOM_IN, NULL, "request", 0, NULL},
    {ACT_PAN_RIGHT, NULL, NULL, NOWHERE, NULL},
    {ACT_PAN_LEFT, NULL, NULL, NOWHERE, NULL},
    {ACT_PAN_RIGHT_PAGE, NULL, NULL, NOWHERE, NULL},
    {ACT_PAN_LEFT_PAGE, NULL, NULL, NOWHERE, NULL},
    {ACT_ZOOM_OUT, NULL, NULL, NOWHERE, NULL},
    {ACT_ZOOM_ALL, NULL, NULL, NOWHERE, "(100.0 %)"},
    {ACT_ZOOM_OUT, NULL, NULL, NOWHERE, "the whole trace is in view"},
    {ACT_TRACE_END, NULL, NULL, NOWHERE, NULL},
    /* What has another meaning here, or none. */
    {ACT_GAP_NEXT, NULL, NULL, NOWHERE, "gaps are left out here"},
    {ACT_GAP_PREV, NULL, NULL, NOWHERE, "gaps are left out here"},
    {ACT_PIN, NULL, NULL, NOWHERE, "merged into one"},
    {ACT_HIDE, NULL, NULL, NOWHERE, "merged into one"},
    {ACT_FILTER, "worker", NULL, NOWHERE, "merged into one"},
    {ACT_SORT, "name", NULL, NOWHERE, "merged into one"},
    {ACT_THREAD_PREV, NULL, NULL, NOWHERE, "merged: 4714 worker-1"},
    {ACT_THREAD_NEXT, NULL, NULL, NOWHERE, "merged: all threads"},
    {ACT_RECURSION, NULL, NULL, NOWHERE, "recursion folded"},
    {ACT_RECURSION, NULL, NULL, NOWHERE, "every level of recursion shows"},
    {ACT_COLOR_BY, "module", NULL, NOWHERE, "colour by module"},
    {ACT_COLOR_BY, "function", NULL, NOWHERE, "colour by function"},
    {ACT_COMPACT, NULL, NULL, NOWHERE, NULL},
    {ACT_COMPACT, NULL, NULL, NOWHERE, NULL},
    {ACT_COLLAPSE, NULL, NULL, NOWHERE, "(collapsed)"},
    {ACT_COLLAPSE, NULL, NULL, NOWHERE, NULL},
    {ACT_SEARCH_FUNCTION, NULL, NULL, NOWHERE, "Search /"},
    {ACT_CANCEL, NULL, NULL, NOWHERE, NULL},
    {ACT_COPY, NULL, NULL, NOWHERE, NULL},
    {ACT_DETAILS, NULL, NULL, NOWHERE, NULL},
    {ACT_DETAILS, NULL, NULL, NOWHERE, NULL},
    {ACT_DETAILS, NULL, NULL, NOWHERE, "longest call"},
};

static void walk(struct rig *r)
{
    draw(r);
    act(r, ACT_MERGED);
    struct timeline *in = r->tl->merged->tl;
    const char *chosen = "main";
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const struct step *s = &steps[i];
        act_with(r, s->act, s->arg);
        in = r->tl->merged->tl;
        draw(r);
        const struct span *span = selection_span(in->src, &in->sel);
        const char *name = span ? functions_get(trace_functions(in->trace), span->fn)->name : "(none)";
        const char *command = action_info(s->act)->command;
        chosen = s->chosen ? s->chosen : chosen;
        if (s->chosen && strcmp(name, s->chosen) != 0)
            fail_msg("step %zu, %s %s: %s is chosen, not %s", i, command, s->arg ? s->arg : "", name, s->chosen);
        if (s->start != NOWHERE && span->start_ns != s->start)
            fail_msg("step %zu, %s: it starts at %llu", i, command, (unsigned long long)span->start_ns);
        if (s->see && !golden_find(r->s, s->see))
            fail_msg("step %zu, %s: no '%s' on\n%s", i, command, s->see, golden_dump(r->s, "the screen"));
        if (s->act == ACT_ZOOM_RANGE || s->act == ACT_VIEW_FORWARD)
            assert_in_range(viewport_length_ns(&in->view), 680, 700); /* whole fractions of columns */
        assert_true(tl_merged_shown(r->tl));
        assert_int_equal(r->m->range_end_ns, 0); /* the trace's own range is none of its business */
    }
    assert_non_null(r->m->want.copy);
}

static void every_key(void **state)
{
    (void)state;
    static const int sizes[][2] = {{24, 80}, {30, 100}, {60, 200}};
    static const char *const kinds[] = {"", "instructions\n", "sampled 1\n"};
    for (int i = 0; i < 9; i++) {
        struct rig r;
        char text[sizeof two_workers + 20];
        snprintf(text, sizeof text, "%s%s", kinds[i / 3], two_workers);
        rig_open(&r, gentrace_parse(text), (enum glyph_tier)(i % 3), COLOR_256, sizes[i % 3][0], sizes[i % 3][1]);
        walk(&r);
        rig_close(&r);
    }
}

/* L and M ask about the longest call of the stack; Enter on the way back is that call. */
static void subjects(void **state)
{
    (void)state;
    static const enum action asks[] = {ACT_CALLS, ACT_COMPARE};
    struct rig r;
    opened(&r, two_workers);
    act(&r, ACT_MERGED);
    act_with(&r, ACT_GOTO, "100");
    for (size_t i = 0; i < 2; i++) {
        struct model_subject subject;
        size_t n;
        assert_false(view_timeline.action(r.tl, asks[i], NULL)); /* the screen that answers takes it */
        assert_true(model_take_subject(r.m, &subject));
        const struct span *row = trace_row(r.t, subject.thread, subject.depth, &n);
        assert_true(subject.call && subject.index < n);
        assert_int_equal(row[subject.index].start_ns, 600); /* the second append, 200 long */
        assert_int_equal(row[subject.index].fn, subject.fn);
    }
    act(&r, ACT_BACK);
    assert_string_equal(selected_name(&r), "append");
    assert_int_equal(selected(&r)->start_ns, 600);
    rig_close(&r);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key),
        cmocka_unit_test(subjects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

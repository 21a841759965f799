/* The Timeline screen about what the recording has not seen: gaps, samples, starts before the trace. */
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

static void field_C1_C16_gaps_have_their_cause(void **state)
{
    (void)state;
    struct rig r;
    opened(&r, timeline_server);
    act(&r, ACT_TRACE_START);
    act(&r, ACT_GAP_NEXT);
    assert_int_equal(r.m->cursor_ns, 1352000);
    assert_string_equal(r.m->say, "overflow, 4.00 us: the ring wrapped");
    act(&r, ACT_GAP_NEXT);
    assert_string_equal(r.m->say, "no further gap in this thread");
    act(&r, ACT_TRACE_END);
    act(&r, ACT_GAP_PREV);
    assert_int_equal(r.m->cursor_ns, 1352000);
    draw(&r);
    assert_true(golden_find(r.s, "! 1 overflow"));
    rig_close(&r);
    /* Losses at the very start and end, without any call around. */
    opened(&r, "thread 5 a\ngap 0 1000 lost\n+ 1000 f\n- 9000\ngap 9000 10000 overflow\n");
    const struct cell *first = surface_at(r.s, r.tl->at.rows.row + 1, 0);
    const struct cell *last = surface_at(r.s, r.tl->at.rows.row + 1, 98);
    assert_int_equal(first->cp, glyph(r.m->glyphs, GLYPH_HATCH));
    assert_int_equal(last->cp, glyph(r.m->glyphs, GLYPH_HATCH));
    rig_close(&r);
}

/* A sentence too long for a line is wrapped over the pane, also where a span is selected; behind the gap the
 * function's line is there again. */
static void a_gap_says_why(void **state)
{
    (void)state;
    for (int cols = 80; cols <= 100; cols += 20) {
        struct rig r;
        rig_open(&r, gentrace_parse("thread 5 a\n+ 0 main\n+ 1000 f\n- 2000\n- 3000\n"
                                    "gap 3000 5000 no-image /home/someone/project/program is not the file that ran: "
                                    "its build-id is 0123456789ab, recorded was ba9876543210; not used\n"
                                    "+ 5000 g\n- 9000\n"),
                 GLYPHS_UNICODE, COLOR_256, cols == 80 ? 24 : 30, cols);
        act(&r, ACT_TRACE_START);
        act(&r, ACT_GAP_NEXT);
        draw(&r);
        assert_int_equal(r.m->cursor_ns, 3000);
        if (cols == 80)
            assert_true(golden_find(r.s, "gap: no-image, 2.00 us: /home/someone/project/program is not the file"));
        else
            assert_true(golden_find(r.s, "is not the file that ran: its"));
        assert_true(golden_find(r.s, "recorded was ba9876543210; not used"));
        act(&r, ACT_TRACE_END);
        draw(&r);
        assert_false(golden_find(r.s, "gap: no-image"));
        rig_close(&r);
    }
}

static void field_H1_sampled_never_looks_exact(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gentrace_parse("sampled 1000000\nthread 5 worker\n"
                                "+ 0 main /bin/x p\n+ 1000000 load /bin/x p\n- 7300000\n+ 7300000 parse /bin/x p\n"
                                "+ 8000000 [off] [kernel] op\n- 15500000\n- 21000000\n"
                                "gap 24000000 31000000 no-sample\n+ 31000000 store /bin/x p\n- 39000000\n- 40000000\n"),
             GLYPHS_UNICODE, COLOR_256, 24, 80);
    draw(&r);
    char state_text[100];
    view_timeline.state(r.tl, state_text, sizeof state_text);
    assert_non_null(strstr(state_text, "SAMPLED"));
    assert_true(golden_find(r.s, "sampled \u00b11.00 ms"));
    assert_true(golden_find(r.s, "sampled: edges are known to about 1.00 ms"));
    golden_check(r.s, "timeline_sampled", "80x24 unicode 256, sampled trace");
    /* No sharp fragment anywhere: edges are shades. */
    for (int row = r.tl->at.rows.row; row < r.tl->at.rows.row + r.tl->at.rows.rows; row++)
        for (int col = 0; col < 80; col++) {
            uint32_t cp = surface_at(r.s, row, col)->cp;
            assert_false(cp >= glyph(r.m->glyphs, GLYPH_LEFT7) && cp <= glyph(r.m->glyphs, GLYPH_LEFT1));
        }
    rig_close(&r);
}

/* A start that was not seen: before the trace, in a gap or before it, or for no known reason. */
static void starts_that_were_not_seen(void **state)
{
    (void)state;
    static const char text[] = "thread 1 w\n+ 0 a /m s\n - 50 g\n+ 100 b /m s\n + 110 c /m s\n - 120\n - 200\n"
                               "+ 300 d /m s\n - 400\ngap 50 90 overflow\n";
    static const struct {
        const char *name, *note;
    } want[] = {{"a", "start inferred: ran before the trace."},
                {"b", "start inferred: began in the gap before, or ran before that."},
                {"c", "start inferred: began in the gap before, or ran before that."},
                {"d", "start inferred: it ran before that."}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct rig r;
        opened(&r, text);
        act_with(&r, ACT_SEARCH, want[i].name);
        assert_string_equal(selected_name(&r), want[i].name);
        draw(&r);
        if (!golden_find(r.s, want[i].note))
            fail_msg("%s: not '%s'", want[i].name, want[i].note);
        rig_close(&r);
    }
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_C1_C16_gaps_have_their_cause),
        cmocka_unit_test(a_gap_says_why),
        cmocka_unit_test(field_H1_sampled_never_looks_exact),
        cmocka_unit_test(starts_that_were_not_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tui/ui/line: what becomes of a line that is too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>

#include "tests/lib_golden.h"
#include "tui/ui/bar.h"
#include "tui/ui/line.h"

static void assert_rows(struct surface *s, const char *first, const char *second)
{
    const char *const want[] = {first, second};
    for (int i = 0; i < 2; i++) {
        char *got = golden_row(s, i);
        assert_string_equal(got, want[i]);
        free(got);
    }
    surface_clear(s);
}

static void facts_are_left_out_whole(void **state)
{
    (void)state;
    struct surface *s = surface_new(2, 40);
    const struct glyphs *g = glyphs_of(GLYPHS_ASCII);
    const char *line = "start 1,204  dur 52,920 insn  self 54 insn";
    line_draw(s, 0, 0, 42, line, (struct style){0}, g);
    line_draw(s, 1, 1, 38, line, (struct style){0}, g);
    assert_rows(s, "start 1,204  dur 52,920 insn  self 54 in", " start 1,204  dur 52,920 insn");
    /* 28 columns hold the first two exactly; in 27 little would be left. */
    line_draw(s, 0, 0, 28, line, (struct style){0}, g);
    line_draw(s, 1, 0, 27, line, (struct style){0}, g);
    assert_rows(s, "start 1,204  dur 52,920 insn", "start 1,204  dur 52,920 in~");
    line_draw(s, 0, 0, 21, line, (struct style){0}, g);
    line_draw(s, 1, 0, 0, line, (struct style){0}, g);
    assert_rows(s, "start 1,204", "");
    surface_free(s);
}

static void facts_are_left_out_by_rank(void **state)
{
    (void)state;
    static const struct line_fact facts[] = {{"A-B", 0}, {"A 1 B 2", 2}, {"", 1}, {"busy 3", 1}, {"gaps \xc3\xa9", 0}};
    char out[64];
    /* 3 + 7 + 6 + 6 and three times two blanks: 28. */
    assert_true(line_join(out, sizeof out, 28, "  ", facts, 5));
    assert_string_equal(out, "A-B  A 1 B 2  busy 3  gaps \xc3\xa9");
    assert_false(line_join(out, sizeof out, 27, "  ", facts, 5));
    assert_string_equal(out, "A-B  busy 3  gaps \xc3\xa9");
    assert_false(line_join(out, sizeof out, 18, "  ", facts, 5));
    assert_string_equal(out, "A-B  gaps \xc3\xa9");
    assert_false(line_join(out, sizeof out, -1, "  ", facts, 5));
    assert_string_equal(out, "A-B  gaps \xc3\xa9");
    assert_true(line_join(out, 6, 80, "  ", facts, 5));
    assert_string_equal(out, "A-B  ");
    assert_true(line_join(out, sizeof out, 80, "  ", facts, 0));
    assert_string_equal(out, "");
}

static void cut(void **state)
{
    (void)state;
    struct surface *s = surface_new(2, 20);
    line_cut(s, 0, 0, 8, "colours", (struct style){0}, glyphs_of(GLYPHS_UNICODE));
    line_cut(s, 1, 0, 6, "colours", (struct style){0}, glyphs_of(GLYPHS_UNICODE));
    assert_rows(s, "colours", "colou\xe2\x80\xa6");
    line_cut(s, 0, 0, -1, "colours", (struct style){0}, glyphs_of(GLYPHS_UNICODE));
    assert_rows(s, "", "");
    surface_free(s);
}

static void sentences_are_broken_at_blanks(void **state)
{
    (void)state;
    struct surface *s = surface_new(2, 20);
    const struct glyphs *g = glyphs_of(GLYPHS_ASCII);
    line_wrap(s, (struct rect){0, 0, 2, 20}, "called through a pointer", (struct style){0}, g);
    assert_rows(s, "called through a", "pointer");
    line_wrap(s, (struct rect){0, 0, 2, 10}, "called through a pointer", (struct style){0}, g);
    assert_rows(s, "called", "through a~");
    line_wrap(s, (struct rect){0, 0, 2, 4}, "a pointer", (struct style){0}, g);
    assert_rows(s, "a", "poi~");
    line_wrap(s, (struct rect){0, 0, 2, 4}, "pointer", (struct style){0}, g);
    assert_rows(s, "poi~", "");
    surface_free(s);
}

/* The state at the right end of the tabs loses whole groups; part of the first has a mark. */
static void state_of_the_tab_row(void **state)
{
    (void)state;
    static const struct view_ops timeline = {.title = "Timeline"};
    const struct view_ops *screens[] = {&timeline};
    static const struct {
        int cols;
        bool recording;
        const char *row;
    } cases[] = {
        {58, false, " mtui [1 Timeline] SAMPLED decoding 26.8M  standard input"},
        {56, false, " mtui [1 Timeline]               SAMPLED decoding 26.8M"},
        {41, false, " mtui [1 Timeline]SAMPLED decoding 26.8M"},
        {40, false, " mtui [1 Timeline]SAMPLED decoding 26.~"},
        {42, true, " mtui [1 Timeline]* SAMPLED decoding 26.~"},
        {26, false, " mtui [1 Timeline]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct surface *s = surface_new(2, cases[i].cols);
        bar_draw_tabs(s, 0, screens, 1, 0, "SAMPLED decoding 26.8M  standard input", cases[i].recording,
                      glyphs_of(GLYPHS_ASCII));
        assert_rows(s, cases[i].row, "");
        surface_free(s);
    }
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_left_out_whole),
        cmocka_unit_test(facts_are_left_out_by_rank),
        cmocka_unit_test(cut),
        cmocka_unit_test(state_of_the_tab_row),
        cmocka_unit_test(sentences_are_broken_at_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

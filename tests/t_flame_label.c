/* tui/timeline/flame: names in spans. They stay inside, give way level by level, and leave small spans alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>

#include "tests/lib_flame.h"
#include "tests/lib_gentrace.h"
#include "tui/timeline/viewport.h"
#include "tui/ui/name.h"

static const char *names[] = {"handle_request", "std::map<int, long>::find(int const&) const", "f",
                              "日本語の関数", "e\xcc\x81t\xc3\xa9_\x1b[31m\xff"};

static const uint32_t dots = 0x2026, tilde = '~';

static void test_name(const void *arg, fn_id fn, char *out, size_t size, int cols)
{
    const uint32_t *ellipsis = arg;
    name_fit(out, size, names[fn % 5], false, (size_t)cols, *ellipsis);
}

static const struct flame_label_style unicode_style = {.left = 0x2039,
                                                       .right = 0x203a,
                                                       .replacement = 0xfffd,
                                                       .unicode = true};
static const struct flame_label_style ascii_style = {.brackets = true,
                                                     .open = '[',
                                                     .close = ']',
                                                     .fill = '-',
                                                     .lone = '|',
                                                     .left = '<',
                                                     .right = '>',
                                                     .replacement = '?'};

static void labels_stay_inside(void **state)
{
    (void)state;
    static struct span s[400];
    static struct picture p, q;
    uint64_t seed = 3;
    for (int round = 0; round < 200; round++) {
        size_t n = picture_random_row(s, 400, picture_bases[round % 4], 1000, &seed);
        struct flame_row row = flame_row_of_spans(s, n);
        const struct flame_label_style *style = round % 2 ? &ascii_style : &unicode_style;
        struct viewport v;
        viewport_init(&v, s[0].start_ns, s[n - 1].end_ns, 150);
        for (int i = (int)(gen_random(&seed) % 12); i > 0; i--)
            viewport_zoom_in(&v, (int)(gen_random(&seed) % 150));
        picture_render(&p, viewport_window(&v), &row);
        picture_render(&q, viewport_window(&v), &row);
        flame_render_labels(&q.axis, style, test_name, style == &unicode_style ? &dots : &tilde, q.cells);
        for (int c = 0; c < 150; c++) {
            const struct flame_cell *cell = &q.cells[c];
            assert_ptr_equal(cell->ink, p.cells[c].ink);
            if (cell->shape != FLAME_TEXT) {
                assert_int_equal(cell->shape, p.cells[c].shape);
                continue;
            }
            assert_true(p.cells[c].owned == 0xff && p.cells[c].count == 1);
            assert_true(cell->cp == 0 || cell->cp >= 0x20);
            if (style->brackets)
                assert_true(cell->cp < 0x7f && cell->cp > 0);
            if (cell->cp == 0) /* the right half of a wide character has its left half */
                assert_true(c > 0 && q.cells[c - 1].ink == cell->ink && q.cells[c - 1].cp > 0x2e80);
        }
        picture_free(&p);
        picture_free(&q);
        viewport_free(&v);
    }
}

static char *text_of(const struct picture *p, char *out)
{
    char *o = out;
    for (int c = 0; c < p->window.cols; c++)
        *o++ = p->cells[c].shape == FLAME_TEXT    ? (char)p->cells[c].cp
               : p->cells[c].shape == FLAME_EMPTY ? ' '
                                                  : '#';
    *o = '\0';
    return out;
}

static void label_levels(void **state)
{
    (void)state;
    struct span s[] = {{.start_ns = 0, .end_ns = 400, .fn = 1}};
    struct flame_row row = flame_row_of_spans(s, 1);
    static struct picture p;
    char text[PICTURE_COLS + 1];
    const struct {
        uint64_t from, to;
        int cols;
        const char *text;
    } cases[] = {
        {0, 400, 50, "[std::map<int, long>::find(int const&) const-----]"},
        {0, 400, 30, "[std::map<int, long>::find---]"},
        {0, 400, 20, "[std::map::find----]"},
        {0, 400, 12, "[find------]"},
        {0, 400, 6, "[find]"},
        {0, 400, 5, "[fi~]"},
        {0, 400, 3, "[f]"},
        {0, 400, 2, "[]"},
        {0, 400, 1, "|"},
        {100, 300, 20, "<std::map::find---->"},
        {100, 500, 20, "<find---------]     "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        picture_render(&p, flame_window_ns(cases[i].from, cases[i].to, cases[i].cols), &row);
        flame_render_labels(&p.axis, &ascii_style, test_name, &tilde, p.cells);
        assert_string_equal(text_of(&p, text), cases[i].text);
        picture_free(&p);
    }
    /* Without brackets two cells stay a plain colour, even where the span goes on outside. */
    for (uint64_t from = 0; from <= 100; from += 100) {
        picture_render(&p, flame_window_ns(from, 300, 2), &row);
        flame_render_labels(&p.axis, &unicode_style, test_name, &dots, p.cells);
        assert_string_equal(text_of(&p, text), "##");
        picture_free(&p);
    }
    picture_render(&p, flame_window_ns(0, 400, 3), &row);
    flame_render_labels(&p.axis, &unicode_style, test_name, &dots, p.cells);
    assert_int_equal(p.cells[0].cp, 'f');
    assert_int_equal(p.cells[2].cp, 0x2026);
    picture_free(&p);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_stay_inside),
        cmocka_unit_test(label_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tui/term/surface: clipping, wide and combining characters, control bytes; and the golden dump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib_golden.h"
#include "tui/term/surface.h"

static const struct style plain = {0};

static void assert_row(const struct surface *s, int row, const char *want)
{
    char *got = golden_row(s, row);
    assert_string_equal(got, want);
    free(got);
}

static void clipping(void **state)
{
    (void)state;
    struct surface *s = surface_new(3, 10);
    assert_int_equal(surface_text(s, 0, 7, 10, "abcdef", SIZE_MAX, plain), 6);
    assert_row(s, 0, "       abc");
    assert_int_equal(surface_text(s, 1, -2, 5, "abcdef", SIZE_MAX, plain), 5);
    assert_row(s, 1, "cde");
    surface_text(s, 5, 0, 10, "x", SIZE_MAX, plain);
    surface_text(s, -1, 0, 10, "x", SIZE_MAX, plain);
    surface_put(s, 2, 10, 'x', plain);
    surface_put(s, 2, -1, 'x', plain);
    assert_row(s, 2, "");
    assert_null(surface_at(s, 3, 0));
    assert_null(surface_at(s, 0, 10));
    surface_fill(s, (struct rect){-5, -5, 100, 7}, '#', plain);
    assert_row(s, 2, "##");
    surface_fill(s, (struct rect){2, 8, 1, 2147483647}, '+', plain);
    assert_row(s, 2, "##      ++");
    assert_int_equal(surface_printf(s, 2, 3, 4, plain, "%d", 123456), 4);
    assert_row(s, 2, "## 1234 ++");
    surface_free(s);
}

static void field_F3_wide_characters(void **state)
{
    (void)state;
    struct surface *s = surface_new(6, 6);
    const char *jp = "\xe6\x97\xa5\xe6\x9c\xac"; /* two wide characters */
    assert_int_equal(surface_text(s, 0, 0, 6, jp, SIZE_MAX, plain), 4);
    assert_int_equal(surface_at(s, 0, 0)->cp, 0x65e5);
    assert_int_equal(surface_at(s, 0, 1)->cp, 0);
    assert_int_equal(surface_at(s, 0, 2)->cp, 0x672c);
    /* Cut in half by the field, by the right edge, and by the left edge. */
    assert_int_equal(surface_text(s, 1, 0, 3, jp, SIZE_MAX, plain), 3);
    assert_int_equal(surface_at(s, 1, 2)->cp, ' ');
    surface_text(s, 2, 5, 2, jp, SIZE_MAX, plain);
    assert_int_equal(surface_at(s, 2, 5)->cp, ' ');
    surface_text(s, 3, -1, 6, jp, SIZE_MAX, plain);
    assert_int_equal(surface_at(s, 3, 0)->cp, ' ');
    assert_int_equal(surface_at(s, 3, 1)->cp, 0x672c);
    /* Writing over one half blanks the other. */
    surface_put(s, 0, 1, 'x', plain);
    assert_row(s, 0, " x\xe6\x9c\xac");
    surface_put(s, 0, 2, 'y', plain);
    assert_row(s, 0, " xy");
    surface_text(s, 4, 0, 6, jp, SIZE_MAX, plain);
    surface_text(s, 4, 1, 2, jp, SIZE_MAX, plain);
    assert_row(s, 4, " \xe6\x97\xa5");
    assert_int_equal(surface_at(s, 4, 3)->cp, ' ');
    surface_free(s);
}

static void field_F3_combining_marks(void **state)
{
    (void)state;
    struct surface *s = surface_new(2, 6);
    assert_int_equal(surface_text(s, 0, 0, 2, "\xcc\x81"
                                              "ae\xcc\x81\xcc\x82z",
                                  SIZE_MAX, plain),
                     2);
    assert_int_equal(surface_at(s, 0, 0)->mark, 0); /* a mark that starts the text has no base */
    assert_int_equal(surface_at(s, 0, 1)->cp, 'e');
    assert_int_equal(surface_at(s, 0, 1)->mark, 0x301);
    assert_int_equal(surface_at(s, 0, 2)->cp, ' ');
    surface_text(s, 1, 0, 6, "\xe6\x97\xa5\xcc\x81", SIZE_MAX, plain);
    assert_int_equal(surface_at(s, 1, 0)->mark, 0x301);
    surface_free(s);
}

static void field_F3_F4_unsafe_text(void **state)
{
    (void)state;
    struct surface *s = surface_new(2, 12);
    const char evil[] = "a\x1b[2J\n\x7f\xc2\x9b\xff\xe2\x80\xae";
    int used = surface_text(s, 0, 0, 12, evil, sizeof evil - 1, plain);
    assert_int_equal(used, 10);
    for (int c = 0; c < 12; c++) {
        uint32_t cp = surface_at(s, 0, c)->cp;
        assert_true((cp >= 0x20 && cp < 0x7f) || cp == 0xfffd);
    }
    surface_set_replacement(s, '?', false);
    surface_clear(s);
    surface_text(s, 0, 0, 12, evil, sizeof evil - 1, plain);
    assert_row(s, 0, "a?[2J?????");
    surface_text(s, 1, 0, 12, "\xe6\x97\xa5|\xe2\x94\x82", SIZE_MAX, plain);
    assert_row(s, 1, "??|?");
    /* A hostile cell put directly is made harmless too. */
    surface_put(s, 1, 0, 0x1b, plain);
    assert_int_equal(surface_at(s, 1, 0)->cp, '?');
    surface_free(s);
}

static void styles_and_cursor(void **state)
{
    (void)state;
    struct surface *s = surface_new(2, 4);
    surface_text(s, 0, 0, 4, "ab", SIZE_MAX, plain);
    surface_restyle(s, (struct rect){0, 0, 1, 4}, (struct style){.ink = ROLE_SELECT});
    assert_int_equal(surface_at(s, 0, 1)->cp, 'b');
    assert_int_equal(surface_at(s, 0, 3)->ink, ROLE_SELECT);
    int row, col;
    surface_set_cursor(s, 1, 2);
    surface_get_cursor(s, &row, &col);
    assert_int_equal(row, 1);
    assert_int_equal(col, 2);
    surface_set_cursor(s, 2, 0);
    surface_get_cursor(s, &row, &col);
    assert_int_equal(row, -1);
    surface_resize(s, 0, 0);
    surface_put(s, 0, 0, 'x', plain);
    assert_null(surface_at(s, 0, 0));
    surface_free(s);
}

static void golden_format(void **state)
{
    (void)state;
    struct surface *s = surface_new(2, 6);
    surface_text(s, 0, 1, 5, "ab", SIZE_MAX, (struct style){.ink = ROLE_FN0 + 3});
    surface_put(s, 0, 4, 0x258d,
                (struct style){.ink = ROLE_FN0 + 3, .paper = ROLE_GAP, .attr = CELL_BOLD});
    char *text = golden_dump(s, "demo 6x2");
    assert_string_equal(text, "# demo 6x2\n"
                              "T 00 | ab \xe2\x96\x8d |\n"
                              "S 00 |.aa.b.|\n"
                              "T 01 |      |\n"
                              "# S a  fn3 on default\n"
                              "# S b  fn3 on gap bold\n");
    free(text);
    surface_free(s);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clipping),       cmocka_unit_test(field_F3_wide_characters),
        cmocka_unit_test(field_F3_combining_marks), cmocka_unit_test(field_F3_F4_unsafe_text),
        cmocka_unit_test(styles_and_cursor), cmocka_unit_test(golden_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

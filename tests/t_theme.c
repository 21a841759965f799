/* tui/term/color, tui/term/theme, tui/term/glyph: conversion, contrast, hashing of names, theme files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "tui/term/color.h"
#include "tui/term/glyph.h"
#include "tui/term/theme.h"

static void parsing(void **state)
{
    (void)state;
    struct color c;
    assert_int_equal(color_parse("default", &c, NULL), 0);
    assert_int_equal(c.kind, COLOR_KIND_DEFAULT);
    assert_int_equal(color_parse("#ff8000", &c, NULL), 0);
    assert_int_equal(c.value, 0xff8000);
    assert_int_equal(color_parse("255", &c, NULL), 0);
    assert_int_equal(c.value, 255);
    assert_int_equal(color_parse("bright-red", &c, NULL), 0);
    assert_int_equal(c.value, 9);
    const char *wrong[] = {"", "256", "-1", "#ff800", "#ff80000", "#ff80g0", "pink", "bright-", "1x",
                           "bright-default", "0x10"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(color_parse(wrong[i], &c, NULL), MTUI_E_FORMAT);
}

static void conversion(void **state)
{
    (void)state;
    assert_int_equal(color_index_rgb(16), 0x000000);
    assert_int_equal(color_index_rgb(231), 0xffffff);
    assert_int_equal(color_index_rgb(196), 0xff0000);
    assert_int_equal(color_index_rgb(110), 0x87afd7);
    assert_int_equal(color_index_rgb(232), 0x080808);
    assert_int_equal(color_index_rgb(255), 0xeeeeee);
    struct color red = {COLOR_KIND_RGB, 0xff0000};
    assert_int_equal(color_on_tier(red, COLOR_256).value, 196);
    assert_int_equal(color_on_tier(red, COLOR_16).value, 9);
    assert_int_equal(color_on_tier(red, COLOR_RGB).value, 0xff0000);
    assert_int_equal(color_on_tier(red, COLOR_MONO).kind, COLOR_KIND_DEFAULT);
    struct color cube = {COLOR_KIND_INDEX, 196};
    assert_int_equal(color_on_tier(cube, COLOR_16).value, 9);
    assert_int_equal(color_on_tier(cube, COLOR_RGB).value, 0xff0000);
}

static void contrast_and_distance(void **state)
{
    (void)state;
    /* Known values: 21:1 for black on white, 4.54:1 for #767676 on white (WCAG's own example), and
     * ΔE76 100 between black and white. */
    assert_true(color_contrast(0, 0xffffff) > 20.99 && color_contrast(0xffffff, 0) < 21.01);
    double grey = color_contrast(0x767676, 0xffffff);
    assert_true(grey > 4.53 && grey < 4.55);
    assert_true(color_distance(0, 0xffffff) > 99.9 && color_distance(0, 0xffffff) < 100.1);
    assert_true(color_distance(0x123456, 0x123456) < 1e-9);
}

static void palette_properties(void **state)
{
    (void)state;
    double least = 1e9;
    for (unsigned i = 0; i < 16; i++) {
        uint32_t a = color_index_rgb((uint8_t)color_palette_fill(COLOR_256, i).value);
        assert_true(color_contrast(a, 0) >= 6.9);
        for (unsigned j = i + 1; j < 16; j++) {
            uint32_t b = color_index_rgb((uint8_t)color_palette_fill(COLOR_256, j).value);
            double d = color_distance(a, b);
            least = d < least ? d : least;
        }
    }
    assert_true(least > 24.7 && least < 24.9);
    for (unsigned i = 0; i < 32; i++)
        assert_true(color_contrast(color_palette_fill(COLOR_RGB, i).value, 0) >= 4.5);
    for (unsigned i = 0; i < 10; i++) {
        uint32_t fill = color_index_rgb((uint8_t)color_palette_fill(COLOR_16, i).value);
        uint32_t text = color_index_rgb((uint8_t)color_palette_text(COLOR_16, i).value);
        assert_true(color_contrast(fill, text) >= 4.3);
    }
    unsigned sizes[] = {2, 10, 16, 32};
    for (int t = 0; t < COLOR_TIERS; t++)
        assert_int_equal(color_palette_size((enum color_tier)t), sizes[t]);
}

static void one_function_one_color(void **state)
{
    (void)state;
    const char *same[][2] = {
        {"handle_request", "handle_request.cold"},
        {"handle_request", "handle_request.part.0"},
        {"handle_request", "handle_request.constprop.1.isra.0"},
        {"handle_request", "handle_request [clone .cold]"},
        {"Http::Handler::request(Conn&)", "Http::Handler::request(int, char)"},
        {"worker_12", "worker_7"},
        {"(anonymous namespace)::run(int)", "(anonymous namespace)::run()"},
        {"A::operator()(int) const", "A::operator()(char)"},
        {"A::operator<<(int)", "A::operator<<(char)"},
    };
    const char *differ[][2] = {{"main.handle", "main.serve"}, {"A::operator<<(int)", "A::operator>>(int)"},
                               {"f<int>()", "f<char>()"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_int_equal(color_of_function(same[i][0], 1u << 20), color_of_function(same[i][1], 1u << 20));
    for (size_t i = 0; i < sizeof differ / sizeof *differ; i++)
        assert_int_not_equal(color_of_function(differ[i][0], 1u << 20),
                             color_of_function(differ[i][1], 1u << 20));
    /* FNV-1a of "a" is 0xe40c292c, of "foobar" 0xbf9cf968 (the draft's test vectors). */
    assert_int_equal(color_of_function("a", 32), 0xe40c292cu % 32);
    assert_int_equal(color_of_function("foobar(int)", 16), 0xbf9cf968u % 16);
    assert_int_equal(color_of_module("/usr/lib/libc.so.6", 1000), color_of_module("libc.so.6", 1000));
    assert_int_equal(color_apart(3, 3, 16), 4);
    assert_int_equal(color_apart(15, 15, 16), 0);
    assert_int_equal(color_apart(3, 4, 16), 3);
}

static struct look look_of(const struct theme *t, unsigned ink, unsigned paper, unsigned attr)
{
    struct cell c = {.cp = 'x', .ink = (uint16_t)ink, .paper = (uint16_t)paper,
                     .attr = (uint16_t)attr};
    return theme_look(t, &c);
}

static void looks(void **state)
{
    (void)state;
    struct theme *t = theme_new(COLOR_256);
    struct look l = look_of(t, ROLE_DEFAULT, ROLE_DEFAULT, CELL_BOLD | CELL_AGGREGATE);
    assert_int_equal(l.fg.kind, COLOR_KIND_DEFAULT);
    assert_int_equal(l.attr, CELL_BOLD);
    /* A label on its span, a fragment on the default paper, two spans in a cell. */
    l = look_of(t, ROLE_FN0 + 1, ROLE_FN0 + 1, 0);
    assert_int_equal(l.bg.value, 172);
    assert_int_equal(l.fg.value, 16);
    l = look_of(t, ROLE_FN0 + 1, ROLE_DEFAULT, 0);
    assert_int_equal(l.fg.value, 172);
    assert_int_equal(l.bg.kind, COLOR_KIND_DEFAULT);
    l = look_of(t, ROLE_FN0 + 1, ROLE_FN0 + 2, 0);
    assert_int_equal(l.fg.value, 172);
    assert_int_equal(l.bg.value, 142);
    /* Without colour: reverse, and every second one dim. */
    theme_set_tier(t, COLOR_MONO);
    assert_int_equal(theme_palette_size(t), 2);
    assert_int_equal(look_of(t, ROLE_FN0, ROLE_FN0, 0).attr, CELL_REVERSE);
    assert_int_equal(look_of(t, ROLE_FN0 + 1, ROLE_FN0 + 1, 0).attr, CELL_REVERSE | CELL_DIM);
    assert_int_equal(look_of(t, ROLE_FN0 + 1, ROLE_DEFAULT, 0).attr, 0);
    assert_int_equal(look_of(t, ROLE_SELECT, ROLE_SELECT, 0).attr, CELL_BOLD | CELL_UNDERLINE);
    assert_int_equal(look_of(t, ROLE_SELECT, ROLE_SELECT, 0).fg.kind, COLOR_KIND_DEFAULT);
    assert_int_equal(theme_palette_size(NULL), 16);
    theme_free(t);
}

static void theme_errors(void **state)
{
    (void)state;
    const struct {
        const char *text, *error;
    } cases[] = {
        {"nonsense = red blue\n", "x.theme:1: no role is called 'nonsense'"},
        {"# c\n\nbar = red\n", "x.theme:3: 'bar' needs two colours, for text and background"},
        {"bar = red pink\n", "x.theme:1: 'pink' is no colour"},
        {"bar = red blue blink\n", "x.theme:1: 'blink' is no attribute"},
        {"bar red blue\n", "x.theme:1: a theme has lines such as"},
        {"terminal = grey\n", "x.theme:1: terminal is dark or light"},
        {"fn32 = red blue\n", "x.theme:1: no role is called 'fn32'"},
    };
    struct theme *t = theme_new(COLOR_256);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e;
        assert_int_equal(theme_parse(t, "x.theme", cases[i].text, strlen(cases[i].text), &e),
                         MTUI_E_FORMAT);
        assert_memory_equal(e.text, cases[i].error, strlen(cases[i].error));
        assert_string_equal(theme_name(t), "default");
    }
    const char good[] = "fn3 = black #00ff00\nselect = white 25 bold underline";
    assert_int_equal(theme_parse(t, "mine", good, strlen(good), NULL), 0);
    assert_int_equal(look_of(t, ROLE_FN0 + 3, ROLE_FN0 + 3, 0).bg.value, 46);
    assert_int_equal(look_of(t, ROLE_SELECT, ROLE_SELECT, 0).attr, CELL_BOLD | CELL_UNDERLINE);
    struct err e;
    assert_int_equal(theme_load(t, "no-such", &e), MTUI_E_NOENT);
    assert_non_null(strstr(e.text, "no theme 'no-such': not one of mtui's own, nor a NAME.theme in /"));
    assert_int_equal(theme_load(t, "themes/no-such.theme", &e), MTUI_E_NOENT);
    /* The name of a file, though it has no folder. */
    assert_int_equal(theme_load(t, "no-such.theme", &e), MTUI_E_NOENT);
    assert_memory_equal(e.text, "cannot open no-such.theme: ", 27);
    theme_free(t);
}

/* Every theme that is shipped reads, and its text can be read. */
static void shipped_themes(void **state)
{
    (void)state;
    const struct {
        const char *name;
        double least;
    } themes[] = {{"default", 3}, {"light", 3}, {"high-contrast", 7}, {"mono", 3}};
    for (size_t i = 0; i < sizeof themes / sizeof *themes; i++) {
        char path[64], *out = NULL;
        size_t size = 0;
        struct err e;
        snprintf(path, sizeof path, "themes/%s.theme", themes[i].name);
        FILE *f = open_memstream(&out, &size);
        int bad = theme_check(path, f, &e);
        fclose(f);
        if (bad != 0)
            fail_msg("%s: %s\n%s", path, bad < 0 ? e.text : "contrast too low", out);
        if (themes[i].least > 3) {
            char *rest = out;
            for (char *line; (line = strsep(&rest, "\n"));) {
                double full, few;
                char role[32];
                if (sscanf(line, "%31s %lf:1 %lf:1", role, &full, &few) == 3 &&
                    strncmp(role, "fn", 2) != 0 && (full < 7 || few < 4.5))
                    fail_msg("%s: %s", path, line);
            }
        }
        free(out);
    }
}

static void glyph_tiers(void **state)
{
    (void)state;
    for (int tier = 0; tier < GLYPH_TIERS; tier++) {
        const struct glyphs *g = glyphs_of((enum glyph_tier)tier);
        for (int i = 0; i < GLYPH_COUNT; i++) {
            uint32_t cp = glyph(g, (enum glyph)i);
            assert_true(cp >= ' ' && !utf8_is_unsafe(cp));
            assert_int_equal(utf8_cp_cols(cp), 1);
            if (tier == GLYPHS_ASCII)
                assert_true(cp < 0x7f);
        }
    }
    assert_int_equal(glyph(glyphs_of(GLYPHS_UNICODE), GLYPH_LEFT1), 0x258f);
    assert_int_equal(glyph(glyphs_of(GLYPHS_UNICODE), GLYPH_LEFT7), 0x2589);
    assert_int_equal(glyph_dots(glyphs_of(GLYPHS_UNICODE), 0xff), 0x28ff);
    assert_int_equal(glyph_dots(glyphs_of(GLYPHS_ASCII), 0), ' ');
    assert_int_equal(glyph_tier_detect("xterm-256color"), GLYPHS_UNICODE);
    assert_int_equal(glyph_tier_detect("linux"), GLYPHS_VGA);
    setlocale(LC_ALL, "C");
    assert_int_equal(glyph_tier_detect("xterm-256color"), GLYPHS_ASCII);
    setlocale(LC_ALL, "C.UTF-8");
    enum glyph_tier tier;
    assert_int_equal(glyph_tier_parse("vga", NULL, &tier, NULL), 0);
    assert_int_equal(tier, GLYPHS_VGA);
    assert_int_equal(glyph_tier_parse("utf8", NULL, &tier, NULL), MTUI_E_INVAL);
}

static void role_names_are_complete(void **state)
{
    (void)state;
    for (unsigned r = 0; r < ROLE_COUNT; r++) {
        assert_non_null(role_name(r));
        assert_int_equal(role_find(role_name(r)), r);
    }
    assert_int_equal(role_find("fn32"), ROLE_COUNT);
}

/* Text is drawn in the terminal's own colours or in ones that stand out on dark and light paper; never in black
 * or bright black, which many terminals show as nothing. */
static void field_F8_no_text_in_black(void **state)
{
    (void)state;
    for (int tier = COLOR_16; tier <= COLOR_256; tier++) {
        struct theme *t = theme_new((enum color_tier)tier);
        for (unsigned role = 0; role < ROLE_COUNT; role++) {
            struct look l = look_of(t, (uint16_t)role, ROLE_DEFAULT, 0);
            if (l.fg.kind == COLOR_KIND_DEFAULT || look_of(t, (uint16_t)role, (uint16_t)role, 0).bg.kind != COLOR_KIND_DEFAULT)
                continue; /* on a paper of its own */
            if (l.fg.value == 0 || l.fg.value == 8 || (l.fg.value >= 232 && l.fg.value < 240))
                fail_msg("%s is drawn in colour %u", role_name(role), (unsigned)l.fg.value);
        }
        theme_free(t);
    }
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_F8_no_text_in_black),
        cmocka_unit_test(parsing),
        cmocka_unit_test(conversion),
        cmocka_unit_test(contrast_and_distance),
        cmocka_unit_test(palette_properties),
        cmocka_unit_test(one_function_one_color),
        cmocka_unit_test(looks),
        cmocka_unit_test(theme_errors),
        cmocka_unit_test(shipped_themes),
        cmocka_unit_test(glyph_tiers),
        cmocka_unit_test(role_names_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* tui/ui/list, tui/ui/prompt, tui/ui/settings: the widgets by themselves. */
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

#include "tests/lib_golden.h"
#include "tui/ui/bar.h"
#include "tui/ui/list.h"
#include "tui/ui/list_layout.h"
#include "tui/ui/prompt.h"
#include "tui/ui/settings.h"

/* ---- A list of numbers with names ---- */

struct rows {
    size_t n;
    uint64_t ids[64];
    const char *names[64];
    size_t asked; /* cells asked for */
};

static size_t rows_count(void *arg)
{
    return ((struct rows *)arg)->n;
}

static uint64_t rows_identity(void *arg, size_t row)
{
    return ((struct rows *)arg)->ids[row % 64] + row / 64 * 64;
}

static void rows_cell(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    struct rows *r = arg;
    r->asked++;
    if (column == 0)
        snprintf(cell->text, sizeof cell->text, "%llu", (unsigned long long)r->ids[row % 64]);
    else if (column == 1)
        snprintf(cell->text, sizeof cell->text, "user%zu", row);
    else
        snprintf(cell->text, sizeof cell->text, "%s", r->names[row % 64]);
}

static const struct list_column columns[] = {
    {.title = "ID", .cols = 5, .right = true},
    {.title = "USER", .cols = 8, .priority = 2},
    {.title = "NAME", .cols = 10, .stretch = true},
};
static const struct list_rows callbacks = {.count = rows_count, .identity = rows_identity, .cell = rows_cell};

static struct rows sample(void)
{
    struct rows r = {.n = 5,
                     .ids = {11, 22, 33, 44, 55},
                     .names = {"alpha", "beta", "gamma beta", "delta\x1b[2J",
                               "epsilon is a name that is longer than its column"}};
    return r;
}

static void draws_and_drops_columns(void **state)
{
    (void)state;
    struct rows r = sample();
    struct list *l = list_new(columns, 3, &callbacks, &r);
    struct surface *s = surface_new(8, 40);
    const struct glyphs *g = glyphs_of(GLYPHS_ASCII);
    surface_set_replacement(s, '?', false);
    list_set_mark(l, 33, true);
    list_search(l, "beta");
    list_draw(l, s, (struct rect){1, 0, 7, 40}, g);
    golden_check(s, "list_40", "list 8x40 tier=ascii search=beta mark=33");
    surface_clear(s);
    list_draw(l, s, (struct rect){0, 0, 6, 20}, g);
    assert_false(golden_find(s, "USER"));
    assert_true(golden_find(s, "NAME"));
    surface_clear(s);
    list_hide_columns(l, 1u << 0);
    list_draw(l, s, (struct rect){0, 0, 6, 40}, g);
    assert_false(golden_find(s, "ID"));
    assert_true(golden_find(s, "USER"));
    surface_free(s);
    list_free(l);
}

static void selection_follows_identity(void **state)
{
    (void)state;
    struct rows r = sample();
    struct list *l = list_new(columns, 3, &callbacks, &r);
    list_action(l, ACT_DOWN);
    list_action(l, ACT_DOWN);
    assert_int_equal(list_selected_identity(l), 33);
    list_set_mark(l, 11, true);
    list_set_mark(l, 33, true);
    /* 33 moves to the front, 11 goes. */
    r = (struct rows){.n = 4, .ids = {33, 44, 22, 55}, .names = {"c", "d", "b", "e"}};
    list_refresh(l, true);
    assert_int_equal(list_selected(l), 0);
    assert_int_equal(list_selected_identity(l), 33);
    assert_int_equal(list_mark_count(l), 1);
    assert_true(list_is_marked(l, 33));
    /* It goes itself: the row at its place is taken. */
    list_select(l, 2);
    r = (struct rows){.n = 2, .ids = {33, 44}, .names = {"c", "d"}};
    list_refresh(l, false);
    assert_int_equal(list_selected_identity(l), 44);
    r.n = 0;
    list_refresh(l, false);
    assert_int_equal(list_selected(l), SIZE_MAX);
    assert_int_equal(list_selected_identity(l), 0);
    list_action(l, ACT_MARK);
    list_action(l, ACT_LAST);
    list_action(l, ACT_PAGE_DOWN);
    assert_false(list_action(l, ACT_SEARCH_NEXT));
    list_free(l);
}

static void searching(void **state)
{
    (void)state;
    struct rows r = sample();
    struct list *l = list_new(columns, 3, &callbacks, &r);
    assert_true(list_search(l, "BETA") == false); /* capitals count */
    assert_true(list_search(l, "beta"));
    assert_int_equal(list_selected(l), 1);
    assert_true(list_action(l, ACT_SEARCH_NEXT));
    assert_int_equal(list_selected(l), 2);
    assert_true(list_action(l, ACT_SEARCH_NEXT)); /* around the end */
    assert_int_equal(list_selected(l), 1);
    assert_true(list_action(l, ACT_SEARCH_PREV));
    assert_int_equal(list_selected(l), 2);
    assert_false(list_search(l, "no such"));
    assert_int_equal(list_selected(l), 2);
    list_free(l);
}

static void sorting_and_mouse(void **state)
{
    (void)state;
    struct rows r = sample();
    struct list *l = list_new(columns, 3, &callbacks, &r);
    struct surface *s = surface_new(6, 40);
    list_draw(l, s, (struct rect){0, 0, 6, 40}, glyphs_of(GLYPHS_ASCII));
    list_action(l, ACT_SORT_NEXT);
    assert_int_equal(list_sort_column(l), 1);
    list_action(l, ACT_SORT_PREV);
    list_action(l, ACT_SORT_PREV);
    assert_int_equal(list_sort_column(l), 2);
    list_action(l, ACT_SORT_INVERT);
    assert_true(list_sort_inverted(l));
    assert_int_equal(list_find_column(l, "user"), 1);
    struct mouse m = {MOUSE_DOWN, 0, 9, 1, 0};
    assert_int_equal(list_mouse(l, &m), LIST_SORTED);
    assert_int_equal(list_sort_column(l), 1);
    assert_false(list_sort_inverted(l));
    assert_int_equal(list_mouse(l, &m), LIST_SORTED);
    assert_true(list_sort_inverted(l));
    m.row = 4;
    assert_int_equal(list_mouse(l, &m), LIST_SELECTED);
    assert_int_equal(list_selected(l), 3);
    m.kind = MOUSE_DOUBLE;
    assert_int_equal(list_mouse(l, &m), LIST_OPENED);
    m = (struct mouse){MOUSE_WHEEL_UP, 3, 3, 0, 0};
    assert_int_equal(list_mouse(l, &m), LIST_SELECTED);
    assert_int_equal(list_selected(l), 0);
    m = (struct mouse){MOUSE_DOWN, 30, 3, 1, 0};
    assert_int_equal(list_mouse(l, &m), LIST_MISS);
    surface_free(s);
    list_free(l);
}

/* The selection is on the screen whatever the size; a million rows cost a screenful. */
static void big_and_tiny(void **state)
{
    (void)state;
    struct rows r = sample();
    for (size_t i = 0; i < 64; i++) {
        r.ids[i] = i + 1;
        r.names[i] = "n";
    }
    r.n = 1000000;
    struct list *l = list_new(columns, 3, &callbacks, &r);
    for (int rows = 0; rows < 20; rows++) {
        for (int cols = 0; cols < 30; cols += 7) {
            struct surface *s = surface_new(rows, cols);
            list_select(l, (size_t)rows * 50000 + (size_t)cols);
            r.asked = 0;
            list_draw(l, s, (struct rect){0, 0, rows, cols}, glyphs_of(GLYPHS_UNICODE));
            assert_true(r.asked <= 3 * 20);
            if (rows > 1) {
                assert_true(list_selected(l) >= list_top(l));
                assert_true(list_selected(l) < list_top(l) + (size_t)list_visible(l));
            }
            surface_free(s);
        }
    }
    list_free(l);
}

/* ---- The line editor ---- */

static void press(struct prompt *p, const char *keys)
{
    char copy[256], *rest = copy;
    snprintf(copy, sizeof copy, "%s", keys);
    for (char *name; (name = strsep(&rest, " "));) {
        struct key k;
        assert_int_equal(key_parse(name, &k, NULL), 0);
        prompt_key(p, k);
    }
}

static void editing(void **state)
{
    (void)state;
    struct prompt *p = prompt_new();
    press(p, "a b c Left Left X");
    assert_string_equal(prompt_text(p), "aXbc");
    press(p, "Home Del End Bksp");
    assert_string_equal(prompt_text(p), "Xb");
    prompt_set(p, "one two  three");
    press(p, "^W");
    assert_string_equal(prompt_text(p), "one two  ");
    press(p, "^W ^A z ^K");
    assert_string_equal(prompt_text(p), "z");
    /* Whole characters: wide, and with a combining mark. */
    prompt_set(p, "a\xe6\x97\xa5"
                  "e\xcc\x81");
    press(p, "Left Left x");
    assert_string_equal(prompt_text(p), "ax\xe6\x97\xa5"
                                        "e\xcc\x81");
    press(p, "End Bksp");
    assert_string_equal(prompt_text(p), "ax\xe6\x97\xa5");
    press(p, "Bksp ^U");
    assert_string_equal(prompt_text(p), "");
    assert_int_equal(prompt_key(p, (struct key){K_BACKSPACE, 0}), PROMPT_CANCELLED);
    assert_int_equal(prompt_key(p, (struct key){K_ENTER, 0}), PROMPT_DONE);
    assert_int_equal(prompt_key(p, (struct key){'c', K_CTRL}), PROMPT_CANCELLED);
    assert_int_equal(prompt_key(p, (struct key){K_F1, 0}), PROMPT_IGNORED);
    for (int i = 0; i < 3000; i++)
        prompt_key(p, (struct key){0x65e5, 0});
    assert_true(strlen(prompt_text(p)) < PROMPT_MAX);
    prompt_free(p);
}

/* A column that grows takes a quarter of what is left, as far as it may; the one that stretches has the rest. */
static void growing_column(void **state)
{
    (void)state;
    static const struct list_column two[] = {{.title = "A", .cols = 6, .most = 24}, {.title = "B", .cols = 20, .stretch = true}};
    static const struct {
        int cols, a, b; /* the gutter has 2, between columns stands a blank */
    } cases[] = {{20, 6, 11}, {29, 6, 20}, {32, 6, 23}, {33, 7, 23}, {49, 11, 35}, {101, 24, 74}, {129, 24, 102}};
    struct list_layout layout;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        list_layout_make(&layout, two, 2, 0, cases[i].cols);
        assert_int_equal(layout.n, 2);
        assert_int_equal(layout.place[0].cols, cases[i].a);
        assert_int_equal(layout.place[1].col, 2 + cases[i].a + 1);
        assert_int_equal(layout.place[1].cols, cases[i].b);
    }
    list_layout_make(&layout, two, 2, 1, 49);
    assert_int_equal(layout.place[0].cols, 47);
}

static void history(void **state)
{
    (void)state;
    struct prompt *p = prompt_new();
    prompt_remember(p, "one");
    prompt_remember(p, "two");
    prompt_remember(p, "one");
    prompt_set(p, "dra");
    press(p, "Up");
    assert_string_equal(prompt_text(p), "one");
    press(p, "Up");
    assert_string_equal(prompt_text(p), "two");
    press(p, "Up Down Down");
    assert_string_equal(prompt_text(p), "dra");
    press(p, "Down f t");
    assert_string_equal(prompt_text(p), "draft");
    prompt_free(p);
}

static void prompt_on_screen(void **state)
{
    (void)state;
    struct prompt *p = prompt_new();
    struct surface *s = surface_new(1, 12);
    int row, col;
    prompt_set(p, "0123456789abcdef");
    prompt_draw(p, s, 0, 0, 12, ":", (struct style){0}, glyphs_of(GLYPHS_ASCII));
    char *text = golden_row(s, 0);
    assert_string_equal(text, ":~789abcdef");
    free(text);
    surface_get_cursor(s, &row, &col);
    assert_int_equal(col, 11);
    press(p, "Home");
    prompt_draw(p, s, 0, 0, 12, ":", (struct style){0}, glyphs_of(GLYPHS_ASCII));
    surface_get_cursor(s, &row, &col);
    assert_int_equal(col, 1);
    /* A wide character at the edge: the cursor stays inside. */
    prompt_set(p, "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5");
    prompt_draw(p, s, 0, 0, 12, ":", (struct style){0}, glyphs_of(GLYPHS_ASCII));
    surface_get_cursor(s, &row, &col);
    assert_true(col > 0 && col < 12);
    for (int cols = 0; cols < 4; cols++)
        prompt_draw(p, s, 0, 0, cols, ":", (struct style){0}, glyphs_of(GLYPHS_ASCII));
    surface_free(s);
    prompt_free(p);
}

/* 40 columns: label 9, at the right 13, and a blank before that: 17 for filter and note. */
static void filter_row(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *note, *right, *row;
    } cases[] = {
        {"", "", "7 of 318 rows", " Filter: none              7 of 318 rows"},
        {"abc", "  on", "7 of 318 rows", " Filter: abc  on           7 of 318 rows"},
        {"0123456789abcdefg", "", "7 of 318 rows", " Filter: 0123456789abcdefg 7 of 318 rows"},
        {"0123456789abcdefgh", "", "7 of 318 rows", " Filter: ~23456789abcdefgh 7 of 318 rows"},
        {"0123456789abcdefgh", "  on", "7 of 318 rows", " Filter: ~6789abcdefgh  on 7 of 318 rows"},
        {"e\xcc\x81\xe6\x97\xa5" "0123456789abcdef", "", "7 of 318 rows", " Filter: ~0123456789abcdef 7 of 318 rows"},
        {"0123456789abcdefghijklmnopqrstuvwxyz", "", "15 of 123,456,789 rows",
         " Filter: ~tuvwxyz 15 of 123,456,789 rows"},
        {"0123456789abcdefghijklmnopqrstuvwxyz", "", "115 of 123,456,789 rows",
         " Filter: ~789abcdefghijklmnopqrstuvwxyz"},
    };
    struct surface *s = surface_new(1, 40);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        surface_clear(s);
        bar_draw_filter(s, (struct rect){0, 0, 1, 40}, cases[i].filter, cases[i].note, cases[i].right,
                        glyphs_of(GLYPHS_ASCII));
        char *text = golden_row(s, 0);
        assert_string_equal(text, cases[i].row);
        free(text);
    }
    surface_free(s);
}

/* ---- Settings ---- */

static void setting_values(void **state)
{
    (void)state;
    struct settings *s = settings_new();
    struct err e;
    assert_string_equal(settings_text(s, SET_THEME), "default");
    assert_int_equal(settings_number(s, SET_REFRESH), 1000000000u);
    assert_int_equal(settings_set(s, SET_REFRESH, "500ms", &e), 0);
    assert_int_equal(settings_number(s, SET_REFRESH), 500000000u);
    assert_int_equal(settings_set(s, SET_REFRESH, "1us", &e), MTUI_E_INVAL);
    assert_string_equal(e.text, "refresh is from 100ms to 60s");
    assert_int_equal(settings_set(s, SET_GLYPHS, "utf", &e), MTUI_E_INVAL);
    assert_string_equal(e.text, "glyphs is one of auto unicode vga ascii, not 'utf'");
    assert_int_equal(settings_set(s, SET_ESCDELAY, "0", &e), MTUI_E_INVAL);
    assert_true(settings_bool(s, SET_MOUSE));
    assert_int_equal(settings_set(s, SET_MOUSE, NULL, &e), 0);
    assert_false(settings_bool(s, SET_MOUSE));
    assert_int_equal(settings_set(s, SET_MOUSE, "yes", &e), MTUI_E_INVAL);
    assert_string_equal(settings_text(s, SET_REFRESH), "500ms");
    settings_free(s);
}

/* Writes text to a config file, reads it; the number of mistakes in it. */
static int read_config(struct settings *s, struct keymap *km, const char *text)
{
    struct err e;
    char path[] = "/tmp/mtui-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    int rc = settings_read_config(s, km, path, &e);
    unlink(path);
    return rc;
}

static void config_files(void **state)
{
    (void)state;
    struct settings *s = settings_new();
    struct keymap *km = keymap_new();
    enum context timeline[] = {CTX_TIMELINE};
    assert_int_equal(read_config(s, km,
                                 "# mine\nset refresh 2s\ntheme mono\nset threads\n"
                                 "bind timeline z zoom-range\nbind timeline X set theme mono\n"
                                 "unbind everywhere F10\nbind lists '#' mark\n"),
                     0);
    assert_string_equal(settings_text(s, SET_THEME), "mono");
    assert_true(settings_bool(s, SET_THREADS));
    struct key x = {'X', 0}, f10 = {K_F1 + 9, 0};
    const struct binding *b = keymap_find(km, timeline, 1, false, x);
    assert_int_equal(b->act, ACT_SET);
    assert_string_equal(b->args, "theme mono");
    assert_null(keymap_find(km, timeline, 1, false, f10));
    keymap_free(km);
    settings_free(s);
}

/* Each line that is wrong is told, with what is right, and costs nothing but itself. */
static void config_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *line, *want;
    } wrong[] = {
        {"set nothing 1", "no setting is called 'nothing'; :set lists them"},
        {"set color pink", "color is one of auto mono 16 256 rgb, not 'pink'"},
        {"bind nowhere z up", "no context is called 'nowhere': everywhere"},
        {"bind lists Foo up", "'Foo' is no key:"},
        {"bind lists z fly", "no command is called 'fly'; ? lists them"},
        {"bind lists z", "bind takes a context, a key and a command"},
        {"unbind lists Z", "Z is not bound in lists"},
        {"quit", "'quit' has no place here: set, bind, unbind or theme"},
        {"set refresh", "set refresh needs a value, as '2s'"},
        {"theme", "theme takes a name"},
        {"theme no-such", "no theme 'no-such': not one of mtui's own"},
        {"set theme no-such", "no theme 'no-such': not one of mtui's own"},
        {"set 'x", "a quote is not closed"},
    };
    enum { N = sizeof wrong / sizeof *wrong };
    char text[2000] = "set refresh 2s\ntheme mono\n";
    struct settings *s = settings_new();
    struct keymap *km = keymap_new();
    for (size_t i = 0; i < N; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s\n", wrong[i].line);
    snprintf(text + strlen(text), sizeof text - strlen(text), "set threads on\nbind timeline X zoom-range");
    assert_int_equal(read_config(s, km, text), N);
    assert_int_equal(settings_mistake_count(s), N);
    for (size_t i = 0; i < N; i++) {
        const struct settings_mistake *m = settings_mistake(s, i);
        assert_int_equal(m->line, 3 + i);
        if (strncmp(m->text, wrong[i].want, strlen(wrong[i].want)) != 0)
            fail_msg("%s gave %s", wrong[i].line, m->text);
    }
    /* Those before, between and behind them hold. */
    assert_string_equal(settings_text(s, SET_REFRESH), "2s");
    assert_string_equal(settings_text(s, SET_THEME), "mono");
    assert_true(settings_bool(s, SET_THREADS));
    enum context timeline[] = {CTX_TIMELINE};
    assert_int_equal(keymap_find(km, timeline, 1, false, (struct key){'X', 0})->act, ACT_ZOOM_RANGE);
    keymap_free(km);
    settings_free(s);
    struct err e;
    s = settings_new();
    km = keymap_new();
    assert_true(settings_read_config(s, km, "/tmp", &e) < 0);
    assert_int_equal(settings_mistake_count(s), 0);
    assert_int_equal(settings_read_config(s, km, "/nonexistent/config", NULL), 0);
    keymap_free(km);
    settings_free(s);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_and_drops_columns),
        cmocka_unit_test(selection_follows_identity),
        cmocka_unit_test(searching),
        cmocka_unit_test(sorting_and_mouse),
        cmocka_unit_test(big_and_tiny),
        cmocka_unit_test(editing),
        cmocka_unit_test(growing_column),
        cmocka_unit_test(history),
        cmocka_unit_test(prompt_on_screen),
        cmocka_unit_test(filter_row),
        cmocka_unit_test(setting_values),
        cmocka_unit_test(config_files),
        cmocka_unit_test(config_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

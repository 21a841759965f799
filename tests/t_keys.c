/* tui/term/keys, tui/ui/actions: names of keys, and the properties that the one table of actions must have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <locale.h>
#include <string.h>

#include "core/base/conf.h"
#include "tui/ui/actions.h"
#include "tui/term/keys.h"

static struct key parse(const char *name)
{
    struct key k = {0};
    struct err e;
    if (key_parse(name, &k, &e) != 0)
        fail_msg("%s: %s", name, e.text);
    return k;
}

static void names_and_back(void **state)
{
    (void)state;
    const struct {
        const char *name;
        struct key key;
    } cases[] = {
        {"a", {'a', 0}},          {"N", {'N', 0}},          {"^N", {'n', K_CTRL}},
        {"^", {'^', 0}},          {"^^", {'^', K_CTRL}},    {"S-Tab", {K_TAB, K_SHIFT}},
        {"Alt-1", {'1', K_ALT}},  {"PgUp", {K_PGUP, 0}},    {"Space", {' ', 0}},
        {"F12", {K_F12, 0}},      {"Bksp", {K_BACKSPACE, 0}}, {"-", {'-', 0}},
        {"Alt--", {'-', K_ALT}},  {"\xc3\xa9", {0xe9, 0}},  {"S-^Left", {K_LEFT, K_SHIFT | K_CTRL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[KEY_NAME_MAX];
        struct key k = parse(cases[i].name);
        assert_int_equal(k.code, cases[i].key.code);
        assert_int_equal(k.mods, cases[i].key.mods);
        assert_string_equal(key_format(k, out), cases[i].name);
    }
    const struct {
        const char *other, *canonical;
    } same[] = {{"C-n", "^N"},  {"ctrl-N", "^N"}, {"M-x", "Alt-x"}, {"enter", "Enter"},
                {"^M", "Enter"}, {"^I", "Tab"},   {"^[", "Esc"},    {"^H", "Bksp"},
                {"S-a", "A"},   {"delete", "Del"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char out[KEY_NAME_MAX];
        assert_string_equal(key_format(parse(same[i].other), out), same[i].canonical);
    }
    const char *wrong[] = {"", "F13", "F0", "F1x", "Upp", "S-", "Alt-", "\x1b", "\xff", "ab"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct key k = {'q', 0};
        assert_int_equal(key_parse(wrong[i], &k, NULL), MTUI_E_INVAL);
        assert_int_equal(k.code, 'q');
    }
}

static void text_keys(void **state)
{
    (void)state;
    assert_true(key_is_text(parse("a")));
    assert_true(key_is_text(parse("Space")));
    assert_true(key_is_text(parse("\xe6\x97\xa5")));
    assert_false(key_is_text(parse("Alt-1")));
    assert_false(key_is_text(parse("^N")));
    assert_false(key_is_text(parse("Enter")));
}

/* The contexts that are active together on each screen. */
static const struct {
    enum context ctx[4];
    size_t n;
} screens[] = {
    {{CTX_PROCESSES, CTX_LIST, CTX_MOVE}, 3}, {{CTX_SYMBOLS}, 1},
    {{CTX_RECORD, CTX_MOVE}, 2},              {{CTX_TIMELINE}, 1},
    {{CTX_FUNCTIONS, CTX_LIST, CTX_MOVE}, 3}, {{CTX_EVENTS, CTX_LIST, CTX_MOVE}, 3},
    {{CTX_CALLS, CTX_LIST, CTX_MOVE}, 3},     {{CTX_COMPARE, CTX_LIST, CTX_MOVE}, 3},
};

static void no_key_twice(void **state)
{
    (void)state;
    struct keymap *km = keymap_new();
    for (size_t i = 0; i < keymap_count(km); i++) {
        for (size_t j = i + 1; j < keymap_count(km); j++) {
            const struct binding *a = keymap_at(km, i), *b = keymap_at(km, j);
            char name[KEY_NAME_MAX];
            if (!key_equal(a->key, b->key))
                continue;
            if (a->ctx == b->ctx)
                fail_msg("%s twice in %s", key_format(a->key, name), context_name(a->ctx));
            bool global = a->ctx == CTX_GLOBAL || b->ctx == CTX_GLOBAL;
            if (global && a->ctx != CTX_SYMBOLS && b->ctx != CTX_SYMBOLS)
                fail_msg("%s in %s hides that of everywhere", key_format(a->key, name),
                         context_name(a->ctx == CTX_GLOBAL ? b->ctx : a->ctx));
        }
    }
    keymap_free(km);
}

static void no_key_twice_on_a_screen(void **state)
{
    (void)state;
    struct keymap *km = keymap_new();
    for (size_t s = 0; s < sizeof screens / sizeof *screens; s++) {
        for (size_t i = 0; i < keymap_count(km); i++) {
            const struct binding *b = keymap_at(km, i);
            const struct binding *found =
                keymap_find(km, screens[s].ctx, screens[s].n, false, b->key);
            for (size_t c = 0; c < screens[s].n; c++)
                if (screens[s].ctx[c] == b->ctx)
                    assert_ptr_equal(found, b);
        }
    }
    keymap_free(km);
}

/* The lines of the fixture hold, and nothing of the table is bound to a key that its screen cannot
 * reach. `lists` and `move` hold on the screens named after them too. */
static int check_line(void *arg, const struct conf_words *w, int line, struct err *err)
{
    const struct keymap *km = arg;
    enum context ctx = w->n == 3 ? context_find(w->word[0]) : CTX_COUNT;
    if (ctx == CTX_COUNT)
        return err_set(err, MTUI_E_FORMAT, "bad line %d", line);
    enum context stack[3] = {ctx, CTX_LIST, CTX_MOVE};
    bool list = ctx == CTX_PROCESSES || ctx == CTX_FUNCTIONS || ctx == CTX_EVENTS;
    const struct binding *b = keymap_find(km, stack, list ? 3 : 1, false, parse(w->word[1]));
    if (!b || b->act != action_find(w->word[2]))
        return err_set(err, MTUI_E_INVAL, "%s in %s is %s, not %s", w->word[1], w->word[0],
                       b ? action_info(b->act)->command : "nothing", w->word[2]);
    return 0;
}

static void agreed_keymap(void **state)
{
    (void)state;
    struct keymap *km = keymap_new();
    struct err e;
    if (conf_read_file("tests/fixtures/keymap.txt", check_line, km, &e) != 0)
        fail_msg("%s", e.text);
    keymap_free(km);
}

static void commands_are_well_formed(void **state)
{
    (void)state;
    for (size_t i = ACT_NONE + 1; i < ACT_COUNT; i++) {
        const struct action_info *a = action_info((enum action)i);
        assert_true(a->command[0] && a->help[0]);
        for (const char *p = a->command; *p; p++)
            assert_true(islower((unsigned char)*p) || *p == '-');
        assert_int_equal(action_find(a->command), i); /* so it is unique */
        assert_true(strlen(a->help) <= 31); /* fits half of a help screen of 100 columns */
    }
    assert_int_equal(action_find("no-such"), ACT_NONE);
    assert_int_equal(action_find(""), ACT_NONE);
}

static void typing_hides_text_keys(void **state)
{
    (void)state;
    struct keymap *km = keymap_new();
    enum context ctx[] = {CTX_SYMBOLS};
    assert_null(keymap_find(km, ctx, 1, true, parse("q")));
    assert_null(keymap_find(km, ctx, 1, true, parse("1")));
    assert_int_equal(keymap_find(km, ctx, 1, true, parse("Alt-1"))->act, ACT_SCREEN_PROCESSES);
    assert_int_equal(keymap_find(km, ctx, 1, true, parse("F1"))->act, ACT_HELP);
    assert_int_equal(keymap_find(km, ctx, 1, true, parse("Esc"))->act, ACT_BACK);
    keymap_free(km);
}

static void rebinding(void **state)
{
    (void)state;
    struct keymap *km = keymap_new();
    enum context ctx[] = {CTX_TIMELINE};
    char keys[64];
    keymap_bind(km, CTX_TIMELINE, parse("z"), ACT_SET, "details on");
    const struct binding *b = keymap_find(km, ctx, 1, false, parse("z"));
    assert_int_equal(b->act, ACT_SET);
    assert_string_equal(b->args, "details on");
    keymap_bind(km, CTX_TIMELINE, parse("z"), ACT_ZOOM_FIT, NULL);
    assert_string_equal(keymap_keys(km, CTX_TIMELINE, ACT_ZOOM_FIT, keys, sizeof keys), "Enter f z");
    assert_true(keymap_unbind(km, CTX_TIMELINE, parse("z")));
    assert_false(keymap_unbind(km, CTX_TIMELINE, parse("z")));
    assert_string_equal(keymap_keys(km, CTX_TIMELINE, ACT_ZOOM_FIT, keys, sizeof keys), "Enter f");
    keymap_free(km);
}

static void key_bars(void **state)
{
    (void)state;
    struct keymap *km = keymap_new();
    struct bar_entry e;
    enum context timeline[] = {CTX_TIMELINE};
    assert_true(keymap_bar(km, timeline, 1, 0, &e));
    assert_string_equal(e.keys, "arrows");
    assert_string_equal(e.label, "select");
    size_t n = 0;
    while (keymap_bar(km, timeline, 1, n, &e))
        n++;
    assert_int_equal(n, 13);
    enum context list[] = {CTX_PROCESSES, CTX_LIST, CTX_MOVE};
    assert_true(keymap_bar(km, list, 3, 4, &e));
    assert_string_equal(e.keys, "< >");
    assert_int_equal(e.act, ACT_SORT_PREV);
    keymap_unbind(km, CTX_LIST, parse("<"));
    keymap_unbind(km, CTX_LIST, parse(">"));
    assert_true(keymap_bar(km, list, 3, 4, &e));
    assert_string_equal(e.label, "invert");
    keymap_free(km);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_back),
        cmocka_unit_test(text_keys),
        cmocka_unit_test(no_key_twice),
        cmocka_unit_test(no_key_twice_on_a_screen),
        cmocka_unit_test(agreed_keymap),
        cmocka_unit_test(commands_are_well_formed),
        cmocka_unit_test(typing_hides_text_keys),
        cmocka_unit_test(rebinding),
        cmocka_unit_test(key_bars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

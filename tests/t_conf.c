/* core/base/conf: words, quotes, comments, assignments, and errors with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/base/conf.h"

/* The words joined by '|', "=" in front for an assignment. */
static const char *split(const char *line)
{
    static char out[CONF_LINE_MAX];
    struct conf_words w;
    struct err e;
    if (conf_split(line, &w, &e) != 0) {
        snprintf(out, sizeof out, "error: %s", e.text);
        return out;
    }
    int n = snprintf(out, sizeof out, "%s", w.assignment ? "=" : "");
    for (size_t i = 0; i < w.n; i++)
        n += snprintf(out + n, sizeof out - (size_t)n, "%s%s", i ? "|" : "", w.word[i]);
    return out;
}

static void words(void **state)
{
    (void)state;
    assert_string_equal(split(""), "");
    assert_string_equal(split("  # all comment"), "");
    assert_string_equal(split("#nothing"), "");
    assert_string_equal(split("set  theme\tlight"), "set|theme|light");
    assert_string_equal(split("a b # c"), "a|b");
    assert_string_equal(split("a b #"), "a|b");
    assert_string_equal(split("bar = #ff8000 default"), "=bar|#ff8000|default");
    assert_string_equal(split("bar=#ff8000"), "bar=#ff8000");
    assert_string_equal(split("bind timeline '#' search-function"), "bind|timeline|#|search-function");
    assert_string_equal(split("a \"b c\"'d e'f"), "a|b cd ef");
    assert_string_equal(split("a \"\\\"\\\\\\n\\x41\" 'x\\y'"), "a|\"\\\nA|x\\y");
    assert_string_equal(split("bind everywhere \\\\ filter"), "bind|everywhere|\\|filter");
    assert_string_equal(split("x = = y"), "=x|=|y");
    assert_string_equal(split("x '=' y"), "x|=|y");
    assert_string_equal(split("a ''"), "a|");
    assert_string_equal(split("a \\"), "a|\\");
    assert_string_equal(split("a 'b"), "error: a quote is not closed");
    assert_string_equal(split("a \"b\\"), "error: a quote is not closed");
}

static void limits(void **state)
{
    (void)state;
    char line[CONF_LINE_MAX + 10];
    memset(line, 'a', sizeof line);
    line[CONF_LINE_MAX - 1] = '\0';
    assert_int_equal(strlen(split(line)), CONF_LINE_MAX - 1);
    line[CONF_LINE_MAX - 1] = 'a';
    line[CONF_LINE_MAX] = '\0';
    assert_non_null(strstr(split(line), "error: the line is longer"));
    for (size_t i = 0; i < 130; i++)
        line[i] = i % 2 ? ' ' : 'x';
    line[130] = '\0';
    assert_non_null(strstr(split(line), "error: more than 64 words"));
}

static void tails(void **state)
{
    (void)state;
    struct conf_words w;
    assert_int_equal(conf_split("search  a 'b  c' #x", &w, NULL), 0);
    assert_int_equal(w.n, 4);
    assert_string_equal(w.tail[1], "a 'b  c' #x");
}

static int collect(void *arg, const struct conf_words *w, int line, struct err *err)
{
    if (strcmp(w->word[0], "bad") == 0)
        return err_set(err, MTUI_E_INVAL, "no such thing");
    char *out = arg;
    snprintf(out + strlen(out), 100 - strlen(out), "%d:%s ", line, w->word[0]);
    return 0;
}

static void files(void **state)
{
    (void)state;
    char out[100] = "";
    struct err e;
    const char text[] = "one\n\n# c\r\ntwo 2\r\nthree";
    assert_int_equal(conf_read_text("t", text, sizeof text - 1, collect, out, &e), 0);
    assert_string_equal(out, "1:one 4:two 5:three ");
    assert_int_equal(conf_read_text("dir/t.conf", "a\nbad\n", 6, collect, out, &e), MTUI_E_INVAL);
    assert_string_equal(e.text, "dir/t.conf:2: no such thing");
    assert_int_equal(conf_read_text("t", "a\n'x\n", 5, collect, out, &e), MTUI_E_FORMAT);
    assert_string_equal(e.text, "t:2: a quote is not closed");
    assert_int_equal(conf_read_text("t", "a\0b", 3, collect, out, &e), MTUI_E_FORMAT);
    assert_int_equal(conf_read_file("tests/no-such-file", collect, out, &e), MTUI_E_NOENT);
    assert_int_equal(conf_read_file("tests", collect, out, &e), MTUI_E_FORMAT);
    assert_int_equal(conf_read_file("/dev/zero", collect, out, &e), MTUI_E_LIMIT);
}

static void quoting_round_trip(void **state)
{
    (void)state;
    const char *texts[] = {"plain", "", "a b", "#x", "=", "it's", "\"q\"", "back\\slash", "a\nb\tc\x01",
                           "\xe6\x97\xa5", "a=b", "x#y"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char quoted[64], line[80];
        struct conf_words w;
        snprintf(line, sizeof line, "k = %s", conf_quote(quoted, sizeof quoted, texts[i]));
        assert_int_equal(conf_split(line, &w, NULL), 0);
        assert_true(w.assignment);
        assert_int_equal(w.n, 2);
        assert_string_equal(w.word[1], texts[i]);
    }
    char tiny[6];
    assert_string_equal(conf_quote(tiny, sizeof tiny, "a b c d"), "\"a b\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words), cmocka_unit_test(limits), cmocka_unit_test(tails),
        cmocka_unit_test(files), cmocka_unit_test(quoting_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

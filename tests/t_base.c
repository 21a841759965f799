/* core/base/fmt, core/base/utf8, core/base/err, core/base/vec, core/base/loop: the foundations everything stands on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/fmt.h"
#include "core/base/loop.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"

static void durations(void **state)
{
    (void)state;
    char b[FMT_MAX];
    assert_string_equal(fmt_duration(b, 0), "0 ns");
    assert_string_equal(fmt_duration(b, 999), "999 ns");
    assert_string_equal(fmt_duration(b, 1200), "1.20 us");
    assert_string_equal(fmt_duration(b, 54520), "54.5 us");
    assert_string_equal(fmt_duration(b, 999499), "999 us");
    assert_string_equal(fmt_duration(b, 999500), "1.00 ms");
    assert_string_equal(fmt_duration(b, 9120000), "9.12 ms");
    assert_string_equal(fmt_duration(b, 125000000000u), "125 s");
    uint64_t ns = 0;
    assert_int_equal(fmt_parse_duration("1.5ms", &ns, NULL), 0);
    assert_int_equal(ns, 1500000);
    assert_int_equal(fmt_parse_duration("2m", &ns, NULL), 0);
    assert_int_equal(ns, 120000000000u);
    const char *wrong[] = {"", "5", "ms", "-1s", "1 s", "1msx", ".5s", "1e3s"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(fmt_parse_duration(wrong[i], &ns, NULL), MTUI_E_INVAL);
}

static void axis_times(void **state)
{
    (void)state;
    char b[FMT_MAX];
    assert_string_equal(fmt_time(b, 1237960, 1000), "1.238 ms");
    assert_string_equal(fmt_time(b, 1237960, 10), "1.23796 ms");
    assert_string_equal(fmt_time(b, -1500, 100), "-1.5 us");
    assert_string_equal(fmt_time(b, 9223372036854775807, 1), "9223372036.854775807 s");
    assert_string_equal(fmt_time(b, 0, 1000000), "0 ms");
}

/* Rounded to a tenth, not cut; 100.0 is all of it. */
static void shares(void **state)
{
    (void)state;
    static const struct {
        uint64_t part, whole;
        const char *text;
    } cases[] = {
        {30, 70, "42.9"},     {230, 83170, "0.3"},       {9966, 100000, "10.0"},
        {1, 2000, "0.1"},     {1, 2001, "0.0"},          {0, 5, "0.0"},
        {0, 0, "0.0"},        {7, 7, "100.0"},           {9994, 10000, "99.9"},
        {9999, 10000, "99.9"}, {8, 7, "100.0"},          {UINT64_MAX / 3, UINT64_MAX, "33.3"},
        {UINT64_MAX - 1, UINT64_MAX, "99.9"},            {UINT64_MAX, UINT64_MAX, "100.0"},
    };
    char b[FMT_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(fmt_percent(b, cases[i].part, cases[i].whole), cases[i].text);
    assert_int_equal(fmt_permille(30, 70), 429);
}

static void sizes_and_counts(void **state)
{
    (void)state;
    char b[FMT_MAX];
    assert_string_equal(fmt_size(b, 0), "0");
    assert_string_equal(fmt_size(b, 812 * 1024), "812K");
    assert_string_equal(fmt_size(b, 16u << 20), "16.0M");
    assert_string_equal(fmt_size(b, 212ull << 30), "212G");
    assert_string_equal(fmt_count(b, 1204331), "1,204,331");
    assert_string_equal(fmt_count(b, 999), "999");
    assert_string_equal(fmt_counted(b, 0, "gap", "gaps"), "0 gaps");
    assert_string_equal(fmt_counted(b, 1, "gap", "gaps"), "1 gap");
    assert_string_equal(fmt_counted(b, UINT64_MAX, "twenty bytes of word", "twenty bytes of word"),
                        "18,446,744,073,709,551,615 twenty bytes of word");
    assert_string_equal(fmt_count_short(b, 12400), "12.4k");
    assert_string_equal(fmt_age(b, 250), "00:04:10");
    assert_string_equal(fmt_age(b, 11 * 86400 + 4 * 3600), "11d04h");
    uint64_t n = 0;
    assert_int_equal(fmt_parse_size("16M", &n, NULL), 0);
    assert_int_equal(n, 16u << 20);
    assert_int_equal(fmt_parse_size("64KiB", &n, NULL), 0);
    assert_int_equal(n, 65536);
    assert_int_equal(fmt_parse_size("64X", &n, NULL), MTUI_E_INVAL);
    assert_int_equal(fmt_parse_size("", &n, NULL), MTUI_E_INVAL);
    assert_int_equal(fmt_parse_count("12.4k", &n, NULL), 0);
    assert_int_equal(n, 12400);
    assert_int_equal(fmt_parse_count("3M", &n, NULL), 0);
    assert_int_equal(n, 3000000);
    assert_int_equal(fmt_parse_count("1200", &n, NULL), 0);
    assert_int_equal(n, 1200);
    assert_int_equal(fmt_parse_count("3m", &n, NULL), MTUI_E_INVAL);
    assert_int_equal(fmt_parse_count("9999999999999G", &n, NULL), MTUI_E_INVAL);
    assert_int_equal(fmt_parse_u64("18446744073709551616", 0, UINT64_MAX, &n, NULL), MTUI_E_INVAL);
    assert_int_equal(fmt_parse_u64("12", 0, 11, &n, NULL), MTUI_E_INVAL);
}

static void text_is_harmless(void **state)
{
    (void)state;
    char b[64];
    const char evil[] = "a\x1b[2J\tb\nc\\\xff\xc2\x9b\xe6\x97\xa5";
    utf8_escape(b, sizeof b, evil, sizeof evil - 1);
    assert_string_equal(b, "a\\x1b[2J\\tb\\nc\\\\\\xff\\xc2\\x9b\xe6\x97\xa5");
    assert_int_equal(utf8_escape(b, 4, "\xe6\x97\xa5\xe6\x97\xa5", 6), 3);
    assert_int_equal(utf8_escape(b, 3, "\x1b", 1), 0);
    /* As valid UTF-8, and as JSON: U+FFFD for the invalid byte; U+009B and a control of direction as escapes. */
    utf8_valid(b, sizeof b, evil, sizeof evil - 1);
    assert_string_equal(b, "a\x1b[2J\tb\nc\\\xef\xbf\xbd\xc2\x9b\xe6\x97\xa5");
    assert_int_equal(utf8_valid(b, 4, "\xff\xff", 2), 3);
    assert_int_equal(utf8_valid(b, 3, "\xff", 1), 0);
    utf8_json(b, sizeof b, evil, sizeof evil - 1);
    assert_string_equal(b, "a\\u001b[2J\\tb\\nc\\\\\xef\xbf\xbd\\u009b\xe6\x97\xa5");
    utf8_json(b, sizeof b, "\"/\r\x7f\xe2\x80\xae\xf0\x9f\x98\x80", 11);
    assert_string_equal(b, "\\\"/\\r\\u007f\\u202e\xf0\x9f\x98\x80");
    assert_int_equal(utf8_json(b, 6, "\x01", 1), 0);
    assert_int_equal(utf8_json(b, 7, "\x01", 1), 6);
    /* For people: a backslash is one, and twice is as once. */
    for (int i = 0; i < 2; i++) {
        utf8_readable(b, sizeof b, i ? b : evil, i ? strlen(b) : sizeof evil - 1);
        assert_string_equal(b, "a\\x1b[2J\\tb\\nc\\\\xff\\xc2\\x9b\xe6\x97\xa5");
    }
    uint32_t cp;
    assert_int_equal(utf8_decode("\xc0\xaf", 2, &cp), 1); /* overlong */
    assert_int_equal(cp, UTF8_INVALID);
    assert_int_equal(utf8_decode("\xed\xa0\x80", 3, &cp), 1); /* surrogate */
    assert_int_equal(utf8_decode("\xe6\x97", 2, &cp), 1);     /* cut */
    assert_int_equal(cp, UTF8_INVALID);
    assert_int_equal(utf8_decode("\xf0\x9f\x98\x80", 4, &cp), 4);
    assert_int_equal(cp, 0x1f600);
}

static void widths(void **state)
{
    (void)state;
    size_t cols;
    const char s[] = "a\xe6\x97\xa5"
                     "e\xcc\x81z"; /* a, wide, e + combining acute, z */
    assert_int_equal(utf8_cols(s, sizeof s - 1), 5);
    assert_int_equal(utf8_cut(s, sizeof s - 1, 2, &cols), 1);
    assert_int_equal(cols, 1);
    assert_int_equal(utf8_cut(s, sizeof s - 1, 4, &cols), 7); /* keeps the accent with its e */
    assert_int_equal(cols, 4);
}

static void errors_carry_a_sentence(void **state)
{
    (void)state;
    struct err e;
    assert_int_equal(err_set(&e, MTUI_E_FORMAT, "bad \x1b %d", 3), MTUI_E_FORMAT);
    assert_string_equal(e.text, "bad \\x1b 3");
    assert_int_equal(err_errno(&e, EACCES, "open %s", "/x"), MTUI_E_PERM);
    assert_string_equal(e.text, "open /x: Permission denied");
    assert_int_equal(err_prefix(&e, "f"), MTUI_E_PERM);
    assert_string_equal(e.text, "f: open /x: Permission denied");
    assert_int_equal(err_set(NULL, MTUI_E_IO, "x"), MTUI_E_IO);
}

static void vectors(void **state)
{
    (void)state;
    VEC(int) v = {0};
    for (int i = 0; i < 100; i++)
        vec_push(&v, i);
    vec_remove(&v, 50);
    assert_int_equal(v.len, 99);
    assert_int_equal(v.data[50], 51);
    assert_true(vec_try_push(&v, 7));
    assert_int_equal(v.data[99], 7);
    vec_free(&v);
}

struct fake {
    uint64_t now;
    struct loop *l;
    int fired, order[4], id;
};

static uint64_t fake_clock(void *arg)
{
    return ((struct fake *)arg)->now;
}

static void fire_a(void *arg)
{
    struct fake *f = arg;
    f->order[f->fired++] = 1;
}

static void fire_b(void *arg)
{
    struct fake *f = arg;
    f->order[f->fired++] = 2;
    loop_add_timer(f->l, 0, fire_a, f); /* due at once: the next round's, not this one's */
}

static void timers_fire_in_order(void **state)
{
    (void)state;
    struct fake f = {.now = 100};
    f.l = loop_new_with_clock(fake_clock, &f);
    loop_add_timer(f.l, 200, fire_a, &f);
    loop_add_timer(f.l, 150, fire_b, &f);
    int gone = loop_add_timer(f.l, 120, fire_a, &f);
    loop_remove(f.l, gone);
    assert_int_equal(loop_run_once(f.l, 0), 0);
    f.now = 300;
    assert_int_equal(loop_run_once(f.l, 0), 2);
    assert_int_equal(f.order[0], 2);
    assert_int_equal(f.order[1], 1);
    assert_int_equal(loop_run_once(f.l, 0), 1);
    loop_free(f.l);
}

static void remove_self(void *arg, int fd, short revents)
{
    struct fake *f = arg;
    char c;
    assert_true(revents & POLLIN);
    assert_int_equal(read(fd, &c, 1), 1);
    f->fired++;
    loop_remove(f->l, f->id);
}

static void *poster(void *arg)
{
    struct fake *f = arg;
    loop_post(f->l, fire_a, f);
    return NULL;
}

static void descriptors_and_posts(void **state)
{
    (void)state;
    struct fake f = {0};
    f.l = loop_new();
    int p[2];
    assert_int_equal(pipe(p), 0);
    f.id = loop_add_fd(f.l, p[0], POLLIN, remove_self, &f);
    assert_int_equal(write(p[1], "xy", 2), 2);
    assert_int_equal(loop_run_once(f.l, -1), 1);
    assert_int_equal(loop_run_once(f.l, 0), 0); /* removed although a byte is left */
    pthread_t t;
    pthread_create(&t, NULL, poster, &f);
    assert_int_equal(loop_run_once(f.l, -1), 1);
    pthread_join(t, NULL);
    assert_int_equal(f.fired, 2);
    close(p[0]);
    close(p[1]);
    loop_free(f.l);
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations),
        cmocka_unit_test(axis_times),
        cmocka_unit_test(shares),
        cmocka_unit_test(sizes_and_counts),
        cmocka_unit_test(text_is_harmless),
        cmocka_unit_test(widths),
        cmocka_unit_test(errors_carry_a_sentence),
        cmocka_unit_test(vectors),
        cmocka_unit_test(timers_fire_in_order),
        cmocka_unit_test(descriptors_and_posts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

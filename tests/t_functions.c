/* decode/trace/functions: each name once, whoever adds it and however many do so at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/trace/functions.h"

#define NAMES   20000
#define THREADS 4

struct adder {
    struct functions *f;
    unsigned stride; /* an order of its own */
    fn_id ids[NAMES];
};

static void name_of(unsigned i, char out[32])
{
    snprintf(out, 32, "function %u", i);
}

static void *add_all(void *arg)
{
    struct adder *a = arg;
    for (unsigned i = 0; i < NAMES; i++) {
        unsigned k = i * a->stride % NAMES;
        char name[32];
        name_of(k, name);
        a->ids[k] = functions_intern(a->f, k % 2 ? "odd" : "even", name, name, k, FN_USER);
        if (functions_get(a->f, a->ids[k])->addr != k) /* others are adding */
            a->ids[k] = FN_NONE;
    }
    return NULL;
}

static void many_add_at_once(void **state)
{
    static const unsigned strides[THREADS] = {1, 3, 7, 19999}; /* prime to NAMES */
    struct functions *f = functions_new();
    struct adder *adders = calloc(THREADS, sizeof *adders);
    pthread_t threads[THREADS];
    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        adders[i].f = f;
        adders[i].stride = strides[i];
        assert_int_equal(pthread_create(&threads[i], NULL, add_all, &adders[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(functions_count(f), NAMES);
    for (unsigned k = 0; k < NAMES; k++) {
        char name[32];
        name_of(k, name);
        assert_in_range(adders[0].ids[k], 0, NAMES - 1);
        for (unsigned i = 1; i < THREADS; i++)
            assert_int_equal(adders[i].ids[k], adders[0].ids[k]);
        assert_string_equal(functions_get(f, adders[0].ids[k])->name, name);
        assert_string_equal(functions_get(f, adders[0].ids[k])->module, k % 2 ? "odd" : "even");
    }
    functions_free(f);
    free(adders);
}

/* As two source files have static functions of one name. */
static void by_address(void **state)
{
    (void)state;
    struct functions *f = functions_new();
    fn_id a = functions_intern_at(f, "m", "parse", "parse", 0x1196, FN_USER);
    fn_id b = functions_intern_at(f, "m", "parse", "parse", 0x11c3, FN_USER);
    fn_id c = functions_intern(f, "m", "parse", "parse", 0x1196, FN_USER);
    assert_true(a != b && a != c && b != c);
    for (int i = 0; i < 1000; i++) { /* the table grows */
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        functions_intern(f, "m", name, name, 0, FN_USER);
    }
    assert_int_equal(functions_intern_at(f, "m", "parse", "parse", 0x1196, FN_USER), a);
    assert_int_equal(functions_intern_at(f, "m", "parse", "parse", 0x11c3, FN_USER), b);
    assert_int_equal(functions_intern(f, "m", "parse", "parse", 7, FN_USER), c);
    assert_int_equal(functions_get(f, b)->addr, 0x11c3);
    assert_int_equal(functions_count(f), 1003);
    functions_free(f);
}

static void a_shared_table_stays_as_it_was(void **state)
{
    (void)state;
    struct functions *f = functions_new();
    fn_id a = functions_intern(f, "m", "_Z1av", "a()", 1, FN_USER);
    struct functions *g = functions_share(f);
    fn_id b = functions_intern(f, "m", "b", "b", 2, FN_USER);
    assert_int_not_equal(a, b);
    assert_int_equal(functions_intern(f, "m", "_Z1av", "something else", 3, FN_KERNEL), a);
    assert_int_not_equal(functions_intern(f, "n", "_Z1av", "a()", 1, FN_USER), a);
    assert_int_equal(functions_count(f), 3);
    assert_int_equal(functions_count(g), 1);
    functions_free(f);
    assert_string_equal(functions_get(g, a)->name, "a()");
    assert_string_equal(functions_get(g, a)->raw, "_Z1av");
    functions_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_add_at_once),
        cmocka_unit_test(by_address), cmocka_unit_test(a_shared_table_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Memory fetched ahead: blocks are whole, their own, and empty; stopping at any moment leaves nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/large.h"
#include "core/base/large_ahead.h"

#define COUNT ((size_t)3 << 16) /* of 16 bytes: three megabytes, more than one huge page */
#define SIZE 16
#define BLOCKS 12

static bool all_are(const unsigned char *p, unsigned char value)
{
    return p[0] == value && memcmp(p, p + 1, COUNT * SIZE - 1) == 0;
}

static void test_blocks(void **state)
{
    (void)state;
    struct large_ahead *a = large_ahead_new(COUNT, SIZE);
    unsigned char *block[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        block[i] = large_ahead_take(a);
        assert_non_null(block[i]);
        assert_true(all_are(block[i], 0));
        memset(block[i], (int)i + 1, COUNT * SIZE);
    }
    large_ahead_free(a); /* those that were taken stay */
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_true(all_are(block[i], (unsigned char)(i + 1)));
        large_free(block[i], COUNT, SIZE);
    }
}

static void *take_some(void *arg)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned char *p = large_ahead_take(arg);
        if (!p || !all_are(p, 0))
            return arg;
        memset(p, 0xff, COUNT * SIZE);
        large_free(p, COUNT, SIZE);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct large_ahead *a = large_ahead_new(COUNT, SIZE);
    pthread_t id[3];
    void *bad = NULL;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&id[i], NULL, take_some, a), 0);
    for (size_t i = 0; i < 3; i++) {
        void *one = NULL;
        pthread_join(id[i], &one);
        bad = one ? one : bad;
    }
    large_ahead_free(a);
    assert_null(bad);
}

static void test_stop(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct large_ahead *a = large_ahead_new(COUNT, SIZE);
        for (unsigned k = 0; k < i % 3; k++)
            large_free(large_ahead_take(a), COUNT, SIZE);
        large_ahead_free(a);
    }
    large_ahead_free(NULL);
    struct large_ahead *a = large_ahead_new(SIZE_MAX, SIZE); /* there is no such block */
    assert_null(large_ahead_take(a));
    assert_null(large_ahead_take(a));
    large_ahead_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

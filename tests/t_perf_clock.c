/* Perf's clock goes forward, also when several of them share a thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/trigger/perf_clock.h"

static void test_two_clocks(void **state)
{
    (void)state;
    struct perf_clock *a, *b;
    struct err err;
    if (perf_clock_new(&a, &err) < 0)
        skip();
    assert_int_equal(perf_clock_new(&b, &err), 0);
    uint64_t last = perf_clock_now_ns(b);
    assert_true(last > 0);
    /* Each reading leaves a record in the other's ring, more than it holds. */
    for (int i = 0; i < 1000; i++) {
        uint64_t now = perf_clock_now_ns(a);
        assert_true(now > last);
        last = now;
    }
    assert_true(perf_clock_now_ns(b) > last);
    assert_int_equal(perf_clock_now_ns(NULL), 0);
    perf_clock_free(a);
    perf_clock_free(b);
    perf_clock_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_clocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

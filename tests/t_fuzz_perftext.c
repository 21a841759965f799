/* The fuzz target fuzz_perftext.c on its seeds, cut at every byte and changed at random: what make fuzz finds by
 * searching must at least hold for these. A target aborts when something is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define LLVMFuzzerTestOneInput one_input
#define LLVMFuzzerInitialize   initialize
#include "fuzz_perftext.c"

static void seeds_and_what_is_near(void **state)
{
    (void)state;
    print_message("%zu inputs\n", seeds_run(seeds_perftext, one_input, 4096, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(seeds_and_what_is_near)};
    initialize(NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

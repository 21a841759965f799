/* Statistics counted while decoding (decode/trace/stats_flow.h) against those of the whole trace. */
#ifndef MTUI_TESTS_LIB_STATISTICS_H
#define MTUI_TESTS_LIB_STATISTICS_H

#include "decode/open/open.h"

/* Fails the test where the tables of two differ in anything. */
void statistics_assert_equal(const struct stats *a, const struct functions *of_a, const struct stats *b,
                             const struct functions *of_b, const char *what);

/* The recording at path, whose trace is known, once more for its statistics alone. Returns whether they could be
 * counted while decoding. */
bool statistics_check(const char *path, const struct open_options *options, const struct trace *whole);

#endif

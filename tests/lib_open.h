/* Opening recordings in tests; cmocka fails where it does not succeed. */
#ifndef MTUI_TESTS_LIB_OPEN_H
#define MTUI_TESTS_LIB_OPEN_H

#include <stdbool.h>
#include <stddef.h>

#include "decode/open/open.h"

/* The recording, whose trace holds what trace_check wants. */
struct recording *open_or_fail(const char *path, const struct open_options *o);
bool open_has_note(const struct recording *r, const char *text);

/* The functions of a sample's stack, innermost first, each with a ';' behind it. */
void open_stack_of(const struct recording *r, const struct sample_event *e, char *out, size_t size);

/* Records tests/forker (threads, fork and exec) with perf, samples with stacks and switches, into a new
 * directory: its path, from malloc, and that of the perf.data. NULL where perf cannot record. */
char *open_record_forker(char *data, size_t size);

#endif

/* The present time on perf's clock, the one that stands in the records of recordings.
 *
 * Not computed from another clock, from which it drifts: the calling thread makes a record of an
 * event of its own (it sets its own name to what it is, which is reported as a COMM record) and
 * reads the time in it; about a microsecond. */
#ifndef MTUI_CORE_PERF_CLOCK_H
#define MTUI_CORE_PERF_CLOCK_H

#include <stdint.h>

#include "core/base/err.h"

struct perf_clock;

/* Belongs to the calling thread. MTUI_E_PERM, MTUI_E_NOTSUP when perf events are not allowed. */
int perf_clock_new(struct perf_clock **out, struct err *err);
void perf_clock_free(struct perf_clock *c);

/* Nanoseconds; 0 when c is NULL. */
uint64_t perf_clock_now_ns(struct perf_clock *c);

#endif

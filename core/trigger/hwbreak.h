/* Hardware execution breakpoints through perf_event_open(2), PERF_TYPE_BREAKPOINT.
 *
 * In many virtual machines they open without error and never fire, hence the self-test. */
#ifndef MTUI_CORE_HWBREAK_H
#define MTUI_CORE_HWBREAK_H

#include <linux/perf_event.h>
#include <stdint.h>

#include "core/base/err.h"

/* Arms one in a child of our own, which calls the function under it on each CPU that it may use,
 * and looks at the count; also counts how many a thread can hold (*slots; NULL allowed). 0: they
 * fire. MTUI_E_NOTSUP: they open and do not fire, or do not open; MTUI_E_PERM. Takes about a
 * millisecond. */
int hwbreak_self_test(unsigned *slots, struct err *err);

void hwbreak_attr(struct perf_event_attr *attr, uint64_t addr);

#endif

/* Which thread ran on which CPU when: needed where a recording has a trace buffer for each CPU.
 *
 * Sources: ITRACE_START, SWITCH and SWITCH_CPU_WIDE records (perf_event_open(2)), samples of the tracepoint
 * sched:sched_switch. A thread that leaves says so before tracing stops for it, one that comes says so just
 * after tracing has begun for it; so between the two the CPU belongs to the one that comes. */
#ifndef MTUI_DECODE_PT_SWITCHES_H
#define MTUI_DECODE_PT_SWITCHES_H

#include <stdbool.h>

#include "decode/perf/perf_file.h"

struct pt_switches;

/* f must outlive it. */
struct pt_switches *pt_switches_new(const struct perf_file *f);
void pt_switches_free(struct pt_switches *s);

/* Records in the order of time; others than those named above are ignored. MTUI_E_NOMEM. */
int pt_switches_apply(struct pt_switches *s, const struct perf_record *rec);

/* True when anything is known about a CPU. */
bool pt_switches_know(const struct pt_switches *s, int cpu);

/* How many threads ran on it, beside the idle one. */
size_t pt_switches_threads(const struct pt_switches *s, int cpu);

/* The thread on a CPU at a time; −1: not known. */
pid_t pt_switches_at(const struct pt_switches *s, int cpu, uint64_t time_ns);

#endif

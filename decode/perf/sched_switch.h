/* Context switches told by samples of the tracepoint sched:sched_switch: what perf recorded where SWITCH
 * records did not exist yet (kernels before 4.3), and what people record by hand. */
#ifndef MTUI_DECODE_SCHED_SWITCH_H
#define MTUI_DECODE_SCHED_SWITCH_H

#include "decode/perf/perf_file.h"

struct sched_switch;

/* Where f describes the tracepoint, as described; else as every kernel so far has it. */
struct sched_switch *sched_switch_new(const struct perf_file *f);
void sched_switch_free(struct sched_switch *s);

/* True when the record is such a sample; *next is the thread that its CPU runs from then on. */
bool sched_switch_read(const struct sched_switch *s, const struct perf_record *rec, pid_t *next);

#endif

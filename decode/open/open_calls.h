/* Slow calls that triggers have timed (hits.tsv), as stacks between the samples of their threads. */
#ifndef MTUI_DECODE_OPEN_CALLS_H
#define MTUI_DECODE_OPEN_CALLS_H

#include "core/session/snapshot_dir.h"
#include "decode/image/symbolize.h"
#include "decode/sample/sample_log.h"

/* Calls in more of them than that are left out; perf's stacks are not deeper either (kernel.perf_event_max_stack). */
#define OPEN_CALLS_DEEPEST 128

/* Adds the calls that lie within the time of one file, whose events stand in the log from first_event on. snapshot: its
 * number, 0: none; only of its own hits the end may lie behind its events. as and symbols are those at the file's end.
 * *too_deep grows by the number of calls left out. MTUI_E_NOMEM. */
int open_known_calls(struct sample_log *log, size_t first_event, const struct snapshot_dir *dir, unsigned snapshot,
                     const struct addrspaces *as, struct symbolizer *symbols, uint64_t *too_deep);

#endif

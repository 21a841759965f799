/* Statistics of a trace worked out in the background, and told when they are there. */
#ifndef MTUI_TUI_TRACE_STATS_H
#define MTUI_TUI_TRACE_STATS_H

#include <stdbool.h>

#include "decode/trace/stats.h"

struct loop;
struct trace_stats;

/* ready runs in the loop's thread each time a result (or its error) is there; without a loop inside of
 * trace_stats_start. */
struct trace_stats *trace_stats_new(struct loop *loop, void (*ready)(void *arg), void *arg);
void trace_stats_free(struct trace_stats *ts);

/* Forgets what was there and begins anew; t must live until trace_stats_clear, _start or _free. */
void trace_stats_start(struct trace_stats *ts, const struct trace *t,
                       const struct stats_options *options);
/* Stops and forgets. */
void trace_stats_clear(struct trace_stats *ts);

/* NULL while there is none. */
const struct stats *trace_stats_get(const struct trace_stats *ts);
bool trace_stats_busy(const struct trace_stats *ts);
/* A sentence, or "". */
const char *trace_stats_error(const struct trace_stats *ts);

#endif

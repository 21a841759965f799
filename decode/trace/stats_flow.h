/* Statistics of calls while they are decoded, for those who need nothing else: no trace is kept. What
 * stats_new counts in a whole trace is counted from a builder's spans, a few thousand at a time while they are
 * in the cache, and then they are forgotten; the kernel takes longer to find memory for spans than decoding
 * takes to make them. */
#ifndef MTUI_DECODE_STATS_FLOW_H
#define MTUI_DECODE_STATS_FLOW_H

#include "decode/trace/stats.h"

struct stats_flow;

/* b must outlive it, and its trace gets no spans. */
struct stats_flow *stats_flow_new(struct trace_builder *b);
void stats_flow_free(struct stats_flow *f); /* NULL is ignored */

/* Counts what a thread has, but the calls that are open. until: what came after this pause stays, since it may
 * be split off (trace_builder_split); NULL: nothing. Cheap where there is little; it waits until there is more.
 * MTUI_E_NOMEM. */
int stats_flow_take(struct stats_flow *f, size_t thread, const struct trace_pause *until);
/* The rest, of all threads; what is open ends at its thread's last time. MTUI_E_NOMEM. */
int stats_flow_end(struct stats_flow *f);

/* The same as stats_new for all of the trace, once that is made from the builder. MTUI_E_NOTSUP where a gap lies
 * within calls: it was not known of when those were counted. */
int stats_flow_finish(struct stats_flow *f, const struct trace *t, struct stats **out, struct err *err);

#endif

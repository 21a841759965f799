/* Statistics per function: over a whole trace, a range of time, one thread.
 *
 *   calls   spans of the function that intersect the range. In a sampled trace a span is a stretch of
 *           samples, not a call: the figure is an estimate (stats_estimated).
 *   total   time inside the function and all it called, as far as it lies in the range; a call inside of
 *           another call of the same function is not counted again.
 *   self    time with this function innermost, in the range. Time off the CPU is a span of its own, so
 *           it is nobody else's self time; time inside a gap (of this thread, or of the whole recording)
 *           is left out.
 *   min, p50, p99, max, sum, histogram   of the whole durations of those calls, also where they reach out
 *           of the range. Percentiles are by nearest rank and exact.
 *
 * While it works it needs 4 bytes for each call of 4 us and more. */
#ifndef MTUI_DECODE_STATS_H
#define MTUI_DECODE_STATS_H

#include <stdatomic.h>

#include "decode/trace/trace.h"

#define STATS_BUCKETS 64

struct stats_options {
    uint64_t from_ns, to_ns;   /* both 0: the whole trace */
    ssize_t thread;            /* index; −1: all */
    unsigned workers;          /* threads to use; 0 and 1: the caller's own */
    const atomic_bool *cancel; /* NULL: none */
};

struct function_stats {
    fn_id fn;
    uint64_t calls, total_ns, self_ns, min_ns, max_ns, p50_ns, p99_ns, sum_ns;
    uint64_t histogram[STATS_BUCKETS]; /* [i]: durations with highest bit i; [0]: 0 and 1 ns */
};

/* The mean duration, rounded. */
static inline uint64_t function_stats_mean_ns(const struct function_stats *f)
{
    return f->calls ? f->sum_ns / f->calls + (f->sum_ns % f->calls >= (f->calls + 1) / 2) : 0;
}

struct stats;

int stats_new(struct stats **out, const struct trace *t, const struct stats_options *options,
              struct err *err);
void stats_free(struct stats *s);

/* By total, descending, then by name and module. Functions without calls are not listed. */
const struct function_stats *stats_functions(const struct stats *s, size_t *n);
/* NULL: no calls. */
const struct function_stats *stats_find(const struct stats *s, fn_id fn);
/* Calls are estimates. */
bool stats_estimated(const struct stats *s);
/* Time of the range that lies in gaps, summed over the threads looked at; and how many gaps of the trace touch it
 * (trace_gap_count), also those that last no time. */
uint64_t stats_gap_ns(const struct stats *s);
size_t stats_gap_count(const struct stats *s);

/* ---- One function: who calls it, whom it calls, its longest calls ---- */

struct stats_edge {
    fn_id fn;          /* the other side; FN_NONE: it was outermost */
    uint64_t calls;
    uint64_t total_ns; /* durations of those calls inside the range, recursion not taken out */
};

/* Both by calls, descending, then by number of the function; freed by the caller. */
int stats_edges(const struct trace *t, fn_id fn, const struct stats_options *options,
                struct stats_edge **callers, size_t *ncallers, struct stats_edge **callees,
                size_t *ncallees, struct err *err);

struct stats_call {
    size_t thread, depth, index; /* trace_row(t, thread, depth)[index] */
    uint64_t duration_ns, start_ns;
};

/* At most max calls of fn by duration, longest first, then by start; returns how many. */
size_t stats_longest(const struct trace *t, fn_id fn, const struct stats_options *options,
                     struct stats_call *out, size_t max);

/* The call whose duration is the p50 of struct function_stats; the first of equals. calls: of how many.
 * MTUI_E_NOENT without calls, MTUI_E_NOMEM, MTUI_E_CANCEL. 4 bytes a call while it works. */
int stats_median(const struct trace *t, fn_id fn, const struct stats_options *options,
                 struct stats_call *out, uint64_t *calls, struct err *err);

/* All calls of a function, by duration. */
struct stats_calls {
    struct stats_call *longest; /* the longest n of all.calls, longest first, then by start */
    size_t n;
    struct function_stats all;  /* of every call, but total_ns and self_ns, which are 0 */
};

/* At most max of them are listed (≥ 1); MTUI_E_NOMEM, MTUI_E_CANCEL. No calls are no error. */
int stats_calls_new(struct stats_calls *out, const struct trace *t, fn_id fn,
                    const struct stats_options *options, size_t max, struct err *err);
void stats_calls_free(struct stats_calls *c);

#endif

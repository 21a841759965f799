/* Sampled stacks and context switches become spans.
 *
 * Two successive stacks of a thread are compared by function, from the outermost frame inwards. What
 * they have in common goes on as one span; the frames that only the earlier has end, and those that only
 * the later has begin, at the later sample. So an edge is known to one period, and every span carries
 * SPAN_SAMPLED.
 *
 * A wait (from a switch out to the next switch in) is a span of its own with SPAN_OFF_CPU: "[off cpu]"
 * when the thread waited for something, "[preempted]" when it could have run. Where it nests:
 *   - between two samples: inside the frames that both stacks share. A blocked call thus goes on across
 *     its wait when it is there before and after. The earlier sample's other frames end where the first
 *     wait begins, the later one's begin where the last wait ends: nobody saw them in between.
 *   - before a thread's first sample, and where samples are missing on either side of it: outermost,
 *     since nothing is known of the stack.
 *   - a wait that never ends: inside the whole last stack if the thread has not run since that sample
 *     (a call that hangs shows as such), all flagged SPAN_INFERRED_END; else outermost.
 *   - an exit or exec: the stack after it is empty, so waits before it are outermost.
 *
 * Samples come once per period of CPU time. When a thread used more than SAMPLES_BRIDGE periods of it
 * without a sample, samples are missing: what was open ends one period after its last sample
 * (SPAN_GAP_END), the unsampled running time becomes GAP_NO_SAMPLE, and the next stack starts afresh
 * (SPAN_INFERRED_START). Without switch records all time counts as CPU time. The same holds before the
 * first and after the last sample of a thread, from its fork to its exit.
 *
 * A lost switch record is repaired: a sample during a wait ends it a period earlier; a switch in while
 * running means a wait since the last thing seen (flagged SPAN_INFERRED_START).
 *
 * Events of one thread come in the order of time. One worker at a time. */
#ifndef MTUI_DECODE_SAMPLES_H
#define MTUI_DECODE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "decode/trace/trace.h"

#define SAMPLES_BRIDGE 4 /* periods */

struct samples;

struct samples_limits {
    uint64_t first_ns, last_ns; /* of the recording */
    uint64_t period_ns;         /* 0: unknown, then nothing counts as missing */
};

/* The builder and its functions stay the caller's and must outlive the samples. */
struct samples *samples_new(struct trace_builder *b, struct functions *f,
                            const struct samples_limits *limits);
void samples_free(struct samples *s);

/* A sample: n functions, outermost first. Negative: memory is short. */
int samples_stack(struct samples *s, pid_t pid, pid_t tid, int cpu, uint64_t time_ns,
                  const fn_id *stack, size_t n);

/* The same of a stack that was known without a sample. */
int samples_known(struct samples *s, pid_t pid, pid_t tid, uint64_t time_ns, const fn_id *stack, size_t n);

/* The thread leaves (out) or gets a CPU. */
int samples_switch(struct samples *s, pid_t pid, pid_t tid, uint64_t time_ns, bool out,
                   bool preempted);

/* The thread is created; it exits; its process is replaced by another program (exec). */
void samples_fork(struct samples *s, pid_t pid, pid_t tid, uint64_t time_ns);
int samples_exit(struct samples *s, pid_t pid, pid_t tid, uint64_t time_ns);
int samples_exec(struct samples *s, pid_t pid, pid_t tid, uint64_t time_ns);

/* The recording, or one file of it, ends at limits.last_ns: everything open ends. Further events (of the
 * next file) start afresh, within new limits. */
int samples_finish(struct samples *s);
void samples_set_limits(struct samples *s, const struct samples_limits *limits);

#endif

/* Hits of a uprobe from every thread of a process through one event: a BPF program of a few
 * instructions on the event reports each hit into a ring of the CPU where it happened. Newer kernels
 * need no event: the program is linked to many places at once.
 *
 * Without it a perf event reports only hits of the one thread that it was opened for, although the
 * kernel plants its breakpoint for the whole process: one event a thread is then needed, new
 * threads are covered late, and taking one event away costs the kernel about a tenth of a second
 * (an RCU grace period under a global lock), which adds up. The program sees the hits of all
 * threads, new ones from their first instruction on.
 *
 * Source: bpf(2); kernel/trace/trace_uprobe.c (__uprobe_perf_func runs the program before it looks
 * for events of the current thread). Needs CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN. */
#ifndef MTUI_CORE_HIT_OUTPUT_H
#define MTUI_CORE_HIT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/trigger/perf_ring.h"

struct hit_output;

/* One ring a CPU, all together at most ring_bytes (but a page each at least). MTUI_E_PERM,
 * MTUI_E_NOTSUP where BPF is not allowed or not there. */
int hit_output_new(size_t ring_bytes, struct hit_output **out, struct err *err);
void hit_output_free(struct hit_output *o);

/* Probes at n places of one file in the process pid (not just a thread of it), each reporting here under its own
 * number. Returns the descriptor that holds them all: they come and go in one grace period, however many they are.
 * MTUI_E_NOTSUP: Linux < 6.12 (before, a link reported one thread only, or let go of its places one by one).
 * Whatever fails, it fails as a whole; hit_output_bind tells for which place.
 * Source: bpf(2), BPF_LINK_CREATE; kernel/trace/bpf_trace.c (bpf_uprobe_multi_link_attach). */
int hit_output_link(struct hit_output *o, const char *path, pid_t pid, const uint64_t *offsets,
                    const uint64_t *numbers, size_t n, struct err *err);

/* Makes the uprobe event report its hits here, with `number` as their id (perf_hit_parse with_raw).
 */
int hit_output_bind(struct hit_output *o, int event_fd, uint64_t number, struct err *err);

size_t hit_output_count(const struct hit_output *o);
struct perf_ring *hit_output_ring(struct hit_output *o, size_t i);
int hit_output_fd(const struct hit_output *o, size_t i); /* to poll */
/* Hits that found a ring full until now; the kernel counts them since Linux 6.0. False: it does
 * not, and PERF_RECORD_LOST in the rings must be counted. */
bool hit_output_lost(const struct hit_output *o, uint64_t *lost);
size_t hit_output_bytes(const struct hit_output *o);

#endif

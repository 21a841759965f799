/* The trace data of a perf.data as streams: what belongs together, in order, without overlaps.
 *
 * A queue is a thread or a CPU (AUXTRACE records say which). The next record of it may go on where the last
 * one ended (by its offset), tell the last one's bytes again (snapshots of a ring, taken faster than it fills:
 * found by the bytes, for there an offset is a place in the ring), or stand for itself (another snapshot); see
 * tools/perf/util/auxtrace.c and intel_pt_find_overlap() of Linux. Parts that go on become one stream. */
#ifndef MTUI_DECODE_PT_STREAMS_H
#define MTUI_DECODE_PT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "decode/perf/perf_file.h"
#include "decode/pt/pt_stamps.h"
#include "decode/pt/pt_time.h"

/* What is to be told of a stream: all, unless other snapshots tell the rest. */
struct pt_stream_limits {
    size_t from, to;         /* bytes to decode */
    uint64_t from_ns, to_ns; /* and times to show */
};

struct pt_stream {
    pid_t tid;   /* −1: a CPU's */
    int cpu;     /* −1: a thread's */
    pid_t owner; /* the thread that the recording was made for, also in a CPU's; −1: not known */
    uint64_t order; /* place in the file, for a stable order */
    const uint8_t *data; /* in the file, or in `joined` */
    uint8_t *joined;
    size_t len;
    struct pt_stamps stamps;
    struct pt_stream_limits limits;
};

struct pt_streams;

struct pt_streams *pt_streams_new(void);
void pt_streams_free(struct pt_streams *s);

/* Takes note of an AUXTRACE_INFO, AUXTRACE or TIME_CONV record; others are ignored. f must outlive s. MTUI_E_NOTSUP
 * when the trace data is not Intel PT's. */
int pt_streams_add(struct pt_streams *s, const struct perf_file *f, const struct perf_record *rec,
                   struct err *err);

/* Puts the parts together. To be called once, when all records were seen. */
int pt_streams_finish(struct pt_streams *s, struct err *err);

/* Bytes of stream i outside of its limits count as overlapping. Once for each stream. */
void pt_streams_limit(struct pt_streams *s, size_t i, struct pt_stream_limits limits);

size_t pt_streams_count(const struct pt_streams *s);
const struct pt_stream *pt_streams_at(const struct pt_streams *s, size_t i);
/* Bytes of trace data in the file, and how many of them were the same as others (overlaps). */
uint64_t pt_streams_bytes(const struct pt_streams *s, uint64_t *overlapping);
/* False when there was no AUXTRACE_INFO. How it relates to perf's clock may stand in a TIME_CONV record alone. */
bool pt_streams_clock(const struct pt_streams *s, struct pt_clock *clock);
/* Some stream is a CPU's. */
bool pt_streams_per_cpu(const struct pt_streams *s);

#endif

/* The layout of perf.data where <linux/perf_event.h> does not define it: file header, features, and
 * the record types that perf itself adds. All numbers are in the byte order of the recording machine.
 *
 * Source: tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/header.h (file header,
 * features) and tools/lib/perf/include/perf/event.h (records from 64 on) of Linux 6.1; COMPRESSED2 of
 * Linux 6.16. */
#ifndef MTUI_DECODE_PERF_FORMAT_H
#define MTUI_DECODE_PERF_FORMAT_H

#include <stdint.h>

#define PERF_MAGIC2 0x32454c4946524550ULL     /* "PERFILE2" */
#define PERF_MAGIC2_SWAP 0x50455246494c4532ULL /* the same from a machine of the other byte order */
#define PERF_MAGIC1 0x454c494646524550ULL     /* "PERFFILE": before Linux 3.2 */

struct perf_format_section {
    uint64_t offset, size;
};

/* Pipe layout: only magic and size (16) stand before the records. */
#define PERF_PIPE_HEADER_SIZE 16

struct perf_format_header {
    uint64_t magic, size;
    uint64_t attr_size; /* of struct perf_event_attr plus a section for its ids */
    struct perf_format_section attrs, data, event_types;
    uint64_t features[4]; /* bit n: feature n has a section after the data */
};
#define PERF_HEADER_MIN_SIZE 72 /* the oldest has no features */

enum perf_format_feature {
    PERF_FEAT_TRACING_DATA = 1,
    PERF_FEAT_BUILD_ID = 2,
    PERF_FEAT_HOSTNAME = 3,
    PERF_FEAT_OSRELEASE = 4,
    PERF_FEAT_VERSION = 5,
    PERF_FEAT_ARCH = 6,
    PERF_FEAT_CMDLINE = 11,
    PERF_FEAT_EVENT_DESC = 12,
    PERF_FEAT_PMU_MAPPINGS = 16,
    PERF_FEAT_AUXTRACE = 18,
    PERF_FEAT_CLOCK_DATA = 29,
    PERF_FEAT_COUNT = 256
};

/* Records that perf adds (PERF_RECORD_USER_TYPE_START is 64). */
enum perf_format_record {
    PERF_FMT_HEADER_ATTR = 64,    /* attr, then u64 ids[] */
    PERF_FMT_TRACING_DATA = 66,   /* u32 size; that many bytes follow the record */
    PERF_FMT_BUILD_ID = 67,       /* s32 pid, u8 build_id[24], path */
    PERF_FMT_AUXTRACE_INFO = 70,  /* u32 type, u32 0, u64 priv[] */
    PERF_FMT_AUXTRACE = 71,       /* u64 size, offset, reference, u32 idx, tid, cpu, 0; then data */
    PERF_FMT_AUXTRACE_ERROR = 72, /* u32 type, code, cpu, pid, tid, fmt, u64 ip, time, char msg[64] */
    PERF_FMT_EVENT_UPDATE = 78,   /* u64 type, u64 id, bytes */
    PERF_FMT_TIME_CONV = 79,
    PERF_FMT_HEADER_FEATURE = 80, /* u64 feature, bytes as in the feature's section */
    PERF_FMT_COMPRESSED = 81,     /* a piece of a zstd stream of records */
    PERF_FMT_COMPRESSED2 = 83     /* u64 size, a piece, padding to 8 */
};

#define PERF_AUXTRACE_INTEL_PT 1     /* type of AUXTRACE_INFO; priv[0] is the PMU's type */
#define PERF_FMT_EVENT_UPDATE_NAME 2 /* type of EVENT_UPDATE whose bytes are a name */

#define PERF_FMT_MISC_BUILD_ID_SIZE (1u << 15) /* of BUILD_ID: build_id[20] is the length */
#define PERF_FMT_MISC_FORK_SYNTHESIZED (1u << 13)

#endif

/* What the files of the perf.data reader share; nobody else includes it. */
#ifndef MTUI_DECODE_PERF_PRIV_H
#define MTUI_DECODE_PERF_PRIV_H

#include <linux/perf_event.h>
#include <time.h>
#include <zstd.h>

#include "core/base/vec.h"
#include "core/base/hash64.h"
#include "decode/perf/perf_cursor.h"
#include "decode/perf/perf_file.h"

/* One file of the recording, wholly in memory. */
struct perf_segment {
    const uint8_t *data;
    size_t size;
    uint64_t base;   /* of its offsets: files of a directory count one after another */
    bool mapped;     /* munmap, else free */
    int fd;          /* of the mapped file, to see whether it stays as it is; −1: none */
    struct timespec changed; /* when it was last written, as it was mapped */
    uint64_t end;            /* of the records, as the header has it; 0: it does not say */
    uint64_t unread_from, unread_to; /* what could not be read; both 0: nothing */
    ZSTD_DStream *zstd; /* of its COMPRESSED records */
    bool zstd_failed;
};

struct perf_event {
    struct perf_event_info info;
    unsigned regs_intr; /* registers in PERF_SAMPLE_REGS_INTR */
    bool use_clockid;
    int32_t clockid;
};

struct perf_index_entry {
    uint64_t time_ns;
    const uint8_t *rec;
};

struct perf_block; /* decompressed records, see perf_zstd.c */

struct perf_range {
    const uint8_t *p, *end;
};

struct perf_file {
    VEC(struct perf_segment) segments;
    VEC(struct perf_event) events;
    struct hash64 ids; /* sample id → event */
    struct perf_file_info info;
    VEC(char *) strings; /* owned; info and events point to them */
    struct hash64 pmu_names; /* PMU type → index in strings */
    uint32_t pt_type;        /* of intel_pt as AUXTRACE_INFO has it; 0 unknown */
    VEC(struct perf_index_entry) index;
    size_t next;
    uint64_t latest_ns; /* while indexing: what records without a time inherit */
    struct perf_range tracing_data;
    struct perf_range build_ids; /* the header's list: records whose type is not filled in */
    VEC(struct perf_block *) blocks;
    uint64_t inflated_bytes, inflated_max;
    uint64_t scratch[8192 + 1]; /* an aligned copy of a record that lies askew */
    char *partial;
};

/* perf_file.c */
void perf_file_set_partial(struct perf_file *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
char *perf_file_keep(struct perf_file *f, const char *s, size_t len);
int perf_file_index_add(struct perf_file *f, uint64_t time_ns, const uint8_t *rec);
uint64_t perf_file_offset(const struct perf_file *f, const uint8_t *p);
/* Indexes the records of [p, end). *stopped gets where the first incomplete one begins. Returns 0; 1
 * when something damaged ended the reading (*stopped is end, the sentence is set); MTUI_E_NOMEM.
 * in_block: the bytes came out of a COMPRESSED record. */
int perf_file_index(struct perf_file *f, struct perf_segment *seg, const uint8_t *p,
                    const uint8_t *end, bool in_block, const uint8_t **stopped);

/* perf_header.c */
int perf_header_read_attrs(struct perf_file *f, const uint8_t *attrs, uint64_t size,
                           uint64_t attr_size, struct err *err);
/* False when the attr is too short to be one. */
bool perf_header_add_attr(struct perf_file *f, const uint8_t *attr, size_t len, const uint8_t *ids,
                          size_t ids_len);
void perf_header_read_features(struct perf_file *f, uint64_t table, const uint64_t features[4]);
void perf_header_read_feature(struct perf_file *f, uint64_t feature, const uint8_t *p, size_t len);
void perf_header_update_event(struct perf_file *f, struct perf_cursor c);
/* After all records: gives names to the events that have none, finds intel_pt. */
void perf_header_finish(struct perf_file *f);

/* perf_record.c: false when the record does not parse; its header.size bytes are in memory.
 * carries_time: it has a time field, even if that is 0. */
bool perf_record_parse(struct perf_file *f, const uint8_t *p, struct perf_record *rec,
                       bool *carries_time);

/* perf_sample.c. The id moves body->end to where it begins. */
bool perf_sample_parse(const struct perf_file *f, struct perf_cursor body, struct perf_record *rec,
                       bool *carries_time);
bool perf_sample_parse_id(const struct perf_file *f, struct perf_cursor *body,
                          struct perf_record *rec, bool *carries_time);

/* perf_zstd.c */
int perf_zstd_inflate(struct perf_file *f, struct perf_segment *seg, uint64_t offset,
                      struct perf_cursor payload);
uint64_t perf_zstd_block_offset(const struct perf_file *f, const uint8_t *p);
void perf_zstd_free(struct perf_file *f);

/* perf_order.c: sorts the index by time, stably. false when memory is short. */
bool perf_order_sort(struct perf_file *f);

#endif

/* Writes perf.data files by hand, for tests of what perf does not do on demand: rare records, damaged
 * files, samples at chosen addresses. */
#ifndef MTUI_TESTS_LIB_PERFWRITER_H
#define MTUI_TESTS_LIB_PERFWRITER_H

#include <stddef.h>
#include <stdint.h>

struct perf_writer {
    uint8_t *data;
    size_t len, cap;
    size_t record;     /* where the open record begins */
    uint64_t sample_type;
    size_t data_start; /* of the records in the file */
    size_t data_size_at;
};

/* A file with one event of that sample type (sample_id_all is set), no ids, no features. */
struct perf_writer pw_file(uint64_t sample_type);
/* The pipe layout with the same event, whose id is 77. */
struct perf_writer pw_pipe(uint64_t sample_type);
void pw_free(struct perf_writer *w);

void pw_bytes(struct perf_writer *w, const void *bytes, size_t len);
void pw_u64(struct perf_writer *w, uint64_t v);
void pw_u32(struct perf_writer *w, uint32_t v);
void pw_u16(struct perf_writer *w, uint16_t v);
void pw_string(struct perf_writer *w, const char *s); /* padded to 8 bytes */

void pw_begin(struct perf_writer *w, uint32_t type, uint16_t misc);
void pw_end(struct perf_writer *w);
/* With a sample id (pid, tid, time as the sample type asks for). */
void pw_end_id(struct perf_writer *w, uint32_t pid, uint32_t tid, uint64_t time_ns);

void pw_mmap2(struct perf_writer *w, uint32_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
              const char *path, uint64_t time_ns);
void pw_comm(struct perf_writer *w, uint32_t pid, uint32_t tid, const char *comm, int exec,
             uint64_t time_ns);
/* For a sample type of IP, TID, TIME only. */
void pw_sample_ip(struct perf_writer *w, uint32_t pid, uint64_t ip, uint64_t time_ns);

/* Fills in the size of the data; w->data, w->len are the file then. */
void pw_finish(struct perf_writer *w);

/* One of everything: every kind of record, every sample field, features, trace data, a compressed
 * record. pipe: the layout. */
struct perf_writer pw_everything(int pipe);

#endif

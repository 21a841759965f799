/* Writes a perf.data file with Intel PT data and the sideband that a decoder needs, in the layout of
 * `perf record`: what `perf script` and mtui itself read back.
 *
 * Source: tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h,
 * tools/perf/util/event.h and arch/x86/util/intel-pt.c (AUXTRACE_INFO) of Linux 6.1. Two events are
 * declared: intel_pt, and a dummy that carries the sideband. */
#ifndef MTUI_CORE_PERF_WRITER_H
#define MTUI_CORE_PERF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/step/pt_encode.h"

struct perf_writer;

struct perf_writer_options {
    struct pt_encode_options encoding; /* what the packet stream uses */
    bool per_cpu;                      /* AUX data belongs to CPUs, not to threads */
    bool newest; /* of a buffer that does not fit the end is kept, not the beginning */
    bool whole; /* pieces of AUX data follow each other without a gap; else they are snapshots, which
                   may overlap: perf then looks in each for its first PSB */
};

/* Creates path (which must not exist). */
int perf_writer_open(struct perf_writer **out, const char *path,
                     const struct perf_writer_options *options, struct err *err);

/* Where a record belongs. */
struct perf_writer_id {
    pid_t pid, tid;
    int cpu;
    uint64_t time_ns;
};

void perf_writer_comm(struct perf_writer *w, struct perf_writer_id id, const char *comm, bool exec);
void perf_writer_fork(struct perf_writer *w, struct perf_writer_id id, pid_t ppid, pid_t ptid);
void perf_writer_exit(struct perf_writer *w, struct perf_writer_id id);
void perf_writer_itrace_start(struct perf_writer *w, struct perf_writer_id id);
void perf_writer_switch(struct perf_writer *w, struct perf_writer_id id, bool out);
/* So many bytes of packets were there at that time, from an offset in the stream on. */
void perf_writer_aux(struct perf_writer *w, struct perf_writer_id id, uint64_t offset, uint64_t len);

struct perf_writer_mapping {
    uint64_t start, len, pgoff, ino;
    uint32_t major, minor, prot, flags; /* PROT_*, MAP_* */
    const uint8_t *build_id; /* in place of device and inode if it is of 1 to 20 bytes; NULL: none */
    size_t build_id_len;
    const char *path;
};
void perf_writer_mmap(struct perf_writer *w, struct perf_writer_id id,
                      const struct perf_writer_mapping *m);

/* One buffer of packets: of the thread id.tid, or with per_cpu of id.cpu. idx tells the queues apart.
 * offset: of its first byte in the stream of that queue. */
void perf_writer_auxtrace(struct perf_writer *w, struct perf_writer_id id, uint32_t idx,
                          uint64_t offset, const uint8_t *data, size_t len);

/* Completes the header; the file is whole only then. Frees w in every case. MTUI_E_IO: some write
 * failed, now or earlier; the file ends with the last buffer of packets that fits, as far as it does (buffers are cut
 * at a PSB), and is removed when nothing of any does. */
int perf_writer_close(struct perf_writer *w, struct err *err);

/* Bytes written so far. */
uint64_t perf_writer_bytes(const struct perf_writer *w);

#endif

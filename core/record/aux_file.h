/* Snapshots out of a growing perf.data: perf appends each AUX snapshot to one file; here each
 * becomes a file of its own while perf goes on.
 *
 * The layout is tools/perf/Documentation/perf.data-file-format.txt: a header of 104 bytes, then
 * records, each with a header {u32 type, u16 misc, u16 size}; only PERF_RECORD_AUXTRACE (71) has
 * data behind it that its size does not count (u64 at byte 8 of the record). */
#ifndef MTUI_CORE_AUX_FILE_H
#define MTUI_CORE_AUX_FILE_H

#include <stdint.h>

#include "core/base/err.h"

/* How far a file has been read, and where the AUX data of the snapshots before lie in it. */
struct aux_file;

struct aux_file *aux_file_new(void);
void aux_file_free(struct aux_file *f);

struct aux_snapshot {
    uint64_t file_bytes; /* of the file written */
    uint64_t aux_bytes;  /* AUX data in it */
    unsigned buffers;    /* AUXTRACE records: CPUs or threads that gave some */
};

/* Writes dst: all of src but the AUX data of earlier calls, with the header closed properly, so
 * that any reader of perf.data opens it. dst must not exist; it appears complete (written under
 * another name, renamed). Blocks for the copying: call it from a thread. Without
 * AUX data that is new in src nothing is written: 0, and got->buffers is 0. MTUI_E_FORMAT: src is
 * no perf.data of this kind; MTUI_E_IO, MTUI_E_NOENT, MTUI_E_NOMEM. */
int aux_file_carve(struct aux_file *f, const char *src, const char *dst, struct aux_snapshot *got,
                   struct err *err);

enum perf_data_health {
    PERF_DATA_OK,
    PERF_DATA_UNFINISHED, /* data size 0 in the header: perf was killed before it closed the file */
    PERF_DATA_TRUNCATED,  /* shorter than the header says */
    PERF_DATA_EMPTY,      /* no bytes, or nothing after the header of an unfinished file */
    PERF_DATA_FOREIGN     /* no perf.data header */
};

/* Looks at the header of a perf.data file, or of the `data` file in a directory; *bytes (NULL
 * allowed) gets its size. MTUI_E_NOENT, MTUI_E_PERM, MTUI_E_IO when it cannot be read. */
int perf_data_check(const char *path, uint64_t *bytes, struct err *err);

#endif

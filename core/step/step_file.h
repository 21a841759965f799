/* A snapshot of the step recorder as a perf.data file. */
#ifndef MTUI_CORE_STEP_FILE_H
#define MTUI_CORE_STEP_FILE_H

#include "core/base/err.h"
#include "core/step/step_sideband.h"
#include "core/step/step_tracer.h"

/* The packets of one thread, kept from a window until they are written. */
struct step_packets {
    pid_t tid;
    uint64_t start_clock, end_clock;
    uint8_t *bytes;
    size_t len;
    uint64_t stream_offset;
};

/* Copies a window's packets; false when memory is short. */
bool step_packets_take(struct step_packets *p, const struct step_window *w);
void step_packets_free(struct step_packets *p);

/* Writes path (which must not exist) with the sideband and n threads' packets; newest: as in struct
 * perf_writer_options. */
int step_file_write(const char *path, pid_t pid, const struct pt_encode_options *encoding, bool newest,
                    const struct step_sideband *sideband, const struct step_packets *packets,
                    size_t n, struct err *err);

#endif

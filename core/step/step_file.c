#include "core/step/step_file.h"

#include <stdlib.h>
#include <string.h>

#include "core/step/perf_writer.h"

bool step_packets_take(struct step_packets *p, const struct step_window *w)
{
    struct step_packets taken = {
        .tid = w->tid, .start_clock = w->start_clock, .end_clock = w->end_clock};
    const uint8_t *bytes = step_thread_packets(w->thread, &taken.len, &taken.stream_offset);
    taken.bytes = malloc(taken.len ? taken.len : 1);
    if (!taken.bytes)
        return false;
    if (taken.len)
        memcpy(taken.bytes, bytes, taken.len);
    *p = taken;
    return true;
}

void step_packets_free(struct step_packets *p)
{
    free(p->bytes);
    *p = (struct step_packets){0};
}

int step_file_write(const char *path, pid_t pid, const struct pt_encode_options *encoding, bool newest,
                    const struct step_sideband *sideband, const struct step_packets *packets,
                    size_t n, struct err *err)
{
    struct perf_writer *w;
    struct perf_writer_options o = {.encoding = *encoding, .newest = newest};
    int rc = perf_writer_open(&w, path, &o, err);
    if (rc < 0)
        return rc;
    step_sideband_write(sideband, w);
    for (size_t i = 0; i < n; i++) {
        const struct step_packets *p = &packets[i];
        struct perf_writer_id id = {
            .pid = pid, .tid = p->tid, .cpu = -1, .time_ns = p->start_clock};
        perf_writer_itrace_start(w, id);
        id.time_ns = p->end_clock;
        perf_writer_aux(w, id, p->stream_offset, p->len);
        perf_writer_auxtrace(w, id, (uint32_t)i, p->stream_offset, p->bytes, p->len);
    }
    return perf_writer_close(w, err);
}

/* Kernel tracepoints in a perf.data: what they are called, and where their fields stand in the raw bytes of
 * a sample.
 *
 * The recording brings the descriptions along ("tracing data", a feature of the header or a record: the
 * files of the kernel's tracefs one after the other). Source of the layout:
 * tools/perf/util/trace-event-info.c of Linux; of a description: tracefs, events/SYSTEM/NAME/format. */
#ifndef MTUI_DECODE_TRACEPOINT_H
#define MTUI_DECODE_TRACEPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracepoint_field {
    uint32_t offset, size; /* in the raw bytes of a sample */
};

/* Looks for the tracepoint system:name in tracing data: its number (an event's config, with
 * PERF_TYPE_TRACEPOINT). False when it is not there or the data is damaged before it. */
bool tracepoint_find(const uint8_t *data, size_t len, const char *system, const char *name, uint64_t *id);

/* The same for one of its fields. */
bool tracepoint_find_field(const uint8_t *data, size_t len, const char *system, const char *name,
                           const char *field, struct tracepoint_field *out);

#endif

/* The reader's side of a perf ring buffer (perf_event_open(2), "MMAP layout").
 *
 * One reader. Records are handed out whole and in order; one that wraps is copied together. */
#ifndef MTUI_CORE_PERF_RING_H
#define MTUI_CORE_PERF_RING_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

struct perf_ring {
    struct perf_event_mmap_page *page; /* NULL: not mapped */
    unsigned char *data;
    size_t size; /* bytes of data, a power of two */
    uint64_t tail;
};

/* Maps the ring of event fd with data_pages (a power of two); when the locked-memory limit refuses
 * that, with half of it, and so on down to one page. MTUI_E_PERM: not even one page. */
int perf_ring_map(struct perf_ring *r, int fd, size_t data_pages, struct err *err);
/* A ring that is not mapped is allowed. */
void perf_ring_unmap(struct perf_ring *r);

/* The next record, or NULL when there is none. Valid until the next call with this ring; scratch is
 * where a wrapped record is put together (65536 bytes, since header.size is 16 bits). */
const struct perf_event_header *perf_ring_next(struct perf_ring *r, void *scratch);

#define PERF_RING_SCRATCH 65536

#endif

#include "core/trigger/perf_clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <errno.h>

#include "core/base/alloc.h"
#include "core/machine/perf_event.h"
#include "core/trigger/perf_ring.h"

struct perf_clock {
    int fd;
    struct perf_ring ring;
    unsigned char scratch[PERF_RING_SCRATCH];
};

int perf_clock_new(struct perf_clock **out, struct err *err)
{
    struct perf_event_attr attr;
    perf_event_dummy_attr(&attr);
    attr.task = attr.mmap = attr.mmap2 = 0;
    int fd = perf_event_open(&attr, 0, -1);
    if (fd < 0)
        return perf_event_explain(err, errno, NULL, "reading perf's clock");
    struct perf_clock *c = xcalloc(1, sizeof *c);
    c->fd = fd;
    int rc = perf_ring_map(&c->ring, fd, 1, err);
    if (rc < 0) {
        perf_clock_free(c);
        return rc;
    }
    *out = c;
    return 0;
}

void perf_clock_free(struct perf_clock *c)
{
    if (!c)
        return;
    perf_ring_unmap(&c->ring);
    (void)close(c->fd);
    free(c);
}

uint64_t perf_clock_now_ns(struct perf_clock *c)
{
    char name[16] = "";
    uint64_t time = 0;
    const struct perf_event_header *h;
    if (!c)
        return 0;
    /* Another clock of the same thread writes its records into this ring too; when they have filled
     * it, ours would be dropped. */
    while (perf_ring_next(&c->ring, c->scratch))
        ;
    if (prctl(PR_GET_NAME, name) != 0 || prctl(PR_SET_NAME, name) != 0)
        return 0;
    while ((h = perf_ring_next(&c->ring, c->scratch))) {
        /* ... pid, tid, time, id at the end of the record. */
        if (h->type == PERF_RECORD_COMM && h->size >= sizeof *h + 8 + 24)
            memcpy(&time, (const unsigned char *)h + h->size - 16, sizeof time);
    }
    return time;
}

#include "core/trigger/perf_ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int perf_ring_map(struct perf_ring *r, int fd, size_t data_pages, struct err *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (; data_pages >= 1; data_pages /= 2) {
        void *p = mmap(NULL, page * (data_pages + 1), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED) {
            *r = (struct perf_ring){
                .page = p, .data = (unsigned char *)p + page, .size = page * data_pages};
            return 0;
        }
        if (errno != EPERM && errno != ENOMEM)
            break;
    }
    if (errno == EPERM || errno == ENOMEM)
        return err_set(err, MTUI_E_PERM,
                       "no locked memory is left for a trigger's buffer; raise "
                       "kernel.perf_event_mlock_kb or ulimit -l");
    return err_errno(err, errno, "mapping a trigger's buffer");
}

void perf_ring_unmap(struct perf_ring *r)
{
    if (r->page)
        (void)munmap(r->page, r->size + (size_t)(r->data - (unsigned char *)r->page));
    *r = (struct perf_ring){0};
}

/* Only after the record handed out before is no longer used may its place be given back. */
static void give_back(struct perf_ring *r)
{
    __atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}

const struct perf_event_header *perf_ring_next(struct perf_ring *r, void *scratch)
{
    if (!r->page)
        return NULL;
    give_back(r);
    uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
    if (head - r->tail < sizeof(struct perf_event_header))
        return NULL;
    size_t at = (size_t)(r->tail & (r->size - 1));
    /* Records are multiples of 8 bytes, so a header never wraps. */
    const struct perf_event_header *h = (const void *)(r->data + at);
    size_t len = h->size;
    if (len < sizeof *h || len > head - r->tail) { /* cannot be: drop what is there */
        r->tail = head;
        give_back(r);
        return NULL;
    }
    if (at + len > r->size) {
        size_t first = r->size - at;
        memcpy(scratch, r->data + at, first);
        memcpy((unsigned char *)scratch + first, r->data, len - first);
        h = scratch;
    }
    r->tail += len;
    return h;
}

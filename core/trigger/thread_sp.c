#include "core/trigger/thread_sp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/perf_event.h"
#include "core/trigger/perf_ring.h"

#define PERIOD_NS 200000u /* of the thread's CPU time */

struct thread_sp {
    pid_t tid;
    int fd; /* −1: events are not allowed */
    struct perf_ring ring;
    unsigned char scratch[PERF_RING_SCRATCH];
};

int thread_sp_new(pid_t tid, struct thread_sp **out, struct err *err)
{
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    perf_event_sample_hits(&attr);
    attr.sample_period = PERIOD_NS;
    int fd = perf_event_open(&attr, tid, -1);
    if (fd < 0 && errno == ESRCH)
        return err_set(err, MTUI_E_GONE, "thread %d has ended", (int)tid);
    struct thread_sp *t = xcalloc(1, sizeof *t);
    t->tid = tid;
    t->fd = fd;
    if (fd >= 0 && perf_ring_map(&t->ring, fd, 1, NULL) < 0) {
        (void)close(fd);
        t->fd = -1;
    }
    *out = t;
    return 0;
}

void thread_sp_free(struct thread_sp *t)
{
    if (!t)
        return;
    perf_ring_unmap(&t->ring);
    if (t->fd >= 0)
        (void)close(t->fd);
    free(t);
}

/* "NR ARG1 … ARG6 SP PC", "-1 SP PC" when it waits outside of a system call, or "running". */
static bool read_waiting(pid_t tid, uint64_t *sp)
{
    char path[64], line[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/syscall", (int)tid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool there = fgets(line, sizeof line, f) != NULL;
    (void)fclose(f);
    char *pc = there ? strrchr(line, ' ') : NULL;
    if (!pc)
        return false;
    *pc = '\0';
    char *at = strrchr(line, ' ');
    return at && sscanf(at + 1, "0x%" SCNx64, sp) == 1;
}

bool thread_sp_read(struct thread_sp *t, uint64_t *sp)
{
    const struct perf_event_header *h;
    struct perf_hit hit;
    bool known = false;
    while (t->fd >= 0 && (h = perf_ring_next(&t->ring, t->scratch))) {
        if (h->type == PERF_RECORD_SAMPLE && perf_hit_parse(h, false, &hit) &&
            hit.regs[PERF_HIT_SP]) {
            *sp = hit.regs[PERF_HIT_SP];
            known = true;
        }
    }
    return read_waiting(t->tid, sp) || known;
}

bool thread_sp_word(const struct thread_sp *t, uint64_t address, uint64_t *value)
{
    uint64_t word;
    struct iovec here = {&word, sizeof word};
    struct iovec there = {(void *)(uintptr_t)address, sizeof word};
    if (process_vm_readv(t->tid, &here, 1, &there, 1, 0) != (ssize_t)sizeof word)
        return false;
    *value = word;
    return true;
}

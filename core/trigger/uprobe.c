#include "core/trigger/uprobe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/machine/perf_event.h"

int uprobe_type(const char *sys_root, uint32_t *type, struct err *err)
{
    return perf_event_pmu_type(sys_root, "uprobe", type, err);
}

void uprobe_attr(struct perf_event_attr *attr, uint32_t type, const char *path, uint64_t offset)
{
    memset(attr, 0, sizeof *attr);
    attr->size = sizeof *attr;
    attr->type = type;
    attr->config1 = (uint64_t)(uintptr_t)path;
    attr->config2 = offset;
}

__attribute__((noinline, naked)) void uprobe_try_function(void)
{
    __asm__ volatile("ret");
}

/* File offset of an address of this process' own program, from /proc/self/maps. */
static int own_offset(uint64_t addr, uint64_t *offset)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[4352];
    int rc = -1;
    while (f && rc != 0 && fgets(line, sizeof line, f)) {
        uint64_t start, end, pgoff;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64, &start, &end, &pgoff) == 3 &&
            addr >= start && addr < end) {
            *offset = addr - start + pgoff;
            rc = 0;
        }
    }
    if (f)
        (void)fclose(f);
    return rc;
}

int uprobe_try_offset(uint64_t *offset)
{
    /* Through a volatile pointer, so that the call is really made. */
    void (*volatile call)(void) = uprobe_try_function;
    return own_offset((uint64_t)(uintptr_t)call, offset);
}

int uprobe_self_test(struct err *err)
{
    uint32_t type = 0;
    uint64_t offset = 0, count = 0;
    int rc = uprobe_type(NULL, &type, err);
    if (rc < 0)
        return rc;
    /* Through a volatile pointer, so that the call is really made. */
    void (*volatile call)(void) = uprobe_try_function;
    if (own_offset((uint64_t)(uintptr_t)call, &offset) != 0)
        return err_set(err, MTUI_E_IO, "cannot find the self-test's code in /proc/self/maps");
    struct perf_event_attr attr;
    uprobe_attr(&attr, type, "/proc/self/exe", offset);
    int fd = perf_event_open(&attr, 0, -1);
    if (fd < 0)
        return perf_event_explain(err, errno, NULL, "placing a uprobe");
    call();
    ssize_t n = read(fd, &count, sizeof count);
    (void)close(fd);
    if (n != sizeof count || count != 1)
        return err_set(err, MTUI_E_NOTSUP, "a uprobe was placed but did not fire");
    return 0;
}

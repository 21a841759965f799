#include "core/machine/pmu.h"

#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/machine/proc_stat.h"

#define DEVICES "bus/event_source/devices"

/* The contents of DEVICES/pmu/file without the newline; false when absent. */
static bool read_attr(const char *sys, const char *pmu, const char *file, char *out, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" DEVICES "/%s/%s", sys, pmu, file);
    char *text = proc_read_file(path, 4096, NULL);
    if (!text)
        return false;
    text[strcspn(text, "\n")] = '\0';
    snprintf(out, size, "%s", text);
    free(text);
    return true;
}

/* caps/ files hold one hexadecimal number without prefix. */
static uint32_t read_cap(const char *sys, const char *file)
{
    char text[64];
    return read_attr(sys, "intel_pt", file, text, sizeof text) ? (uint32_t)strtoul(text, NULL, 16)
                                                               : 0;
}

int pmu_type(const char *sys, const char *name)
{
    char text[64];
    if (!read_attr(sys, name, "type", text, sizeof text))
        return -1;
    long v = strtol(text, NULL, 10);
    return v >= 0 && v <= INT_MAX ? (int)v : -1;
}

void pmu_read_intel_pt(const char *sys, struct pmu_intel_pt *out)
{
    struct pmu_intel_pt pt = {0};
    int type = pmu_type(sys, "intel_pt");
    if (type >= 0) {
        pt.present = true;
        pt.type = (uint32_t)type;
        pt.psb_cyc = read_cap(sys, "caps/psb_cyc") != 0;
        pt.mtc = read_cap(sys, "caps/mtc") != 0;
        pt.ptwrite = read_cap(sys, "caps/ptwrite") != 0;
        pt.power_events = read_cap(sys, "caps/power_event_trace") != 0;
        pt.ip_filtering = read_cap(sys, "caps/ip_filtering") != 0;
        pt.snapshot = read_cap(sys, "caps/topa_output") != 0;
        pt.mtc_periods = read_cap(sys, "caps/mtc_periods");
        pt.cycle_thresholds = read_cap(sys, "caps/cycle_thresholds");
        pt.psb_periods = read_cap(sys, "caps/psb_periods");
        pt.address_ranges = read_cap(sys, "caps/num_address_ranges");
        if (!read_attr(sys, "intel_pt", "cpus", pt.cpus, sizeof pt.cpus))
            read_attr(sys, "intel_pt", "cpumask", pt.cpus, sizeof pt.cpus);
    }
    *out = pt;
}

bool pmu_cycles_count(int *errno_out)
{
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = PERF_TYPE_HARDWARE,
                                   .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (errno_out)
        *errno_out = fd < 0 ? errno : 0;
    if (fd < 0)
        return false;
    /* Some user-mode work that the compiler keeps. */
    for (volatile int i = 0; i < 100000; i++)
        ;
    uint64_t count = 0;
    ssize_t n = read((int)fd, &count, sizeof count);
    close((int)fd);
    return n == sizeof count && count > 0;
}

/* Performance monitoring units, read from sysfs (Documentation/ABI/testing/sysfs-bus-event_source-*),
 * and small experiments with perf_event_open. */
#ifndef MTUI_CORE_PMU_H
#define MTUI_CORE_PMU_H

#include <stdbool.h>
#include <stdint.h>

/* The intel_pt PMU and its caps/ directory. */
struct pmu_intel_pt {
    bool present;
    uint32_t type;
    bool psb_cyc, mtc, ptwrite, power_events, ip_filtering, snapshot; /* snapshot: ToPA output */
    uint32_t mtc_periods, cycle_thresholds, psb_periods; /* bit n: the value n is allowed */
    unsigned address_ranges;
    char cpus[64]; /* CPU list when not all have it (hybrid machines), else "" */
};

/* sys is "/sys" or a test's tree. An absent PMU leaves present false. */
void pmu_read_intel_pt(const char *sys, struct pmu_intel_pt *out);

/* The dynamic type number of a PMU ("uprobe", "intel_pt"), or −1. */
int pmu_type(const char *sys, const char *name);

/* True when the hardware cycle counter opens and counts in this very thread (in many virtual machines
 * it does not open; in some it opens and stays 0). errno_out: why it did not open, else 0. */
bool pmu_cycles_count(int *errno_out);

#endif

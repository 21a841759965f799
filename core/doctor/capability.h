/* What this machine lets us record, found by asking and trying, not by guessing.
 *
 * One table: `mtui doctor` prints it, the home screen shows it, recorders are chosen by it. Each line
 * has what was found, why it is so, and the command that would change it. Probing runs perf and forks
 * small children, so it takes up to a second: run it in a worker thread. */
#ifndef MTUI_CORE_CAPABILITY_H
#define MTUI_CORE_CAPABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/machine/pmu.h"

enum capability_id {
    CAP_PERF,       /* the perf program and its version */
    CAP_CONTROL,    /* perf's control fd: an answered ping */
    CAP_KERNEL,     /* kernel version */
    CAP_INTEL_PT,   /* the intel_pt PMU */
    CAP_CYCLES,     /* a hardware cycle counter that counts */
    CAP_PARANOID,   /* kernel.perf_event_paranoid and what it allows us */
    CAP_OTHERS,     /* tracing processes of other users */
    CAP_MLOCK,      /* kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK: the largest ring */
    CAP_KPTR,       /* kernel.kptr_restrict: kernel symbol addresses */
    CAP_YAMA,       /* kernel.yama.ptrace_scope */
    CAP_PRIVILEGES, /* effective capabilities */
    CAP_KCORE,      /* /proc/kcore: kernel code for --kernel */
    CAP_HWBREAK,    /* hardware execution breakpoints, self-tested */
    CAP_UPROBE,     /* uprobes through the PMU, self-tested */
    CAP_STEP,       /* single-stepping by ptrace with perf's sigtrap */
    CAPABILITIES
};

struct capability {
    const char *name;  /* short, for the table */
    bool present;
    char value[192];   /* what was found */
    char reason[256];  /* why; empty when there is nothing to explain */
    char remedy[256];  /* the command that would change it; empty when nothing would */
};

struct capability_paths {
    const char *proc; /* "/proc" */
    const char *sys;  /* "/sys" */
    const char *perf; /* MTUI_PERF or "perf" */
};

struct capabilities {
    struct capability line[CAPABILITIES];
    struct pmu_intel_pt intel_pt;
    bool cycles_count;      /* the hardware counter works: else cpu-clock */
    bool hwbreak_fires, uprobe_works;
    int paranoid;           /* −2 when unknown */
    uint64_t mlock_bytes;   /* per user: mlock_kb × online CPUs + RLIMIT_MEMLOCK; UINT64_MAX: no limit */
    unsigned cpus_online;
};

/* The standard paths, with $MTUI_PERF respected. */
struct capability_paths capability_paths_default(void);

/* Fills *out wholly; never fails: what cannot be found out is absent, with the reason. */
void capability_probe(const struct capability_paths *paths, struct capabilities *out);

#endif

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/fmt.h"
#include "core/record/plan.h"

#define DEFAULT_MLOCK_KB 516 /* kernel/events/core.c: sysctl_perf_event_mlock */
#define CAP_IPC_LOCK_BIT 14  /* linux/capability.h */
#define PERF_DATA_PAGES  128 /* the data ring that perf maps beside an AUX ring: 512 KiB */

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The largest power of two ≤ n; 0 for 0. */
static uint64_t floor_power(uint64_t n)
{
    while (n & (n - 1))
        n &= n - 1;
    return n;
}

uint64_t plan_ring_bytes(const struct record_plan *plan, bool *rounded)
{
    uint64_t want = plan->ring_bytes;
    if (!want)
        want = plan->recorder == PLAN_SAMPLE ? PLAN_DEFAULT_SAMPLE_RING : PLAN_DEFAULT_PT_RING;
    uint64_t bytes = floor_power(want);
    if (bytes < want && bytes <= UINT64_MAX / 2)
        bytes *= 2;
    if (bytes < page_bytes())
        bytes = page_bytes();
    if (rounded)
        *rounded = bytes != want;
    return bytes;
}

/* The first line of proc_root/name with the given key in front ("" for none), as a number. */
static bool read_number(const char *proc_root, const char *name, const char *key, int base,
                        uint64_t *value)
{
    char path[512], line[256];
    snprintf(path, sizeof path, "%s/%s", proc_root, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)))
            continue;
        char *end;
        *value = strtoull(line + strlen(key), &end, base);
        found = end != line + strlen(key);
    }
    fclose(f);
    return found;
}

void plan_read_limits(const char *proc_root, struct plan_limits *limits)
{
    struct plan_limits l = {.mlock_kb = DEFAULT_MLOCK_KB, .memlock_bytes = UINT64_MAX};
    read_number(proc_root, "sys/kernel/perf_event_mlock_kb", "", 10, &l.mlock_kb);
    struct rlimit lim;
    if (getrlimit(RLIMIT_MEMLOCK, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY)
        l.memlock_bytes = lim.rlim_cur;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    l.cpus = cpus > 0 ? (unsigned)cpus : 1;
    uint64_t paranoid = 2, caps = 0;
    read_number(proc_root, "sys/kernel/perf_event_paranoid", "", 10, &paranoid);
    read_number(proc_root, "self/status", "CapEff:", 16, &caps);
    l.exempt = (int64_t)paranoid < 0 || (caps >> CAP_IPC_LOCK_BIT & 1);
    *limits = l;
}

/* Rings that perf maps: one a thread with --per-thread, else one a CPU. */
static uint64_t ring_count(const struct record_plan *plan, const struct plan_limits *limits)
{
    return plan->n_tids ? plan->n_tids : limits->cpus;
}

/* Pages beside the ring itself: the control page, and for an AUX ring the data ring with its own.
 */
static uint64_t extra_pages(const struct record_plan *plan)
{
    return plan->recorder == PLAN_SAMPLE ? 1 : 1 + PERF_DATA_PAGES;
}

/* A power of two as the option -s takes it. */
static void format_option(char *out, uint64_t bytes)
{
    bool mib = bytes >= 1u << 20;
    snprintf(out, FMT_MAX, "%" PRIu64 "%c", bytes >> (mib ? 20 : 10), mib ? 'M' : 'K');
}

int plan_check_limits(const struct record_plan *plan, const struct plan_limits *limits,
                      uint64_t *fits, struct err *err)
{
    uint64_t page = page_bytes();
    uint64_t want = plan_ring_bytes(plan, NULL);
    if (plan->recorder == PLAN_STEP || limits->exempt || limits->memlock_bytes == UINT64_MAX) {
        if (fits)
            *fits = want;
        return 0;
    }
    uint64_t rings = ring_count(plan, limits);
    uint64_t allowed = limits->mlock_kb * 1024 / page * limits->cpus + limits->memlock_bytes / page;
    uint64_t each = allowed / rings;
    uint64_t best = each > extra_pages(plan) ? floor_power(each - extra_pages(plan)) * page : 0;
    if (fits)
        *fits = best < want ? best : want;
    if (best >= want)
        return 0;
    char want_text[FMT_MAX], all_text[FMT_MAX], allowed_text[FMT_MAX], best_text[FMT_MAX];
    fmt_size(want_text, want);
    fmt_size(all_text, (want / page + extra_pages(plan)) * page * rings);
    fmt_size(allowed_text, allowed * page);
    format_option(best_text, best);
    if (!best)
        return err_set(err, MTUI_E_LIMIT,
                       "%" PRIu64
                       " buffers of %s need %s of locked memory, %s are allowed, which is "
                       "less than a page each: raise kernel.perf_event_mlock_kb or ulimit -l",
                       rings, want_text, all_text, allowed_text);
    return err_set(err, MTUI_E_LIMIT,
                   "%" PRIu64
                   " buffers of %s need %s of locked memory, %s are allowed: -s %s works "
                   "(or raise kernel.perf_event_mlock_kb or ulimit -l)",
                   rings, want_text, all_text, allowed_text, best_text);
}

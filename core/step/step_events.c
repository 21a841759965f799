#include "core/step/step_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/trigger/hwbreak.h"
#include "core/machine/perf_event.h"
#include "core/trigger/uprobe.h"

#define CLOCK_PERIOD_NS 50000 /* soon, but not so soon that the thread never gets out of the kernel */

static int open_event(struct perf_event_attr *attr, pid_t tid)
{
    attr->size = sizeof *attr;
    attr->sigtrap = 1;
    attr->remove_on_exec = 1; /* the kernel insists on it with sigtrap */
    attr->exclude_hv = 1;
    return perf_event_open(attr, tid, -1);
}

/* Sigtrap itself is unknown to a kernel before 5.13, which answers as it does to any bit it does not know. */
static int refuse(struct step_events *e, pid_t tid, int why, const char *where, struct err *err)
{
    char what[320];
    step_events_close(e);
    if (why == EINVAL || why == E2BIG)
        return err_set(err, MTUI_E_NOTSUP,
                       "the kernel has no events that stop a thread (sigtrap, Linux 5.13)");
    snprintf(what, sizeof what, "stopping thread %d at %s", (int)tid, where);
    return perf_event_explain(err, why, NULL, what);
}

/* Of one site. */
static enum step_means means_at(enum step_means means, const struct step_site *site)
{
    return site->no_uprobe ? STEP_BY_BREAKPOINT : means;
}

static int open_site(enum step_means means, uint32_t uprobes, pid_t tid, const struct step_site *site,
                     int file, uint64_t number)
{
    struct perf_event_attr attr = {0};
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (means == STEP_BY_UPROBE)
        uprobe_attr(&attr, uprobes, path, site->offset);
    else
        hwbreak_attr(&attr, site->address);
    attr.sample_period = 1;
    attr.sig_data = means == STEP_BY_UPROBE ? number : number | STEP_SITE_AHEAD;
    attr.exclude_kernel = 1;
    return open_event(&attr, tid);
}

int step_events_arm(struct step_events *e, pid_t tid, enum step_means means,
                    const struct step_site *sites, const int *files, size_t n, struct err *err)
{
    uint32_t uprobes = 0;
    bool wants_uprobes = false;
    for (size_t i = 0; i < n; i++)
        wants_uprobes |= means_at(means, &sites[i]) == STEP_BY_UPROBE;
    int rc = wants_uprobes ? uprobe_type("/sys", &uprobes, err) : 0;
    if (rc < 0)
        return rc;
    e->fds = xrealloc(e->fds, n * sizeof *e->fds);
    for (; e->n < n; e->n++)
        e->fds[e->n] = -1;
    for (size_t i = 0; i < n; i++) {
        enum step_means by = means_at(means, &sites[i]);
        if (e->fds[i] >= 0 || (by == STEP_BY_BREAKPOINT && !sites[i].address))
            continue;
        e->fds[i] = open_site(by, uprobes, tid, &sites[i], files[i], i);
        if (e->fds[i] < 0)
            return refuse(e, tid, errno, sites[i].path, err);
    }
    return 0;
}

bool step_events_complete(const struct step_events *e, size_t n)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->fds[i] < 0)
            return false;
    return e->n == n;
}

int step_events_arm_clock(struct step_events *e, pid_t tid, struct err *err)
{
    struct perf_event_attr clock = {.type = PERF_TYPE_SOFTWARE,
                                    .config = PERF_COUNT_SW_TASK_CLOCK,
                                    .sample_period = CLOCK_PERIOD_NS,
                                    .sig_data = STEP_CLOCK_SITE,
                                    .exclude_kernel = 1};
    /* A thread that mostly sleeps is seldom caught computing: it is stopped when it comes back from the
     * kernel. The signal is raised only there, so no system call is broken off by it. */
    struct perf_event_attr sleep = {.type = PERF_TYPE_SOFTWARE,
                                    .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
                                    .sample_period = 1,
                                    .sig_data = STEP_CLOCK_SITE};
    e->fds = xcalloc(2, sizeof *e->fds);
    e->n = 0;
    int fd = open_event(&clock, tid);
    if (fd < 0)
        return refuse(e, tid, errno, "its next instruction", err);
    e->fds[e->n++] = fd;
    fd = open_event(&sleep, tid); /* needs the privilege to look at the kernel: does without */
    if (fd >= 0)
        e->fds[e->n++] = fd;
    return 0;
}

void step_events_enable(const struct step_events *e, bool on)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->fds[i] >= 0)
            ioctl(e->fds[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void step_events_close(struct step_events *e)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->fds[i] >= 0)
            close(e->fds[i]);
    free(e->fds);
    *e = (struct step_events){0};
}

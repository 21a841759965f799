#include "core/step_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/uprobe.h"

#define CLOCK_PERIOD_NS 50000 /* soon, but not so soon that the thread never gets out of the kernel */

static int open_event(struct perf_event_attr *attr, pid_t tid)
{
    attr->size = sizeof *attr;
    attr->sigtrap = 1;
    attr->remove_on_exec = 1; /* the kernel insists on it with sigtrap */
    attr->exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int refuse(struct step_events *e, pid_t tid, int why, const char *what, struct err *err)
{
    step_events_close(e);
    if (why == EINVAL)
        return err_set(err, MTUI_E_NOTSUP,
                       "the kernel has no events that stop a thread (sigtrap, Linux 5.13)");
    return err_errno(err, why, "cannot stop thread %d at %s", (int)tid, what);
}

int step_events_arm(struct step_events *e, pid_t tid, const struct step_site *sites, size_t n,
                    struct err *err)
{
    uint32_t type;
    int rc = uprobe_type("/sys", &type, err);
    if (rc < 0)
        return rc;
    e->fds = xrealloc(e->fds, n * sizeof *e->fds);
    for (size_t i = e->n; i < n; i++) {
        struct perf_event_attr attr = {0};
        uprobe_attr(&attr, type, sites[i].path, sites[i].offset);
        attr.sample_period = 1;
        attr.sig_data = i;
        attr.exclude_kernel = 1;
        int fd = open_event(&attr, tid);
        if (fd < 0)
            return refuse(e, tid, errno, sites[i].path, err);
        e->fds[e->n++] = fd;
    }
    return 0;
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
        ioctl(e->fds[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void step_events_close(struct step_events *e)
{
    for (size_t i = 0; i < e->n; i++)
        close(e->fds[i]);
    free(e->fds);
    *e = (struct step_events){0};
}

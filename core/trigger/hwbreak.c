#include "core/trigger/hwbreak.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/machine/perf_event.h"

#define SLOTS_MAX 16 /* x86 has 4, others up to 16 */

void hwbreak_attr(struct perf_event_attr *attr, uint64_t addr)
{
    memset(attr, 0, sizeof *attr);
    attr->size = sizeof *attr;
    attr->type = PERF_TYPE_BREAKPOINT;
    attr->bp_type = HW_BREAKPOINT_X;
    attr->bp_addr = addr;
    attr->bp_len = sizeof(long);
    attr->exclude_kernel = 1;
    attr->exclude_hv = 1;
}

__attribute__((noinline)) static void self_test_function(void)
{
    __asm__ volatile("" ::: "memory");
}

struct verdict {
    int errno_value;
    unsigned slots;
    uint64_t calls, count;
};

/* Runs in the forked child: system calls only. */
static struct verdict try_it(void)
{
    struct verdict v = {0};
    void (*volatile call)(void) = self_test_function;
    struct perf_event_attr attr;
    hwbreak_attr(&attr, (uint64_t)(uintptr_t)call);
    int first = -1;
    for (; v.slots < SLOTS_MAX; v.slots++) {
        int fd = perf_event_open(&attr, 0, -1);
        if (fd < 0) {
            v.errno_value = v.slots ? 0 : errno;
            break;
        }
        if (first < 0)
            first = fd;
    }
    cpu_set_t allowed, one;
    if (first < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return v;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) == 0) {
            call();
            v.calls++;
        }
    }
    if (read(first, &v.count, sizeof v.count) != sizeof v.count)
        v.count = 0;
    return v;
}

int hwbreak_self_test(unsigned *slots, struct err *err)
{
    int pipefd[2];
    struct verdict v = {.errno_value = EIO};
    if (pipe2(pipefd, O_CLOEXEC) != 0)
        return err_errno(err, errno, "hardware breakpoint self-test");
    pid_t child = fork();
    if (child == 0) {
        struct verdict mine = try_it();
        _exit(write(pipefd[1], &mine, sizeof mine) == sizeof mine ? 0 : 1);
    }
    int fork_errno = errno;
    (void)close(pipefd[1]);
    ssize_t n = -1;
    while (child > 0 && (n = read(pipefd[0], &v, sizeof v)) < 0 && errno == EINTR)
        ;
    (void)close(pipefd[0]);
    if (child < 0)
        return err_errno(err, fork_errno, "hardware breakpoint self-test");
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (n != sizeof v)
        return err_set(err, MTUI_E_NOTSUP, "the hardware breakpoint self-test gave no answer");
    if (v.errno_value == ENOSPC)
        return err_set(err, MTUI_E_LIMIT, "all hardware breakpoint slots are in use");
    if (v.errno_value)
        return perf_event_explain(err, v.errno_value, NULL, "hardware breakpoint");
    if (v.count != v.calls || v.calls == 0)
        return err_set(err, MTUI_E_NOTSUP,
                       "hardware breakpoints open but do not fire here (usual in virtual "
                       "machines); uprobes are used instead");
    if (slots)
        *slots = v.slots;
    return 0;
}

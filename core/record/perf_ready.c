#include "core/record/perf_ready.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool read_text(const char *proc_root, pid_t pid, const char *name, char *buf, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%d/%s", proc_root, (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, buf, size - 1);
    close(fd);
    if (n <= 0)
        return false;
    buf[n] = '\0';
    return true;
}

static uint64_t mask_of(const char *status, const char *key)
{
    const char *at = strstr(status, key);
    return at ? strtoull(at + strlen(key), NULL, 16) : 0;
}

static bool has(uint64_t mask, int sig)
{
    return mask >> (sig - 1) & 1;
}

/* "7 0xFDS 0xN 0xTIMEOUT ...": the number of the call and its arguments (proc(5)); "running" when
 * it is in none. The timeout is an int, -1 for none; ppoll has a NULL pointer instead. */
static bool waits_in_poll(const char *text)
{
    long nr;
    uint64_t fds, n, timeout;
    if (sscanf(text, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64, &nr, &fds, &n, &timeout) != 4)
        return false;
#ifdef SYS_poll
    if (nr == SYS_poll)
        return (uint32_t)timeout == UINT32_MAX;
#endif
    return nr == SYS_ppoll && timeout == 0;
}

void perf_ready_check(const char *proc_root, pid_t pid, struct perf_ready *ready)
{
    char status[4096], call[256];
    *ready = (struct perf_ready){0};
    if (!read_text(proc_root, pid, "status", status, sizeof status))
        return;
    uint64_t caught = mask_of(status, "\nSigCgt:"), ignored = mask_of(status, "\nSigIgn:");
    uint64_t pending = mask_of(status, "\nShdPnd:") | mask_of(status, "\nSigPnd:");
    ready->pending = has(pending, SIGUSR2) || has(pending, SIGINT) || has(pending, SIGTERM);
    ready->handlers = has(caught, SIGTERM) && has(caught | ignored, SIGUSR2);
    ready->stopped = strstr(status, "\nState:\tT") != NULL;
    /* After the masks: a signal seen delivered has then been handled when it waits again. */
    if (read_text(proc_root, pid, "syscall", call, sizeof call))
        ready->waiting = waits_in_poll(call);
    else
        ready->coarse = ready->waiting = strstr(status, "\nState:\tS") != NULL;
}

bool perf_ready_is_idle(const struct perf_ready *ready)
{
    return ready->handlers && ready->waiting && !ready->pending && !ready->stopped;
}

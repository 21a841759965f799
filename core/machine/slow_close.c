#include "core/machine/slow_close.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"

#define UPROBE_NS 125000000u /* or two of it each; measured with Linux 6.18 */
#define SAID_NS   2000000000u

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* System calls only. kept is sorted. */
static void close_others(const int *kept, size_t n)
{
    unsigned next = 0;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned)kept[i] > next)
            (void)close_range(next, (unsigned)kept[i] - 1, 0);
        next = (unsigned)kept[i] + 1;
    }
    (void)close_range(next, ~0u, 0);
}

/* Until the other end is closed, in whatever way. */
static void wait_for_end(int pipe_end)
{
    char byte;
    while (read(pipe_end, &byte, 1) < 0 && errno == EINTR)
        ;
}

/* Forks the process, nobody's child, that holds copies of kept[0..n) and nothing else until the
 * other end of the pipe is closed here. */
static void hand_over(const int *kept, size_t n, int pipe_end)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the child */
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        if (fork() == 0) {
            close_others(kept, n);
            wait_for_end(pipe_end);
            for (size_t i = 0; i < n; i++)
                (void)close(kept[i]);
        }
        _exit(0);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

void slow_close(const int *fds, size_t n)
{
    int ends[2] = {-1, -1};
    if (n == 0)
        return;
    /* Whoever closes last waits for the kernel: the other process lets go only when this one has. */
    if (pipe2(ends, O_CLOEXEC) == 0) {
        int *kept = xcalloc(n + 1, sizeof *kept);
        memcpy(kept, fds, n * sizeof *kept);
        kept[n] = ends[0];
        qsort(kept, n + 1, sizeof *kept, compare);
        hand_over(kept, n + 1, ends[0]);
        free(kept);
    }
    for (size_t i = 0; i < n; i++)
        (void)close(fds[i]);
    for (size_t i = 0; i < 2 && ends[0] >= 0; i++)
        (void)close(ends[i]);
}

bool slow_close_text(char *text, size_t size, size_t n)
{
    char probes[FMT_MAX];
    uint64_t ns = (uint64_t)n * UPROBE_NS;
    if (ns < SAID_NS)
        return false;
    (void)snprintf(text, size,
                   "%s being taken out of the program, also when mtui ends: that takes the kernel some %u s, and until "
                   "then a call of what they are in costs some microseconds",
                   fmt_counted(probes, n, "probe is", "probes are"), (unsigned)(ns / 1000000000u));
    return true;
}

#include "core/machine/slow_close.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* In the child, system calls only: everything that is not in fds goes first, so that no pipe or
 * terminal stays open through it. */
static void close_in_child(const int *fds, size_t n)
{
    unsigned next = 0;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned)fds[i] > next)
            (void)close_range(next, (unsigned)fds[i] - 1, 0);
        next = (unsigned)fds[i] + 1;
    }
    (void)close_range(next, ~0u, 0);
    for (size_t i = 0; i < n; i++)
        (void)close(fds[i]);
}

void slow_close(int *fds, size_t n)
{
    if (n == 0)
        return;
    qsort(fds, n, sizeof *fds, compare);
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the child */
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        pid_t detached = fork();
        if (detached <= 0)
            close_in_child(fds, n);
        _exit(0);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    for (size_t i = 0; i < n; i++)
        (void)close(fds[i]);
}

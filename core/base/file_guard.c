#include "core/base/file_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Handlers have no argument; written before the handler is installed. */
static struct {
    struct sigaction former;
    uintptr_t page;
} guard;

bool file_guard_mend(int number, const siginfo_t *info)
{
    if (number != SIGBUS || info->si_code != BUS_ADRERR || !guard.page)
        return false;
    int saved = errno;
    uintptr_t at = (uintptr_t)info->si_addr & ~(guard.page - 1);
    void *zeros = mmap((void *)at, guard.page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    errno = saved;
    return zeros != MAP_FAILED;
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (!file_guard_mend(number, info))
        sigaction(SIGBUS, &guard.former, NULL); /* and the instruction faults again */
}

/* Unless it is in place, also when somebody has put another handler there since. */
static void install(void)
{
    struct sigaction sa = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK}, present;
    if (sigaction(SIGBUS, NULL, &present) < 0 ||
        ((present.sa_flags & SA_SIGINFO) && present.sa_sigaction == on_bus))
        return;
    long page = sysconf(_SC_PAGESIZE);
    guard.page = page > 0 ? (uintptr_t)page : 4096;
    sigemptyset(&sa.sa_mask);
    guard.former = present;
    sigaction(SIGBUS, &sa, NULL);
}

void file_guard_install(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    sigset_t bus;
    pthread_mutex_lock(&lock);
    install();
    pthread_mutex_unlock(&lock);
    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    (void)pthread_sigmask(SIG_UNBLOCK, &bus, NULL); /* blocked, a fault would end the process */
}

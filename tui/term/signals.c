#include "tui/term/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static const struct {
    int number;
    unsigned flag;
} caught[] = {
    {SIGWINCH, SIGNALS_RESIZE},  {SIGTERM, SIGNALS_QUIT},   {SIGINT, SIGNALS_INTERRUPT},
    {SIGQUIT, SIGNALS_INTERRUPT}, {SIGHUP, SIGNALS_HANGUP},  {SIGTSTP, SIGNALS_SUSPEND},
    {SIGCONT, SIGNALS_RESUME},   {SIGPIPE, 0},              {SIGUSR1, 0},
    {SIGUSR2, 0},
};
#define CAUGHT (sizeof caught / sizeof *caught)

/* Handlers have no argument: this is the signal flag that may be global. */
static atomic_uint pending;
static int wake[2] = {-1, -1};
static struct sigaction former[CAUGHT];

static void handle(int number)
{
    int saved = errno;
    for (size_t i = 0; i < CAUGHT; i++)
        if (caught[i].number == number && caught[i].flag)
            atomic_fetch_or(&pending, caught[i].flag);
    ssize_t n = write(wake[1], "", 1);
    (void)n; /* a full pipe has woken the loop already */
    errno = saved;
}

int signals_open(void)
{
    if (wake[0] >= 0)
        return wake[0];
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    for (size_t i = 0; i < CAUGHT; i++) {
        struct sigaction sa = {.sa_handler = handle, .sa_flags = SA_RESTART};
        sigemptyset(&sa.sa_mask);
        sigaction(caught[i].number, &sa, &former[i]);
    }
    return wake[0];
}

unsigned signals_take(void)
{
    char bytes[64];
    while (wake[0] >= 0 && read(wake[0], bytes, sizeof bytes) > 0)
        ;
    return atomic_exchange(&pending, 0);
}

void signals_close(void)
{
    if (wake[0] < 0)
        return;
    for (size_t i = 0; i < CAUGHT; i++)
        sigaction(caught[i].number, &former[i], NULL);
    close(wake[0]);
    close(wake[1]);
    wake[0] = wake[1] = -1;
    atomic_store(&pending, 0);
}

void signals_stop_self(void)
{
    struct sigaction ours, stop = {.sa_handler = SIG_DFL};
    sigset_t set, old;
    sigemptyset(&stop.sa_mask);
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    sigaction(SIGTSTP, &stop, &ours);
    sigprocmask(SIG_UNBLOCK, &set, &old);
    kill(0, SIGTSTP); /* the group, as the terminal's own ^Z would: a shell script waits with us */
    atomic_fetch_and(&pending, ~(unsigned)(SIGNALS_SUSPEND | SIGNALS_RESUME)); /* served, and known */
    sigprocmask(SIG_SETMASK, &old, NULL);
    sigaction(SIGTSTP, &ours, NULL);
}

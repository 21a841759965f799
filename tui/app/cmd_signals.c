#include "tui/app/cmd_signals.h"

#include <signal.h>
#include <stddef.h>

/* All that a handler may write. */
static volatile sig_atomic_t caught, caught_from_process;

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)context;
    caught_from_process = info->si_code <= 0; /* SI_USER and the like; SI_KERNEL is above */
    caught = sig;
}

static void on_harmless(int sig)
{
    (void)sig;
}

void cmd_catch_pipe(void)
{
    struct sigaction harmless = {.sa_handler = on_harmless, .sa_flags = SA_RESTART};
    sigemptyset(&harmless.sa_mask);
    sigaction(SIGPIPE, &harmless, NULL);
}

void cmd_end_by_pipe(void)
{
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

void cmd_catch_signals(void)
{
    struct sigaction finish = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    struct sigaction harmless = {.sa_handler = on_harmless, .sa_flags = SA_RESTART};
    sigemptyset(&finish.sa_mask);
    sigemptyset(&harmless.sa_mask);
    sigaction(SIGINT, &finish, NULL);
    sigaction(SIGTERM, &finish, NULL);
    sigaction(SIGHUP, &finish, NULL);
    sigaction(SIGUSR1, &harmless, NULL);
    sigaction(SIGUSR2, &harmless, NULL);
    cmd_catch_pipe();
}

int cmd_caught_signal(bool *from_process)
{
    int sig = caught;
    caught = 0;
    *from_process = caught_from_process;
    return sig;
}

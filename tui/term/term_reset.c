#include "tui/term/term_reset.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/file_guard.h"

static const int fatal[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS};

/* A signal handler has no argument: what it needs stands here, written before `armed` is set. */
static struct {
    atomic_bool armed;
    int in_fd, out_fd;
    size_t len;
    char bytes[256];
    bool have_modes;
    struct termios modes;
    bool handlers;
} reset;

void term_reset_now(void)
{
    if (!atomic_exchange(&reset.armed, false))
        return;
    size_t done = 0;
    while (done < reset.len) {
        ssize_t n = write(reset.out_fd, reset.bytes + done, reset.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* the terminal is gone, or full: the modes still matter */
        done += (size_t)n;
    }
    if (reset.have_modes)
        tcsetattr(reset.in_fd, TCSANOW, &reset.modes);
}

static void die(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (file_guard_mend(number, info))
        return;
    term_reset_now();
    struct sigaction sa = {.sa_handler = SIG_DFL};
    sigemptyset(&sa.sa_mask);
    sigaction(number, &sa, NULL);
    raise(number); /* it ends the process as it would have */
}

/* A stack of its own, so that a stack overflow is survived long enough. */
static void install_handlers(void)
{
    static char stack[16384];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        struct sigaction sa = {.sa_sigaction = die, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
        sigemptyset(&sa.sa_mask);
        sigaction(fatal[i], &sa, NULL);
    }
    atexit(term_reset_now);
    alloc_set_exit_hook(term_reset_now);
}

void term_reset_remember(int in_fd, int out_fd)
{
    if (!reset.handlers)
        install_handlers();
    reset.handlers = true;
    reset.in_fd = in_fd;
    reset.out_fd = out_fd;
    reset.have_modes = tcgetattr(in_fd, &reset.modes) == 0;
}

void term_reset_arm(const char *bytes)
{
    size_t len = strlen(bytes);
    reset.len = len < sizeof reset.bytes ? len : sizeof reset.bytes;
    memcpy(reset.bytes, bytes, reset.len);
    atomic_store(&reset.armed, true);
}

void term_reset_disarm(void)
{
    atomic_store(&reset.armed, false);
}

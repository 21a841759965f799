/* Scenarios of step_victim.c about signals: sent, blocked, ignored, SIGTRAP among them. */
#include "tests/part_step.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

void raise_signals(void)
{
    long before = caught;
    catch_signal(SIGUSR1, 0);
    signal(SIGUSR2, SIG_IGN);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    kill(getpid(), SIGCHLD); /* ignored by default */
    raise(SIGUSR1);
    expect(caught == before + 2, "two signals were sent and not two handled");
}

/* A system call is broken off by a signal from another thread: made again with SA_RESTART, EINTR without. */
static int pipe_fds[2];
static pthread_t reader;

static void *disturb(void *arg)
{
    (void)arg;
    pause_ms(30);
    pthread_kill(reader, SIGUSR1);
    pause_ms(30);
    expect(write(pipe_fds[1], "x", 1) == 1, "write to the pipe");
    return NULL;
}

static void disturbed_read(int flags, ssize_t wanted, const char *what)
{
    pthread_t t;
    char c;
    long before = caught;
    reader = pthread_self();
    catch_signal(SIGUSR1, flags);
    pthread_create(&t, NULL, disturb, NULL);
    ssize_t n = read(pipe_fds[0], &c, 1);
    expect(n == wanted && (n == 1 || errno == EINTR), what);
    pthread_join(t, NULL);
    if (n < 0)
        expect(read(pipe_fds[0], &c, 1) == 1, "the byte is still there");
    expect(caught == before + 1, "one signal");
}

void restart_calls(void)
{
    if (!pipe_fds[1] && pipe(pipe_fds) != 0)
        exit(3);
    disturbed_read(SA_RESTART, 1, "read is restarted");
    disturbed_read(0, -1, "read fails with EINTR");
    signal(SIGUSR1, SIG_IGN);
}

static void count_trap(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    caught++;
    expect(info->si_code == SI_KERNEL, "si_code of an int3 of one's own");
}

void own_breakpoint(void)
{
    struct sigaction a = {.sa_sigaction = count_trap, .sa_flags = SA_SIGINFO};
    long before = caught;
    sigaction(SIGTRAP, &a, NULL);
    __asm__ volatile("int3");
    leaf(1);
    __asm__ volatile("int3");
    expect(caught == before + 2, "two int3 and not two SIGTRAP");
}

/* SIGTRAP that the program sends to itself, by kill(2) and by tgkill(2). */
static volatile sig_atomic_t trap_codes[2];

static void note_trap(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    trap_codes[caught++ & 1] = info->si_code;
    expect(info->si_pid == getpid(), "who sent the SIGTRAP");
}

void send_traps(void)
{
    struct sigaction a = {.sa_sigaction = note_trap, .sa_flags = SA_SIGINFO};
    caught = 0;
    sigaction(SIGTRAP, &a, NULL);
    kill(getpid(), SIGTRAP);
    leaf(1);
    raise(SIGTRAP);
    expect(caught == 2, "two SIGTRAP were sent and not two handled");
    expect(trap_codes[0] == SI_USER && trap_codes[1] == SI_TKILL, "how they were sent");
}

static sigjmp_buf out_of_handler;

static void on_fault(int sig)
{
    siglongjmp(out_of_handler, sig);
}

void fault(void)
{
    static char stack[65536];
    stack_t alt = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction a = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    sigaltstack(&alt, NULL);
    sigaction(SIGSEGV, &a, NULL);
    volatile int rounds = 0;
    if (sigsetjmp(out_of_handler, 1) == 0) {
        *(volatile int *)(uintptr_t)(8 * rounds) = 1;
        expect(0, "a write to 0 came through");
    }
    rounds++;
    expect(leaf(rounds) == 4, "after siglongjmp");
}

void stop_self(void)
{
    kill(getpid(), SIGSTOP);
    leaf(1);
}

/* The gate is passed with SIGTRAP unblocked; then calls of leaf are made while it is blocked. */
void block_trap(void)
{
    sigset_t now;
    change_trap(SIG_BLOCK);
    leaf(1);
    sigprocmask(SIG_BLOCK, NULL, &now);
    expect(sigismember(&now, SIGTRAP), "SIGTRAP is not blocked any more");
    pause_ms(2);
    change_trap(SIG_UNBLOCK);
}

/* What waits while it is blocked comes when it no longer is, and not before. */
void keep_trap(void)
{
    struct sigaction a = {.sa_sigaction = note_trap, .sa_flags = SA_SIGINFO}, now;
    caught = 0;
    sigaction(SIGTRAP, &a, NULL);
    change_trap(SIG_BLOCK);
    leaf(1);
    raise(SIGTRAP);
    leaf(2);
    expect(caught == 0, "a blocked SIGTRAP was handled");
    change_trap(SIG_UNBLOCK);
    expect(caught == 1 && trap_codes[0] == SI_TKILL, "a SIGTRAP that waited was not handled");
    sigaction(SIGTRAP, NULL, &now);
    expect(now.sa_sigaction == note_trap, "the handler of SIGTRAP is another");
}

static void expect_ignored(void)
{
    struct sigaction now;
    sigaction(SIGTRAP, NULL, &now);
    expect(now.sa_handler == SIG_IGN, "SIGTRAP is not ignored any more");
    kill(getpid(), SIGTRAP);
}

void ignore_trap(void)
{
    signal(SIGTRAP, SIG_IGN);
    leaf(1);
    expect_ignored();
    signal(SIGTRAP, SIG_DFL);
}

void stay_deaf(void)
{
    leaf(1);
    expect_ignored();
}

static long ticks(void)
{
    return caught;
}

/* A timer that is faster than stepping. */
void starve(void)
{
    struct itimerval fast = {{0, 500}, {0, 500}}, none = {{0, 0}, {0, 0}};
    long start = ticks();
    catch_signal(SIGALRM, SA_RESTART);
    setitimer(ITIMER_REAL, &fast, NULL);
    for (int i = 0; i < 200000; i++)
        leaf(i);
    setitimer(ITIMER_REAL, &none, NULL);
    expect(ticks() >= start, "ticks");
}

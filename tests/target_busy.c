/* Burns CPU with a call stack worth looking at: main > work > outer > inner. SIGUSR1: it executes sleep(1) in its
 * place. SIGUSR2: it forks a child that waits to be killed (for ten minutes at most), and prints its pid. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t do_exec, do_fork;

static void on_signal(int sig)
{
    *(sig == SIGUSR1 ? &do_exec : &do_fork) = 1;
}

static void obey(void)
{
    if (do_exec)
        execl("/bin/sleep", "sleep", "600", (char *)0);
    do_fork = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(600);
        for (;;)
            pause();
    }
    printf("%d\n", (int)child);
    fflush(stdout);
}

__attribute__((noinline)) static unsigned long inner(unsigned long n)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++)
        sum += i;
    return sum;
}

__attribute__((noinline)) static unsigned long outer(unsigned long n)
{
    return inner(n) + 1;
}

__attribute__((noinline)) static unsigned long work(void)
{
    return outer(20000) + 1;
}

int main(void)
{
    unsigned long total = 0;
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    for (;;) {
        total += work();
        if (do_exec || do_fork)
            obey();
    }
    return (int)total;
}

/* Works, starts another program by posix_spawn(3), works beside it, and waits for it.
 *   spawner MILLISECONDS PROGRAM ARGUMENT...   prints the pid of what it started */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

__attribute__((noinline)) static unsigned long parent_work(double ms)
{
    volatile unsigned long sum = 0;
    for (double end = cpu_ms() + ms; cpu_ms() < end;)
        for (unsigned long i = 0; i < 10000; i++)
            sum += i * i;
    return sum;
}

int main(int argc, char **argv)
{
    pid_t child;
    int status = 1;
    if (argc < 3)
        return 2;
    double ms = atof(argv[1]);
    unsigned long sum = parent_work(ms);
    if (posix_spawn(&child, argv[2], NULL, NULL, argv + 2, environ) != 0)
        return 1;
    printf("%ld\n", (long)child);
    fflush(stdout);
    sum += parent_work(ms);
    waitpid(child, &status, 0);
    return sum && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* A target that measures itself: for each line on standard input, a number of milliseconds, it computes for
 * as long of its thread's own CPU time and prints how many rounds a second it came to. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void inner(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sink += i * i;
}

__attribute__((noinline)) static void round_of_work(void)
{
    for (int i = 0; i < 20; i++)
        inner(100);
}

static double cpu_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(void)
{
    char line[32];
    while (fgets(line, sizeof line, stdin)) {
        unsigned long n = 0;
        double from = cpu_s(), now = from, until = from + atof(line) / 1000;
        for (; now < until; now = cpu_s(), n++)
            round_of_work();
        printf("%.0f\n", (double)n / (now - from));
        fflush(stdout);
    }
    return 0;
}

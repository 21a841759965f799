/* A target that measures itself: for each byte on standard input it computes for a second of its
 * own CPU time and prints how many rounds it came to. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

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
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(void)
{
    char c;
    while (read(0, &c, 1) == 1) {
        unsigned long n = 0;
        for (double end = cpu_s() + 1; cpu_s() < end; n++)
            round_of_work();
        printf("%lu\n", n);
        fflush(stdout);
    }
    return 0;
}

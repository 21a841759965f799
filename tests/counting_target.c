/* A target that measures itself: for each byte on standard input it computes for a while of its thread's
 * own CPU time and prints how many rounds a second it came to.
 *   counting_target MILLISECONDS */
#include <stdio.h>
#include <stdlib.h>
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
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    char c;
    double slice = (argc > 1 ? atof(argv[1]) : 1000) / 1000;
    while (read(0, &c, 1) == 1) {
        unsigned long n = 0;
        double from = cpu_s(), now = from;
        for (; now < from + slice; now = cpu_s(), n++)
            round_of_work();
        printf("%.0f\n", (double)n / (now - from));
        fflush(stdout);
    }
    return 0;
}

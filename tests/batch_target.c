/* A small server for end-to-end tests: two threads handle a request of about 3 ms a hundred times a second.
 * Ends when its stdin does, or after ten minutes. `batch_target quick` handles twenty requests and ends. */
#include <pthread.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int quick;

__attribute__((noinline)) static unsigned long compute(unsigned long n)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++)
        sum += i * i;
    return sum;
}

__attribute__((noinline)) unsigned long handle_request(unsigned long number, unsigned long size)
{
    return compute(size) + number;
}

static void wait_ms(int ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void *serve(void *arg)
{
    unsigned long *total = arg;
    for (unsigned long i = 0; !quick || i < 20; i++) {
        *total += handle_request(i, 1000000);
        wait_ms(15);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned long totals[2] = {0, 0};
    pthread_t threads[2];
    quick = argc > 1 && !strcmp(argv[1], "quick");
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, serve, &totals[i]);
    puts("serving");
    fflush(stdout);
    if (quick) {
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        return 0;
    }
    struct pollfd in = {.fd = 0, .events = POLLIN};
    poll(&in, 1, 600000);
    return 0;
}

/* Four threads call a function all the time; once in 100,000 calls, at random, it is slow. Every call gets
 * a number; of each that took longer than half of the slow one's time this prints
 *
 *   slow NUMBER TID OUTER INNER
 *
 * as soon as it is known: microseconds on its own clock, looked at around the call and inside of it, so that
 * what somebody else measures of the call is between the two, whatever interrupts the program meanwhile. Ends when its stdin does, or after ten minutes.
 *   slow_target SLOW_MS SEED */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BLOCK   100000
#define THREADS 4
#define PAUSE_US 150 /* after each few calls: the threads leave room on two CPUs */

static atomic_ulong calls;
static unsigned long slow_ms, seed;
static atomic_bool over;

static unsigned long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long)t.tv_sec * 1000000 + (unsigned long)t.tv_nsec / 1000;
}

/* One number in each block of 100,000, by splitmix64. */
static unsigned long slow_one(unsigned long block)
{
    unsigned long z = seed * 1000003 + block * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return block * BLOCK + (z ^ (z >> 31)) % BLOCK;
}

__attribute__((noinline)) static unsigned long compute(unsigned long us)
{
    volatile unsigned long sum = 0;
    unsigned long until = now_us() + us;
    do
        for (unsigned long i = 0; i < 1000; i++)
            sum += i * i;
    while (now_us() < until);
    return sum;
}

__attribute__((noinline)) unsigned long handle(unsigned long number, int is_slow, unsigned long *inner_us)
{
    unsigned long start = now_us(), result = is_slow ? compute(slow_ms * 1000) + number : number * 3;
    *inner_us = now_us() - start;
    return result;
}

static void *serve(void *arg)
{
    struct timespec pause = {0, PAUSE_US * 1000};
    unsigned long sum = 0;
    for (unsigned long turn = 0; !atomic_load(&over); turn++) {
        unsigned long number = atomic_fetch_add(&calls, 1), start = now_us();
        unsigned long inner;
        sum += handle(number, number == slow_one(number / BLOCK), &inner);
        unsigned long took = now_us() - start;
        if (took > slow_ms * 500) {
            printf("slow %lu %ld %lu %lu\n", number, (long)syscall(SYS_gettid), took, inner);
            fflush(stdout);
        }
        if (turn % 4 == 0)
            nanosleep(&pause, NULL);
    }
    *(unsigned long *)arg = sum;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    unsigned long sums[THREADS];
    slow_ms = argc > 1 ? strtoul(argv[1], NULL, 10) : 300;
    seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, serve, &sums[i]);
    puts("serving");
    fflush(stdout);
    struct pollfd in = {.fd = 0, .events = POLLIN};
    poll(&in, 1, 600000);
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++) /* each ends the call that it is in, and tells of it */
        pthread_join(threads[i], NULL);
    return 0;
}

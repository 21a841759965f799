/* A program whose main thread ends at once, pthread_exit(3) in main: /proc/PID has no memory, no files and no program
 * of it any more. Another thread makes one thread after the other, each of which calls work once: 10 leaves. It ends
 * when its input does. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) int leaf(int i)
{
    volatile int x = i;
    return x * 3;
}

__attribute__((noinline)) int work(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += leaf(i);
    return sum;
}

static void *once(void *sum)
{
    *(int *)sum = work(10);
    return NULL;
}

static void *others(void *unused)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    while (poll(&in, 1, 10) == 0) {
        pthread_t t;
        int sum = 0;
        if (pthread_create(&t, NULL, once, &sum) != 0 || pthread_join(t, NULL) != 0 || sum != 135)
            exit(1);
    }
    exit(0);
    return unused;
}

int main(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, others, NULL) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    pthread_exit(NULL);
}

/* A traced example with everything that changes address spaces and names: three threads, each in a
 * function of its own, a forked child that works, then replaces itself by exec, and works again.
 *   forker [TENTHS]   about TENTHS tenths of a unit of work each (default 10) */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sink;
static unsigned long rounds = 10;

__attribute__((noinline)) static void spin(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sink += i * i;
}

#define WORK (rounds * 3000000ul)

__attribute__((noinline)) static void inner_work(void)
{
    for (int i = 0; i < 10; i++)
        spin(WORK / 10);
    __asm__ volatile("");
}

__attribute__((noinline)) static void *thread_one(void *arg)
{
    inner_work();
    return arg;
}

__attribute__((noinline)) static void *thread_two(void *arg)
{
    pthread_setname_np(pthread_self(), "second");
    inner_work();
    return arg;
}

__attribute__((noinline)) static void *thread_three(void *arg)
{
    spin(WORK);
    return arg;
}

__attribute__((noinline)) static void child_work(void)
{
    spin(WORK);
    __asm__ volatile("");
}

__attribute__((noinline)) static void after_exec(void)
{
    inner_work();
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = strtoul(argv[1], NULL, 10);
    if (argc > 2 && strcmp(argv[2], "again") == 0) {
        after_exec();
        return 0;
    }
    pid_t child = fork();
    if (child == 0) {
        char n[32];
        child_work();
        snprintf(n, sizeof n, "%lu", rounds);
        execl("/proc/self/exe", "forker", n, "again", (char *)NULL);
        _exit(127);
    }
    pthread_t t[3];
    pthread_create(&t[0], NULL, thread_one, NULL);
    pthread_create(&t[1], NULL, thread_two, NULL);
    pthread_create(&t[2], NULL, thread_three, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    int status = 1;
    waitpid(child, &status, 0);
    return status != 0;
}

/* A program that hangs: upon a line on its stdin a thread of its own calls job(0), job(1) ... job(299), a
 * millisecond each, and never comes back from job(300), which says "stuck TID" first. `stuck_target wait` hangs in a system
 * call there, `stuck_target compute` in a loop, `stuck_target left` leaves it by longjmp after two seconds, says
 * "left" and then hangs outside, `stuck_target back` comes back after 600 ms and goes on, `stuck_target done` ends
 * instead of job(300). Ends after ten minutes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *mode = "wait";
static jmp_buf out;
static volatile unsigned long sum;

static void wait_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void hang(void)
{
    if (strcmp(mode, "compute"))
        wait_ms(600000);
    for (;;)
        sum++;
}

__attribute__((noinline)) unsigned long job(unsigned long number)
{
    for (int i = 0; i < 1000; i++)
        sum += number;
    if (number < 300 || (number > 300 && !strcmp(mode, "back"))) {
        wait_ms(1);
        return sum;
    }
    printf("stuck %ld\n", (long)syscall(SYS_gettid));
    fflush(stdout);
    if (!strcmp(mode, "back")) {
        wait_ms(600);
        return sum;
    }
    if (!strcmp(mode, "left")) {
        wait_ms(2000);
        longjmp(out, 1);
    }
    hang();
    return sum;
}

static void *work(void *arg)
{
    (void)arg;
    (void)getchar();
    if (setjmp(out)) {
        puts("left");
        fflush(stdout);
        hang();
    }
    for (unsigned long i = 0; i < 300 || strcmp(mode, "done"); i++)
        job(i);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc > 1)
        mode = argv[1];
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}

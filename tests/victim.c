/* A program to be traced: does what it is told on stdin, one command a line, and after each prints
 * "done N", N being how often traced() has been called in this process (and, for fork, in its
 * children). First it prints "ready ADDRESS" of traced().
 *
 *   call N            N calls
 *   threads T N       T threads at once, N calls each
 *   late T N          T threads one after the other, N calls each, the first as their first act
 *   paced T N US      T threads one after the other, N calls each, US microseconds apart
 *   crowd T N US      begins T threads that end together, after N calls each, US microseconds apart
 *   gather            waits until they have ended
 *   nested T          a thread that makes a thread, T deep, a call in each
 *   fork F N          F children one after the other, N calls each
 *   hand-on           forks a child that reads the commands from then on
 *   exec              replaces itself by itself
 *   exec-thread       the same, from a thread other than the first
 *   recurse N         traced() through recursion N deep: N calls
 *   longjmp N         N calls that are left by longjmp
 *   rate N US         N calls, US microseconds apart
 *   hold T            T threads that do nothing until the end
 *   leader N          the first thread ends; another goes on reading, after N calls
 *   libc N            N calls of libc's getppid
 *   dlopen FILE NAME N loads FILE and calls its function NAME N times
 *   locked N          N calls of locked_entry, whose first instruction has a lock prefix
 *   sleep D US        a recursion of sleeper(), D deep, whose innermost call waits for US microseconds
 *   spin US           a call of spinner(), which computes for US microseconds
 *   leave US          a call of jumper() left by longjmp, then US microseconds without any call
 *   leave-spin US     the same, busy meanwhile
 *   thread-exit US    a thread that ends inside of a call of sleeper(), then US microseconds
 *   exec-inside       replaces itself inside of a call of sleeper()
 *   exit CODE
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;
static char **args;
static jmp_buf out;

/* The kernel refuses a uprobe on a lock prefix. */
__asm__(".text\n"
        ".globl locked_entry\n"
        ".type locked_entry, @function\n"
        "locked_entry: lock incq locked_calls(%rip)\n"
        "ret\n"
        ".size locked_entry, . - locked_entry\n"
        ".local locked_calls\n"
        ".comm locked_calls, 8, 8\n");
void locked_entry(void);

__attribute__((noinline)) long traced(long a, long b)
{
    __asm__ volatile("nop" ::: "memory"); /* else it begins with the lock prefix of the addition */
    atomic_fetch_add(&calls, 1);
    if (a == 12345)
        return b * 3;
    __asm__ volatile("" ::: "memory");
    return a + b;
}

__attribute__((noinline)) long recursive(long n)
{
    __asm__ volatile("nop" ::: "memory");
    atomic_fetch_add(&calls, 1);
    if (n <= 1)
        return 1;
    return recursive(n - 1) + n;
}

__attribute__((noinline)) void jumper(long a)
{
    __asm__ volatile("nop" ::: "memory");
    atomic_fetch_add(&calls, 1);
    if (a >= 0)
        longjmp(out, 1);
}

static void wait_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static void compute_us(long us)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

enum ending { RETURNS = -1, ENDS_THREAD = -2, EXECS = -3 };

__attribute__((noinline)) long sleeper(long depth, long us, enum ending how)
{
    __asm__ volatile("nop" ::: "memory");
    atomic_fetch_add(&calls, 1);
    if (depth > 1)
        return sleeper(depth - 1, us, how) + 1;
    if (how == ENDS_THREAD)
        pthread_exit(NULL);
    if (how == EXECS)
        execv("/proc/self/exe", args);
    wait_us(us);
    return us;
}

__attribute__((noinline)) long spinner(long us)
{
    __asm__ volatile("nop" ::: "memory");
    atomic_fetch_add(&calls, 1);
    compute_us(us);
    return us + 1;
}

static void *end_inside(void *arg)
{
    sleeper(2, 0, ENDS_THREAD);
    return arg;
}

static void leave(void (*then)(long us), long us)
{
    if (setjmp(out) == 0)
        jumper(1);
    then(us);
}

static void *worker(void *arg)
{
    for (long i = 0, n = (long)arg; i < n; i++)
        traced(i, n);
    return NULL;
}

static void start(pthread_t *t, void *(*fn)(void *), void *arg)
{
    int e = pthread_create(t, NULL, fn, arg);
    if (e) {
        printf("failed pthread_create: %s\n", strerror(e));
        exit(2);
    }
}

struct pace {
    long n, us;
};

static void rate(long n, long us)
{
    struct timespec gap = {us / 1000000, us % 1000000 * 1000};
    for (long i = 0; i < n; i++) {
        traced(i, us);
        nanosleep(&gap, NULL);
    }
}

static void *paced_worker(void *arg)
{
    const struct pace *p = arg;
    rate(p->n, p->us);
    return NULL;
}

static void paced(long count, long n, long us)
{
    struct pace p = {n, us};
    pthread_t t;
    for (long i = 0; i < count; i++) {
        start(&t, paced_worker, &p);
        pthread_join(t, NULL);
    }
}

#define CROWD_MAX 16

static struct {
    pthread_t t[CROWD_MAX];
    long n;
    struct pace pace;
} crowd;

static void crowd_begin(void)
{
    for (long i = 0; i < crowd.n; i++)
        start(&crowd.t[i], paced_worker, &crowd.pace);
}

static void crowd_gather(void)
{
    for (long i = 0; i < crowd.n; i++)
        pthread_join(crowd.t[i], NULL);
    crowd.n = 0;
}

static void *nest(void *arg)
{
    long depth = (long)arg;
    pthread_t t;
    traced(depth, 0);
    if (depth > 1) {
        start(&t, nest, (void *)(depth - 1));
        pthread_join(t, NULL);
    }
    return NULL;
}

static void threads(long count, long n, int at_once)
{
    pthread_t *t = calloc((size_t)count, sizeof *t);
    for (long i = 0; i < count; i++) {
        start(&t[i], worker, (void *)n);
        if (!at_once)
            pthread_join(t[i], NULL);
    }
    for (long i = 0; at_once && i < count; i++)
        pthread_join(t[i], NULL);
    free(t);
}

static void forks(long count, long n)
{
    for (long i = 0; i < count; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            for (long k = 0; k < n; k++)
                traced(k, n);
            _exit(7);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
            WEXITSTATUS(status) != 7) {
            printf("failed fork: %s, status %x\n", strerror(errno), (unsigned)status);
            exit(2);
        }
        atomic_fetch_add(&calls, n);
    }
}

/* The child returns. */
static void hand_on(void)
{
    pid_t child = fork();
    if (child == 0)
        return;
    while (waitpid(child, NULL, 0) != child)
        ;
    _exit(0);
}

static void *replace(void *arg)
{
    (void)arg;
    execv("/proc/self/exe", args);
    printf("failed exec: %s\n", strerror(errno));
    exit(2);
}

static void jump(volatile long n)
{
    for (volatile long i = 0; i < n; i++)
        if (setjmp(out) == 0)
            jumper(i);
}

static void load(const char *file, const char *name, long n)
{
    void *lib = dlopen(file, RTLD_NOW);
    void (*fn)(long) = NULL;
    if (lib)
        *(void **)&fn = dlsym(lib, name);
    if (!fn) {
        printf("failed dlopen: %s\n", dlerror());
        exit(2);
    }
    for (long i = 0; i < n; i++)
        fn(i);
}

static void *hold(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void *read_commands(void *arg)
{
    char line[4400], file[4097], name[128];
    long a = 0, b = 0, c = 0;
    pthread_t t;
    (void)arg;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "call %ld", &a) == 1)
            worker((void *)a);
        else if (sscanf(line, "threads %ld %ld", &a, &b) == 2)
            threads(a, b, 1);
        else if (sscanf(line, "late %ld %ld", &a, &b) == 2)
            threads(a, b, 0);
        else if (sscanf(line, "paced %ld %ld %ld", &a, &b, &c) == 3)
            paced(a, b, c);
        else if (sscanf(line, "crowd %ld %ld %ld", &crowd.n, &crowd.pace.n, &crowd.pace.us) == 3 &&
                 crowd.n <= CROWD_MAX)
            crowd_begin();
        else if (strcmp(line, "gather\n") == 0)
            crowd_gather();
        else if (sscanf(line, "nested %ld", &a) == 1) {
            start(&t, nest, (void *)a);
            pthread_join(t, NULL);
        } else if (sscanf(line, "fork %ld %ld", &a, &b) == 2)
            forks(a, b);
        else if (strcmp(line, "hand-on\n") == 0)
            hand_on();
        else if (strcmp(line, "exec\n") == 0)
            replace(NULL);
        else if (strcmp(line, "exec-thread\n") == 0) {
            start(&t, replace, NULL);
            pthread_join(t, NULL);
        } else if (sscanf(line, "recurse %ld", &a) == 1)
            recursive(a);
        else if (sscanf(line, "longjmp %ld", &a) == 1)
            jump(a);
        else if (sscanf(line, "rate %ld %ld", &a, &b) == 2)
            rate(a, b);
        else if (sscanf(line, "hold %ld", &a) == 1) {
            for (long i = 0; i < a; i++)
                start(&t, hold, NULL);
        } else if (sscanf(line, "leader %ld", &a) == 1) {
            worker((void *)a);
            start(&t, read_commands, NULL);
            printf("done %ld\n", atomic_load(&calls));
            fflush(stdout);
            pthread_exit(NULL);
        } else if (sscanf(line, "libc %ld", &a) == 1) {
            for (long i = 0; i < a; i++)
                getppid();
        } else if (sscanf(line, "locked %ld", &a) == 1) {
            for (long i = 0; i < a; i++)
                locked_entry();
        } else if (sscanf(line, "dlopen %4096s %127s %ld", file, name, &a) == 3)
            load(file, name, a);
        else if (sscanf(line, "sleep %ld %ld", &a, &b) == 2)
            sleeper(a, b, RETURNS);
        else if (sscanf(line, "spin %ld", &a) == 1)
            spinner(a);
        else if (sscanf(line, "leave %ld", &a) == 1)
            leave(wait_us, a);
        else if (sscanf(line, "leave-spin %ld", &a) == 1)
            leave(compute_us, a);
        else if (sscanf(line, "thread-exit %ld", &a) == 1) {
            start(&t, end_inside, NULL);
            pthread_join(t, NULL);
            wait_us(a);
        } else if (strcmp(line, "exec-inside\n") == 0)
            sleeper(2, 0, EXECS);
        else if (sscanf(line, "exit %ld", &a) == 1)
            exit((int)a);
        else
            printf("failed: unknown command %s", line);
        printf("done %ld\n", atomic_load(&calls));
        fflush(stdout);
    }
    exit(0);
}

int main(int argc, char **argv)
{
    (void)argc;
    args = argv;
    printf("ready %p\n", (void *)traced);
    fflush(stdout);
    read_commands(NULL);
    return 0;
}

/* A program to be stepped: `step_victim SCENARIO [gate]` (with gate, as soon as a byte comes on its stdin)
 * calls work() again and again until its stdin is closed,
 * checks after each round what must not have changed, and ends with "rounds N errors N". It says what
 * went wrong on stderr. work() is what a test puts a site on. */
#include "tests/part_step.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long errors;
extern char **environ;

void expect(int condition, const char *what)
{
    if (condition)
        return;
    if (errors++ < 10)
        fprintf(stderr, "step_victim: %s\n", what);
}

NI long leaf(long x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}

/* ---- Scenarios: what work() does. More of them: part_step_signals.c, part_step_code.c ---- */

volatile sig_atomic_t caught;

static void count_signal(int sig)
{
    caught += sig != 0;
}

void catch_signal(int sig, int flags)
{
    struct sigaction a = {.sa_handler = count_signal, .sa_flags = flags};
    sigaction(sig, &a, NULL);
}

static void plain(void)
{
    expect(leaf(leaf(1)) == 13, "arithmetic");
}

void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
        ;
}

unsigned long flags_now(void)
{
    unsigned long f;
    __asm__ volatile("pushfq; popq %0" : "=r"(f));
    return f;
}

static void make_processes(void)
{
    char *argv[] = {(char[]){"true"}, NULL};
    int status = 1;
    pid_t pid = vfork();
    if (pid == 0) {
        execv("/bin/true", argv);
        _exit(9);
    }
    expect(waitpid(pid, &status, 0) == pid && status == 0, "vfork and exec");
    expect(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0, "posix_spawn");
    expect(waitpid(pid, &status, 0) == pid && status == 0, "the spawned process");
    pid = fork();
    if (pid == 0)
        _exit((int)leaf(2));
    expect(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7, "fork");
}

static void *thread_main(void *arg)
{
    *(long *)arg = leaf(*(long *)arg);
    return arg;
}

static void make_threads(void)
{
    long n[3] = {1, 2, 3};
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        expect(pthread_create(&t[i], NULL, thread_main, &n[i]) == 0, "pthread_create");
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    expect(n[0] == 4 && n[1] == 7 && n[2] == 10, "what the threads did");
}

NI static void born(void)
{
    __asm__ volatile("" ::: "memory");
}

static void *be_born(void *arg)
{
    born();
    return arg;
}

/* One after the other: each ends before the next is made. */
static void make_short_threads(void)
{
    pthread_t t;
    expect(pthread_create(&t, NULL, be_born, NULL) == 0, "pthread_create");
    pthread_join(t, NULL);
}

static void filter_calls(void)
{
    static int done;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 42),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getuid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (!done++) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        expect(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
    }
    errno = 0;
    expect(syscall(SYS_getppid) == -1 && errno == 42, "a filtered call");
    errno = 0;
    expect(syscall(SYS_getuid) == -1 && errno == ENOSYS, "a call for a tracer that is not there");
}

void change_trap(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTRAP);
    sigprocmask(how, &set, NULL);
}

static void wait_long(void)
{
    struct timespec t = {1, 0}; /* a recorder that is starved itself still sees it waiting */
    expect(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL) == 0, "a sleep was broken off");
}

static void many(void)
{
    for (int i = 0; i < 3000000; i++)
        leaf(i);
}

static void end_here(void)
{
    printf("rounds 1 errors %ld\n", errors);
    fflush(stdout);
    _exit(0);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"plain", plain},       {"signals", raise_signals}, {"restart", restart_calls},
    {"flags", look_at_flags}, {"int3", own_breakpoint}, {"processes", make_processes},
    {"threads", make_threads}, {"odd", odd_instructions}, {"code", rewrite_code},
    {"fault", fault},       {"fibres", switch_stacks},  {"seccomp", filter_calls},
    {"stop", stop_self},    {"starve", starve},         {"wait", wait_long},
    {"many", many},         {"exit", end_here},
    {"block", block_trap},  {"traps", send_traps},      {"recursion", call_itself},
    {"leave", leave_call},  {"late", plain},
    {"repeat", repeat_strings}, {"pending", keep_trap},  {"ignore", ignore_trap}, {"deaf", stay_deaf},
    {"births", make_short_threads},
};

static void (*scenario)(void);

NI void work(long n)
{
    scenario();
    leaf(n);
    __asm__ volatile("" ::: "memory");
}

/* ---- Modes of their own ---- */

static volatile int quit;
static _Atomic int sleepers; /* that block what they will: a thread begins with every signal blocked */

/* A thread that sleeps in system calls all the time, and wants none of them broken off. */
static void *sleeper(void *arg)
{
    (void)arg;
    sigset_t all; /* signals are not for this thread: nothing else may wake it */
    sigfillset(&all);
    sigdelset(&all, SIGTRAP);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    sleepers++;
    while (!quit) {
        struct timespec t = {0, 20000000};
        int rc = clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
        expect(rc == 0, "the sleeper was woken");
        struct pollfd none = {-1, 0, 0};
        expect(poll(&none, 1, 20) == 0, "poll was broken off");
    }
    return NULL;
}

static void *exec_from_thread(void *arg)
{
    work(1);
    execl("/proc/self/exe", "step_victim", "plain", (char *)NULL);
    exit(4);
    return arg;
}

int main(int argc, char **argv)
{
    struct pollfd in = {0, POLLIN, 0};
    const char *name = argc > 1 ? argv[1] : "plain";
    pthread_t t, u;
    long rounds = 0;
    char c;
    if (strcmp(name, "exec") == 0) {
        scenario = plain;
        puts("ready");
        fflush(stdout);
        if (read(0, &c, 1) == 1)
            pthread_create(&t, NULL, exec_from_thread, NULL);
        for (;;)
            pause();
    }
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(name, scenarios[i].name) == 0)
            scenario = scenarios[i].run;
    if (!scenario)
        return 5;
    pthread_create(&t, NULL, sleeper, NULL);
    pthread_create(&u, NULL, sleeper, NULL);
    while (sleepers < 2)
        usleep(1000);
    if (strcmp(name, "deaf") == 0)
        signal(SIGTRAP, SIG_IGN);
    if (strcmp(name, "late") == 0)
        change_trap(SIG_BLOCK);
    puts("ready");
    fflush(stdout);
    if (argc > 2 && read(0, &c, 1) != 1) /* begins when it is told to */
        return 6;
    change_trap(SIG_UNBLOCK);
    while (poll(&in, 1, 1) == 0) {
        work(++rounds);
        expect(!(flags_now() & 0x100), "the trap flag is set");
    }
    quit = 1;
    pthread_join(t, NULL);
    pthread_join(u, NULL);
    printf("rounds %ld errors %ld\n", rounds, errors);
    return 0;
}

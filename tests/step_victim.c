/* A program to be stepped: `step_victim SCENARIO [gate]` (with gate, as soon as a byte comes on its stdin)
 * calls work() again and again until its stdin is closed,
 * checks after each round what must not have changed, and ends with "rounds N errors N". It says what
 * went wrong on stderr. work() is what a test puts a site on. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __clang__ /* which never clones and does not know the word */
#define NI __attribute__((noinline))
#else
#define NI __attribute__((noinline, noclone))
#endif

static long errors;
extern char **environ;

static void expect(int condition, const char *what)
{
    if (condition)
        return;
    if (errors++ < 10)
        fprintf(stderr, "step_victim: %s\n", what);
}

NI static long leaf(long x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}

/* ---- Scenarios: what work() does ---- */

static volatile sig_atomic_t caught;

static void count_signal(int sig)
{
    caught += sig != 0;
}

static void catch_signal(int sig, int flags)
{
    struct sigaction a = {.sa_handler = count_signal, .sa_flags = flags};
    sigaction(sig, &a, NULL);
}

static void plain(void)
{
    expect(leaf(leaf(1)) == 13, "arithmetic");
}

static void raise_signals(void)
{
    long before = caught;
    catch_signal(SIGUSR1, 0);
    signal(SIGUSR2, SIG_IGN);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    kill(getpid(), SIGCHLD); /* ignored by default */
    raise(SIGUSR1);
    expect(caught == before + 2, "two signals were sent and not two handled");
}

/* A system call is broken off by a signal from another thread: made again with SA_RESTART, EINTR without. */
static int pipe_fds[2];
static pthread_t reader;

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
        ;
}

static void *disturb(void *arg)
{
    (void)arg;
    pause_ms(30);
    pthread_kill(reader, SIGUSR1);
    pause_ms(30);
    expect(write(pipe_fds[1], "x", 1) == 1, "write to the pipe");
    return NULL;
}

static void disturbed_read(int flags, ssize_t wanted, const char *what)
{
    pthread_t t;
    char c;
    long before = caught;
    reader = pthread_self();
    catch_signal(SIGUSR1, flags);
    pthread_create(&t, NULL, disturb, NULL);
    ssize_t n = read(pipe_fds[0], &c, 1);
    expect(n == wanted && (n == 1 || errno == EINTR), what);
    pthread_join(t, NULL);
    if (n < 0)
        expect(read(pipe_fds[0], &c, 1) == 1, "the byte is still there");
    expect(caught == before + 1, "one signal");
}

static void restart_calls(void)
{
    if (!pipe_fds[1] && pipe(pipe_fds) != 0)
        exit(3);
    disturbed_read(SA_RESTART, 1, "read is restarted");
    disturbed_read(0, -1, "read fails with EINTR");
    signal(SIGUSR1, SIG_IGN);
}

static unsigned long flags_now(void)
{
    unsigned long f;
    __asm__ volatile("pushfq; popq %0" : "=r"(f));
    return f;
}

static void look_at_flags(void)
{
    unsigned long r11, ret;
    expect(!(flags_now() & 0x100), "the trap flag is set in memory after pushf");
    __asm__ volatile("syscall" : "=a"(ret), "=r"(r11) : "a"(SYS_getpid) : "rcx", "r11", "memory");
    __asm__ volatile("movq $39, %%rax; syscall; movq %%r11, %0"
                     : "=r"(r11)
                     :
                     : "rax", "rcx", "r11", "memory");
    expect(!(r11 & 0x100), "the trap flag is set in r11 after a system call");
    __asm__ volatile("pushfq; popfq" ::: "memory", "cc");
}

static void count_trap(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    caught++;
    expect(info->si_code == SI_KERNEL, "si_code of an int3 of one's own");
}

static void own_breakpoint(void)
{
    struct sigaction a = {.sa_sigaction = count_trap, .sa_flags = SA_SIGINFO};
    long before = caught;
    sigaction(SIGTRAP, &a, NULL);
    __asm__ volatile("int3");
    leaf(1);
    __asm__ volatile("int3");
    expect(caught == before + 2, "two int3 and not two SIGTRAP");
}

/* SIGTRAP that the program sends to itself, by kill(2) and by tgkill(2). */
static volatile sig_atomic_t trap_codes[2];

static void note_trap(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    trap_codes[caught++ & 1] = info->si_code;
    expect(info->si_pid == getpid(), "who sent the SIGTRAP");
}

static void send_traps(void)
{
    struct sigaction a = {.sa_sigaction = note_trap, .sa_flags = SA_SIGINFO};
    caught = 0;
    sigaction(SIGTRAP, &a, NULL);
    kill(getpid(), SIGTRAP);
    leaf(1);
    raise(SIGTRAP);
    expect(caught == 2, "two SIGTRAP were sent and not two handled");
    expect(trap_codes[0] == SI_USER && trap_codes[1] == SI_TKILL, "how they were sent");
}

/* A call with others of its own function inside, as of fibonacci numbers; `middle` is a place inside it. */
NI static long recurse(long n)
{
    long sum = leaf(n);
    if (n < 2)
        return n;
    sum = recurse(n - 1);
    __asm__ volatile(".globl middle\nmiddle: lea (%0), %0" : "+r"(sum));
    long rest = recurse(n - 2);
    __asm__ volatile("" : "+r"(rest)); /* a call, whatever the compiler makes of a last one */
    return sum + rest;
}

static void call_itself(void)
{
    expect(recurse(6) == 8, "the sixth fibonacci number");
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

static void odd_instructions(void)
{
    char a[300], b[300];
    unsigned eax = 0, ebx, ecx = 0, edx;
    char *to = a, *from = b;
    size_t n = sizeof a;
    memset(b, 'q', sizeof b);
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
    expect(memcmp(a, b, sizeof a) == 0 && n == 0, "rep movsb");
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    expect(eax > 0 && ebx != 0, "cpuid");
    unsigned short ss;
    __asm__ volatile("movw %%ss, %0; movw %0, %%ss; nop; nop" : "=r"(ss));
    struct timespec t;
    expect(clock_gettime(CLOCK_MONOTONIC, &t) == 0 && t.tv_sec > 0, "vdso");
}

static void rewrite_code(void)
{
    static unsigned char *page;
    if (!page) {
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        expect(page != MAP_FAILED, "mmap");
    }
    int (*f)(void);
    memcpy(&f, &page, sizeof f);
    for (unsigned char i = 1; i < 5; i++) {
        unsigned char code[] = {0xb8, i, 0, 0, 0, 0xc3};
        memcpy(page, code, sizeof code);
        __asm__ volatile("" ::: "memory");
        expect(f() == i, "code that was rewritten");
    }
    unsigned char jump[] = {0xeb, 1, 0xc3, 0xb8, 77, 0, 0, 0, 0xcc, 0xc3};
    jump[8] = 0x90;
    memcpy(page, jump, sizeof jump);
    __asm__ volatile("" ::: "memory");
    expect(f() == 77, "code with another shape");
}

static sigjmp_buf out_of_handler;

static void on_fault(int sig)
{
    siglongjmp(out_of_handler, sig);
}

static void fault(void)
{
    static char stack[65536];
    stack_t alt = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction a = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    sigaltstack(&alt, NULL);
    sigaction(SIGSEGV, &a, NULL);
    volatile int rounds = 0;
    if (sigsetjmp(out_of_handler, 1) == 0) {
        *(volatile int *)(uintptr_t)(8 * rounds) = 1;
        expect(0, "a write to 0 came through");
    }
    rounds++;
    expect(leaf(rounds) == 4, "after siglongjmp");
}

/* A call that its caller never gets back. */
static jmp_buf out_of_call;

NI static void jump_out(long n)
{
    leaf(n);
    longjmp(out_of_call, 1);
}

static void leave_call(void)
{
    if (setjmp(out_of_call) == 0)
        jump_out(1);
    else
        expect(leaf(1) == 4, "after longjmp");
}

static ucontext_t main_context, fibres[2];
static long fibre_steps;

static void fibre(void)
{
    for (;;) {
        fibre_steps = leaf(fibre_steps);
        swapcontext(&fibres[0], &main_context);
    }
}

static void switch_stacks(void)
{
    static char stack[65536];
    getcontext(&fibres[0]);
    fibres[0].uc_stack.ss_sp = stack;
    fibres[0].uc_stack.ss_size = sizeof stack;
    makecontext(&fibres[0], fibre, 0);
    fibre_steps = 0;
    for (int i = 0; i < 3; i++)
        swapcontext(&main_context, &fibres[0]);
    expect(fibre_steps == 13, "three turns of a fibre");
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

static void stop_self(void)
{
    kill(getpid(), SIGSTOP);
    leaf(1);
}

static void change_trap(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTRAP);
    sigprocmask(how, &set, NULL);
}

/* The gate is passed with SIGTRAP unblocked; then calls of leaf are made while it is blocked. */
static void block_trap(void)
{
    sigset_t now;
    change_trap(SIG_BLOCK);
    leaf(1);
    sigprocmask(SIG_BLOCK, NULL, &now);
    expect(sigismember(&now, SIGTRAP), "SIGTRAP is not blocked any more");
    pause_ms(2);
    change_trap(SIG_UNBLOCK);
}

/* ---- String instructions ---- */

#define LONG_STRING 3000000

static char *closed_page; /* in the middle of the string */

static void open_page(int sig)
{
    mprotect(closed_page, 4096, PROT_READ | PROT_WRITE);
    caught += sig != 0;
}

NI static void fill(char *to, size_t n, int value)
{
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(value) : "memory");
    leaf(1);
}

NI static size_t find(const char *s, size_t n, int value)
{
    size_t left = n;
    __asm__ volatile("repne scasb" : "+D"(s), "+c"(left) : "a"(value) : "memory", "cc");
    leaf(2);
    return n - left - 1;
}

/* Long ones, one of them stopped by a fault in its middle and by a timer; short ones. */
static void repeat_strings(void)
{
    struct itimerval soon = {{0, 0}, {0, 1500}};
    char *s = mmap(NULL, LONG_STRING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    closed_page = s + 4096 * 300;
    caught = 0;
    catch_signal(SIGSEGV, 0);
    signal(SIGSEGV, open_page);
    catch_signal(SIGALRM, SA_RESTART);
    mprotect(closed_page, 4096, PROT_NONE);
    setitimer(ITIMER_REAL, &soon, NULL);
    fill(s, LONG_STRING, 7);
    expect(caught >= 1 && s[0] == 7 && s[LONG_STRING - 1] == 7, "a long string was not filled");
    fill(s + 11, 3, 8);
    fill(s + LONG_STRING - 1, 1, 9);
    fill(s, 0, 9);
    expect(find(s, LONG_STRING, 8) == 11 && find(s, LONG_STRING, 9) == LONG_STRING - 1, "a byte is elsewhere");
    munmap(s, LONG_STRING);
    signal(SIGSEGV, SIG_DFL);
}

/* What waits while it is blocked comes when it no longer is, and not before. */
static void keep_trap(void)
{
    struct sigaction a = {.sa_sigaction = note_trap, .sa_flags = SA_SIGINFO}, now;
    caught = 0;
    sigaction(SIGTRAP, &a, NULL);
    change_trap(SIG_BLOCK);
    leaf(1);
    raise(SIGTRAP);
    leaf(2);
    expect(caught == 0, "a blocked SIGTRAP was handled");
    change_trap(SIG_UNBLOCK);
    expect(caught == 1 && trap_codes[0] == SI_TKILL, "a SIGTRAP that waited was not handled");
    sigaction(SIGTRAP, NULL, &now);
    expect(now.sa_sigaction == note_trap, "the handler of SIGTRAP is another");
}

static void expect_ignored(void)
{
    struct sigaction now;
    sigaction(SIGTRAP, NULL, &now);
    expect(now.sa_handler == SIG_IGN, "SIGTRAP is not ignored any more");
    kill(getpid(), SIGTRAP);
}

static void ignore_trap(void)
{
    signal(SIGTRAP, SIG_IGN);
    leaf(1);
    expect_ignored();
    signal(SIGTRAP, SIG_DFL);
}

static void stay_deaf(void)
{
    leaf(1);
    expect_ignored();
}

static long ticks(void)
{
    return caught;
}

/* A timer that is faster than stepping. */
static void starve(void)
{
    struct itimerval fast = {{0, 500}, {0, 500}}, none = {{0, 0}, {0, 0}};
    long start = ticks();
    catch_signal(SIGALRM, SA_RESTART);
    setitimer(ITIMER_REAL, &fast, NULL);
    for (int i = 0; i < 200000; i++)
        leaf(i);
    setitimer(ITIMER_REAL, &none, NULL);
    expect(ticks() >= start, "ticks");
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

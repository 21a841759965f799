/* Functions whose first instruction takes no uprobe, called until the input ends, or ROUNDS times:
 *
 *   first_target FUNCTION OUTPUT [ROUNDS]
 *
 * Says "ready", and at the end to OUTPUT "ended: errors N, traps N": results other than they must be, and SIGTRAPs that
 * were not its own. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define FUNCTION(name, ...)                                                                                   \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":" __VA_ARGS__ "\n.size " #name    \
            ", . - " #name "\n");                                                                             \
    long name(long rdi, long rsi, long rdx, long rcx)

/* The C caller's fourth argument is in rcx. */
FUNCTION(f_spin, "jmp f_spin");
FUNCTION(f_loop, "loop f_loop\n mov %rcx, %rax\n ret");
FUNCTION(f_if, "jrcxz f_if\n mov %rcx, %rax\n ret");
FUNCTION(f_syscall, "syscall\n ret");
FUNCTION(f_int, "int $0x80\n ret");
FUNCTION(f_pushf, "pushfq\n pop %rax\n and $0x100, %eax\n ret");
FUNCTION(f_pushw, "pushfw\n movzwl (%rsp), %eax\n lea 2(%rsp), %rsp\n and $0x100, %eax\n ret");
FUNCTION(f_pop, "pushfq\n popfq\n xor %eax, %eax\n ret");
/* Jumped to with the flags on top of the return address. */
FUNCTION(f_popf, "popfq\n mov $7, %eax\n ret");
FUNCTION(f_rep, "rep stosb\n mov %rcx, %rax\n ret");
FUNCTION(f_cpuid, "cpuid\n xor %eax, %eax\n ret");
FUNCTION(f_lock, "lock addq $1, (%rdi)\n mov (%rdi), %rax\n ret");
FUNCTION(f_nop, ".byte 0x0f, 0x1f, 0x44, 0, 0\n mov $7, %eax\n ret");
FUNCTION(f_vector, "vpcmpeqb %xmm0, %xmm0, %xmm0\n vmovd %xmm0, %eax\n ret");
FUNCTION(f_shift, "vpsllw $1, %xmm0, %xmm0\n xor %eax, %eax\n ret");

/* With what they want in registers that are no arguments. */
long by_syscall(void), by_int(void), by_popf(void), by_cpuid(void), by_vector(void);
__asm__(".text\nby_syscall: mov $39, %eax\n jmp f_syscall\n"
        "by_int: mov $20, %eax\n jmp f_int\n"
        "by_popf: pushfq\n jmp f_popf\n"
        "by_cpuid: push %rbx\n xor %eax, %eax\n call f_cpuid\n pop %rbx\n ret\n"
        "by_vector: pxor %xmm0, %xmm0\n jmp f_vector\n");

static sigjmp_buf back;
static volatile long traps;

static void on_alarm(int sig)
{
    (void)sig;
    siglongjmp(back, 1);
}

static void on_trap(int sig)
{
    (void)sig;
    traps++;
}

static int spin(void)
{
    static const struct itimerval soon = {{0, 0}, {0, 20000}};
    if (sigsetjmp(back, 1) == 0) {
        setitimer(ITIMER_REAL, &soon, NULL);
        f_spin(0, 0, 0, 0);
    }
    return 0;
}

static int fill(void)
{
    char filled[41] = "", wanted[41] = "";
    memset(wanted, '+', 40);
    register long al __asm__("rax") = '+';
    long di = (long)filled, cx = 40;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n call f_rep\n lea 128(%%rsp), %%rsp"
                     : "+r"(al), "+D"(di), "+c"(cx)
                     :
                     : "memory", "cc");
    return al != 0 || strcmp(filled, wanted) != 0;
}

/* 0: as it must be. */
static int call(const char *name)
{
    static long n;
    if (strcmp(name, "f_spin") == 0)
        return spin();
    if (strcmp(name, "f_loop") == 0)
        return f_loop(0, 0, 0, 20) != 0;
    if (strcmp(name, "f_if") == 0)
        return f_if(0, 0, 0, 5) != 5;
    if (strcmp(name, "f_syscall") == 0)
        return by_syscall() != getpid();
    if (strcmp(name, "f_int") == 0)
        return by_int() != getpid();
    if (strcmp(name, "f_pushf") == 0)
        return f_pushf(0, 0, 0, 0) != 0;
    if (strcmp(name, "f_pushw") == 0)
        return f_pushw(0, 0, 0, 0) != 0;
    if (strcmp(name, "f_pop") == 0)
        return f_pop(0, 0, 0, 0) != 0;
    if (strcmp(name, "f_popf") == 0)
        return by_popf() != 7;
    if (strcmp(name, "f_rep") == 0)
        return fill();
    if (strcmp(name, "f_cpuid") == 0)
        return by_cpuid() != 0;
    if (strcmp(name, "f_nop") == 0)
        return f_nop(0, 0, 0, 0) != 7;
    if (strcmp(name, "f_lock") == 0)
        return f_lock((long)&n, 0, 0, 0) != n;
    if (strcmp(name, "f_vector") == 0)
        return __builtin_cpu_supports("avx") ? by_vector() != 0xffffffff : 0;
    if (strcmp(name, "f_shift") == 0)
        return __builtin_cpu_supports("avx") ? f_shift(0, 0, 0, 0) != 0 : 0;
    return 1;
}

int main(int argc, char **argv)
{
    long rounds = argc > 3 ? atol(argv[3]) : 0, errors = 0;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    if (argc < 3)
        return 2;
    signal(SIGALRM, on_alarm);
    signal(SIGTRAP, on_trap);
    puts("ready");
    fflush(stdout);
    for (long i = 0; rounds ? i < rounds : poll(&input, 1, 2) == 0; i++) {
        errors += call(argv[1]);
        if (rounds)
            poll(NULL, 0, 5);
    }
    FILE *f = fopen(argv[2], "w");
    if (!f)
        return 1;
    fprintf(f, "ended: errors %ld, traps %ld\n", errors, traps);
    return fclose(f) != 0;
}

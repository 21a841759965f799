/* Scenarios of step_victim.c about what code does: flags, calls that go astray, strings, code that changes. */
#include "tests/part_step.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

void look_at_flags(void)
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

void call_itself(void)
{
    expect(recurse(6) == 8, "the sixth fibonacci number");
}

void odd_instructions(void)
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

void rewrite_code(void)
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

/* A call that its caller never gets back. */
static jmp_buf out_of_call;

NI static void jump_out(long n)
{
    leaf(n);
    longjmp(out_of_call, 1);
}

void leave_call(void)
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

void switch_stacks(void)
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
void repeat_strings(void)
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

/* A program that writes code and runs it, for tests of what stepping records of that. Its first argument
 * says how it does so, in work(); then it writes how often what was called into the file of the second. With a
 * third it waits to be killed, some time. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE  4096
#define CALLS 4
#define CODE  MAP_PRIVATE | MAP_ANONYMOUS
#define RWX   PROT_READ | PROT_WRITE | PROT_EXEC

static long leaves, twigs;

__attribute__((noinline)) void leaf(void)
{
    leaves++;
}

__attribute__((noinline)) void twig(void)
{
    twigs++;
    __asm__ volatile("" ::: "memory");
}

/* A page of the program file, alone in it. */
void patched(void);
__asm__(".text\n.balign 4096\n.globl patched\n.type patched, @function\n"
        "patched: sub $8, %rsp\ncall leaf\nadd $8, %rsp\nret\n.size patched, . - patched\n.balign 4096\n");

/* Code that calls leaf once, or twig twice. */
static void write_leaf(unsigned char *at)
{
    unsigned char code[] = {0x48, 0x83, 0xec, 8, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3};
    void (*f)(void) = leaf;
    memcpy(code + 6, &f, sizeof f);
    memcpy(at, code, sizeof code);
    __asm__ volatile("" ::: "memory");
}

static void write_twigs(unsigned char *at)
{
    unsigned char code[] = {0x53, 0x48, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd3, 0xff, 0xd3, 0x5b, 0xc3};
    void (*f)(void) = twig;
    memcpy(code + 3, &f, sizeof f);
    memcpy(at, code, sizeof code);
    __asm__ volatile("" ::: "memory");
}

static void run(unsigned char *at, int times)
{
    void (*f)(void);
    memcpy(&f, &at, sizeof f);
    for (int i = 0; i < times; i++)
        f();
}

/* Mapped before. */
static unsigned char *prepared;

static void rewritten(void)
{
    run(prepared, CALLS);
    write_twigs(prepared);
    run(prepared, CALLS);
}

/* The instruction with the address of leaf begins in one page and ends in the next; at first only the other page
 * is written to again. */
static void across(void)
{
    unsigned char *at = prepared + PAGE - 6, call = 0xd0;
    write_leaf(at);
    run(at, CALLS / 2);
    at[15] = 0xd1; /* call rcx */
    void (*f)(void) = leaf;
    void *p;
    memcpy(&p, &f, sizeof p);
    __asm__ volatile("sub $128, %%rsp; mov %0, %%rcx; call *%1; add $128, %%rsp"
                     : : "r"(p), "r"(at) : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    at[15] = call;
    __asm__ volatile("" ::: "memory");
    run(at, CALLS / 2 - 1);
    write_twigs(at);
    run(at, CALLS);
}

static void mapped(void)
{
    unsigned char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, CODE, -1, 0);
    write_leaf(p);
    mprotect(p, PAGE, PROT_READ | PROT_EXEC);
    run(p, CALLS);
    mprotect(p, PAGE, PROT_READ | PROT_WRITE);
    write_twigs(p);
    mprotect(p, PAGE, PROT_READ | PROT_EXEC);
    run(p, CALLS);
}

static void again(void)
{
    unsigned char *p = mmap(NULL, PAGE, RWX, CODE, -1, 0);
    write_leaf(p);
    run(p, CALLS);
    munmap(p, PAGE);
    p = mmap(p, PAGE, RWX, CODE | MAP_FIXED, -1, 0);
    write_twigs(p);
    run(p, CALLS);
}

/* Written through one mapping, run through another. */
static void twofold(void)
{
    int fd = memfd_create("code", MFD_CLOEXEC);
    if (ftruncate(fd, PAGE) != 0)
        return;
    unsigned char *w = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char *x = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    write_leaf(w);
    run(x, CALLS);
    write_twigs(w);
    run(x, CALLS);
    write_leaf(w); /* what is there later is not what ran */
    close(fd);
}

static void program(void)
{
    void (*f)(void) = patched;
    unsigned char *p;
    memcpy(&p, &f, sizeof f);
    run(p, CALLS);
    mprotect(p, PAGE, PROT_READ | PROT_WRITE);
    write_twigs(p);
    mprotect(p, PAGE, PROT_READ | PROT_EXEC);
    run(p, CALLS);
}

/* Another thread has run the former code, and runs the new one without anything between that the recorder would
 * see. */
static volatile int turn;

static void *other(void *arg)
{
    for (int mine = 1; mine <= 3; mine += 2) {
        while (turn != mine)
            __builtin_ia32_pause();
        run(arg, CALLS / 2);
        turn = mine + 1;
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, other, prepared) != 0)
        return;
    turn = 1;
    while (turn != 2)
        __builtin_ia32_pause();
    run(prepared, CALLS / 2);
    write_twigs(prepared);
    run(prepared, CALLS / 2);
    turn = 3;
    pthread_join(t, NULL);
}

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {{"rewritten", rewritten}, {"across", across},   {"mapped", mapped},   {"again", again},
            {"twofold", twofold},     {"program", program}, {"threads", threads}};

__attribute__((noinline)) void work(size_t way)
{
    ways[way].run();
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
    prepared = mmap(NULL, (size_t)2 * PAGE, RWX, CODE, -1, 0);
    write_leaf(prepared);
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            work(i);
    FILE *said = argc > 2 ? fopen(argv[2], "w") : NULL;
    if (!said)
        return 1;
    fprintf(said, "leaves %ld twigs %ld\n", leaves, twigs);
    if (fclose(said) != 0)
        return 1;
    if (argc > 3) {
        alarm(60);
        pause();
    }
    return 0;
}

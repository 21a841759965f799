#include "lib_step_programs.h"

#include <stddef.h>

#include "lib_step.h"

#define NI "#define NI __attribute__((noinline, noclone))\n"
#define LEAF "NI int leaf(int x) { __asm__ volatile(\"\"); return x * 3 + 1; }\n"

static const char calls[] =
    "#include <stdlib.h>\n#include <unistd.h>\n" NI LEAF
    "NI int middle(int x) { int s = 0; for (int i = 0; i < x % 7 + 2; i++) s += leaf(i); return s; }\n"
    "NI int recurse(int n) { return n < 2 ? n : recurse(n - 1) + recurse(n - 2); }\n"
    "NI int deep(int n) { return n ? deep(n - 1) + 1 : 0; }\n"
    "NI int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }\n"
    "int (*volatile indirect)(int) = leaf;\n"
    "NI int work(int x) { int a[16]; for (int i = 0; i < 16; i++) a[i] = i * 37 % 16;\n"
    "  qsort(a, 16, sizeof *a, compare);\n"
    "  return middle(x) + recurse(12) + deep(100) + indirect(x) + getppid() * 0; }\n" STEP_MAIN(
        "work(3)");

static const char tails[] =
    NI LEAF "NI int c(int x) { return leaf(x) + leaf(x + 1); }\n"
    "NI int b(int x) { leaf(x); return c(x + 1); }\n"
    "NI int a(int x) { leaf(x); return x & 1 ? b(x + 1) : c(x); }\n"
    "int (*volatile table[2])(int) = {b, c};\n"
    "NI int d(int x) { leaf(x); return table[x & 1](x); }\n"
    "NI int even(int n); NI int odd(int n) { return n == 0 ? 0 : even(n - 1); }\n"
    "NI int even(int n) { return n == 0 ? 1 : odd(n - 1); }\n"
    "NI int work(int x) { int s = 0; for (int i = 0; i < 20; i++) s += a(i) + d(i) + even(i + x); return s; }\n"
    STEP_MAIN("work(3)");

static const char jumps[] =
    "#include <setjmp.h>\n" NI LEAF "jmp_buf outer, inner;\n"
    "NI void thrower(int n) { if (n) thrower(n - 1); else longjmp(outer, 1); leaf(n); }\n"
    "NI void thrower2(int n) { leaf(n); if (n) thrower2(n - 1); else longjmp(inner, 2); leaf(n); }\n"
    "NI int catch2(int n) { if (setjmp(inner)) return leaf(n); thrower2(n); return 0; }\n"
    "NI int work(int x) { volatile int i = 0; leaf(x); if (setjmp(outer)) i++;\n"
    "  if (i < 8) { leaf(i); catch2(i % 3); thrower(i); } return leaf(i); }\n" STEP_MAIN("work(3)");

static const char throws[] =
    "#include <stdexcept>\n" NI
    "struct base { virtual int f(int) = 0; virtual ~base() {} };\n"
    "struct one : base { NI int f(int x) override { __asm__ volatile(\"\"); return x + 1; } };\n"
    "struct two : base { NI int f(int x) override { __asm__ volatile(\"\"); return x * 2; } };\n"
    "struct guard { int *p; NI ~guard() { __asm__ volatile(\"\"); ++*p; } };\n"
    "NI int thrower(int n, int *p) { guard g{p}; if (n) return thrower(n - 1, p) + 1;\n"
    "  throw std::runtime_error(\"x\"); }\n"
    "NI int catcher(int n) { int k = 0; try { return thrower(n, &k); } catch (const std::exception &e) { return k; } }\n"
    "one o; two t; base *volatile objects[2] = {&o, &t};\n"
    "extern \"C\" NI int work(int x) { int s = 0; for (int i = 0; i < 2; i++) s += catcher(i + 2) + objects[i & 1]->f(x);\n"
    "  return s; }\n" STEP_MAIN("work(3)");

static const char signals[] =
    "#include <signal.h>\n#include <unistd.h>\n" NI LEAF "volatile int hits;\n"
    "NI void helper(int n) { hits += leaf(n); }\n"
    "NI void handler(int n) { helper(n); leaf(n); }\n"
    "NI int raiser(int x) { leaf(x); kill(getpid(), SIGUSR1); return leaf(x); }\n"
    "NI int work(int x) { signal(SIGUSR1, handler); int s = 0;\n"
    "  for (int i = 0; i < 4; i++) s += raiser(i); return s + leaf(x); }\n" STEP_MAIN("work(3)");

static const char fibres[] =
    "#include <ucontext.h>\n" NI LEAF "ucontext_t back, one, two;\n"
    "static char stacks[2][1 << 18] __attribute__((aligned(1 << 18)));\n"
    "NI void inside(int n, ucontext_t *from, ucontext_t *to) { leaf(n); swapcontext(from, to); leaf(n); }\n"
    "void first(void) { for (int i = 0;; i++) { leaf(i); inside(i, &one, &two); } }\n"
    "void second(void) { for (int i = 0;; i++) { inside(i, &two, &back); leaf(i); } }\n"
    "NI void make(ucontext_t *u, char *stack, void (*f)(void)) { getcontext(u); u->uc_stack.ss_sp = stack;\n"
    "  u->uc_stack.ss_size = 1 << 18; u->uc_link = &back; makecontext(u, f, 0); }\n"
    "NI int work(int x) { make(&one, stacks[0], first); make(&two, stacks[1], second);\n"
    "  for (int i = 0; i < 6; i++) { leaf(i); swapcontext(&back, i ? &one : &one); } return leaf(x); }\n"
    STEP_MAIN("work(3)");

static const char libraries[] =
    "#include <stdlib.h>\n#include <string.h>\n#include <stdio.h>\n#include <time.h>\n#include <unistd.h>\n" NI LEAF
    "NI int format(char *out, int x) { return snprintf(out, 64, \"%d %s %.3f\", x, \"abc\", x / 3.0); }\n"
    "NI int work(int x) { struct timespec t; char a[64], *p = malloc(100); clock_gettime(CLOCK_MONOTONIC, &t);\n"
    "  memset(p, 1, 100); strcpy(a, \"hello\"); int n = format(a, x) + (int)strlen(a) + (int)strtol(\"12\", 0, 10);\n"
    "  free(p); getuid(); return leaf(n); }\n" STEP_MAIN("work(3)");

const struct step_program step_programs[] = {
    {"calls", calls, "-O1 -g", false},
    {"tail calls", tails, "-O2 -g", false},
    {"longjmp", jumps, "-O1 -g", false},
    {"exceptions", throws, "-O1 -g", true},
    {"signals", signals, "-O1 -g", false},
    {"fibres", fibres, "-O1 -g", false},
    {"retpolines", tails, "-O2 -g -mindirect-branch=thunk -fcf-protection=none", false},
    {"libraries", libraries, "-O1 -g", false},
    {"libraries, old PLT", libraries, "-O1 -g -Wl,-z,lazy -fcf-protection=none", false},
    {"static", calls, "-O1 -g -static", false},
    {"stripped", calls, "-O2 -Wl,-E -rdynamic", false},
    {NULL, NULL, NULL, false},
};

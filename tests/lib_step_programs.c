#include "lib_step_programs.h"

#include <stddef.h>

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

/* To an activation of the function that jumps: of six, one has called setjmp. */
static const char jumps_out[] =
    "#include <setjmp.h>\n" NI LEAF "sigjmp_buf back;\n"
    "NI int down(int n, int to) { if (n == to && (n & 1 ? sigsetjmp(back, 1) : setjmp(back))) return leaf(n);\n"
    "  if (n == 0) siglongjmp(back, 1); return leaf(down(n - 1, to)); }\n"
    "NI int work(int x) { int s = 0; for (int i = 1; i < 6; i++) s += down(5, i); return leaf(s + x); }\n"
    STEP_MAIN("work(3)");

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
    "  return s; }\n" STEP_MAIN_AFTER("work(3)", "work(3)");

/* Through activations of one function and to one of them: past clean-ups, into handlers, thrown on, and thrown by what
 * a clean-up calls. */
static const char throws_out[] =
    NI "int count;\n"
    "struct guard { NI ~guard() { __asm__ volatile(\"\"); ++count; } };\n"
    "NI int past(int n) { if (n == 0) throw 1; guard g; return past(n - 1) + 1; }\n"
    "NI int into(int n, int to) { guard g; if (n == 0) throw n;\n"
    "  if (n == to) { try { guard h; return into(n - 1, to) + 1; } catch (int) { return count; } }\n"
    "  if (n == 1) { guard h; return into(n - 1, to) + 2; }\n"
    "  return into(n - 1, to) + 3; }\n"
    "NI int on(int n) { try { if (n == 0) throw n; return on(n - 1) + 1; }\n"
    "  catch (int) { if (n == 2) return count; guard g; throw; } }\n"
    "struct nested { int n; NI ~nested() { try { into(n, n); } catch (int) { ++count; } } };\n"
    "NI int inner(int n) { if (n == 0) throw 'c'; nested x{n}; return inner(n - 1) + 1; }\n"
    "extern \"C\" NI int work(int x) { int s = 0; try { past(x); } catch (int) { s++; }\n"
    "  s += into(3, 2) + on(2);\n"
    "  try { inner(1); } catch (char) { s++; } return s; }\n"
    STEP_MAIN_AFTER("work(3)", "work(3)");

static const char signals[] =
    "#include <signal.h>\n#include <unistd.h>\n" NI LEAF "volatile int hits;\n"
    "NI void helper(int n) { hits += leaf(n); }\n"
    "NI void handler(int n) { helper(n); leaf(n); }\n"
    "NI int raiser(int x) { leaf(x); kill(getpid(), SIGUSR1); return leaf(x); }\n"
    "NI int trap(int x) { leaf(x); __asm__ volatile(\"int3\"); return leaf(x); }\n"
    "NI int work(int x) { signal(SIGUSR1, handler); signal(SIGTRAP, handler); int s = 0;\n"
    "  for (int i = 0; i < 4; i++) s += raiser(i) + trap(i); return s + leaf(x); }\n" STEP_MAIN("work(3)");

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
    "  memset(p, 1, 100); __asm__ volatile(\"\" : : \"r\"(p) : \"memory\"); strcpy(a, \"hello\"); int n = format(a, x) + (int)strlen(a) + (int)strtol(\"12\", 0, 10);\n"
    "  free(p); getuid(); return leaf(n); }\n" STEP_MAIN("work(3)");

/* Two libraries in turn at one address, and one of them again at another. */
static const char library[] =
    "#include <dlfcn.h>\n#include <stdlib.h>\n#include <sys/mman.h>\n" NI LEAF "static void *hole;\n"
    "NI int use(const char *file, const char *name, int x) { void *l = dlopen(file, RTLD_NOW);\n"
    "  if (!l) abort(); int (*f)(int) = (int (*)(int))dlsym(l, name); int r = f(leaf(x));\n"
    "  hole = (void *)((unsigned long)f & ~4095ul); dlclose(l); return r; }\n"
    "NI void occupy(void *at) { mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); }\n"
    "#ifdef ONCE\n"
    "NI int work(int x) { return use(\"./one.so\", \"first\", x); }\n"
    "#else\n"
    "NI int work(int x) { int s = use(\"./one.so\", \"first\", x) + use(\"./two.so\", \"second\", x);\n"
    "  void *at = hole; occupy(at); s += use(\"./one.so\", \"first\", x); munmap(at, 4096); return s; }\n"
    "#endif\n"
    STEP_MAIN("work(3)");
#define MAKE_LIBRARIES                                                                             \
    "for l in 'one first 3 deep' 'two second 7 wide'; do set -- $l; echo \"int $4(int n) "         \
    "{ return n > 0 ? $4(n - 1) + $3 : n; } int $2(int x) { return $4(x % $3) * $3; }\" >$1.c && " \
    "cc -O1 -fno-inline -shared -fPIC -nostdlib -o $1.so $1.c || exit 1; done"

/* Each exec of the compiled code is a call of PyEval_EvalCode. */
static const char script[] =
    "import select\n"
    "code = compile(\"\"\"\n"
    "class Shape:\n"
    "    def area(self): return 1\n"
    "class Square(Shape):\n"
    "    def __init__(self, n): self.n = n\n"
    "    def area(self): return super().area() * self.n ** 2\n"
    "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
    "def numbers(n):\n"
    "    for i in range(n): yield i * 3 % 7\n"
    "def careful(n):\n"
    "    try: return 10 // n\n"
    "    except ZeroDivisionError: return -1\n"
    "text = ','.join(str(x) for x in sorted(numbers(9), key=lambda x: -x))\n"
    "total = fib(6) + sum(Square(i).area() for i in range(4)) + careful(0) + careful(3)\n"
    "\"\"\", 'code', 'exec')\n"
    "end = select.poll()\n"
    "end.register(0, select.POLLIN)\n"
    "exec(code, {})\n" /* the first class of a process takes ten times as long */
    "print('ready', flush=True)\n"
    "while not end.poll(20): exec(code, {})\n";

const struct step_program step_programs[] = {
    {.name = "calls", .source = calls, .flags = "-O1 -g", .function = "work",
     .exercises = "calls middle; recursion recurse; recursion deep; indirect leaf; callback compare; "
                  "enters qsort; plt; syscalls 1"},
    {.name = "tail calls", .source = tails, .flags = "-O2 -g", .function = "work",
     .exercises = "tail b; tail c; tail even; tail odd; calls leaf"},
    {.name = "longjmp", .source = jumps, .flags = "-O1 -g", .function = "work",
     .exercises = "enters _setjmp; enters longjmp; recursion thrower; recursion thrower2"},
    {.name = "longjmp outward", .source = jumps_out, .flags = "-O1 -g", .function = "work",
     .exercises = "enters __sigsetjmp; enters _setjmp; enters siglongjmp; recursion down; syscalls 6"},
    {.name = "longjmp outward, static", .source = jumps_out, .flags = "-O1 -g -static", .function = "work",
     .exercises = "calls _setjmp; calls __sigsetjmp; enters siglongjmp; recursion down; syscalls 6"},
    {.name = "exceptions", .source_name = "t.cc", .source = throws, .flags = "-O1 -g", .function = "work",
     .exercises = "enters __cxa_throw; enters _Unwind_RaiseException; enters _Unwind_Resume; "
                  "enters __cxa_begin_catch; indirect _ZN3one1fEi; indirect _ZN3two1fEi; calls _ZN5guardD1Ev"},
    {.name = "exceptions outward", .source_name = "t.cc", .source = throws_out, .flags = "-O1 -g", .function = "work",
     .exercises = "enters __cxa_throw; enters __cxa_rethrow; enters _Unwind_Resume; recursion _Z4pasti; "
                  "recursion _Z4intoii; recursion _Z2oni; recursion _Z5inneri; calls _ZN5guardD1Ev"},
    {.name = "exceptions outward, static", .source_name = "t.cc", .source = throws_out, .flags = "-O2 -g -static",
     .function = "work",
     .exercises = "calls __cxa_throw; calls _Unwind_Resume; recursion _Z4pasti; recursion _Z4intoii; recursion _Z2oni"},
    {.name = "signals", .source = signals, .flags = "-O1 -g", .function = "work",
     .exercises = "handler handler; calls helper; enters kill; syscalls 9"},
    {.name = "fibres", .source = fibres, .flags = "-O1 -g", .function = "work",
     .exercises = "enters swapcontext; enters makecontext; enters first; enters second; stacks 3"},
    {.name = "retpolines", .source = tails, .function = "work",
     .flags = "-O2 -g -mindirect-branch=thunk -fcf-protection=none",
     .exercises = "enters __x86_indirect_thunk_rax; tail even; tail odd"},
    {.name = "libraries", .source = libraries, .flags = "-O1 -g", .function = "work",
     .exercises = "plt; code [vdso]; code libc.so.6; enters snprintf; enters malloc; syscalls 1"},
    {.name = "libraries, old PLT", .source = libraries, .function = "work",
     .flags = "-O1 -g -Wl,-z,lazy -fcf-protection=none", .command = "env LD_BIND_NOT=1 ./t", /* resolves each time */
     .exercises = "plt; code [vdso]; code libc.so.6; code ld-linux-x86-64.so.2; enters strtol; enters free"},
    {.name = "static", .source = calls, .flags = "-O1 -g -static", .function = "work",
     .exercises = "recursion recurse; indirect compare; enters qsort; calls getppid"},
    {.name = "dlopen", .source = library, .flags = "-O1 -g", .prepare = MAKE_LIBRARIES, .function = "work",
     .exercises = "enters dlopen; enters dlsym; enters dlclose; callback first; callback second; "
                  "recursion deep; address; moved one.so"},
    {.name = "dlopen, one library", .source = library, .flags = "-O1 -g -DONCE", .prepare = MAKE_LIBRARIES,
     .function = "work", .exercises = "enters dlopen; enters dlsym; callback first; enters dlclose"},
    {.name = "stripped", .source = calls, .flags = "-O1 -Wl,--export-dynamic-symbol=work",
     .prepare = "strip t", .function = "work", .exercises = "stripped; enters qsort; plt; syscalls 1"},
    {.name = "ls", .prepare = "mkdir d && touch d/a d/b d/cc && ln -s a d/l", .file = "/bin/ls",
     .command = "sh -c 'echo ready; read x; LC_ALL=C exec /bin/ls -l d'",
     .exercises = "stripped; plt; enters opendir; enters readdir; enters readlink; syscalls 10"},
    {.name = "gzip", .prepare = "seq 1 300 >numbers", .file = "/bin/gzip",
     .command = "sh -c 'echo ready; read x; exec /bin/gzip -c numbers'",
     .exercises = "stripped; plt; enters read; syscalls 5"},
    {.name = "python3", .source_name = "t.py", .source = script, .command = "/usr/bin/python3 -E -S t.py",
     .file = "/usr/bin/python3", .function = "PyEval_EvalCode",
     .exercises = "stripped; enters _PyEval_EvalFrameDefault; enters PyNumber_Remainder; enters PySequence_List; "
                  "enters PyErr_SetString; enters PyTraceBack_Here"},
    {.name = NULL},
};

const struct step_program step_program_tiny = {
    .name = "tiny",
    .source = "#define NI __attribute__((noinline, noclone))\n"
              "NI int leaf(int x) { __asm__ volatile(\"\"); return x * 2 + 1; }\n"
              "NI int down(int n) { return n ? down(n - 1) + leaf(n) : leaf(0); }\n"
              "int (*volatile indirect)(int) = down;\n"
              "NI int work(int x) { int s = leaf(x); for (int i = 0; i < 4; i++) s += indirect(i); return s; }\n"
              STEP_MAIN("work(3)"),
    .flags = "-O1",
    .function = "work",
};

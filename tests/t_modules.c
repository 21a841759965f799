/* core/symbols/modules, core/machine/maps: names to addresses in running programs of every shape, against what the
 * program itself prints, what nm says and what its memory holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/symbols/dwarf_line.h"
#include "core/machine/maps.h"
#include "core/symbols/modules.h"
#include "tests/lib_program.h"

static const char source[] =
    "#include <stdio.h>\n"
    "#include <unistd.h>\n"
    "__attribute__((noinline)) static int twice(int x) { __asm__(\"\"); return 2 * x; }\n"
    "__attribute__((noinline)) int visible(int x) { __asm__(\"\"); return twice(x) + 1; }\n"
    "__attribute__((noinline, section(\".hot\"))) int moved(int x) { __asm__(\"\"); return x + PAD; }\n"
    "int main(void)\n"
    "{\n"
    "    char c;\n"
    "    printf(\"twice %p\\nvisible %p\\nmoved %p\\nmain %p\\nready\\n\", (void *)twice,\n"
    "           (void *)visible, (void *)moved, (void *)main);\n"
    "    fflush(stdout);\n"
    "    read(0, &c, 1);\n"
    "    return visible(1) + moved(2);\n"
    "}\n";

static const struct {
    const char *label, *flags;
    enum elf_kind kind;
} shapes[] = {
    {"PIE", "-fPIE -pie", ELF_KIND_PIE},
    {"fixed", "-fno-pie -no-pie", ELF_KIND_EXEC},
    {"static", "-fno-pie -static", ELF_KIND_STATIC},
    {"static PIE", "-fPIE -static-pie", ELF_KIND_STATIC_PIE},
    {"one RX segment with the headers", "-fPIE -pie -Wl,-z,noseparate-code", ELF_KIND_PIE},
    {"two RX segments, PIE", "-fPIE -pie -Wl,--section-start=.hot=0x345000", ELF_KIND_PIE},
    {"two RX segments, fixed", "-fno-pie -no-pie -Wl,--section-start=.hot=0xa45000", ELF_KIND_EXEC},
    {"two RX segments, offset not congruent to a page", "-fPIE -pie -Wl,--section-start=.hot=0x345670",
     ELF_KIND_PIE},
};

static const char *const functions[] = {"twice", "visible", "moved", "main"};

/* Program bytes as they are in memory, for comparison with the file. */
static void read_memory(pid_t pid, uint64_t addr, void *buf, size_t len)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, buf, len, (off_t)addr), len);
    close(fd);
}

/* Every function at the address the program printed, the file offset holding its very bytes, read
 * through the path that is meant for the kernel. */
static void check_functions(pid_t pid, enum elf_kind kind)
{
    struct modules *m;
    struct err err = {0};
    assert_int_equal(modules_of_pid(NULL, pid, &m, &err), 0);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        struct module_addrs a;
        assert_int_equal(modules_resolve(m, functions[i], &a, &err), 0);
        assert_int_equal(a.len, 1);
        const struct module *mod = modules_at(m, a.data[0].module);
        assert_int_equal(a.data[0].addr, program_addr(functions[i]));
        assert_int_equal(a.data[0].addr, a.data[0].vaddr + mod->bias);
        assert_true(mod->is_main);
        assert_int_equal(mod->kind, kind);
        assert_null(mod->why);
        uint8_t memory[4], file[4], code[4]; /* moved() is four bytes, at the end of its segment */
        read_memory(pid, a.data[0].addr, memory, sizeof memory);
        int fd = open(mod->open_path, O_RDONLY);
        assert_true(fd >= 0);
        assert_int_equal(pread(fd, file, sizeof file, (off_t)a.data[0].offset), sizeof file);
        close(fd);
        assert_memory_equal(memory, file, sizeof file);
        assert_int_equal(modules_read_code(m, a.data[0].module, a.data[0].vaddr, code, sizeof code),
                         sizeof code);
        assert_memory_equal(memory, code, sizeof code);
        struct symbol s;
        size_t where;
        assert_true(modules_symbolize(m, a.data[0].addr + 1, &s, &where));
        assert_string_equal(s.name, functions[i]);
        assert_int_equal(s.vaddr, a.data[0].addr);
        assert_int_equal(where, a.data[0].module);
        module_addrs_free(&a);
    }
    modules_free(m);
}

static void field_B7_every_shape(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "p.c", source);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char flags[256];
        snprintf(flags, sizeof flags, "-O1 -DPAD=3 %s", shapes[i].flags);
        if (!program_build(dir, "p.c", "p", flags)) {
            print_message("SKIP: this compiler cannot build: %s\n", shapes[i].label);
            continue;
        }
        struct program p;
        program_start(&p, dir, "./p");
        check_functions(p.pid, shapes[i].kind);
        struct modules *m;
        struct module_addrs a;
        assert_int_equal(modules_of_pid(NULL, p.pid, &m, NULL), 0);
        assert_int_equal(modules_resolve(m, "visible", &a, NULL), 0);
        assert_int_equal(a.data[0].vaddr, program_nm(dir, "p", "visible"));
        module_addrs_free(&a);
        modules_free(m);
        program_end(&p);
    }
    program_rmdir(dir);
}

/* The file on disk is another build by then, with the functions elsewhere. */
static void field_E2_deleted_and_replaced(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "p.c", source);
    program_write(dir, "q.c", "int before(int x) { return x * 3; } int before2(int x) { return x; }\n"
                              "int visible(int x) { return x; } int main(void) { return 7; }\n");
    assert_true(program_build(dir, "p.c", "p", "-O1 -DPAD=3"));
    assert_true(program_build(dir, "q.c", "q", "-O1"));
    struct program p;
    program_start(&p, dir, "./p");
    assert_true(program_shell(dir, "mv -f q p"));
    check_functions(p.pid, ELF_KIND_PIE);
    struct modules *m;
    assert_int_equal(modules_of_pid(NULL, p.pid, &m, NULL), 0);
    for (size_t i = 0; i < modules_count(m); i++)
        assert_int_equal(modules_at(m, i)->deleted, modules_at(m, i)->is_main);
    modules_free(m);
    assert_true(program_shell(dir, "rm p"));
    check_functions(p.pid, ELF_KIND_PIE);
    program_end(&p);
    program_rmdir(dir);
}

static void field_E1_other_mount_namespace(void **state)
{
    (void)state;
    if (!program_have("unshare") || !program_shell("/", "unshare -m true"))
        skip();
    char *dir = program_mkdir();
    program_write(dir, "p.c", source);
    assert_true(program_build(dir, "p.c", "p", "-O1 -DPAD=3"));
    assert_true(program_shell(dir, "mkdir in"));
    struct program p;
    program_start(&p, dir, "unshare -m sh -c 'mount -t tmpfs none in && cp p in/q && exec in/q'");
    char inside[256];
    snprintf(inside, sizeof inside, "%s/in/q", dir);
    assert_int_equal(access(inside, F_OK), -1);
    check_functions(p.pid, ELF_KIND_PIE);
    program_end(&p);
    program_rmdir(dir);
}

static void names_with_odd_bytes(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "p.c", source);
    assert_true(program_build(dir, "p.c", "p", "-O1 -DPAD=3"));
    assert_true(program_shell(dir, "mkdir 'a b' && mv p \"$(printf 'a b/x\\ny (deleted)')\""));
    struct program p;
    program_start(&p, dir, "\"$(printf 'a b/x\\ny (deleted)')\"");
    check_functions(p.pid, ELF_KIND_PIE);
    program_end(&p);
    program_rmdir(dir);
}

/* ---- maps ---- */

static void maps_text(void **state)
{
    (void)state;
    static const char text[] =
        "00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a b\\012c (deleted)\n"
        "00651000-00652000 rw-s 00051000 08:02 173521      /x\n"
        "nonsense\n"
        "7f00-7e00 r--p 0 0:0 0\n"
        "7ffff7fc1000-7ffff7fc3000 r-xp 00000000 00:00 0                          [vdso]\n"
        "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";
    struct maps *m;
    assert_int_equal(maps_parse(text, sizeof text - 1, &m, NULL), 0);
    assert_int_equal(maps_count(m), 4);
    assert_int_equal(maps_bad_lines(m), 2);
    const struct map *a = maps_at(m, 0);
    assert_string_equal(a->path, "/usr/bin/a b\nc");
    assert_true(a->deleted);
    assert_int_equal(a->start, 0x400000);
    assert_int_equal(a->end, 0x452000);
    assert_int_equal(a->offset, 0x1000);
    assert_int_equal(a->dev_major, 8);
    assert_int_equal(a->dev_minor, 2);
    assert_int_equal(a->inode, 173521);
    assert_int_equal(a->prot, MAPS_R | MAPS_X);
    assert_int_equal(maps_at(m, 1)->prot, MAPS_R | MAPS_W | MAPS_SHARED);
    assert_false(map_has_file(maps_at(m, 2)));
    assert_ptr_equal(maps_find(m, 0x451fff), a);
    assert_null(maps_find(m, 0x452000));
    assert_null(maps_find(m, 0));
    assert_ptr_equal(maps_find(m, 0xffffffffff600fff), maps_at(m, 3));
    maps_free(m);
}

/* A process whose files cannot be reached: each open that failed is named, with its error. */
static void field_E1_open_failures_are_told(void **state)
{
    (void)state;
    char *dir = program_mkdir(), path[4096], line[8192];
    assert_true(program_shell(dir, "mkdir -p 42/root/lib && echo x > 42/root/lib/c && ln -s /gone/prog 42/exe"));
    struct stat st;
    snprintf(path, sizeof path, "%s/42/root/lib/c", dir);
    assert_int_equal(stat(path, &st), 0);
    snprintf(line, sizeof line,
             "1000-2000 r-xp 00000000 ff:7f %lu /lib/c\n3000-4000 r-xp 0 ff:7f 99 /gone/prog\n",
             (unsigned long)st.st_ino);
    program_write(dir, "42/maps", line);
    struct maps *m;
    struct err err;
    assert_int_equal(maps_read(dir, 42, &m, &err), 0);
    int fd = map_open(dir, 42, maps_at(m, 0), path, sizeof path, &err);
    assert_true(fd >= 0);
    close(fd);
    assert_non_null(strstr(path, "/42/root/lib/c"));
    assert_int_equal(map_open(dir, 42, maps_at(m, 1), path, sizeof path, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "/42/map_files/3000-4000: No such file or directory"));
    assert_non_null(strstr(err.text, "/42/exe: No such file or directory"));
    assert_non_null(strstr(err.text, "/42/root/gone/prog: No such file"));
    maps_free(m);
    assert_int_equal(maps_read(dir, 43, &m, &err), MTUI_E_GONE);
    struct modules *mods;
    assert_int_equal(modules_of_pid(dir, 42, &mods, &err), 0);
    assert_int_equal(modules_count(mods), 2);
    assert_non_null(strstr(modules_at(mods, 0)->why, "is not an ELF file"));
    assert_true(modules_at(mods, 1)->is_main);
    char *why = modules_why_no_symbols(mods, 1);
    assert_non_null(strstr(why, "exe: No such file"));
    free(why);
    modules_free(mods);
    program_rmdir(dir);
}

/* A namesake on the same device is never taken for the file that is mapped. */
static void a_namesake_is_refused(void **state)
{
    (void)state;
    char *dir = program_mkdir(), path[4096], line[8192];
    assert_true(program_shell(dir, "mkdir -p 42/root && echo x > 42/root/c && ln -s /x 42/exe"));
    struct stat st;
    snprintf(path, sizeof path, "%s/42/root/c", dir);
    assert_int_equal(stat(path, &st), 0);
    snprintf(line, sizeof line, "1000-2000 r-xp 00000000 %x:%x %lu /c\n",
             (unsigned)(st.st_dev >> 8), (unsigned)(st.st_dev & 0xff), (unsigned long)st.st_ino + 1);
    program_write(dir, "42/maps", line);
    struct maps *m;
    struct err err;
    assert_int_equal(maps_read(dir, 42, &m, &err), 0);
    assert_true(map_open(dir, 42, maps_at(m, 0), path, sizeof path, &err) < 0);
    assert_non_null(strstr(err.text, "another file than the one that is mapped"));
    maps_free(m);
    program_rmdir(dir);
}

/* ---- Resolving ---- */

static const char cc_source[] =
    "#include <cstdio>\n"
    "#include <unistd.h>\n"
    "struct Conn { int fd; };\n"
    "namespace Http {\n"
    "template <class T> struct Handler { int request(Conn &c); int request(Conn &c, T x); };\n"
    "template <class T> __attribute__((noinline)) int Handler<T>::request(Conn &c)\n"
    "{\n"
    "    __asm__(\"\");\n"
    "\n"
    "    return c.fd;\n"
    "}\n"
    "template <class T> __attribute__((noinline)) int Handler<T>::request(Conn &c, T x)\n"
    "{ __asm__(\"\"); return c.fd + int(x); }\n"
    "}\n"
    "extern \"C\" __attribute__((noinline)) int f(int x) { __asm__(\"\"); return x; }\n"
    "static inline __attribute__((always_inline)) int inlined(int x)\n"
    "{\n"
    "    __asm__ volatile(\"nop\");\n" /* line 18 */
    "    return x + 1;\n"
    "}\n"
    "__attribute__((noinline)) int one(int x) { return inlined(x); }\n"
    "__attribute__((noinline)) int two(int x) { return inlined(x) * 2; }\n"
    "int main()\n"
    "{\n"
    "    Conn c = {1};\n"
    "    Http::Handler<int> h;\n"
    "    Http::Handler<double> d;\n"
    "    char b;\n"
    "    puts(\"ready\");\n"
    "    fflush(stdout);\n"
    "    read(0, &b, 1);\n"
    "    return h.request(c) + h.request(c, 2) + d.request(c) + f(1) + one(2) + two(3);\n"
    "}\n";

static size_t resolved(struct modules *m, const char *spec, uint64_t *first)
{
    struct module_addrs a;
    struct err err = {0};
    if (modules_resolve(m, spec, &a, &err) < 0)
        return 0;
    size_t n = a.len;
    if (first)
        *first = a.data[0].vaddr;
    module_addrs_free(&a);
    return n;
}

/* A name stands for the copies that a compiler has made of the function, not for pieces of it. */
static void copies_of_functions(void **state)
{
    (void)state;
    static const char copies[] =
        "#define F(name) __asm__(\".globl \\\"\" name \"\\\"\\n.type \\\"\" name \"\\\", @function\\n\" \\\n"
        "    \"\\\"\" name \"\\\": ret\\n.size \\\"\" name \"\\\", 1\\n\")\n"
        "F(\"copied.isra.0\");\n"
        "F(\"copied.constprop.12.isra.3\");\n"
        "F(\"copied.part.0\");\n"
        "F(\"copied.cold\");\n"
        "F(\"copied.isra.0.cold\");\n"
        "F(\"copied.isra.x\");\n"
        "F(\"_ZN2ns6Server6handleEl.llvm.123\");\n"
        "F(\"_ZN2ns6Server6handleEl.cold.1\");\n"
        "int main(void) { return 0; }\n";
    char *dir = program_mkdir(), path[256];
    program_write(dir, "copies.c", copies);
    assert_true(program_build(dir, "copies.c", "copies", "-O1"));
    snprintf(path, sizeof path, "%s/copies", dir);
    struct modules *m;
    struct err err = {0};
    uint64_t a = 0;
    assert_int_equal(modules_of_file(path, &m, &err), 0);
    assert_int_equal(resolved(m, "copied", NULL), 2);
    assert_int_equal(resolved(m, "copied.isra.0", &a), 1);
    assert_int_equal(a, program_nm(dir, "copies", "copied.isra.0"));
    assert_int_equal(resolved(m, "copied.cold", &a), 1);
    assert_int_equal(a, program_nm(dir, "copies", "copied.cold"));
    assert_int_equal(resolved(m, "ns::Server::handle", &a), 1);
    assert_int_equal(a, program_nm(dir, "copies", "_ZN2ns6Server6handleEl.llvm.123"));
    assert_int_equal(resolved(m, "ns::Server::handle(long)", NULL), 1);
    assert_int_equal(resolved(m, "/^copied/", NULL), 4); /* without both cold ones */
    modules_free(m);
    program_rmdir(dir);
}

static void specs(void **state)
{
    (void)state;
    char *dir = program_mkdir(), path[256];
    program_write(dir, "h.cc", cc_source);
    assert_true(program_build(dir, "h.cc", "h-server", "-O1 -g"));
    snprintf(path, sizeof path, "%s/h-server", dir);
    struct modules *m;
    struct err err = {0};
    assert_int_equal(modules_of_file(path, &m, &err), 0);
    uint64_t a = 0, b = program_nm(dir, "h-server", "_ZN4Http7HandlerIiE7requestER4Conn");
    assert_true(b != 0);
    assert_int_equal(resolved(m, "_ZN4Http7HandlerIiE7requestER4Conn", &a), 1);
    assert_int_equal(a, b);
    assert_int_equal(resolved(m, "Http::Handler<int>::request(Conn&)", &a), 1);
    assert_int_equal(a, b);
    assert_int_equal(resolved(m, "Http::Handler<int>::request", NULL), 2);
    assert_int_equal(resolved(m, "Http::Handler<int>::request(Conn&,int)", NULL), 1);
    assert_int_equal(resolved(m, "Http::Handler::request", NULL), 3);
    assert_int_equal(resolved(m, "/Handler<.*>::request\\(Conn&\\)/", NULL), 2);
    assert_int_equal(resolved(m, "h-server:f", &a), 1);
    assert_int_equal(a, program_nm(dir, "h-server", "f"));
    assert_int_equal(resolved(m, "float", NULL), 0);
    /* the template has two instances; line 9 is empty and takes line 10 of the same function */
    assert_int_equal(resolved(m, "h.cc:10", NULL), 2);
    assert_int_equal(resolved(m, "h.cc:9", NULL), 2);
    /* an inlined line has an address in each copy */
    struct module_addrs lines;
    assert_int_equal(modules_resolve(m, "h.cc:18", &lines, &err), 0);
    assert_int_equal(lines.len, 2);
    assert_string_equal(lines.data[0].name, "one(int)");
    assert_string_equal(lines.data[1].name, "two(int)");
    assert_true(source_path_matches(lines.data[0].file, "h.cc"));
    assert_int_equal(lines.data[0].line, 18);
    module_addrs_free(&lines);
    /* line 1 has no code, the next that has some lies in a function that begins later */
    assert_int_equal(modules_resolve(m, "h.cc:1", &lines, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "h.cc:1 has no code"));
    assert_int_equal(modules_resolve(m, "nosuch.cc:1", &lines, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "no source file nosuch.cc"));
    assert_int_equal(modules_resolve(m, "Http::Handler::reqeust", &lines, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "near: Http::Handler::request"));
    assert_int_equal(modules_resolve(m, "libnosuch:f", &lines, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "no module libnosuch"));
    assert_int_equal(modules_resolve(m, "/(/", &lines, &err), MTUI_E_INVAL);
    assert_int_equal(modules_resolve(m, "", &lines, &err), MTUI_E_INVAL);
    char hex[32];
    snprintf(hex, sizeof hex, "0x%lx", b + 1);
    assert_int_equal(modules_resolve(m, hex, &lines, &err), 0);
    assert_int_equal(lines.data[0].vaddr, b + 1);
    assert_string_equal(lines.data[0].name, "Http::Handler<int>::request(Conn&)");
    module_addrs_free(&lines);
    assert_int_equal(modules_resolve(m, "0x10", &lines, &err), MTUI_E_NOENT);
    modules_free(m);

    /* In the running PIE an address as nm prints it is refused, and the right one is told. */
    struct program p;
    program_start(&p, dir, "./h-server");
    assert_int_equal(modules_of_pid(NULL, p.pid, &m, &err), 0);
    snprintf(hex, sizeof hex, "0x%lx", b);
    assert_int_equal(modules_resolve(m, hex, &lines, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "not in the executable memory"));
    assert_int_equal(modules_resolve(m, "f", &lines, &err), 0);
    char *told = strstr(err.text, "it is at 0x");
    assert_non_null(told);
    assert_int_equal(strtoull(told + 9, NULL, 16), lines.data[0].addr - lines.data[0].vaddr + b);
    module_addrs_free(&lines);
    if (access("/proc/kallsyms", R_OK) == 0 && program_shell("/", "grep -q ' T ksys_read$' /proc/kallsyms")) {
        assert_int_equal(modules_resolve(m, "ksys_read", &lines, &err), MTUI_E_NOTSUP);
        assert_non_null(strstr(err.text, "kernel function"));
    }
    assert_int_equal(modules_resolve(m, "libc:no_such_function", &lines, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "no function no_such_function in libc"));
    assert_null(strstr(err.text, "h-server"));
    assert_int_equal(modules_resolve(m, "libc:getenv", &lines, &err), 0);
    assert_non_null(strstr(modules_at(m, lines.data[0].module)->name, "libc"));
    module_addrs_free(&lines);
    assert_int_equal(modules_refresh(m, &err), 0);
    program_end(&p);
    assert_int_equal(modules_refresh(m, &err), MTUI_E_GONE);
    modules_free(m);
    program_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_B7_every_shape),
        cmocka_unit_test(field_E2_deleted_and_replaced),
        cmocka_unit_test(field_E1_other_mount_namespace),
        cmocka_unit_test(names_with_odd_bytes),
        cmocka_unit_test(maps_text),
        cmocka_unit_test(field_E1_open_failures_are_told),
        cmocka_unit_test(a_namesake_is_refused),
        cmocka_unit_test(copies_of_functions),
        cmocka_unit_test(specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

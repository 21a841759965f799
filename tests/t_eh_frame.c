/* core/symbols/eh_frame and what core/symbols/symtab, modules and trigger_resolve make of it: functions of
 * stripped files, against readelf, and against nm of the same program before it was stripped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/symbols/debug_file.h"
#include "core/symbols/eh_frame.h"
#include "core/symbols/modules.h"
#include "core/symbols/symtab.h"
#include "core/trigger/trigger.h"
#include "core/trigger/trigger_resolve.h"
#include "tests/lib_eh_damage.h"
#include "tests/lib_program.h"
#include "tests/lib_perf.h"

/* worker and again need a frame, and gcc moves their unlikely blocks into worker.cold and again.cold. */
static const char source[] =
    "#include <stdio.h>\n"
    "#include <string.h>\n"
    "volatile int sink;\n"
    "__attribute__((cold, noinline)) static void report(int x) { sink += x; puts(\"negative\"); }\n"
    "__attribute__((noinline)) static int leaf(int x) { __asm__(\"\"); return x * 3; }\n"
    "__attribute__((noinline)) static int worker(const int *p, int n) {\n"
    "    int sum = 0;\n"
    "    for (int i = 0; i < n; i++) {\n"
    "        if (__builtin_expect(p[i] < 0, 0)) { report(i); report(n); sum -= leaf(sum); }\n"
    "        sum += leaf(p[i]); }\n"
    "    return sum; }\n"
    "__attribute__((noinline)) static int again(const int *p, int n) {\n"
    "    int sum = worker(p, n);\n"
    "    if (__builtin_expect(sum < 0, 0)) { report(sum); report(n); return leaf(sum) + n; }\n"
    "    return n ? again(p, n - 1) + sum : sum; }\n"
    "__attribute__((noinline)) int exported(int n) {\n"
    "    int a[4] = {n, 2, 3, 4}; __asm__(\"\"); return again(a, 4); }\n"
    "int main(int argc, char **argv) { return exported(argc) + (int)strlen(argv[0]); }\n";

struct range {
    uint64_t from, to;
};
struct ranges {
    struct range *data;
    size_t len, cap;
};

static int range_order(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : (x->to > y->to) - (x->to < y->to);
}

/* "… FDE cie=… pc=START..END", each once. */
static struct ranges by_readelf(const char *path)
{
    char command[700], line[4096];
    struct ranges r = {0};
    snprintf(command, sizeof command, "readelf --debug-dump=frames '%s' 2>/dev/null", path);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    while (fgets(line, sizeof line, p)) {
        struct range one;
        const char *pc = strstr(line, " FDE ") ? strstr(line, " pc=") : NULL;
        if (pc && sscanf(pc, " pc=%" SCNx64 "..%" SCNx64, &one.from, &one.to) == 2)
            vec_push(&r, one);
    }
    pclose(p);
    if (r.len)
        qsort(r.data, r.len, sizeof *r.data, range_order);
    size_t n = 0;
    for (size_t i = 0; i < r.len; i++)
        if (!n || range_order(&r.data[n - 1], &r.data[i]) != 0)
            r.data[n++] = r.data[i];
    r.len = n;
    return r;
}

static struct elf_file *open_file(const char *path)
{
    struct elf_file *f;
    struct err err;
    if (elf_file_open_path(path, &f, &err) < 0)
        fail_msg("%s", err.text);
    return f;
}

static size_t check_entries(const char *path)
{
    struct elf_file *f = open_file(path);
    struct ranges want = by_readelf(path);
    struct eh_function *got;
    size_t n;
    assert_int_equal(eh_frame_functions(f, &got, &n, NULL), 0);
    assert_int_equal(n, want.len);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(got[i].vaddr, want.data[i].from);
        assert_int_equal(got[i].vaddr + got[i].size, want.data[i].to);
    }
    free(got);
    vec_free(&want);
    elf_file_free(f);
    return n;
}

static void build(const char *dir)
{
    program_write(dir, "p.c", source);
    assert_true(program_build(dir, "p.c", "full", "-O2 -Wl,--export-dynamic-symbol=exported"));
    assert_true(program_shell(dir, "cp full p && strip p"));
}

static void entries_equal_readelf(void **state)
{
    static const char *const files[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6",
                                        "/lib/x86_64-linux-gnu/libstdc++.so.6", "/bin/ls", "/bin/gzip",
                                        "/bin/bash"};
    size_t all = 0;
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = realpath(files[i], NULL);
        all += path ? check_entries(path) : 0;
        free(path);
    }
    print_message("%zu entries of %zu files\n", all, sizeof files / sizeof *files);
    char *dir = program_mkdir(), path[512];
    static const char *const flags[] = {"-O2", "-O2 -no-pie -fno-pie", "-O2 -static -fno-pie -no-pie"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        program_write(dir, "p.c", source);
        assert_true(program_build(dir, "p.c", "p", flags[i]));
        snprintf(path, sizeof path, "%s/p", dir);
        assert_true(check_entries(path) > 5);
    }
    program_rmdir(dir);
}

/* A file without section headers has the program header left. */
static void no_section_headers(void **state)
{
    char *dir = program_mkdir(), path[512];
    struct eh_function *with, *without;
    size_t n, m, len;
    (void)state;
    build(dir);
    snprintf(path, sizeof path, "%s/p", dir);
    struct elf_file *f = open_file(path);
    assert_int_equal(eh_frame_functions(f, &with, &n, NULL), 0);
    elf_file_free(f);
    char *image = lib_read(path, &len);
    Elf64_Ehdr h;
    memcpy(&h, image, sizeof h);
    h.e_shoff = 0;
    h.e_shnum = h.e_shstrndx = 0;
    memcpy(image, &h, sizeof h);
    assert_int_equal(elf_file_open_memory(image, len, "p", &f, NULL), 0);
    assert_int_equal(eh_frame_functions(f, &without, &m, NULL), 0);
    elf_file_free(f);
    assert_true(n > 5);
    assert_int_equal(m, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(with[i].vaddr, without[i].vaddr);
        assert_int_equal(with[i].size, without[i].size);
        assert_int_equal(with[i].is_part, without[i].is_part);
    }
    free(with);
    free(without);
    program_rmdir(dir);
}

static struct symtab *load(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    struct elf_file *f = open_file(path);
    struct debug_search search = {.root = "/nonexistent", .path = path};
    struct symtab *t;
    assert_int_equal(symtab_load(f, &search, &t, NULL), 0);
    elf_file_free(f);
    return t;
}

static struct symbol symbol_at(const struct symtab *t, uint64_t vaddr)
{
    struct symbol s = {.name = ""};
    ssize_t i = symtab_find(t, vaddr);
    if (i >= 0) {
        assert_true((size_t)i < symtab_count(t));
        symtab_get(t, (size_t)i, &s);
    }
    return s;
}

/* What the file had before it was stripped: each function is there, whole, by its address. */
static void functions_of_a_stripped_file(void **state)
{
    char *dir = program_mkdir(), name[64];
    (void)state;
    build(dir);
    struct symtab *full = load(dir, "full"), *t = load(dir, "p");
    size_t parts = 0, functions = 0;
    for (size_t i = 0; i < symtab_count(full); i++) {
        struct symbol s, u;
        symtab_get(full, i, &s);
        bool cold = strstr(s.name, ".cold") != NULL;
        static const char *const ours[] = {"report", "leaf", "worker", "again", "main"};
        bool mine = cold;
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++) /* also again.constprop.0 */
            mine |= strcspn(s.name, ".") == strlen(ours[k]) && strncmp(s.name, ours[k], strlen(ours[k])) == 0;
        if (!mine)
            continue;
        snprintf(name, sizeof name, "p+0x%" PRIx64, s.vaddr);
        for (uint64_t at = s.vaddr; at < s.vaddr + s.size; at++) {
            u = symbol_at(t, at);
            assert_string_equal(u.name, name);
            assert_int_equal(u.vaddr, s.vaddr);
            assert_int_equal(u.size, s.size);
            assert_int_equal(u.source, SYMBOL_FROM_UNWIND);
            assert_int_equal(u.flags, SYMBOL_UNNAMED | (cold ? SYMBOL_PART : 0));
        }
        functions += !cold;
        parts += cold;
    }
    assert_int_equal(functions, 5);
    assert_int_equal(parts, 2); /* of worker and again */
    assert_string_equal(symbol_at(t, program_nm(dir, "full", "exported")).name, "exported");
    assert_int_equal(symtab_source_count(full, SYMBOL_FROM_UNWIND), 0);
    assert_true(symtab_source_count(t, SYMBOL_FROM_UNWIND) >= 7);
    assert_non_null(strstr(symtab_note(t), "named by address"));
    for (size_t i = 0; i < symtab_all_count(t); i++) { /* nothing to look for by name, and stubs have theirs */
        struct symbol s;
        symtab_all_get(t, i, &s);
        assert_false(s.flags & SYMBOL_UNNAMED);
        assert_string_equal(symbol_at(t, s.vaddr + s.size - 1).name, symbol_at(t, s.vaddr).name);
        assert_int_not_equal(symbol_at(t, s.vaddr).source, SYMBOL_FROM_UNWIND);
    }
    symtab_free(full);
    symtab_free(t);
    program_rmdir(dir);
}

static int resolve(struct modules *m, const char *spec, struct trigger_places *places, struct err *err)
{
    struct trigger t;
    assert_int_equal(trigger_parse(&t, spec, NULL, err), 0);
    int rc = trigger_resolve(m, &t, 0, places, err);
    trigger_fini(&t);
    return rc;
}

/* The name that a timeline shows can be typed; no probe goes anywhere but to the beginning of a function. */
static void triggers_by_that_name(void **state)
{
    char *dir = program_mkdir(), path[512], spec[100];
    struct modules *m;
    struct err err;
    struct trigger_places places;
    (void)state;
    build(dir);
    snprintf(path, sizeof path, "%s/p", dir);
    assert_int_equal(modules_of_file(path, &m, &err), 0);
    uint64_t leaf = program_nm(dir, "full", "leaf"), cold = program_nm(dir, "full", "worker.cold");
    assert_true(leaf && cold);
    snprintf(spec, sizeof spec, "p+0x%" PRIx64, leaf);
    assert_int_equal(resolve(m, spec, &places, &err), 0);
    assert_int_equal(places.sites.len, 1);
    assert_string_equal(places.sites.data[0].label, spec);
    trigger_places_free(&places);
    snprintf(spec, sizeof spec, "p+0x%" PRIx64 "@return", leaf);
    assert_int_equal(resolve(m, spec, &places, &err), 0);
    assert_true(places.sites.len >= 2); /* entry and exit */
    trigger_places_free(&places);
    const uint64_t wrong[] = {leaf + 1, cold, program_nm(dir, "full", "exported"), 0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(spec, sizeof spec, "p+0x%" PRIx64, wrong[i]);
        assert_int_equal(resolve(m, spec, &places, &err), MTUI_E_NOENT);
    }
    snprintf(spec, sizeof spec, "other+0x%" PRIx64, leaf);
    assert_int_equal(resolve(m, spec, &places, &err), MTUI_E_NOENT);
    modules_free(m);
    program_rmdir(dir);
}

static size_t look(const struct elf_file *f, void *arg)
{
    struct eh_function *list;
    size_t n;
    (void)arg;
    assert_int_equal(eh_frame_functions(f, &list, &n, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        assert_true(list[i].size > 0 && elf_file_is_code(f, list[i].vaddr) &&
                    elf_file_is_code(f, list[i].vaddr + list[i].size - 1));
        assert_true(i == 0 || list[i].vaddr - list[i - 1].vaddr >= list[i - 1].size);
    }
    free(list);
    return n;
}

/* Less is found, in order and within the code, and nothing breaks. */
static void damaged_entries(void **state)
{
    char *dir = program_mkdir(), path[512];
    (void)state;
    build(dir);
    snprintf(path, sizeof path, "%s/p", dir);
    assert_true(eh_damage(path, false, look, NULL) > EH_DAMAGE_ROUNDS);
    program_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_equal_readelf),        cmocka_unit_test(no_section_headers),
        cmocka_unit_test(functions_of_a_stripped_file), cmocka_unit_test(triggers_by_that_name),
        cmocka_unit_test(damaged_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* core/symbols/elf_file, core/symbols/dwarf_line, core/symbols/debug_file against readelf, addr2line and damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz_elf.c"
#include "tests/lib_program.h"

static const char source[] =
    "#include <stdio.h>\n"
    "static inline __attribute__((always_inline)) int add(int x) {\n"
    "    __asm__ volatile(\"nop\");\n"
    "    return x + 1;\n"
    "}\n"
    "__attribute__((noinline)) int work(int x)\n"
    "{\n"
    "    puts(\"x\");\n"
    "    return add(x) * 2;\n"
    "}\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "    (void)argv;\n"
    "    return work(argc);\n"
    "}\n";

/* First line of a command's output that contains needle. */
static void grep_output(const char *dir, const char *command, const char *needle, char *line,
                        size_t size)
{
    char full[1024], buf[1024];
    snprintf(full, sizeof full, "cd '%s' && LC_ALL=C %s 2>/dev/null", dir, command);
    FILE *p = popen(full, "r");
    assert_non_null(p);
    line[0] = '\0';
    while (fgets(buf, sizeof buf, p))
        if (!line[0] && strstr(buf, needle))
            snprintf(line, size, "%s", buf);
    pclose(p);
}

static struct elf_file *open_in(const char *dir, const char *name)
{
    char path[512];
    struct elf_file *f;
    struct err err = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(elf_file_open_path(path, &f, &err), 0);
    return f;
}

static void headers_equal_readelf(void **state)
{
    (void)state;
    static const struct {
        const char *flags;
        enum elf_kind kind;
    } shapes[] = {
        {"-fPIE -pie", ELF_KIND_PIE},
        {"-fno-pie -no-pie", ELF_KIND_EXEC},
        {"-static -no-pie -fno-pie", ELF_KIND_STATIC},
        {"-static-pie -fPIE", ELF_KIND_STATIC_PIE},
        {"-shared -fPIC", ELF_KIND_SHARED},
        {"-c", ELF_KIND_OTHER},
    };
    char *dir = program_mkdir(), line[1024], hex[2 * ELF_BUILD_ID_MAX + 1];
    program_write(dir, "p.c", source);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char flags[128];
        snprintf(flags, sizeof flags, "-g -O1 -Wl,--build-id=sha1 %s", shapes[i].flags);
        assert_true(program_build(dir, "p.c", "p", flags));
        struct elf_file *f = open_in(dir, "p");
        assert_int_equal(elf_file_kind(f), shapes[i].kind);
        assert_int_equal(elf_file_bits(f), 64);
        grep_output(dir, "readelf -n p", "Build ID:", line, sizeof line);
        size_t len, n;
        const uint8_t *id = elf_file_build_id(f, &len);
        elf_build_id_hex(id, len, hex);
        if (shapes[i].kind != ELF_KIND_OTHER) {
            assert_int_equal(len, 20);
            assert_non_null(strstr(line, hex));
            uint64_t at, vaddr;
            uint8_t copy[20];
            assert_true(elf_file_build_id_offset(f, &at));
            assert_true(elf_file_offset_to_vaddr(f, at, &vaddr));
            assert_int_equal(elf_file_read(f, vaddr, copy, 20), 20);
            assert_memory_equal(copy, id, 20);
        }
        const struct elf_segment *s = elf_file_segments(f, &n);
        for (size_t k = 0; k < n; k++) {
            char command[128], row[64];
            unsigned long off, va, pa, fs, ms;
            snprintf(row, sizeof row, "0x%016lx", (unsigned long)s[k].vaddr);
            snprintf(command, sizeof command, "readelf -lW p | grep LOAD");
            grep_output(dir, command, row, line, sizeof line);
            assert_int_equal(sscanf(line, " LOAD %lx %lx %lx %lx %lx", &off, &va, &pa, &fs, &ms), 5);
            assert_int_equal(s[k].offset, off);
            assert_int_equal(s[k].filesz, fs);
            assert_int_equal(s[k].memsz, ms);
        }
        elf_file_free(f);
    }
    /* 32 bits: no C library needed */
    program_write(dir, "t.c", "int f(int x) { return x + 1; } void _start(void) { f(1); }\n");
    if (program_build(dir, "t.c", "t", "-m32 -nostdlib -static -no-pie -fno-pie -Wl,--build-id")) {
        struct elf_file *f = open_in(dir, "t");
        assert_int_equal(elf_file_bits(f), 32);
        assert_int_equal(elf_file_kind(f), ELF_KIND_STATIC);
        struct symtab *t;
        assert_int_equal(symtab_load(f, NULL, &t, NULL), 0);
        struct symbol s;
        ssize_t i = symtab_find(t, program_nm(dir, "t", "f") + 1);
        assert_true(i >= 0);
        symtab_get(t, (size_t)i, &s);
        assert_string_equal(s.name, "f");
        symtab_free(t);
        elf_file_free(f);
    }
    struct err err;
    struct elf_file *f;
    assert_int_equal(elf_file_open_path("/dev/null", &f, &err), MTUI_E_FORMAT);
    assert_int_equal(elf_file_open_path(dir, &f, &err), MTUI_E_FORMAT);
    assert_int_equal(elf_file_open_path("/nonexistent", &f, &err), MTUI_E_NOENT);
    program_rmdir(dir);
}

static void lines_equal_addr2line(void **state)
{
    (void)state;
    char *dir = program_mkdir(), line[1024], command[256];
    program_write(dir, "p.c", source);
    static const char *const flags[] = {"-g -O2", "-gdwarf-4 -O1", "-gdwarf-5 -O0", "-g -O1 -gz"};
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
        assert_true(program_build(dir, "p.c", "p", flags[k]));
        struct elf_file *f = open_in(dir, "p");
        struct dwarf_lines *d;
        assert_int_equal(dwarf_lines_open(f, NULL, &d, NULL), 0);
        elf_file_free(f);
        uint64_t work = program_nm(dir, "p", "work");
        struct source_frame fr[8];
        struct source_pos pos;
        for (uint64_t a = work; a < work + 16; a++) {
            assert_true(dwarf_lines_at(d, a, &pos));
            snprintf(command, sizeof command, "addr2line -e p 0x%lx", a);
            grep_output(dir, command, ":", line, sizeof line);
            assert_int_equal(pos.line, atoi(strrchr(line, ':') + 1));
            assert_true(source_path_matches(pos.file, "p.c"));
            assert_int_equal(pos.file[0], '/');
        }
        struct source_addr *list;
        size_t n;
        struct err err = {0};
        /* the body of the inlined function: it has one copy, in work() */
        assert_int_equal(dwarf_lines_find(d, "p.c", 3, &list, &n, &err), 0);
        assert_int_equal(n, 1);
        assert_int_equal(list[0].line, 3);
        size_t depth = dwarf_lines_frames(d, list[0].vaddr, fr, 8);
        assert_int_equal(depth, 2);
        assert_string_equal(fr[0].name, "add");
        assert_true(fr[0].inlined);
        assert_int_equal(fr[0].decl.line, 2);
        assert_int_equal(fr[0].call.line, 9);
        assert_string_equal(fr[1].name, "work");
        assert_false(fr[1].inlined);
        assert_int_equal(fr[1].decl.line, 6);
        assert_int_equal(fr[1].vaddr, work);
        free(list);
        /* the opening line is the function's first instruction */
        assert_int_equal(dwarf_lines_find(d, "p.c", 6, &list, &n, &err), 0);
        assert_int_equal(n, 1);
        assert_int_equal(list[0].vaddr, work);
        free(list);
        assert_int_equal(dwarf_lines_find(d, "p.c", 500, &list, &n, &err), MTUI_E_NOENT);
        assert_int_equal(dwarf_lines_find(d, "q.c", 3, &list, &n, &err), MTUI_E_NOENT);
        assert_false(dwarf_lines_at(d, 0x10, &pos));
        dwarf_lines_free(d);
    }
    assert_true(source_path_matches("/src/a/http.c", "http.c"));
    assert_true(source_path_matches("/src/a/http.c", "a/http.c"));
    assert_true(source_path_matches("/src/a/http.c", "./a/http.c"));
    assert_false(source_path_matches("/src/a/xhttp.c", "http.c"));
    assert_false(source_path_matches("http.c", "/http.c"));
    program_rmdir(dir);
}

/* ---- Damage ---- */

static uint32_t seed = 2463534242u;
static uint32_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

static uint8_t *read_whole(const char *dir, const char *name, size_t *size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    uint8_t *data = malloc(1 << 20);
    *size = fread(data, 1, 1 << 20, f);
    assert_true(*size > 1000 && *size < 1 << 20);
    fclose(f);
    return data;
}

static void field_E4_every_truncation(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "p.c", source);
    assert_true(program_build(dir, "p.c", "p", "-g -O1"));
    size_t size;
    uint8_t *data = read_whole(dir, "p", &size);
    for (size_t n = 0; n < size; n += n < 1024 ? 7 : 61)
        LLVMFuzzerTestOneInput(data, n);
    free(data);
    program_rmdir(dir);
}

static void field_E4_random_damage(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "p.c", source);
    static const char *const flags[] = {"-g -O1", "-g -O1 -static-pie -nostdlib -DNOLIB", "-g -O2 -gz"};
    program_write(dir, "q.c", "int f(int x) { return x; } void _start(void) { f(1); }\n");
    for (size_t k = 0; k < 3; k++) {
        assert_true(program_build(dir, k == 1 ? "q.c" : "p.c", "p", flags[k]));
        size_t size;
        uint8_t *data = read_whole(dir, "p", &size), *copy = malloc(size);
        for (int round = 0; round < 1500; round++) {
            memcpy(copy, data, size);
            /* a few bytes anywhere, or in the headers where each one matters */
            for (uint32_t i = 0, n = 1 + next_random() % 8; i < n; i++) {
                uint32_t where = next_random() % 4;
                size_t span = where == 0 ? 64 : where == 1 ? 1024 : size;
                size_t at = where == 2 && size > 4096 ? size - 1 - next_random() % 4096
                                                      : next_random() % span;
                copy[at] = (uint8_t)(next_random() % 3 ? next_random() : 0xff);
            }
            LLVMFuzzerTestOneInput(copy, size);
        }
        free(copy);
        free(data);
    }
    program_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_equal_readelf),
        cmocka_unit_test(lines_equal_addr2line),
        cmocka_unit_test(field_E4_every_truncation),
        cmocka_unit_test(field_E4_random_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* core/symbols/lsda: landing pads of tables written by hand in assembly, with labels that nm tells the places of; of
 * what g++ makes, against its disassembly; and of damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/symbols/lsda.h"
#include "tests/lib_perf.h"
#include "tests/lib_program.h"

/* Functions of three calls: the first passes exceptions on, the others have a landing pad each. name, what .cfi_lsda is
 * told, the area's first bytes up to the encoding of call sites, that encoding, and the directive for a number. */
#define FUNCTION(name, cfi, pads)                                                                   \
    ".globl " name "\n" name ": .cfi_startproc\n.cfi_personality 0x9b, DW.ref.personality\n.cfi_lsda " cfi ", " name  \
    "_area\n" name "_1: call other\n" name "_1e: nop\n" name "_2: call other\n" name "_3: call other\n" name "_3e: ret\n" pads  \
    ".cfi_endproc\n.size " name ", .-" name "\n"
#define PADS(name) name "_pad2: nop\n" name "_pad3: nop\n"
#define AREA(name, head, encoding, number, base)                                                    \
    name "_area: " head "\n.byte 0xff, " encoding "\n.uleb128 " name "_e-" name "_s\n" name "_s:\n"   \
    number " " name "_1-" name ", " name "_1e-" name "_1, 0\n.uleb128 0\n"                            \
    number " " name "_2-" name ", " name "_3-" name "_2, " name "_pad2-" base "\n.uleb128 1\n"        \
    number " " name "_3-" name ", " name "_3e-" name "_3, " name "_pad3-" base "\n.uleb128 0\n" name "_e:\n"

static const char source[] =
    ".text\nother: ret\n"
    FUNCTION("usual", "0x1b", PADS("usual")) /* pcrel, sdata4; uleb128: as gcc writes them */
    FUNCTION("fixed", "0x1b", PADS("fixed"))
    FUNCTION("apart", "0x1b", "")
    FUNCTION("wide", "0x1c", PADS("wide"))
    "plain: .cfi_startproc\nplain_1: call other\nret\n.cfi_endproc\n.size plain, .-plain\n"
    ".globl main\nmain: xor %eax, %eax\nret\n"
    ".section .text.unlikely, \"ax\"\n.skip 3\n" PADS("apart")
    ".section .gcc_except_table, \"a\"\n"
    AREA("usual", ".byte 0xff", "0x01", ".uleb128", "usual")
    AREA("fixed", ".byte 0xff", "0x03", ".4byte", "fixed")
    /* pads counted from a place of their own, told in four bytes relative to where they stand */
    AREA("apart", ".byte 0x1b\n.4byte apart_base-.", "0x01", ".uleb128", "apart_base")
    AREA("wide", ".byte 0xff", "0x04", ".8byte", "wide")
    ".section .text.unlikely\n.set apart_base, apart_pad2-2\n"
    ".data\n.hidden DW.ref.personality\nDW.ref.personality: .quad other\n"
    ".section .note.GNU-stack, \"\"\n";

static struct lsda *tables_of(const char *path)
{
    struct elf_file *f;
    struct lsda *l;
    struct err err;
    if (elf_file_open_path(path, &f, &err) < 0 || lsda_new(f, &l, &err) < 0)
        fail_msg("%s", err.text);
    return l;
}

/* 0: the exception passes on. */
static uint64_t pad_of(struct lsda *l, uint64_t vaddr)
{
    uint64_t pad;
    return lsda_landing_pad(l, vaddr, &pad) ? pad : 0;
}

static void every_encoding(void **state)
{
    static const char *const functions[] = {"usual", "fixed", "apart", "wide"};
    static const char *const flags[] = {"-no-pie", "-pie", "-no-pie -static"};
    char *dir = program_mkdir(), path[512];
    (void)state;
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
        program_write(dir, "t.s", source);
        assert_true(program_build(dir, "t.s", "t", flags[k]));
        snprintf(path, sizeof path, "%s/t", dir);
        struct lsda *l = tables_of(path);
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
            uint64_t at[6];
            static const char *const ends[] = {"_1", "_2", "_3", "_3e", "_pad2", "_pad3"};
            for (size_t e = 0; e < 6; e++) {
                char name[32];
                snprintf(name, sizeof name, "%s%s", functions[i], ends[e]);
                at[e] = program_nm(dir, "t", name);
            }
            assert_int_equal(pad_of(l, at[0]), 0); /* has none */
            assert_int_equal(pad_of(l, at[0] + 5), 0); /* between two call sites */
            for (uint64_t byte = 0; byte < 5; byte++) {
                assert_int_equal(pad_of(l, at[1] + byte), at[4]);
                assert_int_equal(pad_of(l, at[2] + byte), at[5]);
            }
            assert_int_equal(pad_of(l, at[3]), 0); /* behind the last */
        }
        assert_int_equal(pad_of(l, program_nm(dir, "t", "plain_1")), 0);
        assert_int_equal(pad_of(l, program_nm(dir, "t", "main")), 0);
        assert_int_equal(pad_of(l, 0), 0);
        assert_int_equal(pad_of(l, UINT64_MAX), 0);
        lsda_free(l);
    }
    program_rmdir(dir);
}

#define DISASSEMBLE_MAIN "objdump -d --no-show-raw-insn '%s' | sed -n '/<main>:/,/^$/p' | "

/* A landing pad begins by keeping the exception, which it gets in rax: in main nothing else does so before. */
static void as_the_compiler_writes_them(void **state)
{
    static const char text[] =
        "struct guard { __attribute__((noinline)) ~guard() { __asm__ volatile(\"\"); } };\n"
        "__attribute__((noinline)) void other(int n) { if (n) throw n; }\n"
        "int main(int argc, char **) { try { guard g; __asm__ volatile(\"\"); other(argc - 1); } catch (int) { return 1; }\n"
        "  return 0; }\n";
    char *dir = program_mkdir(), path[512];
    (void)state;
    program_write(dir, "t.cc", text);
    if (!program_shell(dir, "g++ -O1 -o t t.cc")) {
        print_message("[  SKIPPED ] no g++\n");
        program_rmdir(dir);
        return;
    }
    snprintf(path, sizeof path, "%s/t", dir);
    struct lsda *l = tables_of(path);
    char *call = lib_run(NULL, NULL, DISASSEMBLE_MAIN "awk '/call.*other/ {sub(\":\", \"\", $1); print $1}'", path);
    char *pads = lib_run(NULL, NULL, DISASSEMBLE_MAIN "awk '{sub(\":\", \"\", $1)} $2 == \"mov\" && $3 ~ /^%%rax,%%r/ {print $1; exit}'", path);
    uint64_t pad = pad_of(l, strtoull(call, NULL, 16) + 4);
    assert_int_not_equal(pad, 0);
    assert_int_equal(pad, strtoull(pads, NULL, 16));
    free(call);
    free(pads);
    lsda_free(l);
    program_rmdir(dir);
}

/* ---- bytes ---- */

/* In memory of just that size, so that reading behind it is found. */
static bool find(const uint8_t *bytes, size_t n, uint64_t vaddr, uint64_t *pad)
{
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    bool found = lsda_find(copy, n, true, 0x9000, 0x1000, vaddr, pad);
    free(copy);
    return found;
}

/* As g++ writes them: one call site from 0xc on, five bytes, landing at 0x37; another that is cut off. */
static void bytes_by_hand(void **state)
{
    static const uint8_t good[] = {0xff, 0xff, 0x01, 0x09, 0x0c, 0x05, 0x37, 0x00, 0x32, 0x1a, 0x80};
    uint64_t pad = 0;
    (void)state;
    assert_false(find(good, sizeof good, 0x100b, &pad));
    assert_true(find(good, sizeof good, 0x100c, &pad));
    assert_int_equal(pad, 0x1037);
    assert_true(find(good, sizeof good, 0x1010, &pad));
    assert_false(find(good, sizeof good, 0x1011, &pad));
    assert_false(find(good, sizeof good, 0xfff, &pad)); /* before the function */
    for (size_t n = 0; n < 8; n++)
        assert_false(find(good, n, 0x100c, &pad));
    assert_true(find(good, 8, 0x100c, &pad)); /* all of its own entry is there */
}

static void hostile_bytes(void **state)
{
    uint64_t x = 88172645463325252u, pad, found = 0;
    (void)state;
    for (unsigned i = 0; i < 300000; i++) {
        uint8_t bytes[48];
        size_t n = i % sizeof bytes;
        for (size_t k = 0; k < sizeof bytes; k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            bytes[k] = (uint8_t)(x >> 32);
        }
        if (i & 1) { /* a good beginning */
            static const uint8_t head[] = {0xff, 0xff, 0x01};
            memcpy(bytes, head, sizeof head);
        }
        found += find(bytes, n, 0x1000 + (x & 0xff), &pad);
    }
    assert_true(found > 0); /* some get that far */
    /* No end of a number, and sizes as large as they get. */
    uint8_t ones[32];
    memset(ones, 0xff, sizeof ones);
    ones[2] = 0x01;
    assert_false(find(ones, sizeof ones, 0x1000, &pad));
    static const uint8_t large[] = {0xff, 0xff, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
                                    0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x05, 0x00};
    assert_true(find(large, sizeof large, 0x1234, &pad));
    assert_int_equal(pad, 0x1005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_encoding),
        cmocka_unit_test(as_the_compiler_writes_them),
        cmocka_unit_test(bytes_by_hand),
        cmocka_unit_test(hostile_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

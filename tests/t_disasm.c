/* core/symbols/disasm against objdump -d on every function of libc, and on code made up for hard cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/symbols/disasm.h"
#include "core/symbols/elf_file.h"
#include "core/base/vec.h"
#include "tests/lib_victim.h"

#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"

static struct disasm_exits exits_of(const uint8_t *code, size_t size, uint64_t vaddr)
{
    struct disasm_exits e = {0};
    struct disasm_piece p = {.vaddr = vaddr, .code = code, .size = size};
    struct err err = {0};
    if (disasm_find_exits(&p, 1, &e, &err) != 0)
        fail_msg("%s", err.text);
    return e;
}

static void returns_and_tail_jumps(void **state)
{
    (void)state;
    static const uint8_t code[] = {
        0x55,                         /* 1000 push %rbp */
        0x85, 0xff,                   /* 1001 test %edi,%edi */
        0x74, 0x03,                   /* 1003 je 1008 */
        0x5d,                         /* 1005 pop %rbp */
        0xf3, 0xc3,                   /* 1006 repz ret */
        0x0f, 0x84, 0,    0x10, 0, 0, /* 1008 je 200e: out */
        0x5d,                         /* 100e pop %rbp */
        0xe9, 0,    0x20, 0,    0,    /* 100f jmp 3014: out */
        0xff, 0x25, 0,    0x10, 0, 0, /* 1014 jmp *0x1000(%rip) */
        0xeb, 0xe4,                   /* 101a jmp 1000: within */
        0xff, 0xe0,                   /* 101c jmp *%rax */
        0xc2, 0x08, 0x00,             /* 101e ret $8 */
        0x48, 0xcf,                   /* 1021 iretq: none of ours */
    };
    struct disasm_exits e = exits_of(code, sizeof code, 0x1000);
    static const struct disasm_exit wanted[] = {
        {0x1006, DISASM_RETURN, -1, 0, false},         {0x1008, DISASM_TAIL_CONDITIONAL, 4, 0x200e, false},
        {0x100f, DISASM_TAIL_JUMP, -1, 0x3014, false}, {0x1014, DISASM_TAIL_JUMP, -1, 0, false},
        {0x101c, DISASM_TAIL_INDIRECT, -1, 0, false},  {0x101e, DISASM_RETURN, -1, 0, false},
    };
    assert_true(e.complete);
    assert_int_equal(e.list.len, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(e.list.data[i].vaddr, wanted[i].vaddr);
        assert_int_equal(e.list.data[i].kind, wanted[i].kind);
        assert_int_equal(e.list.data[i].condition, wanted[i].condition);
        assert_int_equal(e.list.data[i].target, wanted[i].target);
    }
    disasm_exits_free(&e);
}

static void jump_tables_are_no_exits(void **state)
{
    (void)state;
    static const uint8_t gcc_table[] = {
        0x48, 0x8d, 0x15, 0,    0x10, 0, 0, /* lea 0x1000(%rip),%rdx */
        0x48, 0x63, 0x04, 0xba,             /* movslq (%rdx,%rdi,4),%rax */
        0x48, 0x01, 0xd0,                   /* add %rdx,%rax */
        0xff, 0xe0,                         /* jmp *%rax */
        0xc3,
    };
    static const uint8_t clang_table[] = {
        0x48, 0x63, 0x0c, 0xb8, /* movslq (%rax,%rdi,4),%rcx */
        0x48, 0x01, 0xc1,       /* add %rax,%rcx */
        0xff, 0xe1,             /* jmp *%rcx */
        0xc3,
    };
    static const uint8_t fixed_table[] = {
        0xff, 0x24, 0xfd, 0, 0x20, 0x40, 0, /* jmp *0x402000(,%rdi,8) */
        0xc3,
    };
    static const uint8_t notrack[] = {0x3e, 0xff, 0xe0, 0xc3};
    static const uint8_t virtual_call[] = {
        0x48, 0x8b, 0x07, /* mov (%rdi),%rax */
        0xff, 0x60, 0x18, /* jmp *0x18(%rax) */
    };
    const struct {
        const uint8_t *code;
        size_t size, exits;
    } cases[] = {{gcc_table, sizeof gcc_table, 1},
                 {clang_table, sizeof clang_table, 1},
                 {fixed_table, sizeof fixed_table, 1},
                 {notrack, sizeof notrack, 1},
                 {virtual_call, sizeof virtual_call, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct disasm_exits e = exits_of(cases[i].code, cases[i].size, 0x1000);
        assert_int_equal(e.list.len, cases[i].exits);
        assert_int_equal(e.list.data[0].kind, i == 4 ? DISASM_TAIL_INDIRECT : DISASM_RETURN);
        disasm_exits_free(&e);
    }
}

/* A constant between the code, which as code would swallow the real return. */
static void data_in_code(void **state)
{
    (void)state;
    static const uint8_t code[] = {
        0xeb, 0x02,       /* 1000 jmp 1004 */
        0x48, 0xb8,       /* 1002 data; as code a movabs of ten bytes */
        0x90,             /* 1004 nop */
        0xc3,             /* 1005 ret */
        0xc3, 0xc3, 0xc3, /* 1006 swallowed, too */
        0xc3, 0xc3, 0xc3,
    };
    struct disasm_exits e = exits_of(code, sizeof code, 0x1000);
    assert_false(e.complete);
    assert_int_equal(e.list.len, 1);
    assert_int_equal(e.list.data[0].vaddr, 0x1005);
    disasm_exits_free(&e);
    struct disasm_piece p = {.vaddr = 0x1000, .code = code, .size = sizeof code};
    assert_true(disasm_is_boundary(&p, 0x1000));
    assert_true(disasm_is_boundary(&p, 0x1004));
    assert_false(disasm_is_boundary(&p, 0x1001));
    assert_false(disasm_is_boundary(&p, 0x1002));
    assert_false(disasm_is_boundary(&p, 0x2000));
}

static void split_functions(void **state)
{
    (void)state;
    static const uint8_t hot[] = {0x74, 0x0e, 0xc3};              /* 1000 je 1010; ret */
    static const uint8_t cold[] = {0x90, 0xeb, 0xef, 0xc3, 0x90}; /* 1010 nop; jmp 1002; ret */
    struct disasm_piece p[] = {{.vaddr = 0x1000, .code = hot, .size = sizeof hot},
                               {.vaddr = 0x1010, .code = cold, .size = sizeof cold}};
    struct disasm_exits e = {0};
    assert_int_equal(disasm_find_exits(p, 2, &e, NULL), 0);
    assert_int_equal(e.list.len, 2);
    assert_int_equal(e.list.data[0].vaddr, 0x1002);
    assert_int_equal(e.list.data[1].vaddr, 0x1013);
    disasm_exits_free(&e);
    assert_int_equal(disasm_find_exits(p, 1, &e, NULL), 0);
    assert_int_equal(e.list.len, 2);
    assert_int_equal(e.list.data[0].kind, DISASM_TAIL_CONDITIONAL);
    disasm_exits_free(&e);
    assert_int_equal(disasm_find_exits(p, 0, &e, NULL), MTUI_E_INVAL);
}

/* ---- libc ---- */

struct line {
    uint64_t vaddr, target;
    enum { LINE_OTHER, LINE_RET, LINE_JMP, LINE_JCC, LINE_JMP_SLOT } kind;
};

struct listing {
    VEC(struct line) lines; /* ascending */
};

static void parse_line(struct listing *l, char *text)
{
    uint64_t vaddr, target = 0;
    char word[3][64] = {"", "", ""};
    int used = 0;
    if (sscanf(text, " %" SCNx64 ":%n", &vaddr, &used) != 1 || used == 0)
        return;
    int n = sscanf(text + used, " %63s %63s %63s", word[0], word[1], word[2]);
    if (n < 1)
        return;
    struct line line = {.vaddr = vaddr, .kind = LINE_OTHER};
    const char *mnemonic = word[0], *operand = word[1];
    if (strcmp(mnemonic, "bnd") == 0 || strcmp(mnemonic, "repz") == 0) {
        mnemonic = word[1];
        operand = word[2];
    }
    /* objdump takes the prefixes of branch hints into the mnemonic: jne,pt */
    bool direct = sscanf(operand, "%" SCNx64, &target) == 1 && operand[0] != '*';
    if (strcmp(mnemonic, "ret") == 0 || strcmp(mnemonic, "retq") == 0) {
        line.kind = LINE_RET;
    } else if (strcmp(mnemonic, "jmp") == 0 || strcmp(mnemonic, "jmpq") == 0) {
        if (direct) {
            line.kind = LINE_JMP;
            line.target = target;
        } else if (strstr(operand, "(%rip)")) {
            line.kind = LINE_JMP_SLOT;
        }
    } else if (mnemonic[0] == 'j' && direct) {
        line.kind = LINE_JCC;
        line.target = target;
    }
    vec_push(&l->lines, line);
}

static struct listing disassemble(const char *file)
{
    struct listing l = {0};
    char command[512], text[1024];
    snprintf(command, sizeof command, "objdump -d --no-show-raw-insn '%s'", file);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    while (fgets(text, sizeof text, f))
        parse_line(&l, text);
    pclose(f);
    return l;
}

static size_t first_at(const struct listing *l, uint64_t vaddr)
{
    size_t lo = 0, hi = l->lines.len;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (l->lines.data[mid].vaddr < vaddr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Compares one function; returns the number of exits that objdump sees. */
static size_t compare(const struct listing *l, const struct elf_file *f, uint64_t start,
                      uint64_t size, const char *name, size_t *incomplete)
{
    uint8_t *code = malloc(size);
    assert_non_null(code);
    assert_int_equal(elf_file_read(f, start, code, size), size);
    struct disasm_exits e = exits_of(code, size, start);
    size_t wanted = 0, k = 0;
    for (size_t i = first_at(l, start); i < l->lines.len && l->lines.data[i].vaddr < start + size;
         i++) {
        const struct line *o = &l->lines.data[i];
        bool out = o->target < start || o->target >= start + size;
        bool is_exit = o->kind == LINE_RET || o->kind == LINE_JMP_SLOT ||
                       ((o->kind == LINE_JMP || o->kind == LINE_JCC) && out);
        if (!is_exit)
            continue;
        wanted++;
        while (k < e.list.len && e.list.data[k].kind == DISASM_TAIL_INDIRECT)
            k++;
        if (!e.complete)
            continue;
        if (k >= e.list.len || e.list.data[k].vaddr != o->vaddr)
            fail_msg("%s: objdump has an exit at %" PRIx64 ", found %" PRIx64, name, o->vaddr,
                     k < e.list.len ? e.list.data[k].vaddr : 0);
        if (o->kind == LINE_RET)
            assert_int_equal(e.list.data[k].kind, DISASM_RETURN);
        if (o->kind == LINE_JCC)
            assert_int_equal(e.list.data[k].target, o->target);
        k++;
    }
    while (k < e.list.len && e.list.data[k].kind == DISASM_TAIL_INDIRECT)
        k++;
    if (e.complete && k != e.list.len)
        fail_msg("%s: %" PRIx64 " is no exit for objdump", name, e.list.data[k].vaddr);
    *incomplete += !e.complete;
    disasm_exits_free(&e);
    free(code);
    return wanted;
}

static void all_of_libc(void **state)
{
    (void)state;
    struct elf_file *f = NULL;
    struct err err = {0};
    if (elf_file_open_path(LIBC, &f, &err) != 0) {
        print_message("SKIP: %s\n", err.text);
        skip();
    }
    struct listing l = disassemble(LIBC);
    if (l.lines.len == 0) {
        print_message("SKIP: no objdump\n");
        elf_file_free(f);
        skip();
    }
    char *names = command_output("nm -D -S --defined-only " LIBC), *rest = NULL;
    size_t functions = 0, exits = 0, incomplete = 0;
    for (char *s = strtok_r(names, "\n", &rest); s; s = strtok_r(NULL, "\n", &rest)) {
        uint64_t vaddr, size;
        char type, name[256];
        if (sscanf(s, "%" SCNx64 " %" SCNx64 " %c %255s", &vaddr, &size, &type, name) != 4 ||
            (type != 'T' && type != 'W'))
            continue;
        exits += compare(&l, f, vaddr, size, name, &incomplete);
        functions++;
    }
    print_message("  %zu functions, %zu exits, %zu functions with data between code\n", functions,
                  exits, incomplete);
    assert_true(functions > 2000);
    assert_true(exits > functions);
    assert_true(incomplete < functions / 100);
    free(names);
    vec_free(&l.lines);
    elf_file_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_and_tail_jumps),
        cmocka_unit_test(jump_tables_are_no_exits),
        cmocka_unit_test(data_in_code),
        cmocka_unit_test(split_functions),
        cmocka_unit_test(all_of_libc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which instructions take a uprobe; bytes as objdump shows them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/trigger/uprobe_place.h"

struct instruction {
    size_t n;
    uint8_t code[12];
    const char *text;
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void expect(const struct instruction *list, size_t n, bool fits)
{
    for (size_t i = 0; i < n; i++)
        if (uprobe_fits(list[i].code, list[i].n) != fits)
            fail_msg("%s", list[i].text);
}

static void refused_by_the_kernel(void **state)
{
    (void)state;
    static const struct instruction list[] = {
        {5, {0xf0, 0x48, 0x83, 0x07, 0x01}, "lock addq $1, (%rdi)"},
        {5, {0x66, 0xf0, 0x83, 0x07, 0x01}, "lock addw $1, (%rdi)"},
        {3, {0x3e, 0xff, 0xe0}, "notrack jmp *%rax"},
        {10, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, "cs nopw 0(%rax, %rax)"},
        {1, {0xf4}, "hlt"},
        {1, {0xcc}, "int3"},
        {1, {0xf1}, "int1"},
        {2, {0xcd, 0x80}, "int $0x80"},
        {1, {0xcf}, "iret"},
        {2, {0x48, 0xcf}, "iretq"},
        {2, {0xf3, 0x6d}, "rep insl"},
        {2, {0x8e, 0xd0}, "mov %eax, %ss"},
        {3, {0x0f, 0xb2, 0x07}, "lss (%rdi), %eax"},
        {6, {0x66, 0xe9, 0x10, 0, 0, 0}, "data16 jmp"},
        {3, {0x66, 0x74, 0x05}, "data16 je"},
    };
    expect(list, COUNT(list), false);
}

static void executed_wrongly_out_of_line(void **state)
{
    (void)state;
    static const struct instruction list[] = {
        {2, {0x0f, 0x05}, "syscall"},
        {3, {0x48, 0x0f, 0x05}, "rex.W syscall"},
        {2, {0x0f, 0x34}, "sysenter"},
        {1, {0x9c}, "pushfq"},
        {2, {0x66, 0x9c}, "pushfw"},
        {2, {0x48, 0x9c}, "rex.W pushfq"},
        {1, {0x9d}, "popfq"},
        {2, {0x66, 0x9d}, "popfw"},
        {2, {0x0f, 0xa2}, "cpuid"},
        {1, {0xcb}, "lret"},
        {2, {0xff, 0x1f}, "lcall *(%rdi)"},
        {2, {0xff, 0x2f}, "ljmp *(%rdi)"},
    };
    expect(list, COUNT(list), false);
}

static void its_own_successor(void **state)
{
    (void)state;
    static const struct instruction list[] = {
        {2, {0xeb, 0xfe}, "f: jmp f"},
        {5, {0xe9, 0xfb, 0xff, 0xff, 0xff}, "f: jmp f (near)"},
        {2, {0x74, 0xfe}, "f: je f"},
        {6, {0x0f, 0x85, 0xfa, 0xff, 0xff, 0xff}, "f: jne f (near)"},
        {2, {0xe2, 0xfe}, "f: loop f"},
        {3, {0x67, 0xe2, 0xfd}, "f: addr32 loop f"},
        {2, {0xe1, 0xfe}, "f: loope f"},
        {2, {0xe0, 0xfe}, "f: loopne f"},
        {2, {0xe3, 0xfe}, "f: jrcxz f"},
        {3, {0x67, 0xe3, 0xfd}, "f: jecxz f"},
        {6, {0xf2, 0xe9, 0xfa, 0xff, 0xff, 0xff}, "f: bnd jmp f"},
        {5, {0xe8, 0xfb, 0xff, 0xff, 0xff}, "f: call f"},
        {2, {0xf3, 0xaa}, "rep stosb"},
        {3, {0xf3, 0x48, 0xa5}, "rep movsq"},
        {2, {0xf2, 0xae}, "repne scasb"},
        {2, {0xf3, 0xa6}, "repe cmpsb"},
    };
    expect(list, COUNT(list), false);
}

/* By another's opcode: that of a conditional jump, jmp, call, ret, popf, ins. */
static void vector_instructions_mistaken(void **state)
{
    (void)state;
    static const struct instruction list[] = {
        {4, {0xc5, 0xe9, 0x74, 0xca}, "vpcmpeqb %xmm2, %xmm2, %xmm1"},
        {3, {0xc5, 0xf8, 0x77}, "vzeroupper"},
        {4, {0xc5, 0xf9, 0x7e, 0xd0}, "vmovd %xmm2, %eax"},
        {4, {0xc5, 0xe9, 0xe8, 0xca}, "vpsubsb %xmm2, %xmm2, %xmm1"},
        {4, {0xc5, 0xe9, 0xeb, 0xca}, "vpor %xmm2, %xmm2, %xmm1"},
        {5, {0xc5, 0xe8, 0xc2, 0xca, 0x00}, "vcmpeqps %xmm2, %xmm2, %xmm1"},
        {5, {0xc4, 0xe2, 0x69, 0x9d, 0xca}, "vfnmadd132ss %xmm2, %xmm2, %xmm1"},
        {4, {0xc5, 0xfa, 0x6f, 0x0f}, "vmovdqu (%rdi), %xmm1"},
        {4, {0xc5, 0xe9, 0xef, 0xca}, "vpxor %xmm2, %xmm2, %xmm1"},
        {6, {0x62, 0xf1, 0xfe, 0x08, 0x6f, 0x0f}, "vmovdqu64 (%rdi), %xmm1"},
    };
    expect(list, COUNT(list), false);
}

static void all_others(void **state)
{
    (void)state;
    static const struct instruction list[] = {
        {4, {0xf3, 0x0f, 0x1e, 0xfa}, "endbr64"},
        {1, {0x55}, "push %rbp"},
        {4, {0x48, 0x83, 0xec, 0xf0}, "sub $-16, %rsp"},
        {1, {0xc3}, "ret"},
        {2, {0xf3, 0xc3}, "repz ret"},
        {2, {0xf3, 0x90}, "pause"},
        {1, {0xaa}, "stosb"},
        {2, {0xeb, 0xfd}, "jmp to the byte before"},
        {2, {0xeb, 0xff}, "jmp into itself"},
        {2, {0xeb, 0x00}, "jmp to the next"},
        {5, {0xe8, 0, 0, 0, 0}, "call the next"},
        {2, {0xff, 0x17}, "call *(%rdi)"},
        {2, {0xff, 0xe0}, "jmp *%rax"},
        {2, {0x0f, 0x31}, "rdtsc"},
        {2, {0x8e, 0xd8}, "mov %eax, %ds"},
        {2, {0x8c, 0xd0}, "mov %ss, %eax"},
        {4, {0x66, 0x0f, 0x6f, 0x0f}, "movdqa (%rdi), %xmm1"},
        {4, {0xc5, 0xf8, 0x28, 0x0f}, "vmovaps (%rdi), %xmm1"},
        {5, {0xc4, 0xe2, 0x79, 0x58, 0x0f}, "vpbroadcastd (%rdi), %xmm1"},
        {6, {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28}, "mov %fs:0x28, %rax, cut off"},
        {2, {0x66, 0x66}, "prefixes, cut off"},
        {0, {0}, "nothing"},
    };
    expect(list, COUNT(list), true);
}

static void nops_that_become_calls(void **state)
{
    (void)state;
    static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0, 0, 0xc3}, other[] = {0x0f, 0x1f, 0x44, 0, 8, 0xc3},
                         nop10[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0xc3};
    assert_true(uprobe_fits(nop5, sizeof nop5) && uprobe_leaves(nop5, sizeof nop5));
    assert_true(uprobe_fits(other, sizeof other) && !uprobe_leaves(other, sizeof other));
    assert_true(uprobe_leaves(nop10, sizeof nop10));
    assert_false(uprobe_leaves(nop5, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_by_the_kernel),
        cmocka_unit_test(executed_wrongly_out_of_line),
        cmocka_unit_test(its_own_successor),
        cmocka_unit_test(vector_instructions_mistaken),
        cmocka_unit_test(all_others),
        cmocka_unit_test(nops_that_become_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

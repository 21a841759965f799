#include "core/trigger/uprobe_place.h"

#include <Zydis/Zydis.h>
#include <string.h>

/* By the first bytes alone, as the kernel does it. */
static bool refuses(const uint8_t *code, size_t n)
{
    static const uint8_t refused[] = {0x26, 0x2e, 0x36, 0x3e, 0xf0};           /* prefixes */
    static const uint8_t passed_over[] = {0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3}; /* prefixes */
    static const uint8_t opcodes[] = {0x6c, 0x6d, 0x6e, 0x6f, 0xcc, 0xcd, 0xce, 0xcf, 0xe4, 0xe5, 0xe6, 0xe7,
                                      0xec, 0xed, 0xee, 0xef, 0xf1, 0xf4, 0xfa, 0xfb};
    size_t i = 0;
    for (; i < n; i++) {
        if (memchr(refused, code[i], sizeof refused))
            return true;
        if (!memchr(passed_over, code[i], sizeof passed_over))
            break;
    }
    if (i < n && (code[i] & 0xf0) == 0x40) /* REX stands last */
        i++;
    return i < n && memchr(opcodes, code[i], sizeof opcodes);
}

/* The kernel takes the opcode of a VEX, EVEX or XOP instruction for one without a prefix: refused, skipped as a branch
 * that is not taken, jumped by, or "put right" behind (retn, lret, lcall, popf, group 5). */
static bool is_mistaken(const ZydisDecodedInstruction *insn)
{
    static const uint8_t opcodes[] = {0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f,
                                      0x60, 0x61, 0x62, 0x6c, 0x6d, 0x6e, 0x6f, 0x82, 0x90, 0x9a, 0x9d,
                                      0xc2, 0xc3, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd4, 0xd5, 0xd6,
                                      0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee,
                                      0xef, 0xf1, 0xf4, 0xfa, 0xfb, 0xff};
    return insn->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY && insn->encoding != ZYDIS_INSTRUCTION_ENCODING_3DNOW &&
           ((insn->opcode & 0xf0) == 0x70 || memchr(opcodes, insn->opcode, sizeof opcodes));
}

static bool is_relative(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands)
{
    return insn->operand_count_visible > 0 && operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
           operands[0].imm.is_relative;
}

static bool is_own_successor(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands)
{
    const ZyanU64 repeats = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
    return (insn->attributes & repeats) != 0 ||
           (is_relative(insn, operands) && operands[0].imm.value.s == -(ZyanI64)insn->length);
}

static bool loads_ss(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_LSS ||
           (insn->mnemonic == ZYDIS_MNEMONIC_MOV && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            operands[0].reg.value == ZYDIS_REGISTER_SS);
}

/* Not by the processor, or not in its copy as in its place. */
static bool minds_its_place(const ZydisDecodedInstruction *insn)
{
    switch ((int)insn->mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_CPUID:
        return true;
    default:
        return insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    }
}

bool uprobe_fits(const uint8_t *code, size_t n)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (refuses(code, n))
        return false;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, n, &insn, operands)))
        return true;
    if (is_relative(&insn, operands) && (insn.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE))
        return false; /* refused too */
    return !is_mistaken(&insn) && !minds_its_place(&insn) && !loads_ss(&insn, operands) &&
           !is_own_successor(&insn, operands);
}

bool uprobe_leaves(const uint8_t *code, size_t n)
{
    static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0, 0}, nop10[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
    return (n >= sizeof nop5 && memcmp(code, nop5, sizeof nop5) == 0) ||
           (n >= sizeof nop10 && memcmp(code, nop10, sizeof nop10) == 0);
}

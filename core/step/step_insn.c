#include "core/step/step_insn.h"

#include <Zydis/Zydis.h>

/* Instructions through which a program asks the kernel. */
static bool is_system_call(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operands)
{
    if (insn->mnemonic == ZYDIS_MNEMONIC_INT)
        return operands[0].imm.value.u == 0x80;
    return insn->mnemonic == ZYDIS_MNEMONIC_SYSCALL || insn->mnemonic == ZYDIS_MNEMONIC_SYSENTER;
}

/* Far branches into the kernel that are executed, unlike faults (ud2, hlt), which are not. */
static bool is_trap(const ZydisDecodedInstruction *insn)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_INT3 || insn->mnemonic == ZYDIS_MNEMONIC_INT1;
}

static enum step_kind kind_of(const ZydisDecodedInstruction *insn, bool immediate)
{
    switch ((int)insn->meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
        /* XBEGIN and XEND count as such there, but only an abort makes the one jump, the other never does. */
        return insn->mnemonic == ZYDIS_MNEMONIC_XBEGIN || !immediate ? STEP_PLAIN : STEP_CONDITIONAL;
    case ZYDIS_CATEGORY_UNCOND_BR:
        if (insn->mnemonic != ZYDIS_MNEMONIC_JMP)
            return STEP_PLAIN; /* XABORT */
        return immediate ? STEP_JUMP : STEP_JUMP_INDIRECT;
    case ZYDIS_CATEGORY_CALL:
        return immediate ? STEP_CALL : STEP_CALL_INDIRECT;
    case ZYDIS_CATEGORY_RET:
        return STEP_RETURN;
    default:
        return STEP_PLAIN;
    }
}

struct step_insn step_insn_decode(const uint8_t *bytes, size_t n, uint64_t ip)
{
    struct step_insn out = {.kind = STEP_BAD};
    ZydisDecoder decoder;
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, &insn, operands)))
        return out;
    bool immediate =
        insn.operand_count_visible > 0 && operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    out.kind = is_system_call(&insn, operands) ? STEP_SYSCALL
               : is_trap(&insn)                ? STEP_TRAP
                                               : kind_of(&insn, immediate);
    out.len = insn.length;
    out.pushes_flags =
        insn.mnemonic == ZYDIS_MNEMONIC_PUSHF || insn.mnemonic == ZYDIS_MNEMONIC_PUSHFQ;
    if (insn.mnemonic == ZYDIS_MNEMONIC_POPF || insn.mnemonic == ZYDIS_MNEMONIC_POPFQ)
        out.pops_flags = insn.mnemonic == ZYDIS_MNEMONIC_POPF ? 2 : 8;
    out.repeats = (insn.attributes &
                   (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
    if (immediate && operands[0].imm.is_relative)
        out.target = ip + insn.length + (uint64_t)operands[0].imm.value.s;
    return out;
}

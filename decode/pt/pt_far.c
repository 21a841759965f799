#include "decode/pt/pt_far.h"

enum pt_far pt_far_of(const ZydisDecodedInstruction *insn)
{
    switch ((int)insn->mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_VMCALL:
    case ZYDIS_MNEMONIC_VMLAUNCH:
    case ZYDIS_MNEMONIC_VMRESUME:
        return PT_FAR_SYSCALL;
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
        return PT_FAR_INTERRUPT;
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
        return PT_FAR_SYSRET;
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
        return PT_FAR_IRET;
    default:
        break;
    }
    if (insn->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR)
        return PT_FAR_NONE;
    return insn->meta.category == ZYDIS_CATEGORY_RET ? PT_FAR_SYSRET : PT_FAR_SYSCALL;
}

bool pt_far_returns(enum pt_far far)
{
    return far == PT_FAR_SYSRET || far == PT_FAR_IRET;
}

enum pt_branch_kind pt_far_branch(enum pt_far far)
{
    if (far == PT_FAR_INTERRUPT)
        return PT_BRANCH_INTERRUPT;
    if (far == PT_FAR_IRET)
        return PT_BRANCH_IRET;
    return far == PT_FAR_SYSRET ? PT_BRANCH_SYSRET : PT_BRANCH_SYSCALL;
}

enum pt_end pt_far_end(enum pt_far far)
{
    if (far == PT_FAR_INTERRUPT)
        return PT_END_INTERRUPT;
    if (far == PT_FAR_IRET)
        return PT_END_IRET;
    return far == PT_FAR_SYSRET ? PT_END_SYSRET : PT_END_SYSCALL;
}

/* Far branches: instructions that go to another privilege level, or come from one. What each is called in lists of
 * branches and at the end of a trace (Intel SDM vol. 3, "Far transfers" under Change of Flow Instruction tracing; the
 * words are those of perf-script(1)). */
#ifndef MTUI_DECODE_PT_FAR_H
#define MTUI_DECODE_PT_FAR_H

#include <stdbool.h>

#include <Zydis/Zydis.h>

#include "decode/pt/pt_event.h"

enum pt_far {
    PT_FAR_NONE,      /* not a far branch */
    PT_FAR_SYSCALL,   /* syscall, sysenter, into a hypervisor; far calls and jumps */
    PT_FAR_INTERRUPT, /* int n, int1, int3 */
    PT_FAR_SYSRET,    /* sysret, sysexit; far returns */
    PT_FAR_IRET
};

enum pt_far pt_far_of(const ZydisDecodedInstruction *insn);

bool pt_far_returns(enum pt_far far);
enum pt_branch_kind pt_far_branch(enum pt_far far);
enum pt_end pt_far_end(enum pt_far far);

#endif

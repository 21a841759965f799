/* How deep the stack is at an instruction, by its function's unwind entry: a jump that leaves the function for good, a
 * tail call, can only stand where nothing but the return address is left of its frame.
 *
 * The entry gives the canonical frame address (CFA), the stack pointer of the caller, as a register and an offset that
 * change from instruction to instruction (DWARF 5, 6.4; System V ABI, AMD64 supplement, 3.6.2: rsp is number 7). It is
 * found through the sorted table in .eh_frame_hdr that every linker writes (Linux Standard Base, Core, 10.6). */
#ifndef MTUI_CORE_EH_CFA_H
#define MTUI_CORE_EH_CFA_H

#include <stdint.h>

#include "core/symbols/elf_file.h"

enum eh_stack {
    EH_STACK_UNKNOWN, /* no entry, one that cannot be read, or a CFA that an expression gives; not x86-64 */
    EH_STACK_RETURN,  /* CFA = rsp + 8: the stack pointer is at the return address, as it was at the entry */
    EH_STACK_WITHIN   /* any other: something of the frame is still there */
};

/* Before the instruction at vaddr. What functions of C and C++ have is exact at every instruction, in their ends too;
 * that of older compilers and of assembly may not be: asking about a return instruction tells. */
enum eh_stack eh_cfa_stack_at(const struct elf_file *f, uint64_t vaddr);

#endif

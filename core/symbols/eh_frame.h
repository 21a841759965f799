/* Where functions begin and end, by their unwind entries: what a stripped file still tells of them.
 *
 * Every function that an exception may pass has a frame description entry (FDE) in .eh_frame with its
 * first address and its length, and on x86-64 compilers write one for each function of C too (System V
 * ABI, AMD64 supplement, 4.2.4; Linux Standard Base, Core, 10.6 "Exception Frames"; entries are split by
 * libdw's dwarf_next_cfi). A part that the compiler has moved out of a function (f.cold) has an entry of its
 * own; whose it is, nothing tells. A PLT has one for all of its stubs. */
#ifndef MTUI_CORE_EH_FRAME_H
#define MTUI_CORE_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/symbols/elf_file.h"

struct eh_function {
    uint64_t vaddr;
    uint64_t lsda; /* vaddr of its language-specific data area (core/symbols/lsda.h); 0: none */
    uint32_t size; /* > 0 */
    bool is_part;  /* where it begins, there is more on the stack than a return address: control comes there by
                      a jump from the function whose part it is. Parts that need no stack cannot be told */
};

/* The entries whose code lies in an executable segment, ascending and disjoint (one that reaches into the
 * next is cut there), from malloc; none is no error. Found by section, else by the program header
 * PT_GNU_EH_FRAME. Entries that are damaged, or encoded in a way that no linker writes, are left out. */
int eh_frame_functions(const struct elf_file *f, struct eh_function **out, size_t *n, struct err *err);

#endif

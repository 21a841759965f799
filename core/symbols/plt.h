/* PLT stubs of an x86-64 file: which function each one jumps to.
 *
 * Every stub ends in an indirect jump through a slot of the GOT, and a relocation names the function of
 * the slot (System V ABI, AMD64 supplement, "Procedure Linkage Table"; .plt.sec and .plt.got: binutils,
 * bfd/elf64-x86-64.c). The jump is read, so the order of the relocations does not matter. */
#ifndef MTUI_CORE_PLT_H
#define MTUI_CORE_PLT_H

#include <stdint.h>

#include "core/symbols/elf_file.h"

struct plt_stub {
    uint64_t vaddr;
    uint32_t size;
    const char *target; /* raw name of the function; NULL: none, see resolver */
    uint64_t resolver;  /* an IRELATIVE slot (static programs): vaddr of the ifunc's resolver; else 0.
                           With target NULL and resolver 0: the head of .plt, which calls the linker */
};

/* Calls fn for each stub of .plt, .plt.sec, .plt.got and .iplt, in no particular order. target lives
 * only during the call. Nothing is called for other machines or files without section headers. */
void plt_each(const struct elf_file *f, void (*fn)(void *arg, const struct plt_stub *stub), void *arg);

#endif

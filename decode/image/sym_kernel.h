/* The functions of the running kernel and its modules: /proc/kallsyms, "ADDRESS TYPE NAME [MODULE]" a
 * line (proc(5)). Of several names at one address the last in the file is taken, as perf does (whose
 * rule prefers a symbol with a size, and gives one only to the last). */
#ifndef MTUI_DECODE_SYM_KERNEL_H
#define MTUI_DECODE_SYM_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

struct sym_kernel;

struct kernel_symbol {
    uint64_t address;
    const char *name;
    const char *module; /* "[name]"; NULL: the kernel itself */
};

/* MTUI_E_PERM when the kernel hides the addresses (kptr_restrict). */
int sym_kernel_load(struct sym_kernel **out, const char *kallsyms, struct err *err);
void sym_kernel_free(struct sym_kernel *k);

/* The last symbol at or before address; NULL before the first and far behind the last. */
const struct kernel_symbol *sym_kernel_find(const struct sym_kernel *k, uint64_t address);
/* The address of _text (of _stext where that is missing), 0 when neither is there. */
uint64_t sym_kernel_text(const struct sym_kernel *k);

#endif

/* The symbols of one mapped file, for decode/image/symbolize.c: found, checked against the recorded build-id,
 * loaded once, the file closed again. */
#ifndef MTUI_DECODE_SYM_MODULE_H
#define MTUI_DECODE_SYM_MODULE_H

#include "core/symbols/symtab.h"
#include "decode/image/symbolize.h"

struct sym_module;

/* Never fails: a module whose file cannot be used has no symbols and a reason. */
struct sym_module *sym_module_open(const struct addrspace_module *module,
                                   const struct symbolizer_options *options);
void sym_module_free(struct sym_module *m);

/* The symbol at an offset of the file; *index is its number, below sym_module_count. */
bool sym_module_find(const struct sym_module *m, uint64_t offset, struct symbol *out, size_t *index);
size_t sym_module_count(const struct sym_module *m);
/* The function of that raw name, as it is found by its address; false when there is none, or more than one (static
 * functions of several source files). O(symbols). */
bool sym_module_find_only(const struct sym_module *m, const char *raw, struct symbol *out);

/* The address that the file itself gives to an offset of executable code in it. */
bool sym_module_vaddr(const struct sym_module *m, uint64_t offset, uint64_t *vaddr);
/* A descriptor of the file, the caller's; −1 when it cannot be opened any more. */
int sym_module_fd(const struct sym_module *m);

const char *sym_module_source(const struct sym_module *m); /* NULL: no file was used */
const char *sym_module_reason(const struct sym_module *m); /* why names may be missing; never NULL */

#endif

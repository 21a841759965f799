/* Where functions go on when an exception passes through a call of theirs.
 *
 * The entry of a function in .eh_frame (core/symbols/eh_frame.h) tells where its language-specific data area lies,
 * in .gcc_except_table: a header with the base of landing pads and the encodings used, then call sites, ascending:
 * first byte, length, landing pad (0: none), action. (HP's "C++ ABI for Itanium: Exception Handling", 1.7 and
 * 7.2-7.4, "Exception Handling Tables"; the encodings are those of core/symbols/eh_pointer.h. C++ and Rust, by gcc
 * and by LLVM, use it.) */
#ifndef MTUI_CORE_LSDA_H
#define MTUI_CORE_LSDA_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/symbols/elf_file.h"

struct lsda;

/* Takes f over (freed on failure too). MTUI_E_NOMEM is the only error. */
int lsda_new(struct elf_file *f, struct lsda **out, struct err *err);
void lsda_free(struct lsda *l);

/* The landing pad of the call of which vaddr is a byte; false when the exception passes on, or nothing is known. */
bool lsda_landing_pad(struct lsda *l, uint64_t vaddr, uint64_t *pad);

/* The same from the bytes of one area, for a function that begins at `start`. The bytes lie at vaddr `place`. */
bool lsda_find(const uint8_t *bytes, size_t size, bool is_64, uint64_t place, uint64_t start, uint64_t vaddr,
               uint64_t *pad);

#endif

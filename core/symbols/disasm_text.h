/* The instructions of a function, to look at and to find calls among (x86-64, by Zydis; AT&T syntax, as
 * objdump and `perf annotate` write it).
 *
 * The bytes are decoded from start to end. A byte that begins no instruction is passed over: the listing
 * shows it as (bad). */
#ifndef MTUI_CORE_DISASM_TEXT_H
#define MTUI_CORE_DISASM_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "core/symbols/disasm.h"
#include "core/base/vec.h"

#define DISASM_TEXT_MAX 128

/* A call instruction. */
struct disasm_call {
    uint64_t vaddr, ret; /* ret: the instruction behind it */
    uint64_t target;     /* 0: indirect */
};

struct disasm_calls {
    VEC(struct disasm_call) list; /* ascending by address */
};

void disasm_find_calls(const struct disasm_piece *piece, struct disasm_calls *out);
void disasm_calls_free(struct disasm_calls *c);

struct disasm_line {
    uint64_t vaddr;
    uint64_t target; /* of a direct call or jump; else 0 */
    char text[DISASM_TEXT_MAX];
};

/* At most max instructions, the one that holds vaddr among them with up to `before` before it; *at gets its
 * index. Returns how many; 0 when vaddr lies outside of the piece. */
size_t disasm_lines(const struct disasm_piece *piece, uint64_t vaddr, size_t before, size_t max,
                    struct disasm_line *out, size_t *at);

#endif

/* Where a function can be left: its return instructions and tail jumps (x86-64, by Zydis).
 *
 * A breakpoint inside an instruction would corrupt the program, so only addresses that are
 * certainly instructions are reported: the bytes are decoded from start to end, and when any direct
 * branch lands inside what was taken for one instruction, or bytes do not decode (tables between
 * code), only what is reached by following the branches from the entries counts, and `complete` is
 * false.
 */
#ifndef MTUI_CORE_DISASM_H
#define MTUI_CORE_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/vec.h"

#define DISASM_MAX_BYTES ((size_t)4 << 20) /* of one function */

enum disasm_exit_kind {
    DISASM_RETURN,
    DISASM_TAIL_JUMP,       /* direct, or through a fixed slot (jmp *foo@GOT(%rip)), out of it */
    DISASM_TAIL_INDIRECT,   /* jmp *%rax and the like, not recognised as a jump table: a tail call
                             * only when the stack pointer is that of the entry */
    DISASM_TAIL_CONDITIONAL /* jcc out of the function */
};

struct disasm_exit {
    uint64_t vaddr;
    enum disasm_exit_kind kind;
    int8_t condition; /* DISASM_TAIL_CONDITIONAL: code 0–15 as in the opcodes; else −1 */
    uint64_t target;  /* of a direct jump; else 0 */
    bool from_table;  /* DISASM_TAIL_INDIRECT: jmp *(base,index,8). The table is of functions, or of places within
                       * (a computed goto): only the depth of the stack tells (core/symbols/eh_cfa.h) */
};

/* A piece of a function: the function itself, or what the compiler split off (f.cold). Jumps among
 * pieces are not exits. */
struct disasm_piece {
    uint64_t vaddr;
    const uint8_t *code;
    size_t size;
};

struct disasm_exits {
    VEC(struct disasm_exit) list; /* ascending by address within a piece */
    bool complete;
};

/* The first piece begins with the function's entry. MTUI_E_INVAL: no bytes, or more than the
 * maximum. */
int disasm_find_exits(const struct disasm_piece *pieces, size_t n, struct disasm_exits *out,
                      struct err *err);
void disasm_exits_free(struct disasm_exits *e);

/* True when vaddr is certainly the start of an instruction of the piece. */
bool disasm_is_boundary(const struct disasm_piece *piece, uint64_t vaddr);

#endif

/* One x86-64 instruction, classified by what it does to the flow of control. */
#ifndef MTUI_CORE_STEP_INSN_H
#define MTUI_CORE_STEP_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_INSN_MAX 15 /* bytes */

enum step_kind {
    STEP_PLAIN, /* goes on behind itself, or traps */
    STEP_JUMP,  /* direct */
    STEP_CONDITIONAL,
    STEP_CALL, /* direct */
    STEP_JUMP_INDIRECT,
    STEP_CALL_INDIRECT,
    STEP_RETURN,
    STEP_SYSCALL, /* syscall, sysenter, int 0x80 */
    STEP_TRAP,    /* int3, int1: a signal instead of a successor */
    STEP_BAD      /* no instruction */
};

struct step_insn {
    enum step_kind kind;
    uint8_t len;
    bool pushes_flags; /* pushf: the trap flag would leak into memory */
    uint8_t pops_flags; /* popf: how many bytes, 2 or 8; the kernel loses track of the trap flag there */
    bool repeats;      /* a string instruction with REP: a step is one of its iterations */
    uint64_t target;   /* of direct branches */
};

/* Decodes the n bytes at ip (64-bit mode). Never fails: undecodable bytes are STEP_BAD, length 0. */
struct step_insn step_insn_decode(const uint8_t *bytes, size_t n, uint64_t ip);

#endif

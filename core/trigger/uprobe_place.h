/* Whether a uprobe may sit on an instruction.
 *
 * The kernel replaces the instruction by an int3 and executes the original in another page with the trap flag set
 * (out of line), or emulates it. Some instructions it refuses; with others it goes on, and the program is killed or
 * sees what it would not see untraced. On all of these a hardware breakpoint is right: the processor executes them
 * where they stand. */
#ifndef MTUI_CORE_UPROBE_PLACE_H
#define MTUI_CORE_UPROBE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For the instruction that begins with these bytes (x86-64; 15 are always enough). False when
 * - the kernel takes none: a prefix lock, es, cs, ss or ds (notrack), a branch with an operand size prefix, or int3, int,
 *   into, iret, icebp, hlt, cli, sti, in, out, a load of ss (where the file is mapped only after the event was opened,
 *   the kernel does not say so);
 * - it mistakes the opcode of a vector instruction (VEX, EVEX) for another's, and skips it or sends the program astray;
 * - out of line it does something else: syscall and sysenter come back behind the copy with the trap flag gone,
 *   pushf stores the trap flag, popf replaces it; far branches leave addresses of the copy behind; in a virtual machine
 *   the trap may come one instruction late behind cpuid;
 * - it is its own successor, so that one execution is many hits, each before the one before is through: a direct branch
 *   to itself, a string instruction with a rep prefix.
 * Bytes that are no instruction, or not a whole one, are judged by their prefixes and the opcode alone.
 *
 * Source: arch/x86/kernel/uprobes.c: is_prefix_bad, the tables of good instructions, branch_setup_xol_ops,
 * arch_uprobe_analyze_insn; the rest as observed with Linux 6.18. */
bool uprobe_fits(const uint8_t *code, size_t n);

/* Whether the kernel may replace the instruction by a call into code of its own that reports the hit (a nop of 5 bytes,
 * Linux 6.18; of 10, later): as good as any other, but who stops the thread at a hit finds it in there, on another stack
 * pointer. Source: arch/x86/kernel/uprobes.c, can_optimize. */
bool uprobe_leaves(const uint8_t *code, size_t n);

#endif

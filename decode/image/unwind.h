/* Unwinding by call frame information (libdw): from the user registers and the copy of the top of the
 * stack in a sample to the addresses of its callers. x86-64 only.
 *
 * Register numbers: System V ABI for x86-64, figure 3.36 (DWARF), and enum perf_event_x86_regs of
 * <asm/perf_regs.h> (perf). */
#ifndef MTUI_DECODE_UNWIND_H
#define MTUI_DECODE_UNWIND_H

#include "decode/image/symbolize.h"

struct unwinder;

struct unwinder *unwinder_new(const struct addrspaces *as, struct symbolizer *symbols);
void unwinder_free(struct unwinder *u);

/* Writes up to max addresses, innermost first, into pcs; calls[i] tells that pcs[i] is a return address.
 * Returns their number: 0 when the sample holds no stack, or no registers that can be used. *complete is false when
 * the unwinding stopped because something was missing, not at the outermost frame. */
size_t unwinder_unwind(struct unwinder *u, const struct perf_record *rec, uint64_t *pcs, bool *calls,
                       size_t max, bool *complete);

#endif

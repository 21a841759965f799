/* The stack of a sample, outermost frame first.
 *
 * As recorded: the call chain, its PERF_CONTEXT_* marks turned into the mode of each address; for
 * `--call-graph lbr` the user part from the branch stack; for `--call-graph dwarf` the user part unwound
 * from the copied registers and stack (x86-64, by the call frame information of the files mapped). A
 * sample without any of these has one frame, its ip.
 *
 * lookup_ip is the address to look a name up by: that of the call, not of the instruction behind it, for
 * callers in user space. (perf does the same for dwarf chains, but not for frame-pointer chains, where it
 * names the wrong function after a call that is the last instruction of its function.) Kernel frames are
 * looked up as recorded: some are interrupted places, not return addresses. */
#ifndef MTUI_DECODE_CALLCHAIN_H
#define MTUI_DECODE_CALLCHAIN_H

#include "decode/image/symbolize.h"

#define CALLCHAIN_MAX_FRAMES 1024

struct callframe {
    uint64_t ip, lookup_ip;
    enum perf_cpumode mode;
};

struct callchain;

/* f, as and symbols must outlive it; symbols may be NULL: nothing is unwound then. */
struct callchain *callchain_new(const struct perf_file *f, const struct addrspaces *as,
                                struct symbolizer *symbols);
void callchain_free(struct callchain *c);

/* The frames of a PERF_REC_SAMPLE at the present point of the address spaces; good until the next call.
 * Returns their number, at least 1; never fails. */
size_t callchain_frames(struct callchain *c, const struct perf_record *rec,
                        const struct callframe **frames);

/* A sentence about stacks that could not be unwound, NULL when all were. */
const char *callchain_note(struct callchain *c);

#endif

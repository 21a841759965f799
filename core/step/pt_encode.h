/* Executed instructions in, an Intel PT packet stream out: what the hardware would have written.
 *
 * The caller (the single-stepping recorder, tests) reports each instruction that changed the flow;
 * the encoder decides which packets that takes, compresses addresses and returns, inserts PSB+ and
 * timing packets. Only user-mode flow is described: entering the kernel ends tracing, as with a
 * recording of user code.
 *
 * Rules: Intel SDM vol. 3, chapter "Intel Processor Trace" (packet definitions; return compression;
 * timing packets). The packets themselves are written by libipt's packet encoder. Beyond the manual:
 * the first address after a PSB or an overflow is written in full, since perf continues from a stale
 * last address there; a return that cannot be compressed never stands behind pending TNT bits.
 *
 * The clock: one tick of the TSC is one nanosecond and one core cycle; callers count instructions. */
#ifndef MTUI_CORE_PT_ENCODE_H
#define MTUI_CORE_PT_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* The constants that a decoder needs to turn ticks into time. */
#define PT_ENCODE_CTC_N    32u /* TSC ticks = CTC ticks × N / D */
#define PT_ENCODE_CTC_D    1u
#define PT_ENCODE_CBR      10u /* equals the nominal ratio: cycles are TSC ticks */
#define PT_ENCODE_RETSTACK 64u

struct pt_encode_options {
    bool tsc;               /* TSC in each PSB+ (else no time at all) */
    bool mtc;               /* MTC and TMA */
    unsigned mtc_period;    /* an MTC each 2^period CTC ticks, 0–15 */
    bool cyc;               /* CYC before each TNT and TIP */
    bool ret_compression;   /* returns as TNT bits where the hardware would */
    bool long_tnt;          /* 47 conditional branches a packet instead of 6 */
    size_t psb_period;      /* bytes between two PSB; 0: 4096 */
};

/* MTC each 8 CTC ticks, CYC, compressed returns: what `pt` records by default. */
struct pt_encode_options pt_encode_options_default(void);

struct pt_encoder_state;
typedef struct pt_encoder_state pt_encode;

/* Receives whole packets in order. sync: the bytes begin a PSB+, at which a reader may start. */
typedef void pt_encode_sink(void *arg, const uint8_t *bytes, size_t len, bool sync);

pt_encode *pt_encode_new(const struct pt_encode_options *options, pt_encode_sink *sink, void *arg);
void pt_encode_free(pt_encode *e);

/* Tracing begins at ip (the first time, after a system call, a signal, a filter). */
void pt_encode_begin(pt_encode *e, uint64_t ip, uint64_t tsc);

/* Tracing ends at a far branch that has just executed (syscall, int); or, in end_at, by something
 * that interrupted the program before the instruction at ip. */
void pt_encode_end(pt_encode *e, uint64_t tsc);
void pt_encode_end_at(pt_encode *e, uint64_t ip, uint64_t tsc);

/* Flow, one call per branch instruction executed. Direct jumps need no report. */
void pt_encode_conditional(pt_encode *e, bool taken, uint64_t tsc);
void pt_encode_direct_call(pt_encode *e, uint64_t next_ip, uint64_t target, uint64_t tsc);
void pt_encode_indirect_jump(pt_encode *e, uint64_t target, uint64_t tsc);
void pt_encode_indirect_call(pt_encode *e, uint64_t next_ip, uint64_t target, uint64_t tsc);
void pt_encode_return(pt_encode *e, uint64_t target, uint64_t tsc);

/* At each instruction, or whenever time passes, so that timing packets come where they are due. ip is
 * where a PSB+ inserted here says that the program is. */
void pt_encode_tick(pt_encode *e, uint64_t ip, uint64_t tsc);

/* Says that packets were lost and that tracing goes on at ip. */
void pt_encode_overflow(pt_encode *e, uint64_t ip, uint64_t tsc);

/* Writes what is pending (before a snapshot is taken, at the end). */
void pt_encode_flush(pt_encode *e, uint64_t tsc);

/* 0, or the error of the first packet that could not be written. */
int pt_encode_status(const pt_encode *e, struct err *err);

#endif

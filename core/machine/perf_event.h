/* perf_event_open(2) in the few forms that this program uses. */
#ifndef MTUI_CORE_PERF_EVENT_H
#define MTUI_CORE_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* The system call, with PERF_FLAG_FD_CLOEXEC. Returns a descriptor, or -1 with errno. */
int perf_event_open(const struct perf_event_attr *attr, pid_t tid, int cpu);

/* The dynamic type number of a PMU: SYS_ROOT/bus/event_source/devices/NAME/type; sys_root NULL is
 * "/sys". MTUI_E_NOTSUP when there is no such PMU. */
int perf_event_pmu_type(const char *sys_root, const char *name, uint32_t *type, struct err *err);

/* An event that counts nothing and reports what its thread does: forks, ends, execs, executable
 * mappings; each such record carries pid, tid, time and id at its end (sample_id_all). A reader is
 * woken at each record. */
void perf_event_dummy_attr(struct perf_event_attr *attr);

/* Registers that a hit carries (bits of asm/perf_regs.h), stored in this order. */
enum perf_hit_reg {
    PERF_HIT_AX,
    PERF_HIT_CX,
    PERF_HIT_DX,
    PERF_HIT_SI,
    PERF_HIT_DI,
    PERF_HIT_SP,
    PERF_HIT_FLAGS,
    PERF_HIT_R8,
    PERF_HIT_R9,
    PERF_HIT_REGS
};

/* Makes an event report each occurrence: id, ip, pid, tid, time, the registers above, and the word that
 * the stack pointer points to. */
void perf_event_sample_hits(struct perf_event_attr *attr);

/* One such report, taken apart. */
struct perf_hit {
    uint64_t id; /* of the event; of a BPF program's report: the number it put in */
    uint64_t ip, time_ns;
    uint32_t pid, tid;
    uint64_t regs[PERF_HIT_REGS]; /* all 0 for a 32-bit or kernel context */
    uint64_t top; /* of the stack: the return address at a function's entry; 0: not readable */
};

/* Takes apart a PERF_RECORD_SAMPLE; with_raw: PERF_SAMPLE_RAW was set too and holds 8 bytes, which
 * become the id. False when the record is too short. */
bool perf_hit_parse(const struct perf_event_header *h, bool with_raw, struct perf_hit *out);

/* What stands at the end of every other record of an event of this file. */
struct perf_record_id {
    uint32_t pid, tid;
    uint64_t time_ns, id;
};
bool perf_record_id_parse(const struct perf_event_header *h, struct perf_record_id *out);

/* Whether events of this very thread, of user code, are allowed; and if not, whether that is a seccomp filter's
 * doing (its own refusals look like the kernel's: where both may refuse, no). */
bool perf_event_is_allowed(void);
bool perf_event_is_filtered(void);

/* The sentence for a refused perf_event_open: what was tried ("arming malloc in thread 12"), the
 * errno in plain words, and what would allow it (paranoid level, capability, seccomp, descriptors).
 * proc_root NULL is "/proc". Returns the code. */
int perf_event_explain(struct err *err, int errno_value, const char *proc_root, const char *what);

#endif

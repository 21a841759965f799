/* perf.data, read directly: records in time order, whatever the layout.
 *
 * File and pipe layout, sample ids, zstd-compressed records, directories (`--kcore`), header features.
 * Unknown records and features are skipped and counted; a truncated or damaged file is read as far as
 * it goes (perf_file_partial has one sentence about the rest). Everything in the file is hostile:
 * bounds are checked before each read, a string is used only when terminated inside its record.
 *
 * Source of the format: tools/perf/Documentation/perf.data-file-format.txt and
 * include/uapi/linux/perf_event.h of Linux; struct layouts as of Linux 6.1. */
#ifndef MTUI_DECODE_PERF_FILE_H
#define MTUI_DECODE_PERF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

struct perf_file;

enum perf_record_kind {
    PERF_REC_SAMPLE,
    PERF_REC_MMAP, /* MMAP and MMAP2; also the ones perf made up from /proc at its start */
    PERF_REC_COMM,
    PERF_REC_FORK,
    PERF_REC_EXIT,
    PERF_REC_SWITCH, /* SWITCH and SWITCH_CPU_WIDE */
    PERF_REC_LOST,   /* LOST and LOST_SAMPLES */
    PERF_REC_THROTTLE, /* THROTTLE and UNTHROTTLE */
    PERF_REC_AUX,
    PERF_REC_ITRACE_START,
    PERF_REC_AUXTRACE_INFO,
    PERF_REC_AUXTRACE, /* its data: perf_file_aux_data */
    PERF_REC_AUXTRACE_ERROR,
    PERF_REC_TIME_CONV,
    PERF_REC_KSYMBOL,
    PERF_REC_TEXT_POKE,
    PERF_REC_BUILD_ID,
    PERF_REC_OTHER /* known but of no use here, or unknown: `type` says which */
};

/* Which side of the machine an address belongs to (PERF_RECORD_MISC_CPUMODE_MASK). */
enum perf_cpumode { PERF_MODE_UNKNOWN, PERF_MODE_KERNEL, PERF_MODE_USER, PERF_MODE_HYPERVISOR,
                    PERF_MODE_GUEST_KERNEL, PERF_MODE_GUEST_USER };

/* One taken branch of a sample's branch stack, newest first; flags as in struct perf_branch_entry. */
struct perf_branch {
    uint64_t from, to, flags;
};

struct perf_record {
    enum perf_record_kind kind;
    uint32_t type;      /* the raw perf_event_type */
    uint16_t misc;
    uint64_t offset;    /* in the file, for messages */
    uint64_t time_ns;   /* perf's clock; without a time of its own, the latest one before it */
    bool has_time;      /* false also for the records that perf made up: their time is 0 */
    pid_t pid, tid;     /* of the record's own sample id where present; −1 unknown */
    int cpu;            /* −1 unknown */
    enum perf_cpumode cpumode;
    int event;          /* index for perf_file_event, −1 unknown */
    union {
        struct {
            uint64_t ip, addr, period;
            const uint64_t *chain; /* as recorded, with PERF_CONTEXT_* markers; NULL when none */
            size_t chain_len;
            const uint8_t *raw;    /* PERF_SAMPLE_RAW */
            size_t raw_len;
            const struct perf_branch *branches; /* PERF_SAMPLE_BRANCH_STACK */
            size_t nbranches;
            /* PERF_SAMPLE_REGS_USER: the registers named by regs_mask (PERF_REG_*), lowest first;
             * NULL when the sample has none. regs_abi: 1 is 32-bit, 2 is 64-bit. */
            const uint64_t *regs;
            size_t nregs;
            uint64_t regs_mask, regs_abi;
            const uint8_t *stack; /* PERF_SAMPLE_STACK_USER: bytes from the stack pointer up */
            size_t stack_len;
        } sample;
        struct {
            pid_t pid, tid;
            uint64_t start, len, pgoff;
            uint32_t prot;          /* PROT_*; PROT_EXEC assumed for MMAP */
            bool data;              /* PERF_RECORD_MISC_MMAP_DATA */
            const char *path;
            uint8_t build_id[20];
            uint8_t build_id_len;   /* 0: none in the record */
        } mmap;
        struct {
            pid_t pid, tid;
            bool exec;
            const char *comm;
        } comm;
        struct {
            pid_t pid, ppid, tid, ptid;
            bool synthesized; /* made up by perf from /proc: the maps come as records of their own */
        } fork; /* FORK and EXIT */
        struct {
            bool out, preempted;
            pid_t other_pid, other_tid; /* SWITCH_CPU_WIDE, else −1 */
        } sw;
        struct {
            uint64_t count;
        } lost;
        struct {
            uint64_t aux_offset, aux_size, flags;
        } aux;
        struct {
            uint32_t type;
            const uint64_t *priv; /* AUXTRACE_INFO: priv[], may be unaligned in the file: copied */
            size_t npriv;
        } auxtrace_info;
        struct {
            uint64_t size, offset, reference;
            uint32_t idx;
            pid_t tid;
            int cpu;
            uint64_t data_offset; /* where the trace bytes stand in the file */
        } auxtrace;
        struct {
            uint32_t code, cpu;
            pid_t pid, tid;
            uint64_t ip, time_ns;
            const char *msg;
        } auxtrace_error;
        struct {
            uint64_t time_shift, time_mult, time_zero, time_cycles, time_mask;
            bool cap_time_zero, cap_time_short;
        } time_conv;
        struct {
            uint64_t addr;
            uint32_t len;
            uint16_t ksym_type, flags; /* PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER */
            const char *name;
        } ksymbol;
        struct {
            uint64_t addr;
            const uint8_t *old_bytes, *new_bytes;
            uint16_t old_len, new_len;
        } text_poke;
        struct {
            pid_t pid;
            uint8_t build_id[20];
            uint8_t build_id_len;
            const char *path;
        } build_id;
    } u;
};

/* One recorded event (an attr). */
struct perf_event_info {
    const char *name;     /* from EVENT_DESC or composed: "cpu-clock", "type 8 config 0x…" */
    uint32_t type;
    uint64_t config, config1, config2, sample_type, read_format;
    uint64_t sample_period_or_freq;
    uint64_t branch_sample_type, sample_regs_user; /* PERF_SAMPLE_BRANCH_*; mask of PERF_REG_* */
    uint32_t sample_stack_user;                    /* bytes; 0: no stack dumps (no dwarf mode) */
    bool freq, context_switch, sample_id_all, is_intel_pt, write_backward;
};

struct perf_file_info {
    const char *hostname, *os_release, *arch, *perf_version, *cmdline; /* NULL when absent */
    bool pipe_layout, directory, has_auxtrace;
    uint64_t size_bytes;
    uint64_t skipped_records; /* unknown types and records that did not parse */
    /* Where reading ended before the end: what is not there of what header and records announce, and what stands
     * behind damage, as far as it is known how much that is. 0: all was read. */
    uint64_t unread_offset, unread_bytes;
    bool has_clock_id;
    uint32_t clock_id;
};

/* Opens a file, a directory written by `perf record --kcore` or `--threads` (its "data" and
 * "data.N" inside), or, with perf_file_open_fd, a descriptor that may be a pipe (read to its end; the
 * fd stays the caller's). Reads through the whole file once. What is cut off a
 * file while it is open here reads as zeros (core/base/file_guard.h); perf_file_check tells. A header whose data size is 0 is "recording not finished properly" and is read to the end of the
 * file. */
int perf_file_open(struct perf_file **out, const char *path, struct err *err);
int perf_file_open_fd(struct perf_file **out, int fd, const char *name, struct err *err);
void perf_file_close(struct perf_file *f);

const struct perf_file_info *perf_file_info(const struct perf_file *f);
size_t perf_file_event_count(const struct perf_file *f);
const struct perf_event_info *perf_file_event(const struct perf_file *f, size_t i);

/* A sentence about what could not be read, or NULL when all was. */
const char *perf_file_partial(const struct perf_file *f);

/* Looks whether the file is still as it was when it was opened; if not, perf_file_partial says so from now
 * on (unless it has something to say already). */
void perf_file_check(struct perf_file *f);

/* The next record in the order of time (stable: file order among equals; records without a time come
 * with the latest time before them; those that perf made up from /proc at its start, or at the dump of
 * an overwritten ring, come first). Build-ids of the header come as PERF_REC_BUILD_ID before all. 1: *rec is filled, its pointers live until the next call;
 * 0: the end; negative: memory is short. */
int perf_file_next(struct perf_file *f, struct perf_record *rec, struct err *err);
void perf_file_rewind(struct perf_file *f);

/* The bytes of an AUXTRACE record, mapped: live as long as f. Shorter than the
 * record says when the file ends earlier; NULL when nothing of them is there. */
const uint8_t *perf_file_aux_data(const struct perf_file *f, const struct perf_record *rec,
                                  size_t *len);

/* The descriptions of tracepoints that the recording brings (for decode/perf/tracepoint.h), NULL: none. Live as
 * long as f. */
const uint8_t *perf_file_tracing_data(const struct perf_file *f, size_t *len);

#endif

/* What to record and how: everything that the options of `run` and `attach`, or the Record screen,
 * say about one recording, and the perf command that follows from it.
 *
 * A plan owns nothing: its pointers belong to the caller and must outlive the calls they are handed
 * to (recorder_new copies what it needs). */
#ifndef MTUI_CORE_PLAN_H
#define MTUI_CORE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/record/control.h"
#include "core/base/err.h"
#include "core/machine/perf_version.h"
#include "core/machine/pmu.h"

enum plan_recorder { PLAN_PT, PLAN_STEP, PLAN_SAMPLE };
enum plan_mode { PLAN_TRIGGER, PLAN_RING, PLAN_WHOLE }; /* --mode trigger|ring|whole */
enum plan_timing { PLAN_TIMING_NORMAL, PLAN_TIMING_LOW, PLAN_TIMING_HIGH };
enum plan_call_graph { PLAN_CALL_GRAPH_FP, PLAN_CALL_GRAPH_DWARF, PLAN_CALL_GRAPH_LBR };
enum plan_control { PLAN_CONTROL_AUTO, PLAN_CONTROL_CTLFD, PLAN_CONTROL_SIGNALS };

struct record_plan {
    enum plan_recorder recorder; /* never "auto": resolved before */
    enum plan_mode mode;
    enum plan_timing timing;
    enum plan_call_graph call_graph;
    enum plan_control control;
    const pid_t *pids; /* processes; for `run` the one that mtui started stopped */
    size_t n_pids;
    const pid_t *tids; /* --tid: only these threads, one buffer each; empty: every thread */
    size_t n_tids;
    bool children;          /* forked children are wanted too */
    bool kernel;            /* --kernel */
    bool sample_by_clock;   /* sample: hardware cycles do not count here, use cpu-clock */
    uint64_t ring_bytes;    /* per buffer; 0: the default of the recorder */
    unsigned freq_hz;       /* sample; 0: the default */
    uint64_t budget;        /* step: instructions a window; 0: the default */
    const char *truth;      /* step: --truth FILE, or NULL */
    const char *output_dir; /* the snapshot directory; perf writes output_dir/perf.data */
};

#define PLAN_DEFAULT_PT_RING     (4u << 20)
#define PLAN_DEFAULT_SAMPLE_RING (1u << 20)
#define PLAN_DEFAULT_FREQ_HZ     9999u

/* A NULL-terminated argument vector of its own strings. Zero-initialise; plan_argv_free frees. */
struct plan_argv {
    char **data; /* data[len] == NULL */
    size_t len, cap;
};

void plan_argv_add(struct plan_argv *argv, const char *arg);
void plan_argv_free(struct plan_argv *argv);

/* The complete perf command for `pt` and `sample`: program (perf_program()), record, options, and
 * no workload: perf always attaches to the pids, it never owns them. row: the control mechanism,
 * from control_select; with row->ctlfd the command has --control=fd:CONTROL_CHILD_CTL_FD,
 * CONTROL_CHILD_ACK_FD. caps: what the PMU can do, which decides the config terms of `pt` (absent
 * or NULL: the choice is left to perf). MTUI_E_INVAL: no pid, options that exclude one another;
 * MTUI_E_NOTSUP: pt without the PMU is still built (to be shown), `step` is not perf's. */
int plan_perf_argv(const struct record_plan *plan, const struct perf_version *version,
                   const struct pmu_intel_pt *caps, const struct control_row *row,
                   struct plan_argv *argv, struct err *err);

/* One line that a POSIX shell reads back as exactly these arguments, for --print and the log; bytes
 * that must not reach a terminal are written as $'\xHH'. The caller frees. */
char *plan_format_command(const struct plan_argv *argv);

/* The ring size in bytes that the plan uses: the default if it has none, rounded up to a power of
 * two of pages. *rounded (NULL allowed) says that it was changed by the rounding. */
uint64_t plan_ring_bytes(const struct record_plan *plan, bool *rounded);

/* How much of the past a ring holds, roughly, of a CPU that is busy with the target all the time; 0:
 * there is no ring that perf overwrites. */
uint64_t plan_lookback_ns(const struct record_plan *plan);

/* How much ring memory the kernel lets this user lock (perf_event_open(2), perf_mmap): the pages of
 * all buffers of a user beyond mlock_kb per CPU count against RLIMIT_MEMLOCK. */
struct plan_limits {
    uint64_t mlock_kb;      /* /proc/sys/kernel/perf_event_mlock_kb */
    uint64_t memlock_bytes; /* RLIMIT_MEMLOCK, soft; UINT64_MAX: unlimited */
    unsigned cpus;          /* online */
    bool exempt;            /* CAP_IPC_LOCK, or perf_event_paranoid -1 */
};

/* proc_root: "/proc" (tests: a directory like it). Never fails: what cannot be read is the kernel's
 * default. */
void plan_read_limits(const char *proc_root, struct plan_limits *limits);

/* Checks the plan's buffers before perf is refused them. MTUI_E_LIMIT: the sentence has the wanted
 * and the allowed size and the largest size that works; *fits (NULL allowed) gets that size in
 * bytes in every case (0: not even one page). */
int plan_check_limits(const struct record_plan *plan, const struct plan_limits *limits,
                      uint64_t *fits, struct err *err);

const char *plan_recorder_name(enum plan_recorder r);
const char *plan_mode_name(enum plan_mode m);

#endif

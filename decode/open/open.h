/* One entry for everything that opens a recording: `open`, `export`, the screens.
 *
 * A path is a snapshot directory (core/session/snapshot_dir.h), one of its snap-N or a perf.data inside it, a
 * perf.data of any other origin (a file, or the directory of `perf record --kcore`), text of `perf
 * script` (plain or gzipped), or "-" for standard input (perf.data in pipe layout, or text). What it is
 * is told by its first bytes, not by its name.
 *
 * Inside a recording of mtui's own, the mappings and files kept at recording time are used first, and the
 * hits of triggers become marks. Several snapshots opened together are one trace in which nothing goes on
 * from one to the next. */
#ifndef MTUI_DECODE_OPEN_H
#define MTUI_DECODE_OPEN_H

#include <stdatomic.h>

#include "core/base/loop.h"
#include "core/session/snapshot_dir.h"
#include "decode/pt/pt_event.h"
#include "decode/trace/pyramid.h"
#include "decode/sample/sample_log.h"
#include "decode/trace/stats.h"
#include "decode/trace/trace.h"

#define OPEN_LAST 0 /* the last numbered snapshot; snap-end when there is none */
#define OPEN_ALL UINT32_MAX
#define OPEN_END (UINT32_MAX - 1) /* snap-end */

struct open_progress {
    const char *stage;    /* what is being done: "reading", "decoding", "building", "indexing" */
    uint64_t done, total; /* bytes of the present file; total 0: unknown, a pipe */
    uint64_t spans;       /* calls decoded so far; 0: not known before the end */
};

/* All is read and decoded; what is left to do ("building", "indexing") is not measured. */
bool open_is_finishing(const struct open_progress *p);

/* From the thread that opens. */
typedef void open_progress_fn(void *arg, const struct open_progress *p);

struct recording;
/* What is there so far of a recording that is still being decoded: a trace of its own in which a gap
 * (GAP_NOT_DECODED) covers what is to come, its index if one was asked for, snapshots; no samples, modules
 * or notes. Functions keep their ids from one part to the next and to the result, threads and closed calls
 * stay (deeper, when a caller turns up later). r is the callee's. From the thread that opens. */
typedef void open_part_fn(void *arg, struct recording *r);
#define OPEN_PART_NS 50000000u

/* A branch of an exact recording. Snapshot after snapshot; those of one in the order of time over all threads. */
struct open_branch {
    uint64_t time_ns;
    pid_t tid; /* −1: not known */
    int cpu;   /* −1: not known */
    struct pt_branch branch;
};
typedef void open_branch_fn(void *arg, const struct open_branch *b);

struct open_options {
    unsigned snapshot;         /* OPEN_LAST, OPEN_ALL, OPEN_END or a number from 1 */
    const char *symfs;         /* NULL: files are where they were recorded */
    unsigned threads;          /* for what can be done in parallel; 0: as many as there are CPUs */
    int stdin_fd;              /* what "-" reads */
    bool statistics;           /* only those of all threads and all of the time are wanted: where they can be made
                                  while decoding they are, and the trace has no spans then */
    bool pyramid;              /* build the index that the timeline draws from */
    bool libipt;               /* Intel PT by libipt's decoder instead of mtui's own */
    open_branch_fn *branch;    /* hardware traces are listed branch by branch, no spans are made; NULL: spans.
                                  MTUI_E_NOTSUP for recordings without branches */
    void *branch_arg;
    const atomic_bool *cancel; /* NULL: none; looked at all the time: MTUI_E_CANCEL */
    const atomic_bool *enough; /* NULL: none; once it is set, decoding stops, what it has come to is the
                                  result, and the rest a gap: GAP_NOT_DECODED. Where a part cannot stand
                                  alone (libipt, nothing decoded yet): MTUI_E_CANCEL */
    open_progress_fn *progress; /* NULL: none */
    void *progress_arg;
    open_part_fn *part;         /* NULL: none */
    void *part_arg;
    uint64_t part_ns;           /* the first part after so long, the next ones each after twice the time; 0:
                                   OPEN_PART_NS, and later where parts would take more than a fifth of it */
};

/* How the names of one module came out (decode/image/symbolize.h). Bytes from outside. */
struct open_module {
    char *name;
    uint64_t lookups, resolved;
    char *source; /* NULL: none */
    char *reason; /* NULL: all resolved */
};

/* Everything is owned by it. */
struct recording {
    struct trace *trace;
    struct sample_log *samples; /* NULL for exact recordings */
    struct pyramid *pyramid;    /* NULL when not asked for */
    struct stats *statistics;   /* NULL: the trace has its spans */
    struct open_module *modules;
    size_t nmodules;
    char **notes; /* sentences for the user, most important first; bytes from outside */
    size_t nnotes;
    unsigned *snapshots; /* numbers of those opened, 0 for snap-end; none for other recordings */
    size_t nsnapshots;
    struct session_info session; /* zero for other recordings */
    bool has_session;
};

/* Whether there is something to open, by a look at the path alone: MTUI_E_NOENT, MTUI_E_PERM, MTUI_E_IO. */
int open_check_path(const char *path, struct err *err);

/* Blocks; meant for a worker thread. */
int open_recording(struct recording **out, const char *path, const struct open_options *options,
                   struct err *err);
void recording_free(struct recording *r);

/* "last", "all", "end" or a number, as --snapshot takes it. */
int open_parse_snapshot(const char *s, unsigned *snapshot, struct err *err);

/* ---- In the background ---- */

struct open_job;

/* Runs in the loop's thread at the end: r (now the callee's) or, when it is NULL, err. The job is freed
 * after it returns. */
typedef void open_done_fn(void *arg, struct recording *r, const struct err *err);

/* Starts a thread that opens path. options->cancel, enough and progress are not used: see below.
 * options->part runs in the loop's thread, for the newest part only, never after done. */
struct open_job *open_start(struct loop *loop, const char *path, const struct open_options *options,
                            open_done_fn *done, void *arg);
/* How far it is; any time before done has run. */
struct open_progress open_job_progress(struct open_job *job);
/* Asks it to stop with what it has (open_options.enough); done runs soon. */
void open_job_enough(struct open_job *job);
/* Asks it to stop; done still runs, with MTUI_E_CANCEL (or the result, if it was ready already). */
void open_job_cancel(struct open_job *job);

#endif

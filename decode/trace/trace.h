/* A trace: what every recorder's data becomes, and what screens, statistics and exports read.
 *
 * Threads, each with rows of spans by depth; gaps; marks. Times are nanoseconds of the recording's
 * clock (perf's; for `step` one instruction is one nanosecond). The invariants hold always and are
 * checked by trace_check: start ≤ end; spans of a row are sorted and disjoint; every span of row d
 * lies inside one of row d−1 (its caller: the last one there that starts no later); first_ns ≤ every
 * time ≤ last_ns. (A mark may lie outside its thread's first_ns and last_ns.)
 *
 * A trace is built once by a trace_builder (below) and is then immutable: any thread may read it.
 * Pointers into it live as long as it does. */
#ifndef MTUI_DECODE_TRACE_H
#define MTUI_DECODE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "decode/trace/functions.h"

enum span_flag {
    SPAN_INFERRED_START = 1 << 0, /* s: was open when the trace began, or after a gap */
    SPAN_INFERRED_END = 1 << 1,   /* e: still open at the end of the trace, of a snapshot or of a window */
    SPAN_TAIL_CALL = 1 << 2,      /* t: entered by a jump from another function */
    SPAN_GAP_END = 1 << 3,        /* g: ended by a gap */
    SPAN_SAMPLED = 1 << 4,        /* p: seen in samples only: its edges are known to a period */
    SPAN_OFF_CPU = 1 << 5,        /* o: the thread was not running */
    SPAN_HAS_SITE = 1 << 6        /* bits 7–15 are the lowest bits of the address that the call returns to */
};
#define SPAN_FLAG_BITS 6 /* how many of them tell something about the span's edges and kind */

/* Nine bits of a return address are the same in the process and in its file (mappings move by whole pages),
 * and tell the calls inside one function apart nearly always (core/symbols/disasm_text.h), at no cost in memory. */
#define SPAN_SITE_SHIFT 7
#define SPAN_SITE_MASK  0x1ffu
static inline unsigned span_site_flags(uint64_t return_address)
{
    return SPAN_HAS_SITE | (unsigned)(return_address & SPAN_SITE_MASK) << SPAN_SITE_SHIFT;
}

struct span { /* 24 bytes */
    uint64_t start_ns, end_ns;
    fn_id fn;
    uint16_t depth; /* the row it stands in */
    uint16_t flags; /* enum span_flag, and the call site */
};

struct trace_thread {
    pid_t pid, tid;
    const char *comm; /* bytes from outside */
    uint64_t first_ns, last_ns;
    size_t depths;    /* number of rows */
    uint64_t spans;   /* in all rows */
    uint64_t samples; /* 0 for exact recordings */
    int last_cpu;     /* −1 unknown */
};

enum gap_cause {
    GAP_LOST,      /* records or bytes that the kernel or perf dropped */
    GAP_OVERFLOW,  /* the PT packet stream overflowed */
    GAP_ERROR,     /* decode error */
    GAP_NO_IMAGE,  /* code that is not at hand */
    GAP_UNTRACED,  /* kernel time, filters, tracing switched off */
    GAP_NO_SAMPLE, /* `sample`: no sample for more than a few periods */
    GAP_OFF_CPU,   /* not scheduled, where switches were recorded */
    GAP_NOT_DECODED /* recorded, but decoding has not come to it, or was stopped before */
};
#define GAP_CAUSES 8
/* "lost" "overflow" "error" "no-image" "untraced" "no-sample" "off-cpu" "not-decoded" */
const char *gap_cause_name(enum gap_cause cause);

struct gap {
    pid_t tid; /* 0: concerns the whole recording */
    uint64_t start_ns, end_ns;
    uint64_t bytes; /* of the recording, skipped or lost; 0 where that has no meaning */
    enum gap_cause cause;
    const char *detail; /* a sentence; never NULL */
    uint64_t end_byte;  /* where those bytes end in their stream of trace data; 0: not known */
};

/* Whether some of a gap lies in [from_ns, to_ns); one without length does when its instant does. */
static inline bool gap_touches(const struct gap *g, uint64_t from_ns, uint64_t to_ns)
{
    return g->start_ns < to_ns && (g->end_ns > from_ns || g->start_ns >= from_ns);
}

enum mark_kind {
    MARK_TRIGGER, /* a trigger that fired */
    MARK_HIT,     /* one that was reached and only counted */
    MARK_FREQUENCY,
    MARK_PTWRITE,
    MARK_MIGRATION,
    MARK_SNAPSHOT,
    MARK_NOTE
};
/* "trigger" "hit" "frequency" "ptwrite" "migration" "snapshot" "note" */
const char *mark_kind_name(enum mark_kind kind);

struct mark {
    uint64_t time_ns;
    pid_t tid;
    enum mark_kind kind;
    const char *detail;
};

struct trace_info {
    uint64_t first_ns, last_ns;
    bool sampled;          /* a sampled trace must never look exact */
    uint64_t period_ns;    /* sampled: the median distance of two samples of a running thread */
    bool instructions;     /* the clock counts instructions (`step`) */
    uint64_t input_bytes;  /* size of what was read */
    /* Of a hardware trace: bytes of it; those that told something; those that were there twice (snapshots that
     * overlap). The rest is in the gaps. */
    uint64_t trace_bytes, decoded_bytes, repeated_bytes;
    const char *recorder;  /* "pt", "step", "sample", or "perf" when unknown */
    const char *partial;   /* a sentence when the input could not be read whole, else NULL */
};

struct trace;

void trace_free(struct trace *t);
const struct trace_info *trace_info(const struct trace *t);
const struct functions *trace_functions(const struct trace *t);

/* Threads are ordered by pid, then tid. */
size_t trace_thread_count(const struct trace *t);
const struct trace_thread *trace_thread(const struct trace *t, size_t i);
/* Index of tid, or −1. When two processes used the same tid, the one with the lower pid. */
ssize_t trace_find_thread(const struct trace *t, pid_t tid);

/* The spans of one row, sorted by start; *n gets their number. Row 0 is the outermost frame. */
const struct span *trace_row(const struct trace *t, size_t thread, size_t depth, size_t *n);

/* Which spans of a row lie inside another call of their function: a bit each, the i-th span's is bit
 * *first + i of the words, counted from the lowest. NULL for a row that does not exist. */
const uint64_t *trace_row_nested(const struct trace *t, size_t thread, size_t depth, size_t *first);

/* The span of a row that covers time_ns, or the last one that starts before it (the caller checks
 * end_ns), or NULL. O(log n). */
const struct span *trace_row_at(const struct trace *t, size_t thread, size_t depth,
                                uint64_t time_ns);

/* Sorted by start, then tid. */
const struct gap *trace_gaps(const struct trace *t, size_t *n);
/* Those that touch a range: of one thread and of the whole recording, or of all threads (tid 0). */
size_t trace_gap_count(const struct trace *t, pid_t tid, uint64_t from_ns, uint64_t to_ns);
/* Sorted by time, then tid. */
const struct mark *trace_marks(const struct trace *t, size_t *n);

/* The detail of a thread's MARK_NOTE at exactly that time, as where its recording ends; NULL: none. */
const char *trace_note_at(const struct trace *t, pid_t tid, uint64_t time_ns);

/* "from CPU %d to CPU %d": the detail of a MARK_MIGRATION. */
#define MIGRATION_DETAIL "from CPU %d to CPU %d"
/* The CPU that a thread was on at a time, as far as its migrations tell; −1: not known. Looks at the marks
 * around that time, a bounded number of them. */
int trace_cpu_at(const struct trace *t, size_t thread, uint64_t time_ns);

/* Verifies every invariant named above; the sentence names the first span that breaks one. For
 * tests and `--check`; O(spans). */
int trace_check(const struct trace *t, struct err *err);

/* ---- Building ----
 *
 * Different threads of a builder may be filled by different workers at once (comm, count_sample,
 * enter, leave, depth, open_fn), as long as nobody adds a thread, a gap or a mark meanwhile. */

/* Frames deeper than this are followed but not stored (trace_builder_too_deep counts them). */
#define TRACE_MAX_DEPTH 65535

struct trace_builder;

/* The builder takes over functions; they end up in the trace. NULL: they are given later. */
struct trace_builder *trace_builder_new(struct functions *functions);
void trace_builder_free(struct trace_builder *b);

/* From now on a thread of its own fetches the memory for spans ahead, a few megabytes: to be called where
 * there is a CPU for it and many spans are to come. */
void trace_builder_ahead(struct trace_builder *b);
/* Strings are copied. first_ns and last_ns are widened to hold everything added; both 0: found from
 * what was added. */
void trace_builder_set_info(struct trace_builder *b, const struct trace_info *info);

/* Adds a thread (or finds it); returns its index in the builder. */
size_t trace_builder_thread(struct trace_builder *b, pid_t pid, pid_t tid);
void trace_builder_comm(struct trace_builder *b, size_t thread, const char *comm);
void trace_builder_count_sample(struct trace_builder *b, size_t thread, int cpu);
/* Where the thread runs from now on. */
void trace_builder_cpu(struct trace_builder *b, size_t thread, int cpu);

/* A frame is entered / the innermost frame is left (flags are added to its span; without an open
 * frame nothing happens). Times of one thread must not go backwards; one that does is raised to the
 * last time and counted (trace_builder_clamped). Negative: memory is short. */
int trace_builder_enter(struct trace_builder *b, size_t thread, uint64_t time_ns, fn_id fn,
                        unsigned flags);
void trace_builder_leave(struct trace_builder *b, size_t thread, uint64_t time_ns, unsigned flags);
/* Nothing is open, and it turns out that everything since the thread's last cut happened inside fn: a
 * frame around all of it, from the first time since the cut (SPAN_INFERRED_START), now open. */
int trace_builder_wrap(struct trace_builder *b, size_t thread, uint64_t time_ns, fn_id fn);
/* What comes has nothing to do with what was: leaves everything open (flags) and makes sure that no
 * later wrap reaches back. */
void trace_builder_cut(struct trace_builder *b, size_t thread, uint64_t time_ns, unsigned flags);

/* Where a thread stood when it was not traced for a while. */
struct trace_pause {
    void *chunk; /* the builder's */
    size_t used;
    uint64_t spans, from_ns;
    bool shown;
};

/* From from_ns to to_ns is a span of fn inside the frame that is open, unless no time has passed. */
int trace_builder_pause(struct trace_builder *b, size_t thread, uint64_t from_ns, uint64_t to_ns, fn_id fn,
                        struct trace_pause *out);
/* It turns out that what was entered since p, and is open still, did not happen inside the outermost `depth`
 * frames, all of them open at p and since: they ended when the pause began (SPAN_INFERRED_END), the pause
 * lies behind them, and there is a cut between the pause and what came since. */
void trace_builder_split(struct trace_builder *b, size_t thread, const struct trace_pause *p, size_t depth);

/* Time has passed in the thread: what is open is open at least until then. An earlier time says nothing new. */
void trace_builder_pass(struct trace_builder *b, size_t thread, uint64_t time_ns);

size_t trace_builder_depth(const struct trace_builder *b, size_t thread);
/* The function open at a depth of the thread's present stack; FN_NONE beyond it. */
fn_id trace_builder_open_fn(const struct trace_builder *b, size_t thread, size_t depth);

/* In any order of time; details are copied (NULL is ""). A lack of memory shows at the end. */
void trace_builder_gap(struct trace_builder *b, const struct gap *gap);
void trace_builder_mark(struct trace_builder *b, const struct mark *mark);
/* Widens [*first, *last] (both 0: none yet) to the times of all threads and gaps so far. */
void trace_builder_times(const struct trace_builder *b, uint64_t *first_ns, uint64_t *last_ns);
/* Spans entered so far, in all threads. */
uint64_t trace_builder_spans(const struct trace_builder *b);
uint64_t trace_builder_clamped(const struct trace_builder *b);
uint64_t trace_builder_too_deep(const struct trace_builder *b);

/* trace_builder_finish looks at it now and then: MTUI_E_CANCEL. NULL: none. */
void trace_builder_set_cancel(struct trace_builder *b, const atomic_bool *cancel);

/* Ends what is open at its thread's last time (SPAN_INFERRED_END), sorts, and hands over the trace;
 * the builder is then empty and, as after a failure, only good for trace_builder_free. */
int trace_builder_finish(struct trace_builder *b, struct trace **out, struct err *err);

/* A builder with everything that b holds now, from which a trace of what is there so far can be made
 * while b goes on. It looks at b's spans instead of copying them: it must be finished or freed before b
 * is touched again. Everything else, functions included, is its own. */
struct trace_builder *trace_builder_fork(const struct trace_builder *b);
/* The functions that end up in the trace, for a builder that was made without (NULL). */
void trace_builder_functions(struct trace_builder *b, struct functions *functions);

#endif

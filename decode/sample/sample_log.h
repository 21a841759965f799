/* What a sampled recording says, in order, with stacks as small numbers: filled by the readers of
 * perf.data and of `perf script` text, then turned into a trace, and kept for the folded export, which
 * sums sample periods and not times.
 *
 * Stacks are nodes of a tree, each (caller's node, function) once. 32 bytes an event, whatever the depth.
 * Not thread-safe while filled. */
#ifndef MTUI_DECODE_SAMPLE_LOG_H
#define MTUI_DECODE_SAMPLE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "decode/trace/functions.h"
#include "decode/trace/stack_tree.h"
#include "decode/trace/trace.h"

enum sample_event_kind {
    SAMPLE_STACK,
    SAMPLE_KNOWN, /* a stack that was known at that time without a sample; it is not counted as one */
    SAMPLE_STILL, /* of no thread: the recording reaches until then, with what was going on */
    SAMPLE_SWITCH_OUT,
    SAMPLE_SWITCH_OUT_PREEMPT,
    SAMPLE_SWITCH_IN,
    SAMPLE_FORK, /* the thread itself is new */
    SAMPLE_EXIT,
    SAMPLE_EXEC,
    SAMPLE_LOST,     /* period: how many records or samples; from time_ns − the last event of that CPU */
    SAMPLE_THROTTLE, /* the kernel held samples back */
    SAMPLE_BORDER    /* the end of one of several files: nothing goes on across it */
};

#define SAMPLE_NO_THREAD UINT32_MAX
#define SAMPLE_NO_TIME UINT64_MAX

struct sample_event {
    uint64_t time_ns; /* SAMPLE_NO_TIME: none was recorded; the stack still counts */
    uint64_t period;  /* of a sample: as recorded, in units of its event; 1 when there is none */
    stack_id stack;
    uint32_t thread;  /* sample_log_thread, or SAMPLE_NO_THREAD */
    int32_t cpu;      /* −1 unknown */
    uint16_t event;   /* which recorded event: sample_log_add_event */
    uint8_t kind;     /* enum sample_event_kind */
};

struct sample_thread {
    pid_t pid, tid;
    char *comm; /* latest; NULL unknown */
};

struct sample_source {
    char *name;          /* "cpu-clock", "cycles:u" */
    bool clock;          /* counts time or cycles: its samples come at even distances while a thread runs */
    uint64_t period_ns;  /* expected distance, where the recording says it; else 0 */
    uint64_t samples;
};

struct sample_log;

struct sample_log *sample_log_new(void);
void sample_log_free(struct sample_log *l);

/* Adding; all but the first two may fail with MTUI_E_NOMEM. */
uint16_t sample_log_add_event(struct sample_log *l, const char *name, bool clock, uint64_t period_ns);
uint32_t sample_log_thread(struct sample_log *l, pid_t pid, pid_t tid);
int sample_log_comm(struct sample_log *l, uint32_t thread, const char *comm);
/* The number of a stack of n functions, outermost first; *out is STACK_EMPTY when n is 0. */
int sample_log_stack(struct sample_log *l, const fn_id *stack, size_t n, stack_id *out);
int sample_log_add(struct sample_log *l, const struct sample_event *e);

/* Another stack for an event that was added: the recorded one is known to lack something. */
void sample_log_set_stack(struct sample_log *l, size_t event, stack_id stack);

size_t sample_log_count(const struct sample_log *l);
const struct sample_event *sample_log_events(const struct sample_log *l);
const struct sample_thread *sample_log_thread_at(const struct sample_log *l, uint32_t thread);
size_t sample_log_thread_count(const struct sample_log *l);
const struct sample_source *sample_log_source(const struct sample_log *l, size_t i);
size_t sample_log_source_count(const struct sample_log *l);
const struct stack_tree *sample_log_stacks(const struct sample_log *l);

struct sample_log_account {
    uint64_t samples, without_time, idle, repeated, lost, throttled, not_clock;
    uint64_t first_ns, last_ns, period_ns; /* of everything with a time; 0 without any */
};

/* Puts everything into the builder (threads, spans, gaps, marks; see samples.h for the rules), with
 * trace_builder_set_info left to the caller. Sorts the events by time between borders. What is not on
 * the timeline: samples without a time, samples of the idle task, and in a later file whatever is not
 * newer than the one before (repeated). */
int sample_log_build(struct sample_log *l, struct trace_builder *b, struct functions *f,
                     struct sample_log_account *account, struct err *err);

#endif

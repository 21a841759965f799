/* Everything of a perf.data that decoding its Intel PT takes, read and put in order: the streams, their
 * clock, the code of the processes over time, who ran on which CPU. Read-only once opened, so any number
 * of workers may look at it (the image has a lock of its own). */
#ifndef MTUI_DECODE_PT_SOURCE_H
#define MTUI_DECODE_PT_SOURCE_H

#include "core/base/vec.h"
#include "decode/image/code_image.h"
#include "decode/image/symbolize.h"
#include "decode/perf/perf_file.h"
#include "decode/pt/pt_seams.h"
#include "decode/pt/pt_streams.h"
#include "decode/pt/pt_switches.h"

/* Data that the kernel says is missing (PERF_AUX_FLAG_* of an AUX record). */
struct pt_hole {
    uint64_t time_ns, flags;
    pid_t tid; /* −1: not known */
};

/* Another program runs in a process from then on. */
struct pt_exec {
    uint64_t time_ns;
    pid_t pid;
};

/* What decoding takes besides the file, and how it is told to end. Everything must outlive the source. */
struct pt_input {
    struct functions *functions; /* of the trace to be */
    const struct maps_log *maps; /* NULL: none */
    const char *symfs;           /* NULL: none */
    const struct pt_seams *seams; /* NULL: the file is the only one */
    size_t snapshot;              /* which one of the seams' it is */
    bool (*cancelled)(const void *arg); /* nothing of the result is wanted; any thread */
    bool (*enough)(const void *arg);    /* what is decoded by now is wanted, not more; any thread */
    const void *arg;
};

struct pt_source {
    struct pt_input input;
    struct addrspaces *as;
    struct symbolizer *symbols;
    struct code_image *image;
    struct pt_streams *streams;
    struct pt_switches *switches;
    struct pt_clock clock;
    VEC(struct pt_hole) holes;
    VEC(struct pt_exec) execs; /* in the order of time */
};

/* Reads f from its beginning. MTUI_E_FORMAT: what is needed for decoding is missing, the sentence says
 * what to record. To be closed in any case. */
int pt_source_open(struct pt_source *s, const struct pt_input *input, struct perf_file *f,
                   struct err *err);
bool pt_source_cancelled(const struct pt_source *s);
bool pt_source_enough(const struct pt_source *s);
void pt_source_close(struct pt_source *s);

/* The thread whose code a stream tells of at a time; −1: not known. */
pid_t pt_source_thread(const struct pt_source *s, const struct pt_stream *stream, uint64_t time_ns);
/* True when another program began in the process after one time and not after another. */
bool pt_source_exec_between(const struct pt_source *s, pid_t pid, uint64_t after_ns, uint64_t until_ns);
/* The process of a thread (the thread itself when that is not known). */
pid_t pt_source_process(const struct pt_source *s, pid_t tid);

#endif

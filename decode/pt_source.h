/* Everything of a perf.data that decoding its Intel PT takes, read and put in order: the streams, their
 * clock, the code of the processes over time, who ran on which CPU. Read-only once opened, so any number
 * of workers may look at it (the image has a lock of its own). */
#ifndef MTUI_DECODE_PT_SOURCE_H
#define MTUI_DECODE_PT_SOURCE_H

#include "core/vec.h"
#include "decode/open_priv.h"
#include "decode/code_image.h"
#include "decode/pt_streams.h"
#include "decode/pt_switches.h"

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

struct pt_source {
    const struct open_context *context;
    struct addrspaces *as;
    struct symbolizer *symbols;
    struct code_image *image;
    struct pt_streams *streams;
    struct pt_switches *switches;
    struct pt_clock clock;
    struct pt_clock time_conv; /* of a TIME_CONV record: its relation to perf's clock; time_mult 0: none */
    VEC(struct pt_hole) holes;
    VEC(struct pt_exec) execs; /* in the order of time */
};

/* Reads f from its beginning. MTUI_E_FORMAT: what is needed for decoding is missing, the sentence says
 * what to record. To be closed in any case. */
int pt_source_open(struct pt_source *s, struct open_context *c, struct perf_file *f, struct err *err);
void pt_source_close(struct pt_source *s);

/* The thread whose code a stream tells of at a time; −1: not known. */
pid_t pt_source_thread(const struct pt_source *s, const struct pt_stream *stream, uint64_t time_ns);
/* True when another program began in the process after one time and not after another. */
bool pt_source_exec_between(const struct pt_source *s, pid_t pid, uint64_t after_ns, uint64_t until_ns);
/* The process of a thread (the thread itself when that is not known). */
pid_t pt_source_process(const struct pt_source *s, pid_t tid);

#endif

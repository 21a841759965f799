/* Between open.c (what a path is) and the readers of each kind of input. A decoder of another kind of
 * data (exact branches) stands beside open_samples: it gets the same context and perf_file. */
#ifndef MTUI_DECODE_OPEN_PRIV_H
#define MTUI_DECODE_OPEN_PRIV_H

#include "core/session/maps_log.h"
#include "core/base/vec.h"
#include "decode/open/open.h"
#include "decode/perf/perf_file.h"
#include "decode/image/symbolize.h"
#include "decode/pt/pt_source.h"
#include "decode/trace/stats_flow.h"

struct open_context {
    const struct open_options *options;
    struct functions *functions; /* of the trace to be */
    struct sample_log *log;
    bool user_only;              /* of sampled stacks, the part in the kernel is left out */
    struct stats_flow *flow;     /* counts what is in exact; NULL: it is kept for the trace */
    struct trace_builder *exact; /* what exact decoders have filled; NULL: there was nothing for them */
    const struct maps_log *maps; /* NULL: none */
    const struct open_found *found;
    struct pt_seams *seams;      /* of the inputs; NULL: there is only one */
    size_t input;                /* which of them is being read */
    bool instructions;           /* the session's clock counts them */
    uint64_t spans;              /* in exact, or in the newest part of what was sampled; for the progress */
    uint64_t part_next_ns, part_wait_ns; /* when the next part is wanted; how long after the one before */
    bool in_part;                /* nothing is noted: it is too early to judge */
    uint64_t input_bytes;
    uint64_t trace_bytes, decoded_bytes, repeated_bytes; /* as in trace_info */
    bool stopped;        /* text or samples were not read to their end, because that was enough */
    uint64_t rest_bytes; /* that were not; 0: how many is not known */
    VEC(struct gap) cuts; /* the end of each input that could not be read to its end; details from malloc */
    const char *partial; /* the first sentence about what could not be read; owned by notes */
    VEC(char *) notes;
    VEC(struct open_module) modules;
};

bool open_cancelled(const struct open_context *c);
void open_progress(const struct open_context *c, const char *stage, uint64_t done, uint64_t total);
/* Like open_cancelled, for options->enough. */
bool open_enough(const struct open_context *c);
/* Adds a sentence; the same one is not added twice. */
void open_note(struct open_context *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* So many times of the data went backwards; 0: nothing is said. */
void open_note_raised(struct open_context *c, uint64_t n);

/* Adds the samples, switches and tasks of f to the log, and its symbol account to the modules. */
int open_samples(struct open_context *c, struct perf_file *f, struct err *err);

/* Adds text of perf script. bytes (n of them) were read from fd already; name is for messages. */
int open_text(struct open_context *c, int fd, const void *bytes, size_t n, const char *name,
              struct err *err);

/* Decodes the Intel PT data of f into b (open_branches: hands its branches to options->branch). */
int open_pt(struct open_context *c, struct perf_file *f, struct trace_builder *b, struct err *err);

/* What decoding Intel PT data takes of the context, which must outlive it. */
struct pt_input open_pt_input(const struct open_context *c);

int open_branches(struct open_context *c, struct perf_file *f, struct err *err);

/* ---- What is there so far (open_part.c) ---- */

void open_part_begin(struct open_context *c);
/* True when a part is wanted now. */
bool open_part_due(const struct open_context *c);
/* How long until then, for poll(2): at most 100 ms, so that cancelling is seen. */
int open_part_wait_ms(const struct open_context *c);
/* Makes a recording of b (the callee's, without functions in sampled recordings: a is their account, else
 * NULL) and hands it over. */
void open_part(struct open_context *c, struct trace_builder *b, const struct sample_log_account *a);
/* The same of the samples read so far; rest: bytes still to be read, of total (0: unknown). */
void open_part_samples(struct open_context *c, uint64_t rest, uint64_t total);
/* Bytes that were not decoded, as a gap of a thread (0: of all). */
void open_not_decoded(struct open_context *c, struct trace_builder *b, pid_t tid, uint64_t from_ns,
                      uint64_t to_ns, uint64_t bytes);
/* Decoding was stopped (enough): said first, and the recording is partial. */
void open_note_stopped(struct open_context *c, uint64_t rest, uint64_t total);
/* Marks and what is known of the recording go into b, and the trace comes out. */
int open_finish_trace(struct open_context *c, struct trace_builder *b,
                      const struct sample_log_account *a, bool exact, struct trace **out,
                      struct err *err);

/* How the names of each module came out, for the recording's list. */
void open_add_modules(struct open_context *c, const struct symbolizer *symbols);

#endif

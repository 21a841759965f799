/* Between open.c (what a path is) and the readers of each kind of input. A decoder of another kind of
 * data (exact branches) stands beside open_samples: it gets the same context and perf_file. */
#ifndef MTUI_DECODE_OPEN_PRIV_H
#define MTUI_DECODE_OPEN_PRIV_H

#include "core/maps_log.h"
#include "core/vec.h"
#include "decode/open.h"
#include "decode/perf_file.h"
#include "decode/symbolize.h"

struct open_context {
    const struct open_options *options;
    struct functions *functions; /* of the trace to be */
    struct sample_log *log;
    bool user_only;              /* of sampled stacks, the part in the kernel is left out */
    struct trace_builder *exact; /* what exact decoders have filled; NULL: there was nothing for them */
    const struct maps_log *maps; /* NULL: none */
    uint64_t input_bytes;
    const char *partial; /* the first sentence about what could not be read; owned by notes */
    VEC(char *) notes;
    VEC(struct open_module) modules;
};

bool open_cancelled(const struct open_context *c);
void open_progress(const struct open_context *c, const char *stage, uint64_t done, uint64_t total);
/* Adds a sentence; the same one is not added twice. */
void open_note(struct open_context *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds the samples, switches and tasks of f to the log, and its symbol account to the modules. */
int open_samples(struct open_context *c, struct perf_file *f, struct err *err);

/* Adds text of perf script. bytes (n of them) were read from fd already; name is for messages. */
int open_text(struct open_context *c, int fd, const void *bytes, size_t n, const char *name,
              struct err *err);

/* Decodes the Intel PT data of f into b. */
int open_pt(struct open_context *c, struct perf_file *f, struct trace_builder *b, struct err *err);

/* Hands the branches of f's Intel PT data to options->branch. */
int open_branches(struct open_context *c, struct perf_file *f, struct err *err);

/* How the names of each module came out, for the recording's list. */
void open_add_modules(struct open_context *c, const struct symbolizer *symbols);

#endif

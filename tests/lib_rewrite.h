/* A perf.data of the step recorder (core/step/perf_writer.h) written anew in another form: records left out or
 * exchanged, the pipe layout. Every failure fails the running test. */
#ifndef MTUI_TESTS_LIB_REWRITE_H
#define MTUI_TESTS_LIB_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REWRITE_SCHED_ID 316 /* of the tracepoint */

struct rewrite {
    /* Called with each record (its header first, trace data left out) and the trace data behind it; may
     * write others by the functions below. True: the record itself is written as well. NULL: all are. */
    bool (*record)(struct rewrite *r, const uint8_t *rec, size_t len, const uint8_t *data, size_t data_len);
    void *arg;
    bool tracepoint;      /* declares sched:sched_switch as one more event … */
    const char *format;   /* … and brings this description of it; NULL: only its name */
    /* private */
    void *file;
};

/* in → out, in the pipe layout. */
void rewrite_pipe(struct rewrite *r, const char *in, const char *out);

void rewrite_put(struct rewrite *r, const void *bytes, size_t len);
/* A sample of the tracepoint; next_pid stands at that offset of the raw bytes. */
void rewrite_put_sched_switch(struct rewrite *r, uint32_t cpu, uint64_t time_ns, uint32_t next, size_t offset);

#endif

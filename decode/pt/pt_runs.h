/* From what pieces of trace gave to what each thread did: events of a CPU's stream belong to the threads
 * that ran there, and a thread that moves from CPU to CPU gets them in the order of time.
 *
 * A run is what one thread did on one CPU without tracing having begun anew. Pieces come in the order of
 * their times (pt_pieces.h), so a run is complete in itself and may be handed on once the next piece
 * begins later than it. Events of a thread's own stream pass through at once. */
#ifndef MTUI_DECODE_PT_RUNS_H
#define MTUI_DECODE_PT_RUNS_H

#include "decode/pt/pt_event.h"
#include "decode/pt/pt_pieces.h"
#include "decode/pt/pt_source.h"

struct pt_run {
    pid_t tid;
    const struct pt_stream *stream;
    const struct flow_event *events;
    size_t n;
};

/* Negative: stop, memory is short. */
typedef int pt_run_fn(void *arg, const struct pt_run *run);

struct pt_runs;

struct pt_runs *pt_runs_new(const struct pt_source *source, pt_run_fn *fn, void *arg);
void pt_runs_free(struct pt_runs *r);

/* Each of them: 0, MTUI_E_NOMEM, or what fn returned. */
int pt_runs_begin(struct pt_runs *r, const struct pt_piece *piece);
int pt_runs_events(struct pt_runs *r, const struct flow_event *events, size_t n);
int pt_runs_finish(struct pt_runs *r);

/* The thread that the present piece tells of at a time (for its gaps and marks). */
pid_t pt_runs_thread(const struct pt_runs *r, uint64_t time_ns);
/* Events of times at which it is not known which thread ran. */
uint64_t pt_runs_unknown(const struct pt_runs *r);

#endif

/* Decoding of snapshots in the background: one worker thread, one snapshot at a time, newest asked
 * for first. What there is of it can be looked at meanwhile. Belongs to the loop's thread, where `changed`
 * is called, also for each new part. */
#ifndef MTUI_TUI_RECORD_DECODE_H
#define MTUI_TUI_RECORD_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/loop.h"

struct trace;
struct pyramid;
struct decode_queue;

enum decode_state { DECODE_NONE, DECODE_QUEUED, DECODE_RUNNING, DECODE_DONE, DECODE_FAILED };

struct decode_result {
    enum decode_state state;
    unsigned permille;         /* RUNNING */
    bool finishing;            /* RUNNING: decoded; building what is shown of it is not measured */
    bool stopping;             /* RUNNING: decode_queue_stop was called */
    /* DONE, and RUNNING once there is a part of it (NULL before); of the queue: decode_queue_hold keeps them */
    const struct trace *trace;
    const struct pyramid *pyramid;
    uint64_t spans, gaps, span_ns;
    const char *sentence; /* FAILED */
};

struct decode_queue *decode_queue_new(struct loop *loop, void (*changed)(void *arg), void *arg);
/* Cancels what runs, and runs the loop until it has stopped. Traces that are held stay until they
 * are released. */
void decode_queue_free(struct decode_queue *q);

/* Asks for snapshot `number` of the recording in dir (0: the end file); a second time does nothing.
 */
void decode_queue_add(struct decode_queue *q, const char *dir, unsigned number);
void decode_queue_forget(struct decode_queue *q, unsigned number);
/* Stops the decoding of one that is running: it is done with what there is, or fails. */
void decode_queue_stop(struct decode_queue *q, unsigned number);
/* Forgets everything: another recording begins. */
void decode_queue_clear(struct decode_queue *q);
struct decode_result decode_queue_result(const struct decode_queue *q, unsigned number);

/* Keeps the trace of a result for somebody else; release(what it returns) lets it go. NULL when
 * there is none. */
void *decode_queue_hold(struct decode_queue *q, unsigned number);
void decode_queue_release(void *held);

#endif

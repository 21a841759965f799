/* Where each of several snapshots goes on from the one before: recorders that keep a ring write all of it each
 * time, so a snapshot begins with what the last one ended with. Each byte is decoded once.
 *
 * What two snapshots have of a queue (a thread or a CPU) is found by the times of its synchronisation points: those
 * at the end of the older are those at the beginning of the newer. Of a thread, the newer tells all that it has.
 * The rings of CPUs reach back to different times, and threads move between them: there the older tells
 * everything up to the latest of these times, so that both are in order. Streams without times are left alone. */
#ifndef MTUI_DECODE_PT_SEAMS_H
#define MTUI_DECODE_PT_SEAMS_H

#include "decode/pt/pt_streams.h"

struct pt_seams;

struct pt_seams *pt_seams_new(void);
void pt_seams_free(struct pt_seams *s); /* NULL is ignored */

/* Reads the trace data of the next newer snapshot, f from its beginning; f is not needed any longer then. Snapshots
 * are counted from 0, in this order. f NULL, or one that cannot be read: nothing is known of it. MTUI_E_NOMEM. */
int pt_seams_add(struct pt_seams *s, struct perf_file *f, struct err *err);

/* Limits the streams of a snapshot to what it is to tell; all snapshots are added. */
void pt_seams_apply(const struct pt_seams *s, size_t snapshot, struct pt_streams *streams,
                    const struct pt_clock *clock);

#endif

/* The same as the flow walker (pt_walk.h), by libipt's block decoder: the reference that a test holds the
 * walker equal to, and a second opinion for the user. Slower. It takes up its position only at PSBs: behind what
 * cannot be followed they are made for it (pt_resume.h).
 *
 * Source: intel-pt.h of libipt 2.0.5, pt_blk_next(3). */
#ifndef MTUI_DECODE_PT_LIBIPT_H
#define MTUI_DECODE_PT_LIBIPT_H

#include "decode/image/code_image.h"
#include "decode/pt/pt_walk.h"

struct pt_libipt;

/* view, clock must outlive it; nodes answers which function an address is in. The sinks are those of a
 * walker. */
struct pt_libipt *pt_libipt_new(struct code_view *view, struct pt_nodes *nodes,
                                const struct pt_clock *clock, const struct pt_walk_sinks *sinks);
void pt_libipt_free(struct pt_libipt *d);

/* Decodes a whole stream, or what is to be decoded of it. stamps: the timestamps of the stream, in which the data
 * begins at byte `first`; where one is wrong, time stands still until the next one that is right. MTUI_E_NOMEM. */
int pt_libipt_run(struct pt_libipt *d, const uint8_t *data, size_t len, const struct pt_stamps *stamps,
                  size_t first);

/* Of the last run. */
uint64_t pt_libipt_insns(const struct pt_libipt *d);
uint64_t pt_libipt_bytes(const struct pt_libipt *d);

#endif

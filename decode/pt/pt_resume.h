/* Where a decoder that takes up its position only at PSBs can go on between two of them.
 *
 * Behind what cannot be followed, the next TIP or TIP.PGE packet tells an address in full, once the addresses
 * before it are known (Intel SDM vol. 3, "IP compression"). A PSB+ that tells it, and the time, is written over the
 * bytes up to the end of that packet: they have been read already. */
#ifndef MTUI_DECODE_PT_RESUME_H
#define MTUI_DECODE_PT_RESUME_H

#include "decode/pt/pt_time.h"

#include <stddef.h>

struct pt_resume {
    size_t psb; /* where the PSB+ begins now */
    size_t at;  /* the packet that told: what is lost ends here */
    size_t end; /* of it */
    uint64_t ip;
};

/* Of packets in data[0, len) that were read from the PSB at `sync` on, and not understood from byte `lost` on.
 * False: nothing tells an address before the next PSB. */
bool pt_resume_before_psb(struct pt_resume *r, const struct pt_clock *clock, uint8_t *data, size_t len, size_t sync,
                          size_t lost);

#endif

/* The time of a thread that lies in gaps: its own and those of the whole recording, joined where they
 * overlap. */
#ifndef MTUI_DECODE_QUIET_H
#define MTUI_DECODE_QUIET_H

#include "decode/trace/trace.h"

struct quiet_part {
    uint64_t from_ns, to_ns;
};

struct quiet {
    struct quiet_part *parts; /* disjoint, in order */
    size_t n, at;
};

int quiet_init(struct quiet *q, const struct trace *t, size_t thread); /* MTUI_E_NOMEM */
void quiet_free(struct quiet *q);

/* Gap time in [from_ns, to_ns). Asked for in the order of time: each call looks only forward. */
uint64_t quiet_between(struct quiet *q, uint64_t from_ns, uint64_t to_ns);

/* The same for any range, from the beginning. */
uint64_t quiet_total(const struct quiet *q, uint64_t from_ns, uint64_t to_ns);

#endif

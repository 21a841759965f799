/* The hits of triggers (hits.tsv of a snapshot directory) as marks: those of the snapshots that were
 * opened, and all others that fall into the time they cover. */
#ifndef MTUI_DECODE_OPEN_MARKS_H
#define MTUI_DECODE_OPEN_MARKS_H

#include "core/session/snapshot_dir.h"
#include "decode/open/open_priv.h"

void open_marks(struct open_context *c, const struct snapshot_dir *dir, const unsigned *snapshots,
                size_t nsnapshots, uint64_t first_ns, uint64_t last_ns, struct trace_builder *b);

#endif

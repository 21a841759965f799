/* What a snapshot directory tells of moments, as marks. The hits of triggers (hits.tsv): those of the snapshots that were
 * opened, and all others that fall into the time they cover. */
#ifndef MTUI_DECODE_OPEN_MARKS_H
#define MTUI_DECODE_OPEN_MARKS_H

#include "core/session/snapshot_dir.h"
#include "decode/open/open_priv.h"

void open_marks(struct open_context *c, const struct snapshot_dir *dir, const unsigned *snapshots,
                size_t nsnapshots, uint64_t first_ns, uint64_t last_ns, struct trace_builder *b);

/* Where the windows of a recording by single-stepping end, and why (core/step/step_anchors.h). */
void open_window_marks(struct open_context *c, const struct snapshot_dir *dir, uint64_t first_ns,
                       uint64_t last_ns, struct trace_builder *b);

#endif

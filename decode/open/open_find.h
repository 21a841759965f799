/* Which files a path stands for, and whether they belong to a recording of mtui's own. */
#ifndef MTUI_DECODE_OPEN_FIND_H
#define MTUI_DECODE_OPEN_FIND_H

#include "core/session/snapshot_dir.h"

struct open_found {
    struct snapshot_dir *dir; /* NULL: not part of a snapshot directory */
    char **inputs;            /* files, perf.data directories, or "-" */
    size_t ninputs;
    unsigned *snapshots; /* their numbers, 0 for snap-end; none outside of a snapshot directory */
    size_t nsnapshots;
    bool leftover; /* the inputs are what a recorder had written when mtui was killed */
};

/* snapshot: OPEN_LAST, OPEN_ALL, OPEN_END or a number (decode/open/open.h), for snapshot directories alone. "Last" is
 * the last numbered one, and snap-end only when there is no other; where there is no snapshot at all, what was
 * left when mtui was killed. MTUI_E_NOENT when there is nothing to open. */
int open_find(struct open_found *out, const char *path, unsigned snapshot, struct err *err);
void open_found_free(struct open_found *f);

#endif

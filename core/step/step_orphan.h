/* What the step recorder does with its files when whoever started it is gone (killed): it puts them into
 * snapshot directories beside perf.data itself, where they are found (core/session/snapshot_dir.h). */
#ifndef MTUI_CORE_STEP_ORPHAN_H
#define MTUI_CORE_STEP_ORPHAN_H

#include <stdbool.h>
#include <sys/types.h>

/* True when the process that has started us is gone, or its first thread: the kernel sends PR_SET_PDEATHSIG when
 * that one ends, and as long as others of a killed process have not ended too, getppid() is what it was and
 * its files are open (prctl(2), proc_pid_stat(5)). ctl_fd: the end of the control pipe that we read, or −1. */
bool step_orphan_are_we(pid_t parent, int ctl_fd);

/* Beside perf.data: the hit whose call is being stepped, a row of hits.tsv but for the number of its snapshot,
 * in whose place is a line break. It is there from the hit to the row's own place in hits.tsv. */
#define STEP_ORPHAN_HIT "hit-open"
#define STEP_ORPHAN_HITS "hits.tsv"

/* Moves output itself, and output.1 to output.dumps, as far as they are there, to snap-N/perf.data in the
 * same directory, in this order, each with the first N that is free beyond those that are taken. What cannot
 * be moved stays. The hit that is open becomes a row of hits.tsv, with the last of these snapshots (0: none). */
void step_orphan_keep(const char *output, unsigned dumps);

#endif

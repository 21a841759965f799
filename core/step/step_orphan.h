/* What the step recorder does with its files when whoever started it is gone (killed): it puts them into
 * snapshot directories beside perf.data itself, where they are found (core/session/snapshot_dir.h). */
#ifndef MTUI_CORE_STEP_ORPHAN_H
#define MTUI_CORE_STEP_ORPHAN_H

/* Moves output itself, and output.1 to output.dumps, as far as they are there, to snap-N/perf.data in the
 * same directory, in this order, each with the first N that is free beyond those that are taken. What cannot
 * be moved stays. */
void step_orphan_keep(const char *output, unsigned dumps);

#endif

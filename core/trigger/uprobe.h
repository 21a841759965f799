/* Uprobes through the kernel's uprobe PMU: no tracefs, gone when the descriptor is closed.
 *
 * Source: perf_event_open(2), "uprobe PMU"; kernel/events/core.c (perf_uprobe). */
#ifndef MTUI_CORE_UPROBE_H
#define MTUI_CORE_UPROBE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* The PMU's type. MTUI_E_NOTSUP when the kernel has none (< 4.17, or built without). */
int uprobe_type(const char *sys_root, uint32_t *type, struct err *err);

/* Fills attr for the instruction at file offset `offset` of path; path must live until the event is
 * opened. Nothing is inherited, ever: an inherited uprobe event makes clone(2) fail in the target.
 */
void uprobe_attr(struct perf_event_attr *attr, uint32_t type, const char *path, uint64_t offset);

/* Whether they work here for this process: places one at a function of its own, calls it and looks
 * at the count. Errors: why not, and what would allow it. */
int uprobe_self_test(struct err *err);

/* What it calls, and where that is in the file of this program: for whoever wants to try for himself. It is one
 * return instruction, which the kernel executes out of line: emulated ones (push, nop, call) cost half. −1 when that is
 * not to be found. */
void uprobe_try_function(void);
int uprobe_try_offset(uint64_t *offset);

#endif

/* What a hit of a uprobe costs the thread that makes it, measured on this machine.
 *
 * A child of our own is armed as a target would be (with the BPF program where that is allowed) and
 * calls a function some thousand times with and without the probe; the difference of its CPU time is
 * the cost: the trap, the report, the step over the instruction, of the dearer kind (uprobe_try_function). It takes some tens of milliseconds of
 * one CPU, and nothing waits for it. */
#ifndef MTUI_CORE_HIT_COST_H
#define MTUI_CORE_HIT_COST_H

#include <stdint.h>

#include "core/base/loop.h"

/* Where it cannot be measured. */
#define HIT_COST_ASSUMED_NS 10000u

struct hit_cost;
typedef void hit_cost_fn(void *arg, uint64_t hit_ns);

/* fn is called from the loop, at most once, and not at all when it could not be measured. Main thread
 * only (it forks). NULL when no child can be made. */
struct hit_cost *hit_cost_start(struct loop *loop, hit_cost_fn *fn, void *arg);
/* Also before it is done. NULL allowed. */
void hit_cost_free(struct hit_cost *c);

#endif

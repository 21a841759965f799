/* One piece of work in a thread of its own, whose end is told in the loop's thread.
 *
 * run must look at *cancel now and then and come back soon once it is set. done is called at most once,
 * from the loop, never after worker_stop. Without a loop (tests) both run at once, inside
 * worker_start. */
#ifndef MTUI_TUI_WORKER_H
#define MTUI_TUI_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>

struct loop;
struct worker;

typedef void worker_run_fn(void *arg, const atomic_bool *cancel);
typedef void worker_done_fn(void *arg);

/* NULL when it is already done: there was no loop, or no thread could be made. */
struct worker *worker_start(struct loop *loop, worker_run_fn *run, worker_done_fn *done, void *arg);

/* Cancels, waits, frees; NULL is ignored. To be called by done's owner when done has come, too (then
 * there is nothing to wait for). */
void worker_stop(struct worker *w);

#endif

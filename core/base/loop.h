/* The one event loop: poll(2) over descriptors, timers, and work posted by other threads.
 *
 * The screen and the batch mode run the same loop; recorders, triggers and decoders register with it
 * and nothing in it blocks. All functions but loop_post belong to the thread that runs the loop.
 * Callbacks may add and remove sources, also their own, at any time. */
#ifndef MTUI_CORE_LOOP_H
#define MTUI_CORE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;

/* Nanoseconds of CLOCK_MONOTONIC; tests hand in a clock of their own. */
typedef uint64_t loop_clock_fn(void *arg);
typedef void loop_fd_fn(void *arg, int fd, short revents);
typedef void loop_fn(void *arg);

struct loop *loop_new(void);
/* A fake clock: timers fire when it says so; loop_run_once then never sleeps past a ready timer. */
struct loop *loop_new_with_clock(loop_clock_fn *clock, void *arg);
void loop_free(struct loop *l);

uint64_t loop_now_ns(const struct loop *l);

/* Watches fd for events (POLLIN, POLLOUT, POLLPRI); POLLHUP and POLLERR always come. The fd stays
 * the caller's. Returns an id > 0. */
int loop_add_fd(struct loop *l, int fd, short events, loop_fd_fn *fn, void *arg);

/* Changes the events of a watched fd; 0 pauses it (hang-up and error included). */
void loop_set_events(struct loop *l, int id, short events);

/* Calls fn once at at_ns or as soon after it as possible. Returns an id > 0. */
int loop_add_timer(struct loop *l, uint64_t at_ns, loop_fn *fn, void *arg);

/* Removes an fd or a timer; unknown, zero and already fired ids are ignored. */
void loop_remove(struct loop *l, int id);

/* From any thread: fn(arg) runs in the loop's thread, in the order of posting. */
void loop_post(struct loop *l, loop_fn *fn, void *arg);
/* Takes back what was posted so, if its turn has not come (true); for whoever frees arg. */
bool loop_unpost(struct loop *l, loop_fn *fn, void *arg);

/* Waits until something is ready, at most max_wait_ns (negative: without limit, 0: not at all), and
 * runs what is. A signal that interrupts the wait returns early. Returns the number of callbacks. */
int loop_run_once(struct loop *l, int64_t max_wait_ns);

#endif

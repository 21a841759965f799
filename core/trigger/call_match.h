/* Returns matched to their entries by stack pointer.
 *
 * At a function's entry and at its return or tail jump the stack pointer has the same value: the
 * address of the return address. Within a thread, calls that are still open lie at descending
 * addresses. So a return closes the open call with its stack pointer, and whatever lies below
 * (deeper) has been left in another way: longjmp, an exception. Such calls are dropped, also when
 * an entry shows that their place on the stack is in use again; they are never taken for slow
 * calls.
 *
 * A thread may run on several stacks (coroutines, signal stacks): calls further apart than
 * CALL_MATCH_STACK do not close each other. */
#ifndef MTUI_CORE_CALL_MATCH_H
#define MTUI_CORE_CALL_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CALL_MATCH_STACK ((uint64_t)8 << 20)
#define CALL_MATCH_DEPTH 65536 /* open calls a thread and function; the oldest go first */

struct call_match;

struct call_open {
    uint64_t sp, time_ns, arg1, arg2;
};

struct call_match *call_match_new(void);
void call_match_free(struct call_match *m);

/* function is the caller's number of what is watched: calls of different functions are apart. */
void call_match_enter(struct call_match *m, pid_t tid, uint32_t function,
                      const struct call_open *call);

/* Closes the call that the return belongs to and stores it; false when its entry was not seen. */
bool call_match_leave(struct call_match *m, pid_t tid, uint32_t function, uint64_t sp,
                      struct call_open *out);

/* The thread has ended or its program was replaced; function: all. */
void call_match_forget(struct call_match *m, pid_t tid);

/* The open call that began first, of a function in any thread; false when none is open. */
bool call_match_oldest(const struct call_match *m, uint32_t function, pid_t *tid,
                       struct call_open *out);

/* Calls left without a return until now. */
uint64_t call_match_left(const struct call_match *m);

#endif

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

#define CALL_MATCH_ARGS 6

struct call_open {
    uint64_t sp, time_ns, ip;
    uint64_t return_address; /* 0: not known */
    uint64_t arg[CALL_MATCH_ARGS];
    pid_t pid;
    uint32_t member; /* the caller's */
    bool told, passed_over; /* call_match_tell, call_match_pass_over */
    bool seen, looked_at;   /* call_match_see; looked_at: since call_match_look_again */
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

/* Everything that is open may be wrong: records were lost. Also of every thread. */
void call_match_forget_all(struct call_match *m);

/* The open call that began first, of a function in any thread; false when none is open. Calls in which
 * one was told of are left out: they are a part of it. */
bool call_match_oldest(const struct call_match *m, uint32_t function, pid_t *tid,
                       struct call_open *out);
/* The same of calls that nobody has looked at; those inside of one that was seen are left out. */
bool call_match_oldest_unlooked(const struct call_match *m, uint32_t function, pid_t *tid,
                                struct call_open *out);
/* And of one thread's. */
bool call_match_oldest_of(const struct call_match *m, pid_t tid, uint32_t function,
                          struct call_open *out);

/* Marks an open call as told, or as one that nobody asks for (the oldest is another one then); drops one
 * that was left without a return. It is found by its place and time. */
void call_match_tell(struct call_match *m, pid_t tid, uint32_t function,
                     const struct call_open *call);
void call_match_pass_over(struct call_match *m, pid_t tid, uint32_t function,
                          const struct call_open *call);
/* It was looked at and had not been left by then. */
void call_match_see(struct call_match *m, pid_t tid, uint32_t function,
                    const struct call_open *call);
/* Everything is to be looked at once more. */
void call_match_look_again(struct call_match *m);
void call_match_drop(struct call_match *m, pid_t tid, uint32_t function,
                     const struct call_open *call);
/* Whether this very call is still open. */
bool call_match_is_open(const struct call_match *m, pid_t tid, uint32_t function,
                        const struct call_open *call);

/* Calls of a function that were left without a return until now, as later ones or their thread have shown; what was
 * forgotten is not among them. */
uint64_t call_match_left(const struct call_match *m, uint32_t function);

#endif

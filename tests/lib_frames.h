/* The call tree that recorded stack pointers give, and spans compared with it. A frame begins at a call and
 * is over when the stack pointer is above the place of its return address: that knows nothing of return
 * addresses, functions or packets. */
#ifndef MTUI_TESTS_LIB_FRAMES_H
#define MTUI_TESTS_LIB_FRAMES_H

#include "decode/trace/trace.h"
#include "lib_step.h"
#include "lib_step_symbols.h"

struct frames;

struct frames *frames_new(const struct step_rec *r, const struct step_symbols *s);
void frames_free(struct frames *f);

/* Fails the test unless the spans of the trace's one thread are the frames: each call, at its depth, in its
 * order, with a name that fits, beginning and ending within so many ns (0: and without a pause, since the
 * clock stands still in the kernel). With bits they may also lie that near to the packets around the true time,
 * where one comes with so many outcomes at the latest: instructions may take more than a tick each there.
 * Returns how many. r must outlive f. */
size_t frames_compare(const struct frames *f, const char *what, const struct trace *t, uint64_t most_ns,
                      unsigned bits);

#endif

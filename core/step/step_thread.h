/* One thread being single-stepped: from "it was at A and is now at B" to the packets of a trace.
 *
 * Pure bookkeeping: the tracer (step_tracer) stops and continues, this decides what each step was. It
 * keeps the thread's packet stream (the last ring_bytes of it, cut at a PSB), its instruction clock,
 * and the truth if that is asked for. */
#ifndef MTUI_CORE_STEP_THREAD_H
#define MTUI_CORE_STEP_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/step/pt_encode.h"
#include "core/step/step_insn.h"

/* Where the instruction clock begins: not 0, which perf takes for "no time". */
#define STEP_CLOCK_START 1000000000u

/* Reads up to n bytes of code at ip, as the program executes them (no probe bytes); returns how many. */
typedef size_t step_read_code_fn(void *arg, uint64_t ip, uint8_t *out, size_t n);

/* The instruction at ip, these n bytes, is executed next: the clock since which the code there is what it is. */
typedef uint64_t step_code_since_fn(void *arg, uint64_t ip, const uint8_t *bytes, size_t n);

struct step_thread_options {
    struct pt_encode_options encoding;
    size_t ring_bytes;   /* 0: keep everything */
    FILE *truth;         /* NULL: none; a line a branch: count tid kind from to sp (hex); kinds: jump cond
                            call return syscall, and begin and async for where stepping began and ended */
    uint64_t *clock;     /* instructions, shared by the threads of a process */
    step_read_code_fn *read_code;
    void *read_code_arg;
    step_code_since_fn *code_since; /* NULL: code never changes. Where it has changed since tracing began, the
                                       trace ends and begins again, so that a decoder looks at it anew */
    void *code_since_arg;
};

struct step_thread;

struct step_thread *step_thread_new(pid_t tid, const struct step_thread_options *options);
void step_thread_free(struct step_thread *t);

/* The thread is about to execute the instruction at ip. Returns what that is. */
struct step_insn step_thread_begin(struct step_thread *t, uint64_t ip);

/* The instruction at `from` (as step_thread_begin gave it) has executed; the thread is at `to` with
 * its stack pointer at sp. */
void step_thread_executed(struct step_thread *t, uint64_t from, const struct step_insn *insn,
                          uint64_t to, uint64_t sp);

/* The kernel took over at ip, before the instruction there: a signal, a fault, a stop. Tracing goes on
 * with the next step_thread_begin. */
void step_thread_interrupted(struct step_thread *t, uint64_t ip);

/* Writes what is pending, so that the packets so far can be read; the stream goes on. */
void step_thread_sync(struct step_thread *t);

/* Ends the stream here (the window is over): everything pending is written out. */
void step_thread_finish(struct step_thread *t, uint64_t ip);

uint64_t step_thread_instructions(const struct step_thread *t);

/* The packets, from a PSB on; *stream_offset is where they stand in the whole stream. */
const uint8_t *step_thread_packets(const struct step_thread *t, size_t *len,
                                   uint64_t *stream_offset);

/* The first packet that could not be encoded or stored, or line of the truth that could not be written; or that the
 * code which the thread executes cannot be read; or 0. */
int step_thread_status(const struct step_thread *t, struct err *err);

#endif

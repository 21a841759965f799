/* Traces made up for tests and benchmarks: random well-formed ones of any size, and small ones written
 * out by hand. */
#ifndef MTUI_TESTS_LIB_GENTRACE_H
#define MTUI_TESTS_LIB_GENTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/trace/trace.h"

/* A builder over the functions f0, f1 and so on of the module "m". */
struct trace_builder *gentrace_builder(size_t functions);
/* The trace that a builder holds, its invariants checked; frees the builder. A fault ends the test program. */
struct trace *gentrace_finish(struct trace_builder *b);

/* Three calls of f from main, 100, 300 and 140 long: f { g 20, h 10 }, f { g 100 { g 10 }, g 50, k 90 with a gap of 20 },
 * f { g 30, h 10 }; in the text form below. */
#define GENTRACE_THREE_CALLS                                          \
    "thread 1000 main\n"                                              \
    "+ 0 main\n"                                                      \
    "+ 100 f\n + 110 g\n - 130\n + 140 h\n - 150\n - 200\n"           \
    "+ 300 f\n + 310 g\n + 320 g\n - 330\n - 410\n + 420 g\n - 470\n" \
    "+ 500 k\n - 590\n - 600\n"                                       \
    "+ 700 f\n + 710 g\n - 740\n + 740 h\n - 750\n - 840\n"           \
    "- 1000\n"                                                        \
    "gap 520 540 overflow\n"

/* A small fast generator (xorshift64*); the state must not be 0. */
uint64_t gen_random(uint64_t *state);

struct gentrace {
    uint64_t spans;     /* in all; reached to within a stack's depth per thread */
    unsigned threads;   /* ≥ 1 */
    unsigned depth;     /* deepest stack, ≥ 1 */
    unsigned functions; /* ≥ 1 */
    unsigned gaps;      /* of random causes, spread over the threads */
    unsigned marks;
    uint64_t base_ns;   /* the first time */
    uint64_t step_ns;   /* steps between two events are random, up to about 8 of this; ≥ 1 */
    uint64_t seed;      /* not 0 */
};

/* Random traces of one seed are equal. Exits the test program when memory is short. */
struct trace *gentrace_random(const struct gentrace *g);

/* A trace from lines of text:
 *   sampled PERIOD | instructions              about the whole trace
 *   thread TID COMM                            the lines after it belong to that thread
 *   + TIME FUNCTION [MODULE] [FLAGS]           call; FUNCTION as in a symbol table, FLAGS as letters s t p o
 *   - TIME [g]                                 return
 *   gap FROM TO CAUSE [DETAIL...]              cause as gap_cause_name; "gap*" is for all threads
 *   mark TIME KIND DETAIL...                   kind as mark_kind_name
 * Blank lines and lines beginning with # mean nothing; a mistake ends the test program. */
struct trace *gentrace_parse(const char *text);

#endif

/* Traces made up for tests and benchmarks: random well-formed ones of any size, and small ones written
 * out by hand. */
#ifndef MTUI_TESTS_LIB_GENTRACE_H
#define MTUI_TESTS_LIB_GENTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/trace/trace.h"

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

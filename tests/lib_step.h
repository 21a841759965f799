/* Recordings of programs made by single-stepping, with the truth beside them, and the same flow encoded
 * again in other ways: other packets, other buffers, losses. Every failure fails the test. */
#ifndef MTUI_TESTS_LIB_STEP_H
#define MTUI_TESTS_LIB_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/step/pt_encode.h"

#define STEP_BUDGET 200000 /* instructions a window */

/* A line of the truth. */
struct step_branch {
    uint64_t clock, from, to, sp;
    pid_t tid;
    char kind[12]; /* jump cond call return syscall trap begin async */
};

/* By an instruction that goes to the kernel. */
bool step_branch_enters_kernel(const struct step_branch *b);
/* Or between two instructions. */
bool step_branch_ends(const struct step_branch *b);

/* Code that was mapped at a time. */
struct step_code_map {
    uint64_t clock; /* from then on */
    uint64_t start, len, pgoff, ino;
    unsigned major, minor;
    char path[512];
    uint8_t *bytes; /* len */
};

struct step_rec {
    char *dir;
    pid_t pid;
    char exe[256], data[256], truth[256]; /* data: as the recorder wrote it */
    struct step_branch *branches;
    size_t n_branches;
    struct step_code_map *maps; /* in the order of time */
    size_t n_maps;
};

/* A program that calls the function again and again until its stdin is closed: what a source needs around
 * its own code. In C and C++. Before: once before it is ready, where the first call takes much longer. */
#define STEP_MAIN(call) STEP_MAIN_AFTER("", call)
#define STEP_MAIN_AFTER(before, call)                                                              \
    "\n#include <poll.h>\n#include <stdio.h>\n"                                                    \
    "int main(void) { struct pollfd p = {0, POLLIN, 0}; " before "; puts(\"ready\"); fflush(stdout);\n" \
    "  while (poll(&p, 1, 20) == 0) { " call "; } return 0; }\n"

/* What to step. */
struct step_program {
    const char *name;
    const char *source_name; /* t.c when NULL; what ends in .py is not compiled */
    const char *source;      /* compiled to DIR/t; NULL: none */
    const char *flags;
    const char *prepare;   /* a shell command, run in DIR once t is built; NULL: none */
    const char *command;   /* run in DIR; says "ready", is told a line, and ends when its stdin does.
                              NULL: ./t */
    const char *file;      /* where the function is; NULL: DIR/t */
    const char *function;  /* each call of it is a window; NULL: one from the entry of file on */
    const char *exercises; /* what the window must hold: lib_step_facts.h */
};

/* Steps `windows` calls of the program's function. */
void step_rec_program(struct step_rec *r, const struct step_program *p, unsigned windows);
/* Compiles source (C, or C++ when cxx) with flags, runs it, steps `windows` calls of function. */
void step_rec_make(struct step_rec *r, const char *source, bool cxx, const char *flags,
                   const char *function, unsigned windows);
void step_rec_free(struct step_rec *r);
/* Fills r->branches from the file r->truth. */
void step_rec_read_truth(struct step_rec *r);

/* The code at ip at a time; NULL: none. */
const struct step_code_map *step_rec_map(const struct step_rec *r, uint64_t ip, uint64_t clock);
/* Copies code as it was at the end, for struct pt_code. */
size_t step_rec_code(const struct step_rec *r, uint64_t ip, uint8_t *out, size_t n);

/* How to encode it. */
struct step_encoding {
    const char *name;
    struct pt_encode_options packets;
    bool per_cpu;          /* buffers of two CPUs, between which the thread moves at its begins; behind it
                              another thread, tid + 1, with the same flow once more */
    size_t chunk;          /* bytes an AUXTRACE record; 0: one for each thread */
    size_t ring;           /* of so many bytes, of which snapshots are taken; 0: none */
    unsigned fill;         /* percent of the ring that is written between two snapshots: below 100 they overlap */
    size_t keep;           /* streams end at the last packet that ends within so many bytes; 0: all */
    size_t cut_head;       /* bytes of the stream that are missing at its beginning */
    unsigned overflow_every; /* an overflow at each nth conditional branch; 0: none */
    unsigned repeat;       /* the flow so many times one after the other; 0: once */
};

/* Writes a perf.data file (made anew). */
void step_rec_encode(const struct step_rec *r, const struct step_encoding *e, const char *path);

/* Only the packets of the recorded thread; the caller frees. */
uint8_t *step_rec_packets(const struct step_rec *r, const struct step_encoding *e, size_t *len);

/* Encodings that differ in every way; ended by one without a name. */
extern const struct step_encoding step_encodings[];

#endif

/* Recordings of small programs made by single-stepping, with the truth beside them, and the same flow
 * encoded again in other ways: other packets, other buffers, losses. Every failure fails the test. */
#ifndef MTUI_TESTS_LIB_STEP_H
#define MTUI_TESTS_LIB_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/pt_encode.h"

/* A line of the truth. */
struct step_branch {
    uint64_t clock, from, to, sp;
    pid_t tid;
    char kind[12]; /* jump cond call return syscall begin async */
};

struct step_code_map {
    uint64_t start, len, pgoff, ino;
    unsigned major, minor;
    char path[512];
    uint8_t *bytes;
};

struct step_rec {
    char *dir;
    pid_t pid;
    char exe[256], data[256], truth[256]; /* data: as the recorder wrote it */
    struct step_branch *branches;
    size_t n_branches;
    struct step_code_map *maps;
    size_t n_maps;
};

/* A program that calls the function again and again until its stdin is closed: what a source needs around
 * its own code. In C and C++. */
#define STEP_MAIN(call)                                                                            \
    "\n#include <poll.h>\n#include <stdio.h>\n"                                                    \
    "int main(void) { struct pollfd p = {0, POLLIN, 0}; puts(\"ready\"); fflush(stdout);\n"        \
    "  while (poll(&p, 1, 1) == 0) { " call "; } return 0; }\n"

/* Compiles source (C, or C++ when cxx) with flags, runs it, steps `windows` calls of function. */
void step_rec_make(struct step_rec *r, const char *source, bool cxx, const char *flags,
                   const char *function, unsigned windows);
void step_rec_free(struct step_rec *r);

/* How to encode it. */
struct step_encoding {
    const char *name;
    struct pt_encode_options packets;
    bool per_cpu;          /* buffers of two CPUs, between which the thread moves at its begins; behind it
                              another thread, tid + 1, with the same flow once more */
    size_t chunk;          /* bytes an AUXTRACE record; 0: one for each thread */
    size_t cut_head;       /* bytes of the stream that are missing at its beginning */
    unsigned overflow_every; /* an overflow at each nth conditional branch; 0: none */
    unsigned repeat;       /* the flow so many times one after the other; 0: once */
};

/* Writes a perf.data file (made anew). */
void step_rec_encode(const struct step_rec *r, const struct step_encoding *e, const char *path);

/* Only the packets of the recorded thread; the caller frees. */
uint8_t *step_rec_packets(const struct step_rec *r, const struct step_encoding *e, size_t *len);
/* Copies code, for struct pt_code. */
size_t step_rec_code(const struct step_rec *r, uint64_t ip, uint8_t *out, size_t n);

/* Encodings that differ in every way; ended by one without a name. */
extern const struct step_encoding step_encodings[];

#endif

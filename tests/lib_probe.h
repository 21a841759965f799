/* Probes in tests/victim.c: every mechanism that works here, and what a probe has told. Every failure fails the
 * running test. */
#ifndef MTUI_TESTS_LIB_PROBE_H
#define MTUI_TESTS_LIB_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/loop.h"
#include "core/trigger/probe.h"
#include "tests/lib_victim.h"

struct mechanism {
    const char *name;
    struct probe_options options;
    bool works;
    char why[512];
};

#define PROBE_MECHANISMS 4
extern struct mechanism probe_mechanisms[PROBE_MECHANISMS];
/* Setup of a group of tests: finds out which ones work. */
int probe_find_mechanisms(void **state);
/* A test: skipped where none does. */
void probe_some_mechanism_works(void **state);

struct probe_seen {
    struct loop *loop;
    struct probe *probe;
    uint64_t hits, born, ended, children, execs, mapped, processes_ended;
    uint64_t last_time, unordered;
    struct probe_hit last;
    char trouble[512];
};

/* They count in the struct probe_seen that is their argument. */
extern const struct probe_callbacks probe_seen_callbacks;

/* The victim's function `traced`; the path goes into path. */
struct probe_site probe_site_of(const struct victim *v, char *path, size_t size);
/* A loop and a probe at the victim's function. */
void probe_seen_arm(struct probe_seen *s, const struct mechanism *m, const struct victim *v, bool children);
void probe_seen_disarm(struct probe_seen *s);
/* All that has happened until now is read. */
void probe_seen_settle(struct probe_seen *s);

/* The statement runs for each mechanism that works, m. */
bool probe_told(const struct mechanism *m);
#define EACH_MECHANISM(m)                                                                          \
    for (const struct mechanism *m = probe_mechanisms; m < probe_mechanisms + PROBE_MECHANISMS; m++) \
        if (m->works && probe_told(m))

#endif

/* An armed set of triggers on a program, and what it reported. */
#ifndef MTUI_TESTS_LIB_TRIGGER_H
#define MTUI_TESTS_LIB_TRIGGER_H

#include <stdint.h>

#include "core/trigger/trigger_set.h"
#include "tests/lib_victim.h"

struct seen {
    struct loop *loop;
    struct trigger_set *set;
    uint64_t hits, fired, with_duration, messages;
    uint64_t longest_ns;
    uint64_t running, known;  /* calls that had not returned, and their returns */
    struct trigger_hit first; /* that fired */
    struct trigger_hit last;
    char message[4096]; /* all of them, a line each */
};

/* One trigger, not armed yet. A snapshot that it asks for is done at once. */
void seen_open(struct seen *s, const struct trigger_set_options *options, const char *spec,
               const struct trigger_conditions *when);
/* Clears s, opens and arms; fails the test when that is refused. */
void seen_arm(struct seen *s, const struct victim *v, const char *spec,
              const struct trigger_conditions *when);
/* Everything that has happened until now is read. */
void seen_settle(struct seen *s);
void seen_close(struct seen *s);

/* For cmocka's group setup: ends the test program with a line when uprobes are not permitted. */
int seen_need_uprobes(void **state);

#endif

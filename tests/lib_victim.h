/* Drives tests/victim.c (or another program that answers each line with "done N"). */
#ifndef MTUI_TESTS_LIB_VICTIM_H
#define MTUI_TESTS_LIB_VICTIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/loop.h"

struct victim {
    pid_t pid;
    int in, out;     /* pipes to its stdin, from its stdout */
    uint64_t traced; /* address that it printed */
    char line[256];
};

/* $MTUI_BUILD/tests/NAME, from malloc. */
char *victim_path(const char *name);
struct victim victim_start(const char *name);
struct victim victim_start_path(const char *path);
/* Sends a command without waiting. */
void victim_send(struct victim *v, const char *command);
/* Runs the loop until the next line has come (it must be "done N" or "ready ADDR": returns N, and
 * keeps ADDR); fails the test after ten seconds. */
long victim_wait(struct victim *v, struct loop *loop);
long victim_do(struct victim *v, struct loop *loop, const char *command);
void victim_kill(struct victim *v);

/* Runs the loop until *value == wanted (or at least), at most ten seconds; returns whether it came.
 */
bool loop_until(struct loop *loop, const uint64_t *value, uint64_t wanted);
/* The same for a condition. */
bool loop_until_true(struct loop *loop, bool (*fn)(void *arg), void *arg);

/* The file offset of an address of pid, from /proc/PID/maps. */
uint64_t victim_offset(pid_t pid, uint64_t addr);
/* A byte of its memory; -1 when it cannot be read. */
int victim_byte(pid_t pid, uint64_t addr);
/* What a command prints (sh -c), from malloc. */
char *command_output(const char *command);

#endif

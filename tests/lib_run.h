/* Shared by tests that start programs and need places of their own. */
#ifndef MTUI_TESTS_LIB_RUN_H
#define MTUI_TESTS_LIB_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* A new empty directory; the caller frees the path and calls run_remove_tree. */
char *run_temp_dir(void);
void run_remove_tree(const char *path);

/* Path of a helper program of tests/; from malloc. */
char *run_tool(const char *name);

/* The whole of a small file, NUL-terminated, from malloc; NULL when it cannot be read. */
char *run_read_file(const char *path, size_t *len);
void run_write_file(const char *path, const char *text);

/* A child with pipes to its stdin and from its stdout. It dies with the test. */
struct run_child {
    pid_t pid;
    int in;    /* write end of its stdin */
    FILE *out; /* its stdout */
};
struct run_child run_start(char *const argv[]);
/* Closes its stdin, waits, returns the wait status. */
int run_finish(struct run_child *c);
/* SIGKILL and reap. */
void run_kill(struct run_child *c);

/* As fork(2), with a pid of our choice for the child (clone3(2), set_tid); −1 where that is not allowed. */
pid_t run_fork_as(pid_t pid);

/* Runs a command and returns its stdout; *status is what wait gave. */
char *run_output(const char *command, int *status);

/* The real perf is here and may record a process of ours. */
bool run_perf_records(void);

/* Calls check(arg) until it is true, at most seconds; returns whether it was. */
bool run_until(bool (*check)(void *arg), void *arg, double seconds);

#endif

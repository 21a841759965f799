/* For tests that hold the reader of perf.data against perf itself. */
#ifndef MTUI_TESTS_LIB_PERF_H
#define MTUI_TESTS_LIB_PERF_H

#include <stdbool.h>
#include <stddef.h>

/* A new directory under $TMPDIR; lib_rmdir removes it with all that is in it. */
char *lib_mkdtemp(void);
void lib_rmdir(char *dir);

/* Runs a shell command; its standard output from malloc, NUL-terminated (*len may be NULL). *status
 * gets the exit status. */
char *lib_run(int *status, size_t *len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A whole file from malloc. */
char *lib_read(const char *path, size_t *len);
void lib_write(const char *path, const void *bytes, size_t len);

/* $MTUI_PERF, else perf. */
const char *lib_perf(void);
/* True when perf records cpu-clock here. */
bool lib_perf_works(void);
/* Path of a helper program below $MTUI_BUILD/tests. */
const char *lib_tool(const char *name);

#endif

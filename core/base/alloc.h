/* Allocation of small things: never fails, since a program that cannot get a few hundred bytes can
 * do nothing useful. Anything whose size comes from input (a recording, a symbol table) must use
 * plain malloc and handle NULL as MTUI_E_NOMEM.
 *
 * On failure the hook set by alloc_set_exit_hook runs (the terminal is restored there), a line goes
 * to stderr and the process exits with status 1. */
#ifndef MTUI_CORE_ALLOC_H
#define MTUI_CORE_ALLOC_H

#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *ptr, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The one function to run before an out-of-memory exit; NULL takes it away. */
void alloc_set_exit_hook(void (*hook)(void));

#endif

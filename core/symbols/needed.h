/* The shared libraries that a program will load at its start, before it runs: asked of its own
 * dynamic loader (ld.so(8), `--list`, which glibc and musl have), so that search paths, preloads
 * and the loader's cache count as they will. */
#ifndef MTUI_CORE_NEEDED_H
#define MTUI_CORE_NEEDED_H

#include <stddef.h>

#include "core/base/err.h"

struct needed {
    char **paths; /* absolute */
    size_t n;
};

/* A static program needs none: 0 and an empty list. Takes some milliseconds, at most two seconds.
 * MTUI_E_FORMAT: no ELF program; MTUI_E_TIMEOUT; what the loader says when it cannot find one is
 * left out. */
int needed_files(const char *program, struct needed *out, struct err *err);
void needed_free(struct needed *n);

#endif

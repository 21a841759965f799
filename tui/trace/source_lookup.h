/* Where functions stand in the source, looked up in a thread of its own: DWARF of a big program takes
 * longer than a frame. Also resolves what is typed but is no name of the list (FILE:LINE, 0xADDR).
 *
 * Questions are answered from a cache; what is not in it is queued, the newest first, and the view asks
 * again (source_lookup_poll says when). All functions belong to the loop's thread. */
#ifndef MTUI_TUI_SOURCE_LOOKUP_H
#define MTUI_TUI_SOURCE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/symbols/modules.h"

#define SOURCE_LINES 64 /* lines around the function that are kept */

struct source_place {
    bool waiting;     /* not known yet: ask again */
    const char *file; /* NULL: not known at all; see why */
    int line;         /* of the declaration, else of the first instruction */
    const char *why;  /* file NULL: a sentence */
};

struct source_lines {
    bool waiting;
    const char *line[SOURCE_LINES]; /* bytes from outside, without newline; NULL before and after the file */
    int first;                      /* number of line[0]; may be below 1 */
    const char *why;                /* no lines: a sentence, else NULL */
};

struct source_lookup;

/* m must outlive it. */
struct source_lookup *source_lookup_new(struct modules *m);
/* Waits for the question at hand. */
void source_lookup_free(struct source_lookup *s);

/* Answers live until the next call of poll. */
struct source_place source_lookup_place(struct source_lookup *s, size_t module, uint64_t vaddr);
/* The source text around line (of a file that place named), line[SOURCE_LINES / 2] being that line. */
struct source_lines source_lookup_lines(struct source_lookup *s, const char *file, int line);

/* Resolves spec (core/symbols/modules.h); done is called by poll: n addresses, or rc < 0 and err. A newer one
 * takes the place of one that has not begun. */
void source_lookup_resolve(struct source_lookup *s, const char *spec,
                           void (*done)(void *arg, const char *spec, int rc, const struct module_addrs *a,
                                        const struct err *err),
                           void *arg);

/* Takes answers over; true when there were any. */
bool source_lookup_poll(struct source_lookup *s);
/* True while something is queued or worked on. */
bool source_lookup_busy(struct source_lookup *s);
/* Waits until nothing is. For tests. */
void source_lookup_wait(struct source_lookup *s);

#endif

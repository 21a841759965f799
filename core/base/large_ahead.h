/* Memory that is there when it is needed: a thread of its own has the kernel clear the next block while the
 * one before is being filled. Fetching pages takes longer than filling them with spans, so with a second CPU
 * this about halves the time. Safe from any thread. */
#ifndef MTUI_CORE_LARGE_AHEAD_H
#define MTUI_CORE_LARGE_AHEAD_H

#include <stddef.h>

struct large_ahead;

/* Blocks of count × size bytes, one of them ready ahead. Nothing is started before the first one is taken. */
struct large_ahead *large_ahead_new(size_t count, size_t size);
/* One that was not taken goes back to the system; those taken are the callers'. NULL is ignored. */
void large_ahead_free(struct large_ahead *a);

/* As from large_alloc(count, size), to be freed like that. */
void *large_ahead_take(struct large_ahead *a);

#endif

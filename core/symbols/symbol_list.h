/* Every function name of a process, for the symbol picker: loaded by a worker thread, usable at once.
 *
 * The program's own module comes first, then the others in the order of their addresses. Names are the
 * short readable form (DEMANGLE_SHORT), symbol versions cut off; aliases are listed too, PLT stubs and
 * ifunc resolvers are not (they cannot be what someone wants to trace).
 *
 * What is there never moves and never changes; the list only grows. All functions but the callback belong
 * to one thread; the worker publishes whole names.
 *
 * Memory: 24 bytes a name, a readable copy of mangled ones, and the symbol tables themselves
 * (core/symbols/symtab.h): about 110 MB for a million C++ names. Beyond SYMBOL_LIST_BUDGET (or the budget given)
 * the rest is left out and the progress says so. */
#ifndef MTUI_CORE_SYMBOL_LIST_H
#define MTUI_CORE_SYMBOL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/symbols/modules.h"
#include "core/symbols/rank.h"

#define SYMBOL_LIST_BUDGET ((size_t)1 << 30) /* bytes */

struct symbol_item {
    const char *name; /* short readable form */
    const char *raw;  /* as in the symbol table */
    size_t module;    /* index in the modules */
    uint64_t vaddr, size;
    uint16_t flags; /* enum symbol_flag */
};

struct symbol_progress {
    size_t names;                /* listed so far */
    size_t modules_done, modules;
    bool done;                   /* finished or cancelled: no more will come */
    bool cancelled;
    size_t left_out;             /* names beyond the budget */
    size_t bytes;                /* of names and lists; the symbol tables not included */
};

struct symbol_list;

/* Starts loading. m is shared with the worker (its lock makes that safe) and must outlive the list;
 * modules_refresh is not allowed meanwhile. changed (NULL allowed) is called in the worker's thread, at
 * most every 30 ms while names come and once at the end: use loop_post there. budget 0 means
 * SYMBOL_LIST_BUDGET. */
struct symbol_list *symbol_list_start(struct modules *m, size_t budget, void (*changed)(void *arg),
                                      void *arg);
/* Stops the worker soon; what is there stays. */
void symbol_list_cancel(struct symbol_list *l);
/* Cancels, waits for the worker (milliseconds), frees. */
void symbol_list_free(struct symbol_list *l);

void symbol_list_progress(const struct symbol_list *l, struct symbol_progress *out);
/* Waits until the worker has finished. For tests and batch use. */
void symbol_list_wait(struct symbol_list *l);

size_t symbol_list_count(const struct symbol_list *l);
void symbol_list_get(const struct symbol_list *l, size_t i, struct symbol_item *out);

/* The names of one module: [*from, *to), empty when none has come yet. */
void symbol_list_module_range(const struct symbol_list *l, size_t module, size_t *from, size_t *to);

/* For rank_new: symbol_list_chunk with the list as argument. */
const struct rank_chunk *symbol_list_chunk(void *list, size_t chunk);

#endif

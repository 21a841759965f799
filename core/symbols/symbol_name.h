/* Which of several names of one address to show, as perf decides it (tools/perf/util/symbol.c,
 * choose_best_symbol): by the demangled names, fewer leading underscores, then the longer one. */
#ifndef MTUI_CORE_SYMBOL_NAME_H
#define MTUI_CORE_SYMBOL_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* < 0: a is preferred; > 0: b; 0: the one that comes first in the file. Both raw. */
int symbol_name_compare(const char *a, const char *b);

/* Length of a raw name without the suffixes of copies that stand for the whole function: GCC's .isra.N,
 * .constprop.N, .lto_priv.N and Clang's .llvm.N, several of them too; strlen(raw) when there are none.
 * Not .part.N and .cold: these are pieces of a function, not entered with each call. */
size_t symbol_name_base(const char *raw);
/* A piece of a function that was moved away, such as f.cold: no entry of its own. */
bool symbol_name_is_cold(const char *raw);

#endif

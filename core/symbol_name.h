/* Which of several names of one address to show, as perf decides it (tools/perf/util/symbol.c,
 * choose_best_symbol): by the demangled names, fewer leading underscores, then the longer one. */
#ifndef MTUI_CORE_SYMBOL_NAME_H
#define MTUI_CORE_SYMBOL_NAME_H

/* < 0: a is preferred; > 0: b; 0: the one that comes first in the file. Both raw. */
int symbol_name_compare(const char *a, const char *b);

#endif

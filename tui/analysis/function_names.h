/* The functions of a trace by names that tell them apart: where several of one module are called the same, each
 * stands with its parameters, "f(int)" and "f(double)"; unknown code stands with its module, "[unknown] libz.so". */
#ifndef MTUI_TUI_FUNCTION_NAMES_H
#define MTUI_TUI_FUNCTION_NAMES_H

#include "decode/trace/functions.h"

struct function_names;

/* Of the functions that f has now; f must outlive it. */
struct function_names *function_names_new(const struct functions *f);
void function_names_free(struct function_names *n);

/* Lives as long as n; bytes from outside, as all names. */
const char *function_names_get(const struct function_names *n, fn_id fn);

#endif

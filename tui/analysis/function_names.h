/* The functions of a trace by names that tell them apart: what would read the same stands with its parameters where
 * that is enough, "f(int)" and "f(double)", else with its module, "init liba.so" and "init libb.so"; unknown code, which
 * has no name, always with its module, "[unknown] libz.so". */
#ifndef MTUI_TUI_FUNCTION_NAMES_H
#define MTUI_TUI_FUNCTION_NAMES_H

#include "decode/trace/functions.h"

struct function_names;

/* Of the functions that f has now; f must outlive it. */
struct function_names *function_names_new(const struct functions *f);
void function_names_free(struct function_names *n);

/* Live as long as n; bytes from outside, as all names. The second is for where the module is known, or stands too. */
const char *function_names_get(const struct function_names *n, fn_id fn);
const char *function_names_in_module(const struct function_names *n, fn_id fn);

#endif

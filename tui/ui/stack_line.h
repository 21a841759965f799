/* The calls of a stack on one line, from the outside in: "stack  main > run > [handle(int)]". */
#ifndef MTUI_TUI_STACK_LINE_H
#define MTUI_TUI_STACK_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/ui/function_names.h"

#define STACK_LINE_MAX 64 /* calls, at most */

/* `calls` from the innermost out, `n` of them (up to STACK_LINE_MAX); `whole`: there are no more. Where they do not fit
 * into `cols` columns, long ones get shorter, to half of them, then the outermost give way to "...". `bracket`: the
 * innermost stands in brackets. */
void stack_line_write(char *out, size_t size, struct function_names *names, const fn_id *calls, size_t n, bool whole,
                      bool bracket, int cols, const struct glyphs *g);

#endif

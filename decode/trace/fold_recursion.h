/* A trace in which a function that calls itself directly shows as one call.
 *
 * Of every chain of directly nested calls of one function only the outermost stays; what the inner ones
 * called moves up. Gaps, marks and threads stay, times do not change, function ids neither. */
#ifndef MTUI_DECODE_FOLD_RECURSION_H
#define MTUI_DECODE_FOLD_RECURSION_H

#include "core/base/err.h"
#include "decode/trace/trace.h"

/* A new trace, the caller's. O(spans). MTUI_E_NOMEM. */
int fold_recursion(const struct trace *t, struct trace **out, struct err *err);

#endif

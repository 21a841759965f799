/* A trace in which a function that calls itself directly shows as one call.
 *
 * Of every chain of directly nested calls of one function only the outermost stays; what the inner ones
 * called moves up. Gaps, marks and threads stay, times do not change, function ids neither. */
#ifndef MTUI_DECODE_FOLD_RECURSION_H
#define MTUI_DECODE_FOLD_RECURSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/err.h"
#include "decode/trace/trace.h"

struct fold_options {
    const atomic_bool *cancel;  /* NULL: none */
    atomic_uint_fast64_t *done; /* NULL, or counts the spans looked at while it works */
};

/* A new trace, the caller's, which refers to nothing of the old one. O(spans). options NULL: none of them.
 * MTUI_E_NOMEM, MTUI_E_CANCEL. */
int fold_recursion(const struct trace *t, const struct fold_options *options, struct trace **out,
                   struct err *err);

#endif

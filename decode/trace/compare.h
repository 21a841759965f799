/* Two calls side by side, function by function: what was different this time. */
#ifndef MTUI_DECODE_COMPARE_H
#define MTUI_DECODE_COMPARE_H

#include "decode/trace/stats.h"

struct compare_side {
    uint64_t calls, total_ns, self_ns;
    struct stats_call longest; /* the longest of the calls, the first of equals; calls 0: meaningless */
};

struct compare_row {
    fn_id fn;
    struct compare_side side[2];
};

struct comparison {
    struct compare_row *rows;
    size_t n;
};

/* Everything that happened inside the two calls, themselves included. A function's total counts recursion
 * once; its self time leaves out gaps, so that all self times of a side are the call's duration less the
 * gaps in it. Rows come by |difference of self time|, then |difference of calls|, then |difference of
 * total|, descending, then by number of the function. Looks at the spans of the two calls and no others.
 * MTUI_E_NOMEM, MTUI_E_CANCEL. */
int compare_calls(struct comparison *out, const struct trace *t, const struct stats_call *a,
                  const struct stats_call *b, const atomic_bool *cancel, struct err *err);
void comparison_free(struct comparison *c);

#endif

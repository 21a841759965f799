/* What is counted of each function's calls, before it is a table: stats.c counts the spans of a trace, several
 * tallies at once; stats_flow.c calls as they are decoded. */
#ifndef MTUI_DECODE_TALLY_H
#define MTUI_DECODE_TALLY_H

#include "decode/trace/durations.h"
#include "decode/trace/stats.h"

/* What is touched at every call, small so that thousands of functions stay in the cache. */
struct tally_fn {
    uint64_t calls, total_ns, self_ns, sum_ns, min_ns, max_ns;
};

struct tally {
    struct tally_fn *fns;
    struct durations *durations; /* per function as well */
    size_t nfn;
};

/* Of no function yet; zero-initialised is the same. */
void tally_free(struct tally *y);
/* Room for functions below nfn; MTUI_E_NOMEM. */
int tally_reserve(struct tally *y, size_t nfn);
/* Adds all of another one, of as many functions; MTUI_E_NOMEM. */
int tally_join(struct tally *to, const struct tally *from);

/* One call and its duration; total and self are the caller's to add. False when memory is short. */
static inline bool tally_call(struct tally *y, fn_id fn, uint64_t ns)
{
    struct tally_fn *f = &y->fns[fn];
    if (f->calls == 0 || ns < f->min_ns)
        f->min_ns = ns;
    if (ns > f->max_ns)
        f->max_ns = ns;
    f->calls++;
    f->sum_ns += ns;
    return durations_add(&y->durations[fn], ns);
}

/* The table, by total; MTUI_E_NOMEM, MTUI_E_CANCEL. */
int tally_stats(struct stats **out, struct tally *y, const struct functions *functions, const atomic_bool *cancel);
/* What the table says besides. */
void stats_set_gaps(struct stats *s, uint64_t gap_ns, size_t count);
void stats_set_estimated(struct stats *s, bool estimated);

#endif

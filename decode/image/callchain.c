#include "decode/image/callchain.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "decode/image/unwind.h"

#define USER_DEFERRED ((uint64_t)-640) /* PERF_CONTEXT_USER_DEFERRED, Linux 6.18 */

struct callchain {
    const struct perf_file *file;
    struct unwinder *unwinder; /* NULL: nothing is unwound */
    struct callframe frames[CALLCHAIN_MAX_FRAMES]; /* innermost first, then turned round */
    size_t n;
    uint64_t dwarf, incomplete, not_unwound; /* samples */
    char note[200];
};

struct callchain *callchain_new(const struct perf_file *f, const struct addrspaces *as,
                                struct symbolizer *symbols)
{
    struct callchain *c = xcalloc(1, sizeof *c);
    c->file = f;
    c->unwinder = symbols ? unwinder_new(as, symbols) : NULL;
    return c;
}

void callchain_free(struct callchain *c)
{
    if (!c)
        return;
    unwinder_free(c->unwinder);
    free(c);
}

static void add(struct callchain *c, uint64_t ip, enum perf_cpumode mode, bool call)
{
    if (c->n < CALLCHAIN_MAX_FRAMES)
        c->frames[c->n++] = (struct callframe){ip, call && ip ? ip - 1 : ip, mode};
}

/* False for marks that no kernel up to 6.18 writes. */
static bool mode_of_mark(uint64_t mark, enum perf_cpumode *mode)
{
    if (mark == (uint64_t)PERF_CONTEXT_HV)
        *mode = PERF_MODE_HYPERVISOR;
    else if (mark == (uint64_t)PERF_CONTEXT_KERNEL)
        *mode = PERF_MODE_KERNEL;
    else if (mark == (uint64_t)PERF_CONTEXT_USER || mark == USER_DEFERRED)
        *mode = PERF_MODE_USER;
    else if (mark == (uint64_t)PERF_CONTEXT_GUEST || mark == (uint64_t)PERF_CONTEXT_GUEST_KERNEL)
        *mode = PERF_MODE_GUEST_KERNEL;
    else if (mark == (uint64_t)PERF_CONTEXT_GUEST_USER)
        *mode = PERF_MODE_GUEST_USER;
    else
        return false;
    return true;
}

/* Copies the chain; behind a mark that is unknown nothing can be told. user: its user part, too. */
static void add_chain(struct callchain *c, const struct perf_record *rec, bool user)
{
    enum perf_cpumode mode = rec->cpumode;
    bool first = true; /* in this mode: the place itself, not a return address */
    for (size_t i = 0; i < rec->u.sample.chain_len; i++) {
        uint64_t ip = rec->u.sample.chain[i];
        if (ip >= (uint64_t)PERF_CONTEXT_MAX) {
            if (!mode_of_mark(ip, &mode) || ip == USER_DEFERRED) /* a cookie follows, no address */
                return;
            first = true;
            continue;
        }
        if (mode == PERF_MODE_USER && !user)
            return;
        add(c, ip, mode, !first && mode == PERF_MODE_USER);
        first = false;
    }
}

/* The branch stack as a call stack: where the last call went, then where each call came from. */
static void add_branch_stack(struct callchain *c, const struct perf_record *rec)
{
    const struct perf_branch *b = rec->u.sample.branches;
    size_t n = rec->u.sample.nbranches;
    if (n)
        add(c, b[0].to, PERF_MODE_USER, false);
    for (size_t i = 0; i < n; i++) /* `from` is the call itself */
        add(c, b[i].from, PERF_MODE_USER, false);
}

static void add_unwound(struct callchain *c, const struct perf_record *rec)
{
    uint64_t pcs[CALLCHAIN_MAX_FRAMES];
    bool calls[CALLCHAIN_MAX_FRAMES], complete = false;
    size_t n = 0, had = c->n;
    c->dwarf++;
    if (c->unwinder)
        n = unwinder_unwind(c->unwinder, rec, pcs, calls, CALLCHAIN_MAX_FRAMES, &complete);
    for (size_t i = 0; i < n; i++)
        add(c, pcs[i], PERF_MODE_USER, calls[i]);
    if (n == 0 && had == 0)
        add_chain(c, rec, true);
    if (n == 0)
        c->not_unwound++;
    else if (!complete)
        c->incomplete++;
}

static void turn_round(struct callchain *c)
{
    for (size_t a = 0, b = c->n - 1; a < b; a++, b--) {
        struct callframe t = c->frames[a];
        c->frames[a] = c->frames[b];
        c->frames[b] = t;
    }
}

size_t callchain_frames(struct callchain *c, const struct perf_record *rec,
                        const struct callframe **frames)
{
    const struct perf_event_info *event =
        rec->event >= 0 ? perf_file_event(c->file, (size_t)rec->event) : NULL;
    bool lbr = event && (event->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK) &&
               rec->u.sample.nbranches;
    bool dwarf = event && event->sample_stack_user;
    c->n = 0;
    add_chain(c, rec, !lbr && !dwarf);
    if (lbr)
        add_branch_stack(c, rec);
    else if (dwarf)
        add_unwound(c, rec);
    if (c->n == 0)
        add(c, rec->u.sample.ip, rec->cpumode, false);
    turn_round(c);
    *frames = c->frames;
    return c->n;
}

const char *callchain_note(struct callchain *c)
{
    if (c->not_unwound + c->incomplete == 0)
        return NULL;
    snprintf(c->note, sizeof c->note,
             "of %llu stacks that were to be unwound, %llu end early (a larger --call-graph dwarf,SIZE "
             "or the files' call frame information is missing) and %llu show only where the thread was",
             (unsigned long long)c->dwarf, (unsigned long long)c->incomplete,
             (unsigned long long)c->not_unwound);
    return c->note;
}

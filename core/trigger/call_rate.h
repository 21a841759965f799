/* How often places are hit, measured before a trigger is armed there, and what arming would cost.
 *
 * The places are really armed for a given time, which costs the target what the trigger would; hits
 * that were lost because nobody read them in time count too. */
#ifndef MTUI_CORE_CALL_RATE_H
#define MTUI_CORE_CALL_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/loop.h"
#include "core/trigger/probe.h"

/* A trigger that would take more of the target's time than this is asked about. */
#define CALL_RATE_MAX_PERMILLE 100u

struct call_rate_result {
    uint64_t hits, duration_ns;
    double per_second;
    unsigned permille; /* of the target's running time: hits × hit_ns over the longer of
                        * the duration and the CPU time that its threads had meanwhile; ≤ 1000 */
    uint64_t hit_ns;   /* what a hit costs */
    bool assumed;      /* that is HIT_COST_ASSUMED_NS, not measured */
    bool costly;       /* permille > CALL_RATE_MAX_PERMILLE */
};

/* Pure: cpu_ns is what all threads of the target ran in duration_ns (0: not known). hit_ns: what a hit
 * costs, as measured (hit_cost.h); 0: not measured. */
void call_rate_judge(uint64_t hits, uint64_t duration_ns, uint64_t cpu_ns, uint64_t hit_ns,
                     struct call_rate_result *out);

/* "hit 12.4k times a second; at about 9.80 us a hit that takes 12.4 % of the program's time" ("at an
 * assumed 10.0 us a hit" where it was not measured); out ≥ 160 bytes. */
char *call_rate_text(const struct call_rate_result *r, char *out, size_t size);

/* The same in at most 60 columns: "12.4k hits/s x 9.80 us = 12.4 % of the target's time" ("~10.0 us" where it
 * was not measured). */
char *call_rate_brief(const struct call_rate_result *r, char *out, size_t size);

struct call_rate;
typedef void call_rate_fn(void *arg, const struct call_rate_result *result);

/* Counts for duration_ns, then calls fn from the loop, once; an ended target gives what was counted.
 * Errors as probe_watch and probe_set_sites. */
int call_rate_start(struct loop *loop, pid_t pid, const struct probe_site *sites, size_t n,
                    uint64_t duration_ns, call_rate_fn *fn, void *arg, struct call_rate **out,
                    struct err *err);
/* Also after fn was called. NULL allowed. */
void call_rate_free(struct call_rate *c);

#endif

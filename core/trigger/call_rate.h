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

/* What was seen of a target for a while. */
struct call_rate_seen {
    uint64_t hits, duration_ns;
    uint64_t calls;     /* of the hits, those at an entry whose returns are watched too */
    bool watches_calls; /* there are such entries */
    uint64_t ran_ns;    /* CPU time of all its threads; 0: not known */
    uint64_t waited_ns; /* that they were ready to run, and others ran */
};

struct call_rate_result {
    struct call_rate_seen seen;
    double per_second;
    unsigned permille; /* of the target's running time: hits × hit_ns over the longer of the CPU time that its threads
                        * had and the time for which none of them had to wait for a CPU; ≤ 1000 */
    uint64_t hit_ns;   /* what a hit costs */
    bool assumed;      /* that is HIT_COST_ASSUMED_NS, not measured */
    bool costly;       /* permille > CALL_RATE_MAX_PERMILLE */
};

/* Pure. hit_ns: what a hit costs, as measured (hit_cost.h); 0: not measured. */
void call_rate_judge(const struct call_rate_seen *seen, uint64_t hit_ns, struct call_rate_result *out);

/* Costly, but its calls alone would not be: what is too much are the returns. */
bool call_rate_returns_cost(const struct call_rate_result *r);

/* "hit 12.4k times a second (6.20k calls); at about 9.80 us a hit that takes 12.4 % of the program's time" ("at an
 * assumed 10.0 us a hit" where it was not measured; calls only where their returns are watched); out ≥ 160 bytes. */
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

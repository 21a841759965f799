/* Where calls return to, for traces that tell where a call instruction stands but not how long it is (text
 * of `perf script`): its length is learned from the first return to behind it. One table a process. */
#ifndef MTUI_DECODE_CALL_SITES_H
#define MTUI_DECODE_CALL_SITES_H

#include <stdbool.h>
#include <stdint.h>

struct call_sites;

struct call_sites *call_sites_new(void);
void call_sites_free(struct call_sites *c);

/* Whether the innermost call, made at site, is over when the program returns to addr: it is when addr lies
 * behind it by its known length, or by any length a call may have, which then is the known one. */
bool call_sites_return(struct call_sites *c, uint64_t site, uint64_t addr);

/* The same for a call further out, skipped by an exception or a switch of stacks: while its length is not
 * known, only the usual ones count. */
bool call_sites_skip_to(const struct call_sites *c, uint64_t site, uint64_t addr);

/* Where a call made at site returns to; false: not known yet. */
bool call_sites_behind(const struct call_sites *c, uint64_t site, uint64_t *addr);

#endif

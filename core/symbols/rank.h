/* The best matches of a query among very many names, while someone types.
 *
 * Work is done in slices: rank_run looks at candidates until a deadline, so that a key is echoed at once
 * however slow the pattern. A query that grows looks only at what matched before. Of the matches only
 * the first RANK_FIRST (more when asked for) are ordered: by the best score, then the shorter name, then
 * the smaller index. Two threads share the work when there is enough of it.
 *
 * Memory: 4 bytes for each match, beside the candidates. One rank belongs to one thread. */
#ifndef MTUI_CORE_RANK_H
#define MTUI_CORE_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/symbols/match.h"

#define RANK_FIRST 256

struct rank_item { /* 16 bytes */
    const char *text;
    uint32_t len;
    uint32_t tag; /* the owner's */
};

/* Candidates in chunks of RANK_CHUNK, the last one shorter; masks[i] is fuzzy_mask of items[i]. They
 * never move. */
#define RANK_CHUNK 4096
struct rank_chunk {
    uint64_t masks[RANK_CHUNK];
    struct rank_item items[RANK_CHUNK];
};
typedef const struct rank_chunk *rank_chunk_fn(void *arg, size_t chunk);

struct rank;

struct rank *rank_new(rank_chunk_fn *chunk, void *arg);
void rank_free(struct rank *r);

/* Sets the query and the half-open range [from, to) of candidates it is about. Nothing is matched yet. On
 * failure (a pattern that does not compile) the query before stays. */
int rank_set(struct rank *r, enum match_mode mode, const char *query, size_t from, size_t to,
             struct err *err);

/* Candidates with an index below `below` get a bonus that decides between otherwise similar names (the
 * program's own before its libraries'). Holds for what is looked at from then on: set it before rank_set. */
void rank_favour(struct rank *r, size_t below);

/* More candidates have come: to grows. */
void rank_grow(struct rank *r, size_t to);

/* Matches on until done or deadline_ns (CLOCK_MONOTONIC) has passed; true when everything in the range
 * has been looked at. What rank_count and rank_at say covers what has been looked at so far. */
bool rank_run(struct rank *r, uint64_t deadline_ns);
bool rank_done(const struct rank *r);

/* Matches found so far; candidates looked at so far. */
size_t rank_count(const struct rank *r);
size_t rank_looked_at(const struct rank *r);

/* Index of the candidate at a place in the order; place < rank_count. Asking far down the list orders
 * more of it. */
size_t rank_at(struct rank *r, size_t place);

/* The matcher, for highlighting. */
struct matcher *rank_matcher(struct rank *r);

#endif

/* One interface over three ways to match a name: fuzzy words, a PCRE2 pattern, an exact substring.
 *
 * Fuzzy and exact queries are split at blanks into words that must all match, in any order. Case matters
 * when a word has an upper-case letter. A matcher belongs to one thread; match_clone makes another. */
#ifndef MTUI_CORE_MATCH_H
#define MTUI_CORE_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

#define MATCH_WORDS_MAX 8

enum match_mode { MATCH_FUZZY, MATCH_REGEX, MATCH_EXACT };
/* "fuzzy" "regex" "exact" */
const char *match_mode_name(enum match_mode mode);

struct matcher;

/* An empty query matches everything. MTUI_E_INVAL for a pattern that PCRE2 refuses. */
int match_new(enum match_mode mode, const char *query, struct matcher **out, struct err *err);
struct matcher *match_clone(const struct matcher *m);
void match_free(struct matcher *m);

bool match_is_empty(const struct matcher *m);
enum match_mode match_mode_of(const struct matcher *m);

/* True when everything that `now` matches is matched by `before` too, so that only before's results
 * need to be looked at: the query has grown. */
bool match_narrows(const struct matcher *before, const struct matcher *now);

/* −1: no match; else a score ≥ 0, larger is better. mask: fuzzy_mask of text. */
int match_score(struct matcher *m, const char *text, size_t len, uint64_t mask);
/* The same by the best alignment (fuzzy); equal to match_score for the others. */
int match_score_best(struct matcher *m, const char *text, size_t len);

struct match_range {
    uint32_t from, to; /* bytes */
};
/* What to highlight, ascending, not overlapping; returns the number of ranges. */
size_t match_ranges(struct matcher *m, const char *text, size_t len, struct match_range *out,
                    size_t max);

#endif

/* Fuzzy matching of one word against names: the word's characters in order, others between them allowed.
 *
 * Scores reward characters next to each other, at the start of the name, after a separator (_ : . / -
 * and brackets), at a change to upper case or to digits; they punish gaps. The scheme and its numbers are
 * those of fzf (src/algo/algo.go). Two scores: a fast one by one greedy pass forward and one back, to
 * choose the best few hundred of a million, and the best one over all alignments (dynamic programming),
 * to order and highlight what is shown. Smart case: case matters when the word has an upper-case letter.
 * Bytes beyond ASCII match themselves. All functions are pure. */
#ifndef MTUI_CORE_FUZZY_H
#define MTUI_CORE_FUZZY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZY_WORD_MAX 64   /* bytes of a word; the rest is ignored */
#define FUZZY_TEXT_MAX 1024 /* bytes of a name that the best alignment looks at */

struct fuzzy_word {
    char text[FUZZY_WORD_MAX]; /* folded to lower case when !exact_case */
    size_t len;
    bool exact_case;
    uint64_t mask; /* fuzzy_mask of it: a name without these bits cannot match */
};

void fuzzy_word_set(struct fuzzy_word *w, const char *text, size_t len);

/* Which bytes occur in a text, case folded: a bit each for letters, digits, common separators, the rest
 * shared. */
uint64_t fuzzy_mask(const char *text, size_t len);

/* −1: no match; else the score of the leftmost, then shortest alignment. */
int fuzzy_score_fast(const struct fuzzy_word *w, const char *text, size_t len);

/* −1: no match; else the best score; positions (NULL allowed) gets w->len byte positions, ascending. */
int fuzzy_score_best(const struct fuzzy_word *w, const char *text, size_t len, uint32_t *positions);

/* The reward of a match that begins at byte `at`: for other matchers that rank by where a match is. */
int fuzzy_bonus_at(const char *text, size_t at);

#endif

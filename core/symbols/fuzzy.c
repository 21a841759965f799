#include "core/symbols/fuzzy.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

enum {
    SCORE_MATCH = 16,
    GAP_START = -3,
    GAP_MORE = -1,
    BONUS_START = 10,     /* at the very beginning */
    BONUS_BOUNDARY = 8,   /* after a separator */
    BONUS_CAMEL = 7,      /* fooBar, foo123 */
    BONUS_CONSECUTIVE = 4,/* next to the character before; a run keeps the bonus of its first */
    FIRST_FACTOR = 2      /* the word's first character counts double */
};

enum class { CLASS_LOWER, CLASS_UPPER, CLASS_DIGIT, CLASS_SEPARATOR };

static enum class class_of(unsigned char c)
{
    if (c >= 'a' && c <= 'z')
        return CLASS_LOWER;
    if (c >= 'A' && c <= 'Z')
        return CLASS_UPPER;
    if (c >= '0' && c <= '9')
        return CLASS_DIGIT;
    return c >= 0x80 ? CLASS_LOWER : CLASS_SEPARATOR;
}

static unsigned char fold(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c | 0x20) : c;
}

int fuzzy_bonus_at(const char *text, size_t at)
{
    if (at == 0)
        return BONUS_START;
    enum class before = class_of((unsigned char)text[at - 1]);
    enum class here = class_of((unsigned char)text[at]);
    if (before == CLASS_SEPARATOR)
        return BONUS_BOUNDARY;
    if (here == CLASS_SEPARATOR)
        return BONUS_BOUNDARY;
    if ((here == CLASS_UPPER && before == CLASS_LOWER) ||
        (here == CLASS_DIGIT && before != CLASS_DIGIT))
        return BONUS_CAMEL;
    return 0;
}

static uint64_t bit_of(unsigned char c)
{
    c = fold(c);
    if (c >= 'a' && c <= 'z')
        return 1ull << (c - 'a');
    if (c >= '0' && c <= '9')
        return 1ull << (26 + c - '0');
    switch (c) {
    case '_':
        return 1ull << 36;
    case ':':
        return 1ull << 37;
    case '.':
        return 1ull << 38;
    case '~':
        return 1ull << 39;
    case '<':
        return 1ull << 40;
    case '@':
        return 1ull << 41;
    default:
        return 1ull << (42 + (c & 15));
    }
}

uint64_t fuzzy_mask(const char *text, size_t len)
{
    uint64_t mask = 0;
    for (size_t i = 0; i < len; i++)
        mask |= bit_of((unsigned char)text[i]);
    return mask;
}

void fuzzy_word_set(struct fuzzy_word *w, const char *text, size_t len)
{
    *w = (struct fuzzy_word){.len = len < FUZZY_WORD_MAX ? len : FUZZY_WORD_MAX};
    for (size_t i = 0; i < w->len; i++)
        w->exact_case |= text[i] >= 'A' && text[i] <= 'Z';
    for (size_t i = 0; i < w->len; i++)
        w->text[i] = w->exact_case ? text[i] : (char)fold((unsigned char)text[i]);
    w->mask = fuzzy_mask(text, w->len);
}

static inline unsigned char at(const struct fuzzy_word *w, const char *text, size_t i)
{
    unsigned char c = (unsigned char)text[i];
    return w->exact_case ? c : fold(c);
}

/* A run of neighbours shares the bonus of its first character. */
static int joined_bonus(int own, int first)
{
    int b = own > first ? own : first;
    return b > BONUS_CONSECUTIVE ? b : BONUS_CONSECUTIVE;
}

/* The score of the greedy alignment within [from, to). */
static int score_span(const struct fuzzy_word *w, const char *text, size_t from, size_t to)
{
    int score = 0, first = 0;
    size_t k = 0;
    bool in_gap = false, in_run = false;
    for (size_t i = from; i < to && k < w->len; i++) {
        if (at(w, text, i) != (unsigned char)w->text[k]) {
            score += in_gap ? GAP_MORE : GAP_START;
            in_gap = true;
            in_run = false;
            continue;
        }
        int bonus = fuzzy_bonus_at(text, i);
        if (in_run)
            bonus = joined_bonus(bonus, first);
        else
            first = bonus;
        score += SCORE_MATCH + (k == 0 ? bonus * FIRST_FACTOR : bonus);
        in_gap = false;
        in_run = true;
        k++;
    }
    return score < 0 ? 0 : score;
}

int fuzzy_score_fast(const struct fuzzy_word *w, const char *text, size_t len)
{
    size_t k = 0, i = 0;
    if (w->len == 0)
        return 0;
    for (; i < len; i++)
        if (at(w, text, i) == (unsigned char)w->text[k] && ++k == w->len)
            break;
    if (k < w->len)
        return -1;
    size_t to = i + 1, from = to;
    while (k > 0)
        if (at(w, text, --from) == (unsigned char)w->text[k - 1])
            k--;
    return score_span(w, text, from, to);
}

/* ---- The best alignment ----
 *
 * After Smith-Waterman with affine gaps (Gotoh 1982). What a run earns depends on the bonus of its first
 * character, which has four values: each is a state of its own. */

#define IMPOSSIBLE (-20000)
enum { FIRSTS = 4 };
static const int first_bonus[FIRSTS] = {0, BONUS_CAMEL, BONUS_BOUNDARY, BONUS_START};

struct cell {
    int16_t run[FIRSTS]; /* best that ends with this character matched here, by the run's first bonus */
    int16_t match;       /* the best of them */
    int16_t gap;         /* best that ends in a gap of one or more characters up to here */
};

static int first_index(int bonus)
{
    for (int f = 0; f < FIRSTS; f++)
        if (first_bonus[f] == bonus)
            return f;
    return 0;
}

/* One row of the table: word character k against the columns of the text. before NULL for the first. */
static void fill_row(const struct fuzzy_word *w, const char *text, size_t len, size_t k,
                     const struct cell *before, struct cell *row)
{
    for (size_t i = 0; i < len; i++) {
        struct cell c = {{IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE}, IMPOSSIBLE, IMPOSSIBLE};
        if (i > 0) {
            int open = row[i - 1].match + GAP_START, more = row[i - 1].gap + GAP_MORE;
            int gap = open > more ? open : more;
            c.gap = (int16_t)(gap > IMPOSSIBLE ? gap : IMPOSSIBLE);
        }
        if (at(w, text, i) == (unsigned char)w->text[k]) {
            int bonus = fuzzy_bonus_at(text, i);
            for (int f = 0; before && i > 0 && f < FIRSTS; f++)
                if (before[i - 1].run[f] > IMPOSSIBLE / 2)
                    c.run[f] = (int16_t)(before[i - 1].run[f] + SCORE_MATCH +
                                         joined_bonus(bonus, first_bonus[f]));
            int start = !before                                  ? SCORE_MATCH + bonus * FIRST_FACTOR
                        : i > 0 && before[i - 1].gap > IMPOSSIBLE / 2 ? before[i - 1].gap + SCORE_MATCH + bonus
                                                                 : IMPOSSIBLE;
            int f = first_index(bonus);
            if (start > c.run[f])
                c.run[f] = (int16_t)start;
            for (f = 0; f < FIRSTS; f++)
                if (c.run[f] > c.match)
                    c.match = c.run[f];
        }
        row[i] = c;
    }
}

/* Walks back from the match of the last character at column i. */
static void trace_back(const struct fuzzy_word *w, const char *text,
                       const struct cell *table, size_t len, size_t i, uint32_t *positions)
{
    size_t k = w->len - 1;
    int f = -1; /* the state that the later character of a run came from; −1: any */
    for (;;) {
        const struct cell *c = &table[k * len + i];
        for (int g = 0; f < 0 && g < FIRSTS; g++)
            if (c->run[g] == c->match)
                f = g;
        positions[k] = (uint32_t)i;
        if (k == 0)
            return;
        int bonus = fuzzy_bonus_at(text, i);
        const struct cell *row = &table[--k * len], *left = &row[i - 1];
        bool joined = left->run[f] > IMPOSSIBLE / 2 &&
                      left->run[f] + SCORE_MATCH + joined_bonus(bonus, first_bonus[f]) == c->run[f];
        i--;
        if (joined)
            continue;
        f = -1;
        int gap = row[i].gap; /* opened after the column whose match it was */
        while (row[i - 1].match + GAP_START != gap) {
            gap -= GAP_MORE;
            i--;
        }
        i--;
    }
}

int fuzzy_score_best(const struct fuzzy_word *w, const char *text, size_t len, uint32_t *positions)
{
    if (len > FUZZY_TEXT_MAX)
        len = FUZZY_TEXT_MAX;
    if (w->len == 0)
        return 0;
    if (fuzzy_score_fast(w, text, len) < 0)
        return -1;
    struct cell *table = xmalloc(w->len * len * sizeof *table);
    for (size_t k = 0; k < w->len; k++)
        fill_row(w, text, len, k, k ? table + (k - 1) * len : NULL, table + k * len);
    const struct cell *last = table + (w->len - 1) * len;
    size_t end = 0;
    for (size_t i = 1; i < len; i++)
        if (last[i].match > last[end].match)
            end = i;
    int score = last[end].match;
    if (positions)
        trace_back(w, text, table, len, end, positions);
    free(table);
    return score < 0 ? 0 : score;
}

#include "core/symbols/match.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/symbols/fuzzy.h"
#include "core/base/regex.h"

#define EXACT_ENOUGH 8 /* the bonus of a boundary: a later occurrence is hardly better */

struct matcher {
    enum match_mode mode;
    char *query;
    struct fuzzy_word words[MATCH_WORDS_MAX];
    size_t n_words;
    uint64_t mask; /* of all words */
    struct regex *regex;
};

const char *match_mode_name(enum match_mode mode)
{
    static const char *const names[] = {"fuzzy", "regex", "exact"};
    return (size_t)mode < sizeof names / sizeof *names ? names[mode] : "?";
}

int match_new(enum match_mode mode, const char *query, struct matcher **out, struct err *err)
{
    struct matcher *m = xcalloc(1, sizeof *m);
    m->mode = mode;
    m->query = xstrdup(query);
    if (mode == MATCH_REGEX) {
        int rc = *query ? regex_compile(query, true, &m->regex, err) : 0;
        if (rc < 0) {
            match_free(m);
            return rc;
        }
    }
    for (const char *p = query; mode != MATCH_REGEX && m->n_words < MATCH_WORDS_MAX;) {
        p += strspn(p, " ");
        size_t n = strcspn(p, " ");
        if (n == 0)
            break;
        fuzzy_word_set(&m->words[m->n_words], p, n);
        m->mask |= m->words[m->n_words++].mask;
        p += n;
    }
    *out = m;
    return 0;
}

struct matcher *match_clone(const struct matcher *m)
{
    struct matcher *copy;
    return match_new(m->mode, m->query, &copy, NULL) == 0 ? copy : NULL;
}

void match_free(struct matcher *m)
{
    if (!m)
        return;
    regex_free(m->regex);
    free(m->query);
    free(m);
}

bool match_is_empty(const struct matcher *m)
{
    return m->mode == MATCH_REGEX ? !m->regex : m->n_words == 0;
}

enum match_mode match_mode_of(const struct matcher *m)
{
    return m->mode;
}

bool match_narrows(const struct matcher *before, const struct matcher *now)
{
    size_t len = strlen(before->query);
    if (match_is_empty(before))
        return true;
    if (before->mode != now->mode || strncmp(before->query, now->query, len) != 0)
        return false;
    /* A longer pattern may match more ("a", "a|b"), and words beyond the limit are not looked at. */
    return now->mode == MATCH_REGEX ? now->query[len] == '\0' : true;
}

/* ---- Substrings ---- */

static bool equal_at(const struct fuzzy_word *w, const char *text)
{
    if (w->exact_case)
        return memcmp(text, w->text, w->len) == 0;
    for (size_t i = 0; i < w->len; i++) {
        char c = text[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c) != w->text[i])
            return false;
    }
    return true;
}

/* The occurrence that starts best: at the beginning, at a boundary, else the first. */
static int find_exact(const struct fuzzy_word *w, const char *text, size_t len, size_t *where)
{
    int best = -1;
    for (size_t i = 0; w->len <= len && i <= len - w->len; i++) {
        if (!equal_at(w, text + i))
            continue;
        int bonus = fuzzy_bonus_at(text, i), s = 100 + bonus * 2 + (i + w->len == len ? 5 : 0);
        if (s > best) {
            best = s;
            *where = i;
        }
        if (bonus >= EXACT_ENOUGH)
            break;
    }
    return best;
}

static int regex_score(struct matcher *m, const char *text, size_t len)
{
    size_t from, to;
    if (!regex_match(m->regex, text, len, &from, &to))
        return -1;
    return from < len ? 100 + fuzzy_bonus_at(text, from) : 100;
}

static int score(struct matcher *m, const char *text, size_t len, bool best)
{
    int total = 0;
    if (m->mode == MATCH_REGEX)
        return m->regex ? regex_score(m, text, len) : 0;
    for (size_t i = 0; i < m->n_words; i++) {
        size_t where;
        int s = m->mode == MATCH_EXACT ? find_exact(&m->words[i], text, len, &where)
                : best                 ? fuzzy_score_best(&m->words[i], text, len, NULL)
                                       : fuzzy_score_fast(&m->words[i], text, len);
        if (s < 0)
            return -1;
        total += s;
    }
    return total;
}

int match_score(struct matcher *m, const char *text, size_t len, uint64_t mask)
{
    if (m->mask & ~mask)
        return -1;
    return score(m, text, len, false);
}

int match_score_best(struct matcher *m, const char *text, size_t len)
{
    return score(m, text, len, true);
}

/* ---- Highlighting ---- */

static size_t ranges_of_bytes(const bool *hit, size_t len, struct match_range *out, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n < max; i++) {
        if (!hit[i])
            continue;
        size_t from = i;
        while (i < len && hit[i])
            i++;
        out[n++] = (struct match_range){(uint32_t)from, (uint32_t)i};
    }
    return n;
}

size_t match_ranges(struct matcher *m, const char *text, size_t len, struct match_range *out, size_t max)
{
    if (m->mode == MATCH_REGEX) {
        size_t from, to;
        if (max == 0 || !m->regex || !regex_match(m->regex, text, len, &from, &to) || from == to)
            return 0;
        out[0] = (struct match_range){(uint32_t)from, (uint32_t)to};
        return 1;
    }
    bool hit[FUZZY_TEXT_MAX] = {false};
    if (len > FUZZY_TEXT_MAX)
        len = FUZZY_TEXT_MAX;
    for (size_t i = 0; i < m->n_words; i++) {
        const struct fuzzy_word *w = &m->words[i];
        uint32_t at[FUZZY_WORD_MAX];
        size_t where;
        if (m->mode == MATCH_EXACT) {
            if (find_exact(w, text, len, &where) >= 0)
                memset(hit + where, true, w->len);
        } else if (fuzzy_score_best(w, text, len, at) >= 0) {
            for (size_t k = 0; k < w->len; k++)
                hit[at[k]] = true;
        }
    }
    return ranges_of_bytes(hit, len, out, max);
}

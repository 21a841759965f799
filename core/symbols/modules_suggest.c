/* Nearest names for one that matched nothing: the edit distance of Damerau and Levenshtein (optimal
 * string alignment), case folded, against the short name and its last component. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/symbols/demangle.h"
#include "core/symbols/modules.h"

#define WORD_MAX 64
#define SUGGEST_MAX 8

struct candidate {
    unsigned distance;
    char *name;
};

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

/* At most limit + 1: beyond that the exact value does not matter. */
static unsigned edit_distance(const char *a, size_t al, const char *b, size_t bl, unsigned limit)
{
    unsigned rows[3][WORD_MAX + 1];
    unsigned *prev2 = rows[0], *prev = rows[1], *row = rows[2];
    if (al > WORD_MAX || bl > WORD_MAX || (al > bl ? al - bl : bl - al) > limit)
        return limit + 1;
    for (size_t j = 0; j <= bl; j++)
        prev[j] = (unsigned)j;
    for (size_t i = 1; i <= al; i++) {
        unsigned best = row[0] = (unsigned)i;
        int ca = tolower((unsigned char)a[i - 1]);
        for (size_t j = 1; j <= bl; j++) {
            int cb = tolower((unsigned char)b[j - 1]);
            row[j] = min3(prev[j] + 1, row[j - 1] + 1, prev[j - 1] + (ca != cb));
            if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
                cb == tolower((unsigned char)a[i - 2]) && prev2[j - 2] + 1 < row[j])
                row[j] = prev2[j - 2] + 1;
            if (row[j] < best)
                best = row[j];
        }
        if (best > limit)
            return limit + 1;
        unsigned *recycled = prev2;
        prev2 = prev;
        prev = row;
        row = recycled;
    }
    return prev[bl];
}

static const char *last_component(const char *name)
{
    const char *last = name;
    for (const char *p = name; (p = strstr(p, "::"));)
        last = p += 2;
    return last;
}

static unsigned distance_to(const char *wanted, const char *name, unsigned limit)
{
    size_t len = strlen(wanted);
    unsigned d = edit_distance(wanted, len, name, strnlen(name, WORD_MAX + 1), limit);
    const char *last = last_component(name);
    if (last != name) {
        unsigned e = edit_distance(wanted, len, last, strnlen(last, WORD_MAX + 1), limit);
        if (e < d)
            d = e;
    }
    return d;
}

/* Keeps best sorted; equal names count once; name is copied when it gets in. */
static size_t keep_best(struct candidate *best, size_t have, size_t n, unsigned distance,
                        const char *name)
{
    for (size_t i = 0; i < have; i++)
        if (strcmp(best[i].name, name) == 0)
            return have;
    if (have == n) {
        if (n == 0 || best[have - 1].distance <= distance)
            return have;
        free(best[--have].name);
    }
    size_t at = have;
    while (at > 0 && best[at - 1].distance > distance) {
        best[at] = best[at - 1];
        at--;
    }
    best[at] = (struct candidate){distance, xstrdup(name)};
    return have + 1;
}

static unsigned limit_of(const char *wanted)
{
    size_t len = strlen(wanted);
    return len / 3 > 2 ? (unsigned)(len / 3) : len > 3 ? 2 : 1;
}

/* As written, and as C++ names are shown: without template arguments and parameters. */
#define FORMS 2

size_t modules_suggest(struct modules *m, const char *name, char **out, size_t n)
{
    struct candidate best[SUGGEST_MAX];
    char *plain = xstrdup(name);
    const char *forms[FORMS] = {name, plain};
    size_t have = 0;
    demangle_shorten(plain);
    if (n > SUGGEST_MAX)
        n = SUGGEST_MAX;
    for (size_t i = 0; i < modules_count(m); i++) {
        const struct symtab *t = modules_symtab(m, i, NULL);
        for (size_t k = 0; t && k < symtab_all_count(t); k++) {
            struct symbol s;
            symtab_all_get(t, k, &s);
            if (s.flags & SYMBOL_PLT)
                continue;
            char *readable = demangle(s.name, DEMANGLE_SHORT);
            const char *shown = readable ? readable : s.name;
            for (size_t f = 0; f < FORMS; f++) {
                unsigned limit = limit_of(forms[f]), d = distance_to(forms[f], shown, limit);
                if (*forms[f] && d <= limit)
                    have = keep_best(best, have, n, d, shown);
            }
            free(readable);
        }
    }
    for (size_t i = 0; i < have; i++)
        out[i] = best[i].name;
    free(plain);
    return have;
}

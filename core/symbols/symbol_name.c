#include "core/symbols/symbol_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/symbols/demangle.h"

static size_t underscores(const char *name)
{
    return strspn(name, "_");
}

static int compare_names(const char *a, const char *b)
{
    size_t au = underscores(a), bu = underscores(b);
    if (au != bu)
        return au < bu ? -1 : 1;
    size_t alen = strlen(a), blen = strlen(b);
    return alen == blen ? 0 : alen > blen ? -1 : 1;
}

/* Names that differ in one digit are variants of one constructor or destructor: they read the same. */
static bool same_but_a_digit(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    return isdigit((unsigned char)a[i]) && isdigit((unsigned char)b[i]) && strcmp(a + i + 1, b + i + 1) == 0;
}

int symbol_name_compare(const char *a, const char *b)
{
    if ((!demangle_is_mangled(a) && !demangle_is_mangled(b)) || same_but_a_digit(a, b))
        return compare_names(a, b);
    char *ra = demangle_or_copy(a, DEMANGLE_NO_ARGS), *rb = demangle_or_copy(b, DEMANGLE_NO_ARGS);
    int c = compare_names(ra, rb);
    free(ra);
    free(rb);
    return c;
}

/* Where the suffix ".WORD.N" or ".WORD" begins that ends raw[0, len); len when it is none of that word. */
static size_t suffix_at(const char *raw, size_t len, const char *word, bool numbered)
{
    size_t n = strlen(word), end = len;
    while (end > 0 && raw[end - 1] >= '0' && raw[end - 1] <= '9')
        end--;
    if (end < len && end > 0 && raw[end - 1] == '.')
        end--;
    else if (numbered || end < len)
        return len;
    bool is = end > n + 1 && raw[end - n - 1] == '.' && memcmp(raw + end - n, word, n) == 0;
    return is ? end - n - 1 : len;
}

size_t symbol_name_base(const char *raw)
{
    static const char *const copies[] = {"isra", "constprop", "lto_priv", "llvm"};
    size_t len = strlen(raw);
    for (size_t before = len + 1; before != len;) {
        before = len;
        for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
            len = suffix_at(raw, len, copies[i], true);
    }
    return len;
}

bool symbol_name_is_cold(const char *raw)
{
    size_t len = strlen(raw);
    return suffix_at(raw, len, "cold", false) < len;
}

#include "tui/ui/name.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/utf8.h"

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* The length of an operator's name at s ("operator<<"), 0 when there is none. Conversions
 * ("operator int") count as the word alone. */
static size_t operator_length(const char *name, const char *s)
{
    static const char word[] = "operator";
    const size_t n = sizeof word - 1;
    if (strncmp(s, word, n) != 0 || (s > name && is_word(s[-1])) || is_word(s[n]))
        return 0;
    if (strncmp(s + n, "()", 2) == 0 || strncmp(s + n, "[]", 2) == 0)
        return n + 2;
    return n + strspn(s + n, "<>=!+-*/%&|^~,");
}

/* The index behind the bracket that closes the one at s[0], or 0 when none does. */
static size_t matching(const char *name, const char *s)
{
    const char open = s[0], close = open == '(' ? ')' : open == '<' ? '>' : '}';
    size_t depth = 0;
    for (size_t i = 0; s[i];) {
        size_t op = operator_length(name, s + i);
        if (op) {
            i += op;
            continue;
        }
        if (open == '<' && s[i] == '-' && s[i + 1] == '>') {
            i += 2;
            continue;
        }
        if (s[i] == open)
            depth++;
        else if (s[i] == close && --depth == 0)
            return i + 1;
        i++;
    }
    return 0;
}

struct writer {
    char *out;
    size_t size, len;
};

static void put(struct writer *w, const char *s, size_t n)
{
    for (size_t i = 0; i < n && w->len + 1 < w->size; i++)
        w->out[w->len++] = s[i];
}

static bool keeps_parenthesis(const char *s)
{
    return strncmp(s, "(anonymous", 10) == 0;
}

size_t name_write(char *out, size_t size, const char *name, unsigned parts)
{
    struct writer w = {.out = out, .size = size};
    for (const char *s = name; *s;) {
        size_t op = operator_length(name, s), skip = 0;
        if (op) {
            put(&w, s, op);
            s += op;
            continue;
        }
        if (parts != NAME_WHOLE && *s == '(' && s > name && !keeps_parenthesis(s) && (skip = matching(name, s)) != 0) {
            /* What follows parameters is a qualifier or, for a local entity, its own path. */
            if (strncmp(s + skip, "::", 2) != 0 && s[skip] != '#' && s[skip] != '}') {
                put(&w, s, parts & NAME_PARAMETERS ? strlen(s) : 0);
                break;
            }
            s += skip;
            continue;
        }
        if (!(parts & NAME_TEMPLATES) && *s == '<' && s > name && (skip = matching(name, s)) != 0) {
            /* Rust: "<T as Trait>::f" begins a path and "::<T>" ends in one. */
            if (w.len >= 2 && out[w.len - 1] == ':' && out[w.len - 2] == ':')
                w.len -= 2;
            s += skip;
            continue;
        }
        if (!(parts & NAME_SCOPES) && strncmp(s, "::", 2) == 0 && s[2] && s[2] != '<') {
            w.len = 0;
            s += 2;
            continue;
        }
        if ((*s == '{' || *s == '<' || *s == '(') && (skip = matching(name, s)) != 0) {
            put(&w, s, skip);
            s += skip;
            continue;
        }
        put(&w, s++, 1);
    }
    if (w.len == 0)
        put(&w, name, strlen(name));
    if (size)
        out[w.len] = '\0';
    return w.len;
}

size_t name_cut(char *out, size_t size, const char *text, size_t max_cols, uint32_t ellipsis)
{
    struct writer w = {.out = out, .size = size};
    char end[4];
    const size_t len = strlen(text);
    if (utf8_cols(text, len) <= max_cols) {
        put(&w, text, len);
    } else if (max_cols < 3) { /* two letters say more than one and an ellipsis */
        put(&w, text, utf8_cut(text, len, max_cols, NULL));
    } else {
        put(&w, text, utf8_cut(text, len, max_cols - 1, NULL));
        put(&w, end, utf8_encode(ellipsis, end));
    }
    out[w.len] = '\0';
    return w.len;
}

size_t name_fit(char *out, size_t size, const char *name, bool overload, size_t max_cols, uint32_t ellipsis)
{
    static const unsigned parts[2][3] = {
        {NAME_WHOLE, NAME_SCOPES | NAME_TEMPLATES, NAME_SCOPES},
        {NAME_WHOLE, NAME_SCOPES | NAME_PARAMETERS, NAME_PARAMETERS},
    };
    size_t len;
    for (int i = 0; i < 3; i++) {
        len = name_write(out, size, name, parts[overload][i]);
        if (utf8_cols(out, len) <= max_cols)
            return len;
    }
    len = name_write(out, size, name, 0);
    /* Room for "(", a letter of a parameter and the ellipsis. */
    if (overload && utf8_cols(out, len) + 3 <= max_cols)
        name_write(out, size, name, NAME_PARAMETERS);
    return name_cut(out, size, out, max_cols, ellipsis);
}

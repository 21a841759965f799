#include "core/base/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

size_t utf8_decode(const char *s, size_t len, uint32_t *cp)
{
    const unsigned char *u = (const unsigned char *)s;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t need;
    uint32_t v;

    if (u[0] < 0x80) {
        *cp = u[0];
        return 1;
    }
    if (u[0] >= 0xc2 && u[0] < 0xe0) {
        need = 2;
        v = u[0] & 0x1fu;
    } else if (u[0] >= 0xe0 && u[0] < 0xf0) {
        need = 3;
        v = u[0] & 0x0fu;
    } else if (u[0] >= 0xf0 && u[0] < 0xf5) {
        need = 4;
        v = u[0] & 0x07u;
    } else {
        *cp = UTF8_INVALID;
        return 1;
    }
    for (size_t i = 1; i < need; i++) {
        if (i >= len || (u[i] & 0xc0) != 0x80) {
            *cp = UTF8_INVALID;
            return 1;
        }
        v = v << 6 | (u[i] & 0x3fu);
    }
    if (v < least[need] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff)) {
        *cp = UTF8_INVALID;
        return 1;
    }
    *cp = v;
    return need;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        cp = UTF8_INVALID;
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

int utf8_cp_cols(uint32_t cp)
{
    if (cp >= 0x20 && cp < 0x7f)
        return 1;
    if (utf8_is_unsafe(cp))
        return 1;
    int w = wcwidth((wchar_t)cp);
    return w < 0 ? 1 : w;
}

size_t utf8_cols(const char *s, size_t len)
{
    size_t cols;
    utf8_cut(s, len, SIZE_MAX, &cols);
    return cols;
}

size_t utf8_cut(const char *s, size_t len, size_t max_cols, size_t *cols)
{
    size_t at = 0, width = 0;
    while (at < len) {
        uint32_t cp;
        size_t n = utf8_decode(s + at, len - at, &cp);
        size_t w = (size_t)utf8_cp_cols(cp);
        if (w > max_cols - width)
            break;
        width += w;
        at += n;
    }
    if (cols)
        *cols = width;
    return at;
}

int utf8_is_unsafe(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029 ||
           (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) || cp == 0x200e ||
           cp == 0x200f || cp == 0x061c;
}

#define UNIT_MAX 17 /* what one character becomes at most: four bytes as \x.., and a NUL */

/* One unit of escaped output for the n bytes at s; returns its length. */
static size_t escape_unit(char unit[UNIT_MAX], const char *s, size_t n, uint32_t cp)
{
    switch (cp) {
    case '\t':
        memcpy(unit, "\\t", 2);
        return 2;
    case '\n':
        memcpy(unit, "\\n", 2);
        return 2;
    case '\r':
        memcpy(unit, "\\r", 2);
        return 2;
    case '\\':
        memcpy(unit, "\\\\", 2);
        return 2;
    default:
        break;
    }
    if (!utf8_is_unsafe(cp) && !(cp == UTF8_INVALID && n == 1)) {
        memcpy(unit, s, n);
        return n;
    }
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += (size_t)sprintf(unit + len, "\\x%02x", (unsigned)(unsigned char)s[i]);
    return len;
}

/* Writes what becomes of one character, s[0..n) in the text, and returns its length. */
typedef size_t write_unit(char unit[UNIT_MAX], const char *s, size_t n, uint32_t cp);

/* Character by character, as many as fit whole. */
static size_t rewrite(char *out, size_t size, const char *s, size_t len, write_unit *write)
{
    size_t used = 0;
    for (size_t at = 0; at < len;) {
        uint32_t cp;
        char unit[UNIT_MAX];
        size_t n = utf8_decode(s + at, len - at, &cp);
        size_t m = write(unit, s + at, n, cp);
        if (used + m + 1 > size)
            break;
        memcpy(out + used, unit, m);
        used += m;
        at += n;
    }
    if (size)
        out[used] = '\0';
    return used;
}

size_t utf8_escape(char *out, size_t size, const char *s, size_t len)
{
    return rewrite(out, size, s, len, escape_unit);
}

static size_t readable_unit(char unit[UNIT_MAX], const char *s, size_t n, uint32_t cp)
{
    return cp == '\\' ? utf8_encode(cp, unit) : escape_unit(unit, s, n, cp);
}

size_t utf8_readable(char *out, size_t size, const char *s, size_t len)
{
    return rewrite(out, size, s, len, readable_unit);
}

static size_t valid_unit(char unit[UNIT_MAX], const char *s, size_t n, uint32_t cp)
{
    (void)s;
    (void)n;
    return utf8_encode(cp, unit);
}

size_t utf8_valid(char *out, size_t size, const char *s, size_t len)
{
    return rewrite(out, size, s, len, valid_unit);
}

/* What is not safe to show lies below 0x10000. */
static size_t json_unit(char unit[UNIT_MAX], const char *s, size_t n, uint32_t cp)
{
    static const char named[] = "\"\\\t\n\r", letters[] = "\"\\tnr";
    const char *known = cp && cp < 0x80 ? strchr(named, (int)cp) : NULL;
    if (known)
        return (size_t)sprintf(unit, "\\%c", letters[known - named]);
    return utf8_is_unsafe(cp) ? (size_t)sprintf(unit, "\\u%04x", (unsigned)cp) : valid_unit(unit, s, n, cp);
}

size_t utf8_json(char *out, size_t size, const char *s, size_t len)
{
    return rewrite(out, size, s, len, json_unit);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t utf8_unescape(char *s)
{
    static const char named[] = "tnr\\", plain[] = "\t\n\r\\";
    char *out = s;
    for (const char *p = s; *p; p++) {
        const char *which = p[0] == '\\' && p[1] ? strchr(named, p[1]) : NULL;
        if (which) {
            *out++ = plain[which - named];
            p++;
        } else if (p[0] == '\\' && p[1] == 'x' && hex_digit(p[2]) >= 0 && hex_digit(p[3]) >= 0) {
            *out++ = (char)(hex_digit(p[2]) * 16 + hex_digit(p[3]));
            p += 3;
        } else {
            *out++ = *p;
        }
    }
    *out = '\0';
    return (size_t)(out - s);
}

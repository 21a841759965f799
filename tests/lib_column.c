#include "tests/lib_column.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/term/glyph.h"

/* "1,204" "-2.50 us" "+3" "12.3" "97K": what it says; text: NAN. */
static double value_of(const char *cell)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"K", 1e3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}};
    char digits[64] = "", *end;
    size_t n = 0;
    for (; *cell && (isdigit((unsigned char)*cell) || strchr("+-.,", *cell)) && n + 1 < sizeof digits; cell++)
        if (*cell != ',')
            digits[n++] = *cell;
    double v = strtod(digits, &end);
    if (n == 0 || *end)
        return NAN;
    while (*cell == ' ')
        cell++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(cell, units[i].unit) == 0)
            return v * units[i].factor;
    return *cell ? NAN : v;
}

static bool ends_title(char c)
{
    return c == ' ' || c == '\0' || c == (char)glyph(glyphs_of(GLYPHS_ASCII), GLYPH_SORT_DOWN) ||
           c == (char)glyph(glyphs_of(GLYPHS_ASCII), GLYPH_SORT_UP);
}

const char *column_title(const char *header, const char *title)
{
    size_t len = strlen(title);
    for (const char *at = header; (at = strstr(at, title)); at++)
        if ((at == header || ends_title(at[-1])) && ends_title(at[len]) && strncmp(at + len, " DIFF", 5) != 0)
            return at;
    return NULL;
}

void column_cell(const char *header, const char *row, const char *title, char *out, size_t size)
{
    const char *at = column_title(header, title);
    assert_non_null(at);
    bool text = strcmp(title, "FUNCTION") == 0 || strcmp(title, "COMMAND") == 0;
    size_t start = (size_t)(at - header), end = text ? strlen(row) : start + strlen(title);
    while (!text && start > 0 && ends_title(header[start - 1]))
        start--;
    end = end < strlen(row) ? end : strlen(row);
    start = start < end ? start : end;
    while (start < end && (row[start] == ' ' || row[start] == '>'))
        start++;
    while (end > start && row[end - 1] == ' ')
        end--;
    snprintf(out, size, "%.*s", (int)(end - start), row + start);
}

int column_order(const char *title, const char *a, const char *b)
{
    double x = value_of(a), y = value_of(b);
    if (strstr(title, "DIFF")) { /* what differs most, whichever way */
        x = fabs(x);
        y = fabs(y);
    }
    if (isnan(x) || isnan(y))
        return strcasecmp(a, b);
    return (x > y) - (x < y);
}

bool column_is_sorted(const char *header, const char *title)
{
    const char *at = column_title(header, title), *behind = at ? at + strlen(title) : NULL;
    return at && ((at > header && at[-1] != ' ' && ends_title(at[-1])) || (*behind && *behind != ' '));
}

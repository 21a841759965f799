#include "core/base/fmt.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    uint64_t ns;
    const char *name;
} time_units[] = {{1000000000u, "s"}, {1000000u, "ms"}, {1000u, "us"}, {1u, "ns"}};

char *fmt_duration(char *out, uint64_t ns)
{
    if (ns < 1000) {
        snprintf(out, FMT_MAX, "%" PRIu64 " ns", ns);
        return out;
    }
    /* A value that rounds up to 1000 of its unit is written in the next unit. */
    size_t u = ns >= 999500000u ? 0 : ns >= 999500u ? 1 : 2;
    double v = (double)ns / (double)time_units[u].ns;
    int decimals = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
    snprintf(out, FMT_MAX, "%.*f %s", decimals, v, time_units[u].name);
    return out;
}

char *fmt_time(char *out, int64_t ns, uint64_t step_ns)
{
    uint64_t abs_ns = ns < 0 ? (uint64_t)0 - (uint64_t)ns : (uint64_t)ns;
    uint64_t scale = abs_ns > step_ns ? abs_ns : step_ns;
    size_t u = scale >= 1000000000u ? 0 : scale >= 1000000u ? 1 : scale >= 1000u ? 2 : 3;
    int decimals = 0;
    uint64_t digit = time_units[u].ns;
    while (digit > 1 && digit > step_ns) {
        digit /= 10;
        decimals++;
    }
    /* Integer arithmetic: a double has no room for nanoseconds since boot at full precision. */
    uint64_t rounded = (abs_ns + digit / 2) / digit;
    uint64_t whole = rounded / (time_units[u].ns / digit);
    uint64_t part = rounded % (time_units[u].ns / digit);
    char digits[24]; /* the part behind the point, zero-padded; its last `decimals` digits count */
    int len = snprintf(digits, sizeof digits, "%09" PRIu64, part);
    snprintf(out, FMT_MAX, "%s%" PRIu64 "%s%s %s", ns < 0 ? "-" : "", whole, decimals ? "." : "",
             decimals ? digits + len - decimals : "", time_units[u].name);
    return out;
}

char *fmt_size(char *out, uint64_t bytes)
{
    static const char units[] = "KMGTPE";
    if (bytes < 1024) {
        snprintf(out, FMT_MAX, "%" PRIu64, bytes);
        return out;
    }
    double v = (double)bytes / 1024;
    size_t u = 0;
    while (v >= 1023.5 && u + 1 < sizeof units - 1) {
        v /= 1024;
        u++;
    }
    snprintf(out, FMT_MAX, "%.*f%c", v < 99.95 && u > 0 ? 1 : 0, v, units[u]);
    return out;
}

char *fmt_count(char *out, uint64_t n)
{
    char plain[FMT_MAX];
    int len = snprintf(plain, sizeof plain, "%" PRIu64, n);
    char *to = out;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = plain[i];
    }
    *to = '\0';
    return out;
}

char *fmt_counted(char *out, uint64_t n, const char *one, const char *many)
{
    size_t len = strlen(fmt_count(out, n));
    snprintf(out + len, FMT_MAX - len, " %s", n == 1 ? one : many);
    return out;
}

char *fmt_count_short(char *out, uint64_t n)
{
    static const char units[] = "kMGTPE";
    if (n < 1000) {
        snprintf(out, FMT_MAX, "%" PRIu64, n);
        return out;
    }
    double v = (double)n / 1000;
    size_t u = 0;
    while (v >= 999.5 && u + 1 < sizeof units - 1) {
        v /= 1000;
        u++;
    }
    snprintf(out, FMT_MAX, "%.*f%c", v < 99.95 ? 1 : 0, v, units[u]);
    return out;
}

bool fmt_is_told(uint64_t nth)
{
    while (nth >= 10 && nth % 10 == 0)
        nth /= 10;
    return nth == 1;
}

unsigned fmt_permille(uint64_t part, uint64_t whole)
{
    __extension__ typedef unsigned __int128 wide;
    if (part >= whole)
        return whole ? 1000 : 0;
    const unsigned rounded = (unsigned)(((wide)part * 2000 + whole) / ((wide)whole * 2));
    return rounded < 1000 ? rounded : 999;
}

char *fmt_percent(char *out, uint64_t part, uint64_t whole)
{
    const unsigned permille = fmt_permille(part, whole);
    snprintf(out, FMT_MAX, "%u.%u", permille / 10, permille % 10);
    return out;
}

char *fmt_age(char *out, uint64_t seconds)
{
    uint64_t days = seconds / 86400, h = seconds / 3600 % 24, m = seconds / 60 % 60;
    if (days)
        snprintf(out, FMT_MAX, "%" PRIu64 "d%02" PRIu64 "h", days, h);
    else
        snprintf(out, FMT_MAX, "%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64, h, m, seconds % 60);
    return out;
}

/* Reads DIGITS[.DIGITS] at s as value·scale without going through a double for whole numbers.
 * Returns the first byte behind it, or NULL. */
static const char *parse_decimal(const char *s, double *value)
{
    if (!isdigit((unsigned char)*s))
        return NULL;
    double v = 0, place = 1;
    for (; isdigit((unsigned char)*s); s++)
        v = v * 10 + (*s - '0');
    if (*s == '.') {
        for (s++; isdigit((unsigned char)*s); s++) {
            place /= 10;
            v += (*s - '0') * place;
        }
    }
    *value = v;
    return s;
}

int fmt_parse_duration(const char *s, uint64_t *ns, struct err *err)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    double v = 0;
    const char *unit = parse_decimal(s, &v);
    for (size_t i = 0; unit && i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].name) != 0)
            continue;
        double total = v * units[i].ns + 0.5;
        if (total >= 9.2e18)
            return err_set(err, MTUI_E_INVAL, "the duration '%s' is too long", s);
        *ns = (uint64_t)total;
        return 0;
    }
    return err_set(err, MTUI_E_INVAL,
                   "'%s' is no duration: write a number and ns, us, ms, s, m or h, such as 2ms", s);
}

int fmt_parse_count(const char *s, uint64_t *n, struct err *err)
{
    static const char units[] = "kMG";
    double v = 0, scale = 1;
    if (fmt_parse_u64(s, 0, UINT64_MAX, n, NULL) == 0)
        return 0;
    const char *unit = parse_decimal(s, &v);
    const char *known = unit && *unit ? strchr(units, *unit) : NULL;
    if (!known || unit[1])
        return err_set(err, MTUI_E_INVAL, "'%s' is no count: write it as 1200, 12.4k or 3M", s);
    for (const char *p = units; p <= known; p++)
        scale *= 1000;
    if (v * scale >= 9.2e18)
        return err_set(err, MTUI_E_INVAL, "the count '%s' is too large", s);
    *n = (uint64_t)(v * scale + 0.5);
    return 0;
}

int fmt_parse_size(const char *s, uint64_t *bytes, struct err *err)
{
    static const char units[] = "KMGT";
    double v = 0, scale = 1;
    const char *unit = parse_decimal(s, &v);
    if (unit && *unit) {
        const char *at = strchr(units, toupper((unsigned char)*unit));
        const char *rest = unit + 1;
        if (!at || !(*rest == '\0' || strcmp(rest, "B") == 0 || strcmp(rest, "iB") == 0))
            unit = NULL;
        for (const char *k = units; at && k <= at; k++)
            scale *= 1024;
    }
    if (!unit)
        return err_set(err, MTUI_E_INVAL, "'%s' is no size: write bytes or 64K, 16M, 1G", s);
    if (v * scale >= 9.2e18)
        return err_set(err, MTUI_E_INVAL, "the size '%s' is too large", s);
    *bytes = (uint64_t)(v * scale);
    return 0;
}

int fmt_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *value, struct err *err)
{
    char *end;
    errno = 0;
    unsigned long long v = isdigit((unsigned char)*s) ? strtoull(s, &end, 10) : (end = NULL, 0ULL);
    if (!end || *end || errno == ERANGE || v < min || v > max)
        return err_set(err, MTUI_E_INVAL,
                       "'%s' is not a whole number from %" PRIu64 " to %" PRIu64, s, min, max);
    *value = v;
    return 0;
}

#include "core/trigger/trigger_if.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

static bool take(const char **s, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*s, word, n) != 0)
        return false;
    *s = skip_blanks(*s + n);
    return true;
}

struct cast {
    const char *text;
    bool is_signed, is_32;
};

static const struct cast casts[] = {
    {"(int)", true, true},
    {"(unsigned)", false, true},
    {"(long)", true, false},
    {"(ulong)", false, false},
};

static int parse_register(const char **s, struct trigger_if_test *t, struct err *err)
{
    const char *at = *s;
    if (take(s, "ret")) {
        t->arg = 0;
    } else if (!strncmp(at, "arg", 3) && at[3] >= '1' && at[3] <= '0' + TRIGGER_IF_ARGS) {
        t->arg = (uint8_t)(at[3] - '0');
        *s = skip_blanks(at + 4);
    } else {
        return err_set(err, MTUI_E_INVAL,
                       "condition \"%s\": it begins with arg1 to arg6 or ret", at);
    }
    return 0;
}

static int parse_operator(const char **s, struct trigger_if_test *t, struct err *err)
{
    static const char *const words[] = {"==", "!=", "<=", ">=", "<", ">", "&"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!take(s, words[i]))
            continue;
        t->op = (uint8_t)i;
        return 0;
    }
    return err_set(err, MTUI_E_INVAL, "condition: \"%s\" is none of == != < <= > >= &", *s);
}

static int parse_number(const char **s, struct trigger_if_test *t, struct err *err)
{
    const char *at = *s, *digits = *at == '-' ? at + 1 : at;
    char *end = NULL;
    bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    errno = 0;
    if (isdigit((unsigned char)*digits))
        t->value = strtoull(digits, &end, hex ? 16 : 10);
    bool ends = end && (*end == '\0' || isblank((unsigned char)*end));
    if (!ends || (hex && end == digits + 2))
        return err_set(err, MTUI_E_INVAL, "condition: \"%s\" is no number (42, -1, 0x1000)", at);
    if (errno || (*at == '-' && t->value > (uint64_t)INT64_MAX + 1))
        return err_set(err, MTUI_E_INVAL, "condition: %s does not fit 64 bits", at);
    t->is_signed = *at == '-' || (!hex && t->value <= INT64_MAX);
    if (*at == '-')
        t->value = 0 - t->value;
    *s = skip_blanks(end);
    return 0;
}

static bool fits_32(const struct trigger_if_test *t)
{
    int64_t v = (int64_t)t->value;
    return t->is_signed ? v >= INT32_MIN && v <= (int64_t)UINT32_MAX : t->value <= UINT32_MAX;
}

static int parse_test(const char **s, struct trigger_if_test *t, struct err *err)
{
    const struct cast *cast = NULL;
    for (size_t i = 0; i < sizeof casts / sizeof *casts && !cast; i++)
        if (take(s, casts[i].text))
            cast = &casts[i];
    int rc = parse_register(s, t, err);
    if (rc == 0)
        rc = parse_operator(s, t, err);
    if (rc == 0)
        rc = parse_number(s, t, err);
    if (rc < 0)
        return rc;
    if (!cast)
        return 0;
    t->is_signed = cast->is_signed;
    t->is_32 = cast->is_32;
    if (t->is_32 && !fits_32(t))
        return err_set(err, MTUI_E_INVAL, "condition: the number does not fit the 32 bits of %s",
                       cast->text);
    return 0;
}

int trigger_if_parse(const char *text, struct trigger_if *out, struct err *err)
{
    struct trigger_if c = {0};
    const char *s = skip_blanks(text);
    do {
        if (c.n == TRIGGER_IF_MAX)
            return err_set(err, MTUI_E_LIMIT, "condition: more than %d comparisons",
                           TRIGGER_IF_MAX);
        int rc = parse_test(&s, &c.test[c.n++], err);
        if (rc < 0)
            return rc;
    } while (take(&s, "and "));
    if (*s)
        return err_set(err, MTUI_E_INVAL,
                       "condition: \"%s\" is too much; comparisons are joined by \"and\"", s);
    *out = c;
    return 0;
}

bool trigger_if_needs_ret(const struct trigger_if *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->test[i].arg == 0)
            return true;
    return false;
}

static bool compare_signed(enum trigger_if_op op, int64_t a, int64_t b)
{
    switch (op) {
    case TRIGGER_IF_EQ:
        return a == b;
    case TRIGGER_IF_NE:
        return a != b;
    case TRIGGER_IF_LE:
        return a <= b;
    case TRIGGER_IF_GE:
        return a >= b;
    case TRIGGER_IF_LT:
        return a < b;
    case TRIGGER_IF_GT:
        return a > b;
    case TRIGGER_IF_BITS:
        return (a & b) != 0;
    }
    return false;
}

/* The order of unsigned numbers is that of signed ones with the sign bit turned over. */
static bool compare(const struct trigger_if_test *t, uint64_t value)
{
    uint64_t want = t->value, sign = (uint64_t)1 << 63;
    enum trigger_if_op op = (enum trigger_if_op)t->op;
    if (t->is_32) {
        value = t->is_signed ? (uint64_t)(int64_t)(int32_t)(uint32_t)value : (uint32_t)value;
        want = t->is_signed ? (uint64_t)(int64_t)(int32_t)(uint32_t)want : (uint32_t)want;
    }
    if (!t->is_signed && op != TRIGGER_IF_BITS) {
        value ^= sign;
        want ^= sign;
    }
    return compare_signed(op, (int64_t)value, (int64_t)want);
}

bool trigger_if_holds(const struct trigger_if *c, const uint64_t arg[TRIGGER_IF_ARGS],
                      const uint64_t *ret)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct trigger_if_test *t = &c->test[i];
        if (t->arg == 0 && !ret)
            return false;
        if (!compare(t, t->arg == 0 ? *ret : arg[t->arg - 1]))
            return false;
    }
    return true;
}

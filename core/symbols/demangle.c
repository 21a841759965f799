#include "core/symbols/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

/* Underscores before the prefix: Mach-O style and JIT writers add one or two. */
static const char *mangled_part(const char *raw)
{
    const char *s = raw;
    for (int i = 0; i < 2 && s[0] == '_' && s[1] == '_'; i++)
        s++;
    if (s[0] == '_' && (s[1] == 'Z' || s[1] == 'R'))
        return s;
    return NULL;
}

bool demangle_is_mangled(const char *raw)
{
    return raw[0] == '_' && mangled_part(raw) != NULL;
}

/* ---- Shortening ---- */

/* Length of an operator's own punctuation at s (which stands after "operator"), so that it is not
 * taken for brackets. 0 when s does not begin one. */
static size_t operator_punctuation(const char *s)
{
    static const char *const ops[] = {"<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=",
                                      ">=",  "->",  "<",   ">"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        size_t n = strlen(ops[i]);
        if (strncmp(s, ops[i], n) == 0)
            return n;
    }
    return 0;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool at_operator(const char *name, const char *s)
{
    return strncmp(s, "operator", 8) == 0 && !is_word(s[8]) && (s == name || !is_word(s[-1]));
}

/* The end of the bracket that opens at s (one past the closing one), or the end of the string. Arrows
 * and comparison operators inside are not brackets. */
static const char *skip_bracket(const char *name, const char *s)
{
    int angle = 0, round = 0;
    const char *p = s;
    while (*p) {
        if (at_operator(name, p)) {
            p += 8;
            p += operator_punctuation(p);
            continue;
        }
        if (p[0] == '-' && p[1] == '>') {
            p += 2;
            continue;
        }
        if (*p == '(' || *p == '[' || *p == '{')
            round++;
        else if (*p == ')' || *p == ']' || *p == '}')
            round--;
        else if (*p == '<' && round == 0)
            angle++;
        else if (*p == '>' && round == 0)
            angle--;
        p++;
        if (round <= 0 && angle <= 0)
            return p;
    }
    return p;
}

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Round brackets that are part of a name, not a parameter list. */
static bool is_named_bracket(const char *s)
{
    return starts(s, "(anonymous namespace)") || starts(s, "(anonymous class)");
}

/* Rust writes a path inside angle brackets where a name begins: <T as Trait>::f, <impl T>::f. C++ has
 * template arguments only after a name. */
static bool opens_rust_path(const char *name, const char *s)
{
    return *s == '<' && (s == name || (s >= name + 2 && s[-1] == ':' && s[-2] == ':' &&
                                       (starts(s, "<impl ") || strstr(s, " as "))));
}

/* Where the parameter list begins, or the end. Brackets inside template arguments do not count. */
static char *parameter_list(char *name)
{
    for (char *p = name; *p;) {
        if (at_operator(name, p)) {
            p += 8;
            p += operator_punctuation(p);
        } else if (*p == '(' && is_named_bracket(p)) {
            p = strchr(p, ')') + 1;
        } else if (*p == '(' && p > name) {
            /* "f()::{lambda()#1}::operator()": what follows a bracket and "::" is still the name. */
            const char *end = skip_bracket(name, p);
            if (starts(end, " const::"))
                end += 6;
            if (!starts(end, "::"))
                return p;
            p += end - p;
        } else if (*p == '<' || *p == '{' || *p == '(') {
            p += skip_bracket(name, p) - p;
        } else {
            p++;
        }
    }
    return name + strlen(name);
}

/* Copies [in, end) to out without what makes names long; out never passes in. Returns the new out. */
static char *shorten(const char *name, char *out, const char *in, const char *end, int depth)
{
    const char *begin = in;
    while (in < end) {
        size_t keep = 1;
        if (at_operator(name, in)) {
            keep = 8 + operator_punctuation(in + 8);
        } else if (opens_rust_path(begin, in) && depth < 16) {
            const char *close = skip_bracket(name, in) - 1;
            *out++ = *in++;
            if (close > in) {
                out = shorten(name, out, in, close, depth + 1);
                in = close;
            }
            continue;
        } else if (*in == '<') {
            in = skip_bracket(name, in);
            if (out >= name + 2 && out[-1] == ':' && out[-2] == ':')
                out -= 2; /* Rust's turbofish: f::<T> */
            continue;
        } else if (*in == '{') {
            keep = (size_t)(skip_bracket(name, in) - in);
        } else if (*in == '(' && !is_named_bracket(in)) {
            in = skip_bracket(name, in);
            if (starts(in, " const::"))
                in += 6;
            continue;
        }
        if (keep > (size_t)(end - in))
            keep = (size_t)(end - in);
        memmove(out, in, keep);
        out += keep;
        in += keep;
    }
    return out;
}

void demangle_shorten(char *name)
{
    char *end = parameter_list(name);
    /* A clone suffix stays: "f(int) [clone .cold]". */
    const char *suffix = *end ? skip_bracket(name, end) : end;
    const char *clone = strstr(suffix, " [clone ");
    suffix = clone ? clone : *suffix == '.' ? suffix : name + strlen(name);
    char *out = shorten(name, name, name, end, 0);
    while (out > name && out[-1] == ' ')
        out--;
    memmove(out, suffix, strlen(suffix) + 1);
}

/* ---- libiberty ---- */

struct sink {
    char *data;
    size_t len, cap;
    bool failed;
};

static void sink_add(const char *s, size_t len, void *opaque)
{
    struct sink *o = opaque;
    if (o->failed)
        return;
    if (len > DEMANGLE_MAX_OUT - o->len) {
        o->failed = true;
        return;
    }
    if (o->len + len + 1 > o->cap) {
        o->cap = (o->len + len + 1) * 2;
        o->data = xrealloc(o->data, o->cap);
    }
    memcpy(o->data + o->len, s, len);
    o->len += len;
    o->data[o->len] = '\0';
}

static bool all_hex(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isxdigit((unsigned char)s[i]) || isupper((unsigned char)s[i]))
            return false;
    return true;
}

/* "…17h0123456789abcdefE" at its end, before a clone suffix: a name of rustc's legacy mangling. */
static bool is_rust_legacy(const char *s, size_t len)
{
    return len > 24 && s[len - 1] == 'E' && memcmp(s + len - 20, "17h", 3) == 0 &&
           all_hex(s + len - 17, 16) && starts(s, "_ZN");
}

static char *run(const char *mangled, int options)
{
    struct sink o = {0};
    int ok = starts(mangled, "_R") ? 0 : cplus_demangle_v3_callback(mangled, options, sink_add, &o);
    if (!ok || o.failed || !o.data) {
        free(o.data);
        return NULL;
    }
    return o.data;
}

static char *run_rust(const char *mangled)
{
    struct sink o = {0};
    if (!rust_demangle_callback(mangled, 0, sink_add, &o) || o.failed || !o.data) {
        free(o.data);
        return NULL;
    }
    return o.data;
}

/* Length of the mangled part; a clone suffix (".cold", ".llvm.123", "@plt") follows it. */
static size_t core_length(const char *s)
{
    size_t n = strcspn(s, ".@");
    return n ? n : strlen(s);
}

char *demangle(const char *raw, enum demangle_style style)
{
    const char *s = mangled_part(raw);
    if (!s || strnlen(s, DEMANGLE_MAX_IN + 1) > DEMANGLE_MAX_IN)
        return NULL;
    size_t n = core_length(s);
    char *mangled = xstrndup(s, n), *out;
    /* rustc itself writes dots inside legacy names ("..": "::"), so the whole is tried first. */
    if (s[1] == 'R' || is_rust_legacy(s, n))
        out = run_rust(mangled);
    else if (is_rust_legacy(s, strlen(s)))
        out = run_rust(s), n = strlen(s);
    else
        out = run(mangled, style == DEMANGLE_FULL ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS);
    free(mangled);
    if (!out)
        return NULL;
    if (style == DEMANGLE_SHORT)
        demangle_shorten(out);
    if (s[n]) {
        char *with = xasprintf("%s%s", out, s + n);
        free(out);
        out = with;
    }
    return out;
}

char *demangle_or_copy(const char *raw, enum demangle_style style)
{
    char *name = demangle(raw, style);
    return name ? name : xstrdup(raw);
}

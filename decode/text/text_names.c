#include "decode/text/text_names.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

#define CACHE_SIZE 16384

/* What the last place at an address was. */
struct cached {
    uint64_t ip;
    fn_id fn; /* FN_NONE: free */
    uint32_t symbol_len, module_len;
    bool module_as_printed; /* and nothing in it ends a string early */
};

struct text_names {
    struct functions *functions;
    VEC(char) strings; /* terminated */
    struct cached cache[CACHE_SIZE];
};

struct text_names *text_names_new(struct functions *functions)
{
    struct text_names *n = xcalloc(1, sizeof *n);
    n->functions = functions;
    for (size_t i = 0; i < CACHE_SIZE; i++)
        n->cache[i].fn = FN_NONE;
    return n;
}

void text_names_free(struct text_names *n)
{
    if (!n)
        return;
    vec_free(&n->strings);
    free(n);
}

bool perf_text_equals(struct perf_text_str a, const char *b)
{
    return a.len == strlen(b) && memcmp(a.s, b, a.len) == 0;
}

static bool begins(struct perf_text_str a, const char *b)
{
    return a.len >= strlen(b) && memcmp(a.s, b, strlen(b)) == 0;
}

static bool ends(struct perf_text_str a, const char *b)
{
    size_t n = strlen(b);
    return a.len > n && memcmp(a.s + a.len - n, b, n) == 0;
}

static enum fn_kind kind_of(const struct perf_text_place *p, struct perf_text_str symbol)
{
    if (perf_text_equals(symbol, "[unknown]"))
        return FN_UNKNOWN;
    if (perf_text_equals(p->module, "[vdso]"))
        return FN_VDSO;
    if (p->ip >> 63 || begins(p->module, "[kernel") || begins(p->module, "[guest.kernel"))
        return FN_KERNEL;
    return ends(symbol, "@plt") ? FN_PLT : FN_USER;
}

/* The module as the reader of perf.data names it. */
static struct perf_text_str module_of(const struct perf_text_place *p)
{
    static const struct perf_text_str kernel = {"[kernel]", 8}, unknown = {"[unknown]", 9};
    bool nothing = p->module.len == 0 || perf_text_equals(p->module, "[unknown]");
    if (begins(p->module, "[kernel.") || begins(p->module, "[guest.kernel.") ||
        (nothing && p->ip >> 63))
        return kernel;
    return nothing ? unknown : p->module;
}

static char *add_string(struct text_names *n, struct perf_text_str s)
{
    size_t at = n->strings.len;
    for (size_t i = 0; i <= s.len; i++) {
        char c = i < s.len ? s.s[i] : '\0';
        if (!vec_try_push(&n->strings, c))
            return NULL;
    }
    return n->strings.data + at;
}

const char *text_names_string(struct text_names *n, struct perf_text_str s)
{
    n->strings.len = 0;
    return add_string(n, s);
}

static fn_id intern(struct text_names *n, const struct perf_text_place *place,
                    struct perf_text_str symbol, struct perf_text_str module)
{
    n->strings.len = 0;
    if (!add_string(n, symbol))
        return FN_NONE;
    size_t second = n->strings.len;
    if (!add_string(n, module))
        return FN_NONE;
    const char *name = n->strings.data;
    return functions_intern(n->functions, n->strings.data + second, name, name, 0,
                            kind_of(place, symbol));
}

static bool is_same(const struct text_names *n, const struct cached *c, const struct perf_text_place *p)
{
    if (c->fn == FN_NONE || c->ip != p->ip || c->symbol_len != p->symbol.len ||
        c->module_len != p->module.len || !c->module_as_printed)
        return false;
    const struct function *f = functions_get(n->functions, c->fn);
    return memcmp(f->raw, p->symbol.s, p->symbol.len) == 0 &&
           memcmp(f->module, p->module.s, p->module.len) == 0;
}

static bool is_plain(struct perf_text_str s)
{
    return s.len && !memchr(s.s, '\0', s.len);
}

fn_id text_names_find(struct text_names *n, const struct perf_text_place *p,
                      const struct perf_text_place *end)
{
    static const struct perf_text_str unknown = {"[unknown]", 9};
    struct cached *c = &n->cache[(p->ip * 0x9e3779b97f4a7c15u) >> 50];
    if (is_same(n, c, p))
        return c->fn;
    const struct perf_text_place *real = p;
    while (real + 1 < end && perf_text_equals(real->module, "inlined"))
        real++;
    struct perf_text_str module = module_of(real);
    fn_id fn = intern(n, real, p->symbol.len ? p->symbol : unknown, module);
    *c = (struct cached){.ip = p->ip,
                         .fn = fn,
                         .symbol_len = (uint32_t)p->symbol.len,
                         .module_len = (uint32_t)p->module.len,
                         .module_as_printed = module.s == p->module.s && is_plain(p->symbol) &&
                                              is_plain(p->module)};
    return fn;
}

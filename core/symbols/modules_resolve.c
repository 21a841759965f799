/* Names, patterns, lines and addresses to module addresses: modules_resolve of core/symbols/modules.h. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/path_ends.h"
#include "core/symbols/demangle.h"
#include "core/symbols/dwarf_line.h"
#include "core/symbols/modules.h"
#include "core/base/regex.h"
#include "core/symbols/symbol_name.h"
#include "core/base/vec.h"

#define RESULTS_MAX ((size_t)1 << 20)

struct search {
    struct modules *m;
    char *module;     /* the part before "module:", or NULL */
    const char *spec; /* the part after it */
    VEC(struct module_addr) found;
    size_t ifuncs;    /* matches that are resolvers only */
    struct err line_err; /* FILE:LINE: the most telling failure */
};

static const char *colon_of_line(const char *spec)
{
    const char *c = strrchr(spec, ':');
    if (!c || c == spec || !c[1] || c[-1] == ':')
        return NULL;
    return strspn(c + 1, "0123456789") == strlen(c + 1) ? c : NULL;
}

enum module_spec modules_spec_kind(const char *spec)
{
    size_t len = strlen(spec);
    if (len > 2 && spec[0] == '/' && spec[len - 1] == '/')
        return MODULE_SPEC_REGEX;
    if (spec[0] == '0' && (spec[1] == 'x' || spec[1] == 'X') && spec[2] &&
        strspn(spec + 2, "0123456789abcdefABCDEF") == len - 2)
        return MODULE_SPEC_ADDR;
    return colon_of_line(spec) ? MODULE_SPEC_LINE : MODULE_SPEC_NAME;
}

/* The single colon of "module:name" (never one of "::"), or NULL. */
static const char *colon_of_module(const char *spec)
{
    if (spec[0] == '/' && modules_spec_kind(spec) == MODULE_SPEC_REGEX)
        return NULL;
    for (const char *c = spec; (c = strchr(c, ':')); c++) {
        if (c[1] == ':') {
            c++;
            continue;
        }
        return c > spec && c[1] ? c : NULL;
    }
    return NULL;
}

/* "libc" and "libc.so" mean libc.so.6; a path, or the end of one, means that path. */
static bool module_is(const struct module *m, const char *wanted)
{
    if (path_ends_in(m->path, wanted))
        return true;
    size_t len = strlen(wanted);
    return strncmp(m->name, wanted, len) == 0 &&
           (m->name[len] == '.' || (m->name[len] == '-' && isdigit((unsigned char)m->name[len + 1])));
}

static bool wanted_module(const struct search *s, size_t i)
{
    const struct module *m = modules_at(s->m, i);
    return m->mapped && (!s->module || module_is(m, s->module));
}

/* ---- Collecting ---- */

static int add(struct search *s, size_t module, uint64_t vaddr, const struct symbol *sym,
               const char *file, int line, struct err *err)
{
    const struct module *mod = modules_at(s->m, module);
    struct module_addr a = {.module = module, .vaddr = vaddr, .line = line};
    if (!modules_file_offset(s->m, module, vaddr, &a.offset) && !mod->is_vdso)
        return 0; /* no code of the file there */
    if (s->found.len >= RESULTS_MAX)
        return err_set(err, MTUI_E_LIMIT, "%s matches more than %zu addresses", s->spec, RESULTS_MAX);
    a.addr = modules_pid(s->m) ? vaddr + mod->bias : 0;
    if (sym) {
        a.size = sym->size;
        a.flags = sym->flags;
        a.raw = xstrdup(sym->name);
        a.name = demangle_or_copy(sym->name, DEMANGLE_FULL);
    }
    a.file = file ? xstrdup(file) : NULL;
    vec_push(&s->found, a);
    return 0;
}

static void addr_free(struct module_addr *a)
{
    free((char *)(uintptr_t)a->raw);
    free((char *)(uintptr_t)a->name);
    free((char *)(uintptr_t)a->file);
}

void module_addrs_free(struct module_addrs *a)
{
    for (size_t i = 0; i < a->len; i++)
        addr_free(&a->data[i]);
    free(a->data);
    *a = (struct module_addrs){0};
}

static int addr_order(const void *a, const void *b)
{
    const struct module_addr *x = a, *y = b;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    if (x->vaddr != y->vaddr)
        return x->vaddr < y->vaddr ? -1 : 1;
    return (x->flags & SYMBOL_ALIAS) - (y->flags & SYMBOL_ALIAS);
}

/* Sorts; of several names of one address the preferred one that matched stays. */
static void hand_over(struct search *s, struct module_addrs *out)
{
    size_t n = 0;
    if (s->found.len)
        qsort(s->found.data, s->found.len, sizeof *s->found.data, addr_order);
    for (size_t i = 0; i < s->found.len; i++) {
        struct module_addr *a = &s->found.data[i];
        if (n > 0 && s->found.data[n - 1].module == a->module &&
            s->found.data[n - 1].vaddr == a->vaddr)
            addr_free(a);
        else
            s->found.data[n++] = *a;
    }
    *out = (struct module_addrs){s->found.data, n};
}

/* ---- Names ---- */

struct name_test {
    const char *spec;
    size_t len;
    bool plt;       /* stubs are wanted */
    char *word;     /* an identifier that any mangled form contains; NULL: none is certain */
};

/* The longest word of the name itself that mangling leaves readable. Arguments, template arguments and
 * what the ABI abbreviates (std, operators, builtin types) do not qualify. */
static char *certain_word(const char *spec)
{
    static const char *const abbreviated[] = {"std", "operator", "string", "allocator", "anonymous",
                                              "namespace", "lambda", "basic_string", "const",
                                              "closure", "impl", "as", "ostream", "istream",
                                              "iostream", "shim", "vtable"};
    const char *best = NULL;
    size_t best_len = 0, stop = strcspn(spec, "(<{ ");
    for (size_t i = 0; i < stop;) {
        size_t n = 0;
        while (i + n < stop && (isalnum((unsigned char)spec[i + n]) || spec[i + n] == '_'))
            n++;
        bool known = n == 0;
        for (size_t k = 0; k < sizeof abbreviated / sizeof *abbreviated; k++)
            known |= strlen(abbreviated[k]) == n && strncmp(spec + i, abbreviated[k], n) == 0;
        if (!known && n > best_len) {
            best = spec + i;
            best_len = n;
        }
        i += n ? n : 1;
    }
    return best ? xstrndup(best, best_len) : NULL;
}

/* Equal but for blanks: people write f(int,char) and f(int, char). */
static bool same_text(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == ' ')
            a++;
        while (*b == ' ')
            b++;
        if (*a != *b)
            return false;
        if (!*a)
            return true;
    }
}

static bool raw_matches(const struct name_test *t, const char *raw)
{
    if (strcmp(raw, t->spec) == 0)
        return true;
    if (!demangle_is_mangled(raw) || (t->word && !strstr(raw, t->word)))
        return false;
    for (int style = DEMANGLE_FULL; style <= DEMANGLE_SHORT; style++) {
        char *readable = demangle(raw, (enum demangle_style)style);
        bool same = readable && same_text(readable, t->spec);
        free(readable);
        if (same || !readable)
            return same;
    }
    return false;
}

static bool name_matches(const struct name_test *t, const struct symbol *s)
{
    if (!t->plt && (s->flags & SYMBOL_PLT))
        return false;
    /* A version is no part of the name: malloc@@GLIBC_2.2.5. */
    if (!(s->flags & SYMBOL_PLT) && strncmp(s->name, t->spec, t->len) == 0 && s->name[t->len] == '@')
        return true;
    if (raw_matches(t, s->name))
        return true;
    size_t base = symbol_name_base(s->name);
    if (!s->name[base])
        return false;
    char *raw = xstrndup(s->name, base);
    bool same = raw_matches(t, raw);
    free(raw);
    return same;
}

/* "gzip+0x3500": of a stripped file, the function that begins there. */
static int find_unnamed(struct search *s, struct err *err)
{
    const char *plus = strrchr(s->spec, '+');
    int rc = 0;
    if (!plus || modules_spec_kind(plus + 1) != MODULE_SPEC_ADDR)
        return 0;
    uint64_t vaddr = strtoull(plus + 1, NULL, 16);
    for (size_t i = 0; rc == 0 && i < modules_count(s->m); i++) {
        const struct symtab *t = wanted_module(s, i) ? modules_symtab(s->m, i, NULL) : NULL;
        ssize_t k = t ? symtab_find(t, vaddr) : -1;
        struct symbol sym;
        if (k < 0)
            continue;
        symtab_get(t, (size_t)k, &sym);
        if ((sym.flags & SYMBOL_UNNAMED) && !(sym.flags & SYMBOL_PART) && strcmp(sym.name, s->spec) == 0)
            rc = add(s, i, sym.vaddr, &sym, NULL, 0, err);
    }
    return rc;
}

static int find_names(struct search *s, struct err *err)
{
    size_t len = strlen(s->spec);
    struct name_test t = {.spec = s->spec, .len = len, .word = certain_word(s->spec)};
    t.plt = len > 4 && strcmp(s->spec + len - 4, "@plt") == 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < modules_count(s->m); i++) {
        const struct symtab *tab = wanted_module(s, i) ? modules_symtab(s->m, i, NULL) : NULL;
        for (size_t k = 0; rc == 0 && tab && k < symtab_all_count(tab); k++) {
            struct symbol sym;
            symtab_all_get(tab, k, &sym);
            if (!name_matches(&t, &sym))
                continue;
            if (sym.flags & SYMBOL_IFUNC)
                s->ifuncs++;
            else
                rc = add(s, i, sym.vaddr, &sym, NULL, 0, err);
        }
    }
    free(t.word);
    return rc == 0 && s->found.len == 0 ? find_unnamed(s, err) : rc;
}

static int find_regex(struct search *s, struct err *err)
{
    char *pattern = xstrndup(s->spec + 1, strlen(s->spec) - 2);
    struct regex *re;
    int rc = regex_compile(pattern, false, &re, err);
    free(pattern);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < modules_count(s->m); i++) {
        const struct symtab *tab = wanted_module(s, i) ? modules_symtab(s->m, i, NULL) : NULL;
        for (size_t k = 0; rc == 0 && tab && k < symtab_all_count(tab); k++) {
            struct symbol sym;
            symtab_all_get(tab, k, &sym);
            if ((sym.flags & (SYMBOL_PLT | SYMBOL_IFUNC)) || symbol_name_is_cold(sym.name))
                continue;
            char *readable = demangle(sym.name, DEMANGLE_FULL);
            const char *text = readable ? readable : sym.name;
            if (regex_match(re, text, strlen(text), NULL, NULL))
                rc = add(s, i, sym.vaddr, &sym, NULL, 0, err);
            free(readable);
        }
    }
    if (rc == 0 && s->found.len == 0 && regex_gave_up(re))
        rc = err_set(err, MTUI_E_LIMIT, "%s takes too many steps to match; make it simpler", s->spec);
    regex_free(re);
    return rc;
}

/* ---- Lines and addresses ---- */

static int add_with_symbol(struct search *s, size_t module, uint64_t vaddr, const char *file, int line,
                           struct err *err)
{
    const struct symtab *t = modules_symtab(s->m, module, NULL);
    ssize_t k = t ? symtab_find(t, vaddr) : -1;
    struct symbol sym;
    if (k >= 0)
        symtab_get(t, (size_t)k, &sym);
    return add(s, module, vaddr, k >= 0 ? &sym : NULL, file, line, err);
}

static int find_line(struct search *s, struct err *err)
{
    const char *colon = colon_of_line(s->spec);
    char *file = xstrndup(s->spec, (size_t)(colon - s->spec));
    errno = 0;
    long line = strtol(colon + 1, NULL, 10);
    int rc = 0;
    if (errno || line < 1 || line > 100000000)
        rc = err_set(err, MTUI_E_INVAL, "%s: no such line number", s->spec);
    for (size_t i = 0; rc == 0 && i < modules_count(s->m); i++) {
        struct err e = {0};
        struct source_addr *list;
        size_t n;
        struct dwarf_lines *d = wanted_module(s, i) ? modules_dwarf(s->m, i, &e) : NULL;
        if (!d || dwarf_lines_find(d, file, (int)line, &list, &n, &e) < 0) {
            /* "no code for this line" tells more than "no such file". */
            if (e.code && (!s->line_err.code || strstr(e.text, "has no code")))
                s->line_err = e;
            continue;
        }
        for (size_t k = 0; rc == 0 && k < n; k++)
            rc = add_with_symbol(s, i, list[k].vaddr, list[k].file, list[k].line, err);
        free(list);
    }
    free(file);
    return rc;
}

static int find_addr(struct search *s, struct err *err)
{
    errno = 0;
    uint64_t addr = strtoull(s->spec, NULL, 16), offset;
    if (errno)
        return err_set(err, MTUI_E_INVAL, "%s is no 64-bit address", s->spec);
    if (modules_pid(s->m) && !s->module) {
        ssize_t i = modules_find_addr(s->m, addr);
        if (i >= 0)
            return add_with_symbol(s, (size_t)i, addr - modules_at(s->m, (size_t)i)->bias, NULL, 0, err);
        /* The usual mistake: an address as nm prints it, of a program that was loaded elsewhere. */
        for (size_t k = 0; k < modules_count(s->m); k++) {
            const struct module *m = modules_at(s->m, k);
            if (m->is_main && m->bias && modules_file_offset(s->m, k, addr, &offset))
                return err_set(err, MTUI_E_NOENT,
                               "%s is not in the executable memory of process %d; as an address of "
                               "the file it is at 0x%" PRIx64 " now: use that, or %s:%s",
                               s->spec, (int)modules_pid(s->m), addr + m->bias, m->name, s->spec);
        }
        return err_set(err, MTUI_E_NOENT, "%s is not in the executable memory of process %d", s->spec,
                       (int)modules_pid(s->m));
    }
    for (size_t i = 0; i < modules_count(s->m); i++)
        if (wanted_module(s, i) && modules_file_offset(s->m, i, addr, &offset))
            return add_with_symbol(s, i, addr, NULL, 0, err);
    return err_set(err, MTUI_E_NOENT, "%s is not in the code of %s", s->spec,
                   s->module ? s->module : modules_at(s->m, 0)->path);
}

/* ---- What to say when nothing was found ---- */

static bool is_kernel_symbol(const char *name)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    char line[1024];
    bool found = false;
    size_t len = strlen(name);
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *p = strchr(line, ' ');
        p = p && (p[1] == 't' || p[1] == 'T' || p[1] == 'w' || p[1] == 'W') && p[2] == ' ' ? p + 3 : NULL;
        found = p && strncmp(p, name, len) == 0 && (p[len] == '\n' || p[len] == '\t');
    }
    if (f)
        fclose(f);
    return found;
}

bool modules_named(const struct modules *m, const char *name)
{
    for (size_t i = 0; i < modules_count(m); i++)
        if (modules_at(m, i)->mapped && module_is(modules_at(m, i), name))
            return true;
    return false;
}

/* A module whose symbols are incomplete may well have the function: its name and why, or nothing. That libraries are
 * stripped is no reason. */
static void explain_incomplete(const struct search *s, char *hint, size_t size)
{
    struct err why;
    *hint = '\0';
    for (size_t i = 0; i < modules_count(s->m) && !*hint; i++) {
        const struct module *m = modules_at(s->m, i);
        if (!wanted_module(s, i) || m->is_vdso)
            continue;
        const struct symtab *t = modules_symtab(s->m, i, &why);
        if (!t)
            snprintf(hint, size, " (%.250s)", why.text);
        else if (symtab_note(t) && (s->module || m->is_main))
            snprintf(hint, size, " (%.100s is stripped)", m->name);
    }
}

/* But it is a possibility, where the program has all its symbols. */
static void suspect_libraries(const struct search *s, char *hint, size_t size)
{
    const char *first = NULL;
    size_t n = 0;
    *hint = '\0';
    for (size_t i = 0; i < modules_count(s->m) && !s->module; i++) {
        const struct module *m = modules_at(s->m, i);
        const struct symtab *t = m->is_vdso || m->is_main ? NULL : modules_symtab(s->m, i, NULL);
        if (t && symtab_note(t) && n++ == 0)
            first = m->name;
    }
    if (n == 1)
        snprintf(hint, size, "; it may be in %.100s, which is stripped", first);
    else if (n > 1)
        snprintf(hint, size, "; it may be in one of %zu libraries that are stripped (%.100s, ...)", n, first);
}

static int explain_ifunc(const struct search *s, struct err *err)
{
    return err_set(err, MTUI_E_NOTSUP,
                   "%s is chosen at run time among several implementations (an ifunc): the symbol "
                   "itself runs only once, at start; name an implementation, see /%s/",
                   s->spec, s->spec);
}

static int explain_nothing(const struct search *s, struct err *err)
{
    if (s->module && !modules_named(s->m, s->module))
        return err_set(err, MTUI_E_NOENT, "no module %s is mapped", s->module);
    enum module_spec kind = modules_spec_kind(s->spec);
    if (kind == MODULE_SPEC_LINE && s->line_err.code) {
        if (err)
            *err = s->line_err;
        return s->line_err.code;
    }
    if (kind != MODULE_SPEC_NAME)
        return err_set(err, MTUI_E_NOENT, "%s matches no function", s->spec);
    char *near[3];
    size_t n = modules_suggest(s->m, s->spec, near, 3);
    char text[400] = "";
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.100s", i ? ", " : "", near[i]);
        free(near[i]);
    }
    if (is_kernel_symbol(s->spec))
        return err_set(err, MTUI_E_NOTSUP,
                       "%s is a kernel function: triggers are for the program's own functions; see "
                       "--kernel to record kernel code%s%s",
                       s->spec, n ? "; near: " : "", text);
    char hint[300], libraries[200] = "";
    explain_incomplete(s, hint, sizeof hint);
    if (!*hint)
        suspect_libraries(s, libraries, sizeof libraries);
    return err_set(err, MTUI_E_NOENT, "no function %s%s%.100s%s%s%s%s", s->spec, s->module ? " in " : "",
                   s->module ? s->module : "", hint, n ? "; near: " : "", text, libraries);
}

int modules_resolve(struct modules *m, const char *spec, struct module_addrs *out, struct err *err)
{
    struct search s = {.m = m, .spec = spec};
    const char *colon = modules_spec_kind(spec) == MODULE_SPEC_LINE ? NULL : colon_of_module(spec);
    if (colon) {
        s.module = xstrndup(spec, (size_t)(colon - spec));
        s.spec = colon + 1;
    }
    int rc = *s.spec ? 0 : err_set(err, MTUI_E_INVAL, "an empty name");
    if (rc == 0) {
        switch (modules_spec_kind(s.spec)) {
        case MODULE_SPEC_NAME:
            rc = find_names(&s, err);
            break;
        case MODULE_SPEC_REGEX:
            rc = find_regex(&s, err);
            break;
        case MODULE_SPEC_LINE:
            rc = find_line(&s, err);
            break;
        case MODULE_SPEC_ADDR:
            rc = find_addr(&s, err);
            break;
        }
    }
    if (rc == 0 && s.found.len == 0) /* the search for an explanation takes long */
        rc = !err ? MTUI_E_NOENT : s.ifuncs ? explain_ifunc(&s, err) : explain_nothing(&s, err);
    free(s.module);
    if (rc == 0) {
        hand_over(&s, out);
        return 0;
    }
    for (size_t i = 0; i < s.found.len; i++)
        addr_free(&s.found.data[i]);
    vec_free(&s.found);
    return rc;
}

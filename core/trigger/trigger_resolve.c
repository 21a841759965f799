#include "core/trigger/trigger_resolve.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/symbols/disasm.h"
#include "core/symbols/disasm_text.h"
#include "core/trigger/uprobe_place.h"

#define COLD_PIECES 8

void trigger_places_free(struct trigger_places *p)
{
    for (size_t i = 0; i < p->sites.len; i++) {
        free((void *)(uintptr_t)p->sites.data[i].path);
        free((void *)(uintptr_t)p->sites.data[i].label);
        free((void *)(uintptr_t)p->sites.data[i].refused);
    }
    vec_free(&p->sites);
    free(p->where);
    free(p->file);
    free(p->note);
    *p = (struct trigger_places){0};
}

static void note(struct trigger_places *p, char *sentence)
{
    if (p->note)
        free(sentence); /* one is enough: the first */
    else
        p->note = sentence;
}

static char *spec_of(const struct trigger *t)
{
    const char *module = t->module ? t->module : "", *colon = t->module ? ":" : "";
    switch (t->kind) {
    case TRIGGER_LINE:
        return xasprintf("%s:%" PRIu32, t->name, t->line);
    case TRIGGER_ADDRESS:
        return xasprintf("%s%s0x%" PRIx64, module, colon, t->addr);
    case TRIGGER_REGEX:
        return xasprintf("%s%s/%s/", module, colon, t->name);
    case TRIGGER_SYMBOL:
        break;
    }
    return xasprintf("%s%s%s", module, colon, t->name);
}

static char *label_of(const struct module *mod, const struct module_addr *a)
{
    if (a->file)
        return xasprintf("%s:%d", a->file, a->line);
    if (a->name && !(a->flags & SYMBOL_UNNAMED))
        return xasprintf("%s!%s", mod->name, a->name);
    return xasprintf("%s+0x%" PRIx64, mod->name, a->vaddr);
}

/* The instruction there, when no uprobe can sit on it, or none that stops the thread; from malloc. */
static char *refused_at(struct modules *m, size_t module, uint64_t vaddr, bool *only_to_stop)
{
    uint8_t code[16];
    size_t at, n = modules_read_code(m, module, vaddr, code, sizeof code);
    struct disasm_piece piece = {.vaddr = vaddr, .code = code, .size = n};
    struct disasm_line line;
    *only_to_stop = uprobe_fits(code, n);
    if (*only_to_stop && !uprobe_leaves(code, n))
        return NULL;
    return xstrdup(disasm_lines(&piece, vaddr, 0, 1, &line, &at) ? line.text : "(bad)");
}

static void add_site(struct trigger_places *p, struct modules *m,
                     const struct module_addr *a, uint64_t vaddr, uint64_t offset, uint32_t number,
                     enum probe_role role, int8_t condition)
{
    const struct module *mod = modules_at(m, a->module);
    struct probe_site s = {.path = xstrdup(mod->open_path),
                           .offset = offset,
                           .addr = a->addr ? a->addr + (vaddr - a->vaddr) : 0,
                           .trigger = number,
                           .role = role,
                           .condition = condition,
                           .label = label_of(mod, a)};
    s.refused = refused_at(m, a->module, vaddr, &s.only_to_stop);
    vec_push(&p->sites, s);
}

/* ---- Code ---- */

static int read_piece(struct modules *m, size_t module, uint64_t vaddr, uint64_t size,
                      struct disasm_piece *out, struct err *err)
{
    if (size == 0 || size > DISASM_MAX_BYTES)
        return err_set(err, MTUI_E_NOTSUP, "its size (%" PRIu64 " bytes) is unknown or too large",
                       size);
    uint8_t *code = malloc((size_t)size);
    if (!code)
        return err_set(err, MTUI_E_NOMEM, "no memory for its code");
    size_t n = modules_read_code(m, module, vaddr, code, (size_t)size);
    if (n == 0) {
        free(code);
        return err_set(err, MTUI_E_NOTSUP, "its code cannot be read");
    }
    *out = (struct disasm_piece){.vaddr = vaddr, .code = code, .size = n};
    return 0;
}

/* What gcc and clang split off a function: f.cold, f.cold.1. */
struct cold_search {
    struct modules *m;
    size_t module;
    struct disasm_piece *pieces;
    size_t n;
};

static void add_cold(void *arg, const struct symbol *s)
{
    struct cold_search *c = arg;
    if (c->n < COLD_PIECES &&
        read_piece(c->m, c->module, s->vaddr, s->size, &c->pieces[c->n], NULL) == 0)
        c->n++;
}

static size_t find_cold(struct modules *m, const struct module_addr *a, struct disasm_piece *pieces)
{
    struct cold_search c = {.m = m, .module = a->module, .pieces = pieces};
    const struct symtab *t = modules_symtab(m, a->module, NULL);
    const char *suffixes[] = {".cold", ".cold.0", ".cold.1", ".cold.2"};
    for (size_t i = 0; t && a->raw && i < sizeof suffixes / sizeof *suffixes; i++) {
        char *name = xasprintf("%s%s", a->raw, suffixes[i]);
        symtab_find_name(t, name, add_cold, &c);
        free(name);
    }
    return c.n;
}

/* The exits and then, when there are any, the entry: armed in this order, no call is seen to begin whose return is not.
 * An entry that is an exit is the whole function. */
static int add_exits(struct modules *m, const struct module_addr *a, uint32_t number,
                     const struct disasm_exits *exits, struct trigger_places *p, struct err *err)
{
    size_t added = 0;
    for (size_t i = 0; i < exits->list.len; i++) {
        const struct disasm_exit *e = &exits->list.data[i];
        uint64_t offset;
        if (!modules_file_offset(m, a->module, e->vaddr, &offset))
            continue;
        if (e->vaddr == a->vaddr && e->condition < 0) {
            /* The order of two probes at one place is the kernel's affair: one stands for both. */
            add_site(p, m, a, e->vaddr, offset, number, PROBE_CALL, -1);
            return 0;
        }
        add_site(p, m, a, e->vaddr, offset, number,
                 e->kind == DISASM_TAIL_INDIRECT ? PROBE_JUMP : PROBE_RETURN, e->condition);
        added++;
    }
    if (added == 0)
        return err_set(err, MTUI_E_NOTSUP, "%s never returns (it has no return instruction): its calls have no duration and no @return; take the "
                       "calls themselves, without --slower-than, or a function that calls it",
                       a->name ? a->name : "the function");
    add_site(p, m, a, a->vaddr, a->offset, number, PROBE_ENTRY, -1);
    if (!exits->complete)
        note(p, xasprintf("%s holds bytes that are no code: some of its returns may be missed",
                          a->name ? a->name : "the function"));
    return 0;
}

/* Jumps that find more on the stack than the return address stay within the function, whatever they look like:
 * computed gotos, and into parts of it that have no symbol. Its unwind entry is not believed where it says the same of
 * a return instruction. */
static void drop_inner_jumps(struct modules *m, size_t module, struct disasm_exits *exits)
{
    bool believed = true;
    size_t n = 0;
    for (size_t i = 0; i < exits->list.len && believed; i++)
        believed = exits->list.data[i].kind != DISASM_RETURN ||
                   modules_stack_at(m, module, exits->list.data[i].vaddr) != EH_STACK_WITHIN;
    for (size_t i = 0; i < exits->list.len; i++) {
        struct disasm_exit e = exits->list.data[i];
        enum eh_stack stack = believed && e.kind != DISASM_RETURN ? modules_stack_at(m, module, e.vaddr) : EH_STACK_UNKNOWN;
        if (stack != EH_STACK_WITHIN && !(stack == EH_STACK_UNKNOWN && e.from_table))
            exits->list.data[n++] = e;
    }
    exits->list.len = n;
}

/* The entry and every exit of a function. */
static int add_call(struct modules *m, const struct module_addr *a, uint32_t number,
                    struct trigger_places *p, struct err *err)
{
    struct disasm_piece pieces[1 + COLD_PIECES];
    struct disasm_exits exits = {0};
    const char *name = a->name ? a->name : "the function";
    int rc = read_piece(m, a->module, a->vaddr, a->size, &pieces[0], err);
    if (rc < 0)
        return err_prefix(err, "the returns of %s cannot be found", name);
    size_t n = 1 + find_cold(m, a, pieces + 1);
    rc = disasm_find_exits(pieces, n, &exits, err);
    if (rc == 0) {
        drop_inner_jumps(m, a->module, &exits);
        rc = add_exits(m, a, number, &exits, p, err);
    }
    disasm_exits_free(&exits);
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)pieces[i].code);
    return rc;
}

/* An address that somebody typed must not be in the middle of an instruction: a probe there would
 * corrupt the program. */
static int check_boundary(struct modules *m, const struct module_addr *a, struct trigger_places *p,
                          struct err *err)
{
    struct symbol s;
    struct disasm_piece piece;
    const struct symtab *t = modules_symtab(m, a->module, NULL);
    ssize_t i = t ? symtab_find(t, a->vaddr) : -1;
    if (i >= 0)
        symtab_get(t, (size_t)i, &s);
    if (i < 0 || read_piece(m, a->module, s.vaddr, s.size, &piece, NULL) < 0) {
        note(p, xasprintf("0x%" PRIx64 " is in no known function: whether an instruction begins "
                          "there could not be checked",
                          a->addr ? a->addr : a->vaddr));
        return 0;
    }
    bool is = disasm_is_boundary(&piece, a->vaddr);
    free((void *)(uintptr_t)piece.code);
    if (is)
        return 0;
    return err_set(err, MTUI_E_NOTSUP,
                   "0x%" PRIx64 " is not where an instruction begins (in %s+0x%" PRIx64
                   "): a probe there would damage the program",
                   a->addr ? a->addr : a->vaddr, s.name, a->vaddr - s.vaddr);
}

/* ---- All of it ---- */

static int add_places(struct modules *m, const struct trigger *t, uint32_t number,
                      const struct module_addr *a, struct trigger_places *p, struct err *err)
{
    const struct module *mod = modules_at(m, a->module);
    if (!mod->open_path)
        return err_set(err, MTUI_E_NOTSUP, "%s: no probe can sit in %s: %s", t->text, mod->name,
                       mod->is_vdso ? "it is the kernel's, not a file"
                       : mod->why   ? mod->why
                                    : "its file cannot be opened");
    if (trigger_needs_return(t))
        return add_call(m, a, number, p, err);
    bool point = t->kind == TRIGGER_LINE || t->kind == TRIGGER_ADDRESS;
    int rc = t->kind == TRIGGER_ADDRESS ? check_boundary(m, a, p, err) : 0;
    if (rc == 0)
        add_site(p, m, a, a->vaddr, a->offset, number, point ? PROBE_POINT : PROBE_ENTRY, -1);
    return rc;
}

/* Whether it stands further up in the list: a file that is mapped twice is two modules with the same functions. */
static bool is_again(struct modules *m, const struct module_addrs *found, size_t i)
{
    const struct module_addr *a = &found->data[i];
    for (size_t k = 0; k < i; k++) {
        const struct module_addr *b = &found->data[k];
        if (a->offset == b->offset && a->module != b->module && modules_same_file(m, a->module, b->module))
            return true;
    }
    return false;
}

static char *where_of(struct modules *m, const struct trigger *t, const struct module_addrs *found, size_t distinct)
{
    const struct module_addr *a = &found->data[0];
    if (distinct > 1)
        return xasprintf("%zu %s", distinct, t->kind == TRIGGER_LINE ? "places of the line" : "functions");
    char *label = label_of(modules_at(m, a->module), a);
    char *where = a->addr ? xasprintf("%s at 0x%" PRIx64, label, a->addr) : xstrdup(label);
    free(label);
    return where;
}

int trigger_resolve(struct modules *m, const struct trigger *t, uint32_t number,
                    struct trigger_places *out, struct err *err)
{
    struct module_addrs found = {0};
    struct trigger_places p = {0};
    struct err first = {0};
    char *spec = spec_of(t);
    int rc = modules_resolve(m, spec, &found, err);
    free(spec);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < found.len && p.sites.len <= TRIGGER_PLACES_MAX; i++) {
        rc = add_places(m, t, number, &found.data[i], &p, &first);
        if (rc < 0 && found.len > 1) /* one of many: the others still work */
            note(&p, xstrdup(first.text));
        else if (rc < 0)
            break;
        else
            p.functions += !is_again(m, &found, i);
    }
    if (p.sites.len == 0)
        rc = err_set(err, first.code, "%s", first.text);
    else if (p.sites.len > TRIGGER_PLACES_MAX)
        rc = err_set(err, MTUI_E_LIMIT,
                     "%s names %zu functions; at most %d places can be armed: narrow it", t->text,
                     found.len, TRIGGER_PLACES_MAX);
    else
        rc = 0;
    if (rc == 0) {
        p.where = where_of(m, t, &found, p.functions);
        p.file = xstrdup(modules_at(m, found.data[0].module)->path);
        *out = p;
    } else {
        trigger_places_free(&p);
    }
    module_addrs_free(&found);
    return rc;
}

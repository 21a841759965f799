#include "core/symbols/symtab.h"

#include <elf.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/symbols/debug_file.h"
#include "core/symbols/eh_frame.h"
#include "core/symbols/plt.h"
#include "core/symbols/symbol_filter.h"
#include "core/symbols/symbol_name.h"
#include "core/base/vec.h"

#define NONE UINT32_MAX
#define STRINGS_MAX ((size_t)2 << 30)
#define NAME_MAX_LEN 32768
#define SYMBOLS_MAX 64000000u
#define BASE_MAX 64 /* bytes of a file's name in the names of its functions */
#define ENCLOSING_MAX 64 /* steps outwards; code nests two or three deep */

struct entry { /* 24 bytes */
    uint64_t vaddr;
    uint32_t size;
    uint32_t name;      /* offset in its string table */
    uint32_t enclosing; /* nearest earlier preferred symbol that reaches beyond vaddr, or NONE; while
                           loading, its place in the file */
    uint16_t flags;
    uint8_t strings;    /* which table */
    uint8_t source;
};

enum { STRINGS_SYMTAB, STRINGS_DYNSYM, STRINGS_DEBUG, STRINGS_DEBUGDATA, STRINGS_OURS, STRINGS_COUNT };

struct strings {
    char *data; /* ends in NUL */
    size_t len; /* without that NUL */
};

struct symtab {
    VEC(struct entry) all;      /* by vaddr; of one vaddr the preferred first */
    uint32_t *preferred;        /* indices into all */
    size_t n_preferred;
    VEC(struct entry) unnamed;  /* by vaddr; where no symbol reaches, of files without a full table */
    struct strings strings[STRINGS_COUNT];
    size_t ours_cap;
    size_t source_count[SYMBOL_FROM_UNWIND + 1];
    char *debug_path, *note;
};

static const char *entry_name(const struct symtab *t, const struct entry *e)
{
    return t->strings[e->strings].data + e->name;
}

/* ---- Reading a symbol table section ---- */

static bool strings_read(const struct elf_file *f, Elf *elf, size_t section, struct strings *s)
{
    GElf_Shdr sh;
    Elf_Scn *scn = elf_getscn(elf, section);
    if (!scn || !gelf_getshdr(scn, &sh) || sh.sh_type != SHT_STRTAB || sh.sh_size > STRINGS_MAX)
        return false;
    char *data = malloc((size_t)sh.sh_size + 1);
    if (!data)
        return false;
    s->len = elf_file_read_at(f, sh.sh_offset, data, (size_t)sh.sh_size);
    data[s->len] = '\0';
    s->data = data;
    return true;
}

struct load {
    struct symtab *t;
    const struct elf_file *code; /* whose segments say what is code */
    struct err *err;
};

/* One SHT_SYMTAB or SHT_DYNSYM of file f, which is the code's own file or its debug file. */
static int load_section(struct load *l, const struct elf_file *f, Elf_Scn *scn, const GElf_Shdr *sh,
                        int table, enum symbol_source source)
{
    struct symtab *t = l->t;
    struct strings *strings = &t->strings[table];
    Elf *elf = elf_file_handle(f);
    Elf_Data *data = elf_getdata(scn, NULL);
    if (strings->data || !data || sh->sh_entsize == 0 || !strings_read(f, elf, sh->sh_link, strings))
        return 0;
    struct symbol_filter filter;
    symbol_filter_read(&filter, elf);
    /* Names share the table, so their lengths add up to little more than its size, unless made up. */
    uint64_t budget = (uint64_t)strings->len * 8 + (1 << 20);
    uint64_t n = sh->sh_size / sh->sh_entsize;
    int rc = 0;
    for (uint64_t i = 1; i < n && i < SYMBOLS_MAX; i++) {
        GElf_Sym sym;
        if (!gelf_getsym(data, (int)i, &sym))
            break;
        int flags = symbol_filter_flags(&filter, &sym);
        if (flags < 0 || sym.st_name >= strings->len || !elf_file_is_code(l->code, sym.st_value))
            continue;
        size_t len = strnlen(strings->data + sym.st_name, NAME_MAX_LEN);
        if (len > budget)
            break;
        budget -= len;
        if (len == 0 || len == NAME_MAX_LEN)
            continue;
        struct entry e = {.vaddr = sym.st_value,
                          .size = sym.st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)sym.st_size,
                          .name = sym.st_name,
                          .enclosing = (uint32_t)t->all.len,
                          .strings = (uint8_t)table,
                          .flags = (uint16_t)flags,
                          .source = (uint8_t)source};
        if (e.vaddr > UINT64_MAX - e.size)
            continue;
        if (!vec_try_push(&t->all, e)) {
            rc = err_set(l->err, MTUI_E_NOMEM, "no memory for the symbols of %s", elf_file_name(f));
            break;
        }
        t->source_count[source]++;
    }
    free(filter.is_text);
    return rc;
}

/* The table of one kind in f; missing ones are no error. */
static int load_kind(struct load *l, const struct elf_file *f, unsigned type, int table,
                     enum symbol_source source)
{
    Elf_Scn *scn = NULL;
    while ((scn = elf_nextscn(elf_file_handle(f), scn))) {
        GElf_Shdr sh;
        if (gelf_getshdr(scn, &sh) && sh.sh_type == type)
            return load_section(l, f, scn, &sh, table, source);
    }
    return 0;
}

/* ---- Preference, as perf's choose_best_symbol ---- */

/* < 0: a is preferred, whatever the names are. */
static int compare_class(const struct entry *a, const struct entry *b)
{
    bool as = a->size > 0, bs = b->size > 0;
    if (as != bs)
        return as ? -1 : 1;
    bool aw = a->flags & SYMBOL_WEAK, bw = b->flags & SYMBOL_WEAK;
    if (aw != bw)
        return aw ? 1 : -1;
    bool al = a->flags & SYMBOL_LOCAL, bl = b->flags & SYMBOL_LOCAL;
    return al == bl ? 0 : al ? 1 : -1;
}

static int entry_order(const void *a, const void *b, void *arg)
{
    const struct entry *x = a, *y = b;
    if (x->vaddr != y->vaddr)
        return x->vaddr < y->vaddr ? -1 : 1;
    int c = compare_class(x, y);
    if (c == 0) /* the same name twice comes together */
        c = strcmp(entry_name(arg, x), entry_name(arg, y));
    return c ? c : (int)x->source - (int)y->source;
}

/* Drops a symbol that two tables have. */
static void drop_doubles(struct symtab *t)
{
    size_t out = 0;
    for (size_t i = 0; i < t->all.len; i++) {
        const struct entry *e = &t->all.data[i];
        struct entry *last = out ? &t->all.data[out - 1] : NULL;
        if (last && last->vaddr == e->vaddr && strcmp(entry_name(t, last), entry_name(t, e)) == 0) {
            if (e->source > SYMBOL_FROM_DYNSYM) /* the place in the fuller table counts */
                last->enclosing = e->enclosing;
            continue;
        }
        t->all.data[out++] = *e;
    }
    t->all.len = out;
}

/* Of one address the preferred comes first; the others become aliases. */
static void mark_aliases(struct symtab *t)
{
    for (size_t i = 0, end; i < t->all.len; i = end) {
        struct entry *first = &t->all.data[i], *best = first;
        for (end = i + 1; end < t->all.len && t->all.data[end].vaddr == first->vaddr; end++) {
            struct entry *e = &t->all.data[end];
            e->flags |= SYMBOL_ALIAS;
            if (compare_class(e, first) != 0)
                continue;
            int c = symbol_name_compare(entry_name(t, e), entry_name(t, best));
            if (c < 0 || (c == 0 && e->enclosing < best->enclosing))
                best = e;
        }
        if (best != first) {
            struct entry preferred = *best;
            *best = *first;
            *first = preferred;
            best->flags |= SYMBOL_ALIAS;
            first->flags &= (uint16_t)~SYMBOL_ALIAS;
        }
    }
}

static uint64_t segment_end(const struct elf_file *f, uint64_t vaddr)
{
    size_t n;
    const struct elf_segment *s = elf_file_segments(f, &n);
    for (size_t i = 0; i < n; i++)
        if ((s[i].flags & PF_X) && vaddr >= s[i].vaddr && vaddr - s[i].vaddr < s[i].memsz)
            return s[i].vaddr + s[i].memsz;
    return vaddr;
}

/* A symbol without a size reaches to the next address that has one, within its segment. */
static void mend_sizes(struct symtab *t, const struct elf_file *f)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = t->all.len; i-- > 0;) {
        struct entry *e = &t->all.data[i];
        if (i + 1 < t->all.len && t->all.data[i + 1].vaddr != e->vaddr)
            next = t->all.data[i + 1].vaddr;
        if (e->size > 0)
            continue;
        uint64_t end = segment_end(f, e->vaddr);
        if (next < end)
            end = next;
        uint64_t size = end > e->vaddr ? end - e->vaddr : 0;
        e->size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
        e->flags |= SYMBOL_NO_SIZE;
    }
}

static int index_preferred(struct symtab *t, struct err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < t->all.len; i++)
        n += !(t->all.data[i].flags & SYMBOL_ALIAS);
    t->preferred = malloc((n ? n : 1) * sizeof *t->preferred);
    if (!t->preferred)
        return err_set(err, MTUI_E_NOMEM, "no memory for the index of symbols");
    /* The chain of enclosing symbols is the stack of those that have not ended yet. A symbol that
     * covers an address also covers the start of every later symbol before that address, so it is
     * in the chain of the last one. */
    uint32_t top = NONE;
    for (size_t i = 0; i < t->all.len; i++) {
        struct entry *e = &t->all.data[i];
        e->enclosing = NONE;
        if (e->flags & SYMBOL_ALIAS)
            continue;
        while (top != NONE && t->all.data[top].vaddr + t->all.data[top].size <= e->vaddr)
            top = t->all.data[top].enclosing;
        e->enclosing = top;
        top = (uint32_t)i;
        t->preferred[t->n_preferred++] = (uint32_t)i;
    }
    return 0;
}

/* Sorts what came since `sorted`; entries are few or all, so one sort of everything will do. */
static void sort_all(struct symtab *t)
{
    if (t->all.len)
        qsort_r(t->all.data, t->all.len, sizeof *t->all.data, entry_order, t);
}

/* ---- PLT stubs ---- */

/* Adds name + "@plt" to our own strings; returns its offset or NONE. */
static uint32_t own_string(struct symtab *t, const char *name, const char *suffix)
{
    struct strings *s = &t->strings[STRINGS_OURS];
    size_t len = strnlen(name, NAME_MAX_LEN), add = len + strlen(suffix) + 1;
    if (s->len + add + 1 > t->ours_cap) {
        size_t cap = (s->len + add + 1) * 2;
        char *data = cap < NONE ? realloc(s->data, cap) : NULL;
        if (!data)
            return NONE;
        s->data = data;
        t->ours_cap = cap;
    }
    uint32_t at = (uint32_t)s->len;
    memcpy(s->data + at, name, len);
    memcpy(s->data + at + len, suffix, strlen(suffix) + 1);
    s->len += add;
    return at;
}

static void take_stub(void *arg, const struct plt_stub *stub)
{
    struct load *l = arg;
    struct symtab *t = l->t;
    const char *name = stub->target, *suffix = "@plt";
    if (!name && stub->resolver) { /* sorted already: the resolver's symbol has the function's name */
        size_t lo = 0, hi = t->all.len;
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (t->all.data[mid].vaddr < stub->resolver)
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo == t->all.len || t->all.data[lo].vaddr != stub->resolver)
            return;
        name = entry_name(t, &t->all.data[lo]);
        char *copy = xstrdup(name); /* may lie in the strings that grow */
        uint32_t at = own_string(t, copy, suffix);
        free(copy);
        name = at == NONE ? NULL : t->strings[STRINGS_OURS].data + at;
        suffix = "";
    } else if (!name) {
        name = ".plt";
        suffix = "";
    }
    if (!name || !elf_file_is_code(l->code, stub->vaddr))
        return;
    struct entry e = {.vaddr = stub->vaddr,
                      .size = stub->size,
                      .enclosing = (uint32_t)t->all.len,
                      .strings = STRINGS_OURS,
                      .flags = SYMBOL_PLT,
                      .source = SYMBOL_FROM_PLT};
    bool ours = t->strings[STRINGS_OURS].data && name >= t->strings[STRINGS_OURS].data &&
                name < t->strings[STRINGS_OURS].data + t->strings[STRINGS_OURS].len;
    e.name = ours ? (uint32_t)(name - t->strings[STRINGS_OURS].data) : own_string(t, name, suffix);
    if (e.name != NONE && vec_try_push(&t->all, e))
        t->source_count[SYMBOL_FROM_PLT]++;
}

/* ---- Functions without a symbol ---- */

/* Among the preferred, the first that starts after vaddr. */
static size_t first_after(const struct symtab *t, uint64_t vaddr)
{
    size_t lo = 0, hi = t->n_preferred;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->all.data[t->preferred[mid]].vaddr <= vaddr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* What no symbol covers of a function. */
static void take_unnamed(struct symtab *t, const struct eh_function *f, const char *base)
{
    struct entry e = {.vaddr = f->vaddr, .size = f->size, .enclosing = NONE, .strings = STRINGS_OURS,
                      .flags = SYMBOL_UNNAMED, .source = SYMBOL_FROM_UNWIND};
    if (symtab_find(t, f->vaddr) >= 0)
        return;
    if (f->is_part)
        e.flags |= SYMBOL_PART;
    size_t next = first_after(t, f->vaddr);
    uint64_t end = next < t->n_preferred ? t->all.data[t->preferred[next]].vaddr : UINT64_MAX;
    if (end - e.vaddr < e.size)
        e.size = (uint32_t)(end - e.vaddr);
    char address[24];
    snprintf(address, sizeof address, "+0x%" PRIx64, e.vaddr);
    e.name = own_string(t, base, address);
    if (e.name != NONE && vec_try_push(&t->unnamed, e))
        t->source_count[SYMBOL_FROM_UNWIND]++;
}

static int load_unnamed(struct load *l, const struct debug_search *search)
{
    struct symtab *t = l->t;
    const char *path = search && search->path ? search->path : elf_file_name(l->code);
    const char *slash = strrchr(path, '/');
    char *base = xstrndup(slash ? slash + 1 : path, BASE_MAX);
    struct eh_function *list;
    size_t n;
    int rc = eh_frame_functions(l->code, &list, &n, l->err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        take_unnamed(t, &list[i], base);
    free(base);
    if (rc < 0)
        return rc;
    free(list);
    char *tried = t->note;
    char exported[FMT_MAX];
    t->note = xasprintf("stripped, only %s, %zu more known by their unwind entries and "
                        "named by address; %s",
                        fmt_counted(exported, t->source_count[SYMBOL_FROM_DYNSYM], "exported function",
                                    "exported functions"),
                        t->unnamed.len, tried);
    free(tried);
    return 0;
}

/* ---- Loading ---- */

static int load_separate(struct load *l, const struct debug_search *search)
{
    struct symtab *t = l->t;
    struct elf_file *d;
    char *tried = NULL;
    struct err data_err = {0};
    int rc = 0;
    if (debug_file_find(l->code, search, &d, &tried, NULL) == 0) {
        rc = load_kind(l, d, SHT_SYMTAB, STRINGS_DEBUG, SYMBOL_FROM_DEBUG);
        t->debug_path = xstrdup(elf_file_name(d));
        elf_file_free(d);
    }
    if (rc == 0 && debug_data_open(l->code, &d, &data_err) == 0) {
        rc = load_kind(l, d, SHT_SYMTAB, STRINGS_DEBUGDATA, SYMBOL_FROM_DEBUGDATA);
        elf_file_free(d);
    }
    if (t->source_count[SYMBOL_FROM_DEBUG] + t->source_count[SYMBOL_FROM_DEBUGDATA] == 0) {
        t->note = xasprintf("%s; %s", tried,
                            data_err.code == MTUI_E_NOENT ? "no .gnu_debugdata" : data_err.text);
    }
    free(tried);
    return rc;
}

static int load_all(struct load *l, const struct debug_search *search)
{
    struct symtab *t = l->t;
    int rc = load_kind(l, l->code, SHT_SYMTAB, STRINGS_SYMTAB, SYMBOL_FROM_SYMTAB);
    if (rc == 0)
        rc = load_kind(l, l->code, SHT_DYNSYM, STRINGS_DYNSYM, SYMBOL_FROM_DYNSYM);
    if (rc == 0 && t->source_count[SYMBOL_FROM_SYMTAB] == 0) {
        if (search)
            rc = load_separate(l, search);
        else
            t->note = xstrdup("no debug file was looked for");
    }
    if (rc < 0)
        return rc;
    sort_all(t);
    size_t before = t->all.len;
    plt_each(l->code, take_stub, l);
    if (t->all.len != before)
        sort_all(t);
    drop_doubles(t);
    mark_aliases(t);
    mend_sizes(t, l->code);
    rc = index_preferred(t, l->err);
    return rc == 0 && t->note ? load_unnamed(l, search) : rc;
}

int symtab_load(const struct elf_file *f, const struct debug_search *search, struct symtab **out,
                struct err *err)
{
    struct symtab *t = xcalloc(1, sizeof *t);
    struct load l = {.t = t, .code = f, .err = err};
    int rc = load_all(&l, search);
    if (rc < 0) {
        symtab_free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void symtab_free(struct symtab *t)
{
    if (!t)
        return;
    vec_free(&t->all);
    vec_free(&t->unnamed);
    free(t->preferred);
    for (int i = 0; i < STRINGS_COUNT; i++)
        free(t->strings[i].data);
    free(t->debug_path);
    free(t->note);
    free(t);
}

/* ---- Questions ---- */

static void entry_symbol(const struct symtab *t, const struct entry *e, struct symbol *out)
{
    *out = (struct symbol){.name = entry_name(t, e),
                           .vaddr = e->vaddr,
                           .size = e->size,
                           .flags = e->flags,
                           .source = e->source};
}

size_t symtab_count(const struct symtab *t)
{
    return t->n_preferred + t->unnamed.len;
}

void symtab_get(const struct symtab *t, size_t i, struct symbol *out)
{
    entry_symbol(t, i < t->n_preferred ? &t->all.data[t->preferred[i]] : &t->unnamed.data[i - t->n_preferred],
                 out);
}

static int entry_cover_order(const void *key, const void *entry)
{
    const uint64_t *vaddr = key;
    const struct entry *e = entry;
    return *vaddr < e->vaddr ? -1 : *vaddr - e->vaddr >= e->size;
}

static ssize_t find_unnamed(const struct symtab *t, uint64_t vaddr)
{
    const struct entry *e = t->unnamed.len ? bsearch(&vaddr, t->unnamed.data, t->unnamed.len,
                                                     sizeof *e, entry_cover_order)
                                           : NULL;
    return e ? (ssize_t)(t->n_preferred + (size_t)(e - t->unnamed.data)) : -1;
}

ssize_t symtab_find(const struct symtab *t, uint64_t vaddr)
{
    size_t lo = first_after(t, vaddr);
    uint32_t i = lo ? t->preferred[lo - 1] : NONE;
    for (int step = 0; i != NONE && step < ENCLOSING_MAX; step++) {
        const struct entry *e = &t->all.data[i];
        if (vaddr - e->vaddr < e->size) {
            /* back from the place in `all` to the place among the preferred */
            for (size_t a = 0, b = lo; a < b;) {
                size_t mid = a + (b - a) / 2;
                if (t->preferred[mid] == i)
                    return (ssize_t)mid;
                if (t->preferred[mid] < i)
                    a = mid + 1;
                else
                    b = mid;
            }
        }
        i = e->enclosing;
    }
    return find_unnamed(t, vaddr);
}

size_t symtab_all_count(const struct symtab *t)
{
    return t->all.len;
}

void symtab_all_get(const struct symtab *t, size_t i, struct symbol *out)
{
    entry_symbol(t, &t->all.data[i], out);
}

void symtab_find_name(const struct symtab *t, const char *raw,
                      void (*fn)(void *arg, const struct symbol *s), void *arg)
{
    for (size_t i = 0; i < t->all.len; i++) {
        if (strcmp(entry_name(t, &t->all.data[i]), raw) != 0)
            continue;
        struct symbol s;
        entry_symbol(t, &t->all.data[i], &s);
        fn(arg, &s);
    }
}

size_t symtab_source_count(const struct symtab *t, enum symbol_source source)
{
    return t->source_count[source];
}

size_t symtab_memory(const struct symtab *t)
{
    size_t bytes = sizeof *t + t->all.cap * sizeof *t->all.data + t->n_preferred * sizeof *t->preferred +
                   t->unnamed.cap * sizeof *t->unnamed.data;
    for (int i = 0; i < STRINGS_COUNT; i++)
        bytes += t->strings[i].len;
    return bytes;
}

const char *symtab_debug_path(const struct symtab *t)
{
    return t->debug_path;
}

const char *symtab_note(const struct symtab *t)
{
    return t->note;
}

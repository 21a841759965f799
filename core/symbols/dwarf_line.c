#include "core/symbols/dwarf_line.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

#define UNITS_MAX 2000000u
#define DEPTH_MAX 64
#define DIES_MAX 20000000u /* entries looked at for one question */
#define RANGES_MAX 1000000

struct unit_range {
    uint64_t start, end;
    Dwarf_Off die;
};

struct dwarf_lines {
    struct elf_file *file; /* the one with .debug_info */
    Dwarf *dw;
    VEC(Dwarf_Off) units; /* offsets of the unit entries */
    VEC(struct unit_range) ranges;
    bool indexed;
    VEC(char *) strings; /* paths put together here */
};

/* ---- Opening ---- */

static Dwarf *begin(struct elf_file *f)
{
    Dwarf *dw = dwarf_begin_elf(elf_file_handle(f), DWARF_C_READ, NULL);
    Dwarf_Off next;
    size_t header;
    if (dw && dwarf_nextcu(dw, 0, &next, &header, NULL, NULL, NULL) != 0) {
        dwarf_end(dw);
        dw = NULL;
    }
    return dw;
}

int dwarf_lines_open(const struct elf_file *f, const struct debug_search *search,
                     struct dwarf_lines **out, struct err *err)
{
    struct elf_file *own;
    int rc = elf_file_dup(f, &own, err);
    if (rc < 0)
        return rc;
    Dwarf *dw = begin(own);
    if (!dw) {
        elf_file_free(own);
        if (!search)
            return err_set(err, MTUI_E_NOENT, "%s has no line numbers (DWARF)", elf_file_name(f));
        rc = debug_file_find(f, search, &own, NULL, err);
        if (rc < 0)
            return err_prefix(err, "no line numbers (DWARF)");
        dw = begin(own);
        if (!dw) {
            elf_file_free(own);
            return err_set(err, MTUI_E_NOENT, "%s and its debug file have no line numbers (DWARF)",
                           elf_file_name(f));
        }
    }
    struct dwarf_lines *d = xcalloc(1, sizeof *d);
    d->file = own;
    d->dw = dw;
    *out = d;
    return 0;
}

void dwarf_lines_free(struct dwarf_lines *d)
{
    if (!d)
        return;
    dwarf_end(d->dw);
    elf_file_free(d->file);
    for (size_t i = 0; i < d->strings.len; i++)
        free(d->strings.data[i]);
    vec_free(&d->strings);
    vec_free(&d->units);
    vec_free(&d->ranges);
    free(d);
}

/* ---- Which unit holds an address ---- */

static int range_order(const void *a, const void *b)
{
    const struct unit_range *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Not every compiler writes .debug_aranges, so the units' own ranges are read, once. */
static void index_units(struct dwarf_lines *d)
{
    if (d->indexed)
        return;
    d->indexed = true;
    Dwarf_Off at = 0, next;
    size_t header;
    while (d->units.len < UNITS_MAX &&
           dwarf_nextcu(d->dw, at, &next, &header, NULL, NULL, NULL) == 0 && next > at) {
        Dwarf_Die die;
        if (dwarf_offdie(d->dw, at + header, &die)) {
            if (!vec_try_push(&d->units, at + header))
                break;
            Dwarf_Addr base, start, end;
            ptrdiff_t it = 0;
            int n = 0;
            while (n++ < RANGES_MAX && (it = dwarf_ranges(&die, it, &base, &start, &end)) > 0) {
                struct unit_range r = {start, end, at + header};
                if (start < end && !vec_try_push(&d->ranges, r))
                    break;
            }
        }
        at = next;
    }
    if (d->ranges.len)
        qsort(d->ranges.data, d->ranges.len, sizeof *d->ranges.data, range_order);
}

static bool unit_at(struct dwarf_lines *d, uint64_t vaddr, Dwarf_Die *unit)
{
    index_units(d);
    size_t lo = 0, hi = d->ranges.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (d->ranges.data[mid].start <= vaddr)
            lo = mid + 1;
        else
            hi = mid;
    }
    /* Ranges of units do not overlap in a sane file; look at a few before in one that is not. */
    for (size_t i = lo, step = 0; i-- > 0 && step < 8; step++)
        if (vaddr < d->ranges.data[i].end)
            return dwarf_offdie(d->dw, d->ranges.data[i].die, unit) != NULL;
    return false;
}

/* ---- Paths ---- */

static const char *absolute(struct dwarf_lines *d, Dwarf_Die *unit, const char *path)
{
    Dwarf_Attribute attr;
    const char *dir;
    if (!path || path[0] == '/' || !dwarf_attr(unit, DW_AT_comp_dir, &attr) ||
        !(dir = dwarf_formstring(&attr)) || dir[0] != '/')
        return path;
    char *joined = xasprintf("%s/%s", dir, path);
    for (size_t i = d->strings.len; i-- > 0 && d->strings.len - i < 64;) {
        if (strcmp(d->strings.data[i], joined) == 0) {
            free(joined);
            return d->strings.data[i];
        }
    }
    vec_push(&d->strings, joined);
    return joined;
}

bool source_path_matches(const char *path, const char *file)
{
    while (file[0] == '.' && file[1] == '/')
        file += 2;
    size_t pl = strlen(path), fl = strlen(file);
    return fl > 0 && fl <= pl && strcmp(path + pl - fl, file) == 0 &&
           (fl == pl || file[0] == '/' || path[pl - fl - 1] == '/');
}

bool dwarf_lines_at(struct dwarf_lines *d, uint64_t vaddr, struct source_pos *out)
{
    Dwarf_Die unit;
    int line;
    if (!unit_at(d, vaddr, &unit))
        return false;
    Dwarf_Line *l = dwarf_getsrc_die(&unit, vaddr);
    const char *file = l ? dwarf_linesrc(l, NULL, NULL) : NULL;
    if (!file || dwarf_lineno(l, &line) != 0 || line < 1)
        return false;
    *out = (struct source_pos){absolute(d, &unit, file), line};
    return true;
}

/* ---- Functions and inlined copies ---- */

struct scope {
    Dwarf_Die die;
    bool inlined;
};

struct walk {
    uint64_t vaddr;
    unsigned budget;
    struct scope found[DEPTH_MAX]; /* outermost first */
    size_t n;
};

static bool holds_code(int tag)
{
    switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
        return true;
    default:
        return false;
    }
}

static bool holds_functions(int tag)
{
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
        return true;
    default:
        return false;
    }
}

/* Descends to vaddr; libdw's own dwarf_getscopes recurses as deep as the file says. */
static void walk_children(struct walk *w, Dwarf_Die *parent, int depth)
{
    Dwarf_Die die;
    if (depth >= DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        if (w->budget == 0)
            return;
        w->budget--;
        int tag = dwarf_tag(&die);
        if (holds_code(tag)) {
            /* A function with code elsewhere may still hold the code of a lambda or local class. */
            bool here = dwarf_haspc(&die, w->vaddr) > 0;
            if (here && (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) &&
                w->n < DEPTH_MAX)
                w->found[w->n++] = (struct scope){die, tag == DW_TAG_inlined_subroutine};
            if (here) {
                walk_children(w, &die, depth + 1);
                return;
            }
        } else if (holds_functions(tag)) {
            size_t before = w->n;
            walk_children(w, &die, depth + 1);
            if (w->n != before)
                return;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
}

static void walk_to(struct walk *w, Dwarf_Die *unit, uint64_t vaddr)
{
    w->vaddr = vaddr;
    w->budget = DIES_MAX;
    w->n = 0;
    walk_children(w, unit, 0);
}

static const char *function_name(Dwarf_Die *die)
{
    Dwarf_Attribute attr;
    const char *name = NULL;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
        name = dwarf_formstring(&attr);
    return name ? name : dwarf_diename(die);
}

static struct source_pos call_site(struct dwarf_lines *d, Dwarf_Die *unit, Dwarf_Die *die)
{
    struct source_pos pos = {NULL, 0};
    Dwarf_Attribute attr;
    Dwarf_Word file = 0, line = 0;
    Dwarf_Files *files;
    size_t n;
    if (dwarf_attr(die, DW_AT_call_line, &attr) && dwarf_formudata(&attr, &line) == 0 &&
        dwarf_attr(die, DW_AT_call_file, &attr) && dwarf_formudata(&attr, &file) == 0 &&
        dwarf_getsrcfiles(unit, &files, &n) == 0 && file < n && line <= INT_MAX) {
        pos.file = absolute(d, unit, dwarf_filesrc(files, (size_t)file, NULL, NULL));
        pos.line = pos.file ? (int)line : 0;
    }
    return pos;
}

static struct source_pos declaration(struct dwarf_lines *d, Dwarf_Die *unit, Dwarf_Die *die)
{
    struct source_pos pos = {NULL, 0};
    int line;
    const char *file = dwarf_decl_file(die);
    if (file && dwarf_decl_line(die, &line) == 0 && line > 0)
        pos = (struct source_pos){absolute(d, unit, file), line};
    return pos;
}

static uint64_t lowest_address(Dwarf_Die *die)
{
    Dwarf_Addr low, base, start, end;
    if (dwarf_entrypc(die, &low) == 0 || dwarf_lowpc(die, &low) == 0)
        return low;
    return dwarf_ranges(die, 0, &base, &start, &end) > 0 ? start : 0;
}

size_t dwarf_lines_frames(struct dwarf_lines *d, uint64_t vaddr, struct source_frame *out, size_t max)
{
    Dwarf_Die unit;
    if (!unit_at(d, vaddr, &unit))
        return 0;
    struct walk w;
    walk_to(&w, &unit, vaddr);
    size_t n = 0;
    for (size_t i = w.n; i-- > 0 && n < max; n++) {
        Dwarf_Die *die = &w.found[i].die;
        out[n] = (struct source_frame){.name = function_name(die),
                                       .decl = declaration(d, &unit, die),
                                       .vaddr = lowest_address(die),
                                       .inlined = w.found[i].inlined};
        if (out[n].inlined)
            out[n].call = call_site(d, &unit, die);
    }
    return n;
}

/* ---- FILE:LINE ---- */

struct line_hit {
    uint64_t vaddr;
    Dwarf_Off unit, scope; /* scope: the function or inlined copy; 0 unknown */
    const char *file, *function;
    int decl_line;
};

struct line_search {
    struct dwarf_lines *d;
    const char *file;
    int line, best; /* best: the smallest line ≥ line with code, 0 none yet */
    bool file_known;
    bool any_row; /* rows that begin no statement count too: what an optimiser leaves of a line */
    VEC(struct line_hit) hits;
};

static void hit_add(struct line_search *s, Dwarf_Die *unit, uint64_t vaddr, const char *file)
{
    struct walk w;
    walk_to(&w, unit, vaddr);
    struct line_hit hit = {.vaddr = vaddr, .unit = dwarf_dieoffset(unit)};
    hit.file = absolute(s->d, unit, file);
    if (w.n > 0) {
        Dwarf_Die *die = &w.found[w.n - 1].die;
        hit.scope = dwarf_dieoffset(die);
        hit.function = function_name(die);
        hit.decl_line = declaration(s->d, unit, die).line;
    }
    for (size_t i = 0; i < s->hits.len; i++) {
        struct line_hit *h = &s->hits.data[i];
        if (h->vaddr == vaddr || (hit.scope && h->scope == hit.scope && h->unit == hit.unit)) {
            if (vaddr < h->vaddr)
                *h = hit;
            return;
        }
    }
    if (s->hits.len < 10000 && !vec_try_push(&s->hits, hit))
        return;
}

static bool unit_names_file(struct line_search *s, Dwarf_Die *unit)
{
    Dwarf_Files *files;
    size_t n;
    if (dwarf_getsrcfiles(unit, &files, &n) != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *path = dwarf_filesrc(files, i, NULL, NULL);
        if (path && source_path_matches(path, s->file))
            return true;
    }
    return false;
}

/* Looks at the rows of one unit: first for the best line, then (collect) for the addresses of that
 * line. Code at address 0 belongs to sections that the linker threw away. */
static void search_unit(struct line_search *s, Dwarf_Die *unit, bool collect)
{
    Dwarf_Lines *lines;
    size_t n;
    if (!unit_names_file(s, unit))
        return;
    s->file_known = true;
    if (dwarf_getsrclines(unit, &lines, &n) != 0)
        return;
    for (size_t i = 0; i < n; i++) {
        Dwarf_Line *l = dwarf_onesrcline(lines, i);
        Dwarf_Addr addr;
        int line;
        bool stmt = false, end = false;
        if (!l || dwarf_lineno(l, &line) != 0 || dwarf_lineaddr(l, &addr) != 0 ||
            dwarf_linebeginstatement(l, &stmt) != 0 || dwarf_lineendsequence(l, &end) != 0)
            continue;
        if (end || addr == 0 || line < s->line || !(stmt || s->any_row) ||
            (collect ? line != s->best : s->best && line >= s->best))
            continue;
        const char *path = dwarf_linesrc(l, NULL, NULL);
        if (!path || !source_path_matches(path, s->file))
            continue;
        if (collect)
            hit_add(s, unit, addr, path);
        else
            s->best = line;
    }
}

static void search_all(struct line_search *s, bool collect)
{
    for (size_t i = 0; i < s->d->units.len; i++) {
        Dwarf_Die unit;
        if (dwarf_offdie(s->d->dw, s->d->units.data[i], &unit))
            search_unit(s, &unit, collect);
    }
}

static int hit_order(const void *a, const void *b)
{
    const struct line_hit *x = a, *y = b;
    return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* The next line with code counts only when its function had begun by the line asked for. */
static void drop_other_functions(struct line_search *s)
{
    size_t out = 0;
    for (size_t i = 0; i < s->hits.len; i++)
        if (s->hits.data[i].decl_line > 0 && s->hits.data[i].decl_line <= s->line)
            s->hits.data[out++] = s->hits.data[i];
    s->hits.len = out;
}

int dwarf_lines_find(struct dwarf_lines *d, const char *file, int line, struct source_addr **out,
                     size_t *n, struct err *err)
{
    struct line_search s = {.d = d, .file = file, .line = line};
    index_units(d);
    search_all(&s, false);
    if (s.best != line) {
        int statement = s.best;
        s.any_row = true;
        search_all(&s, false);
        s.any_row = s.best != statement;
    }
    if (s.best)
        search_all(&s, true);
    if (s.best != line)
        drop_other_functions(&s);
    int rc = 0;
    if (!s.file_known)
        rc = err_set(err, MTUI_E_NOENT, "no source file %s in the line table", file);
    else if (!s.best)
        rc = err_set(err, MTUI_E_NOENT, "%s:%d has no code, nor has any line after it", file, line);
    else if (s.hits.len == 0)
        rc = err_set(err, MTUI_E_NOENT,
                     "%s:%d has no code (inlined away, or not compiled in); the next line with code "
                     "is %d, in another function",
                     file, line, s.best);
    struct source_addr *list = rc < 0 ? NULL : malloc(s.hits.len * sizeof *list);
    if (rc == 0 && !list)
        rc = err_set(err, MTUI_E_NOMEM, "no memory for the addresses of %s:%d", file, line);
    if (rc == 0) {
        qsort(s.hits.data, s.hits.len, sizeof *s.hits.data, hit_order);
        for (size_t i = 0; i < s.hits.len; i++)
            list[i] = (struct source_addr){s.hits.data[i].vaddr, s.hits.data[i].file, s.best,
                                           s.hits.data[i].function};
        *out = list;
        *n = s.hits.len;
    }
    vec_free(&s.hits);
    return rc;
}

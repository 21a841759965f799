#include "tui/choose/symbol_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/path_ends.h"
#include "core/symbols/demangle.h"
#include "core/base/fmt.h"
#include "core/symbols/rank.h"
#include "core/base/utf8.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"

#define RANGES_MAX 64

const struct list_column symbol_columns[SYMBOL_COLUMNS] = {
    [SYMBOL_CHOSEN] = {.title = "", .cols = 3, .fixed = true},
    [SYMBOL_NAME] = {.title = "NAME", .cols = 24, .stretch = true, .fixed = true},
    [SYMBOL_MODULE] = {.title = "MODULE", .cols = 20, .priority = 1, .fixed = true},
    [SYMBOL_ADDRESS] = {.title = "ADDRESS", .cols = 14, .priority = 3, .right = true, .fixed = true},
    [SYMBOL_SIZE] = {.title = "SIZE", .cols = 5, .priority = 2, .right = true, .fixed = true},
    [SYMBOL_SOURCE] = {.title = "SOURCE", .cols = 16, .priority = 4, .fixed = true},
};

struct symbol_rows {
    struct model *m;
    struct modules *modules;
    const char **module_names; /* by module: the end of its path */
    struct symbol_list *list;
    struct rank *rank;
    struct source_lookup *source;
    enum match_mode mode;
    char *query;
    size_t module;
    size_t seen; /* names taken in */
    int name_cols;
    /* the last spec made: rows ask for the same one several times in a frame */
    char *spec;
    const char *spec_raw;
    size_t spec_module;
};

struct symbol_rows *symbol_rows_new(struct model *m)
{
    struct symbol_rows *r = xcalloc(1, sizeof *r);
    r->m = m;
    r->query = xstrdup("");
    r->module = SIZE_MAX;
    return r;
}

static void drop(struct symbol_rows *r)
{
    rank_free(r->rank);
    symbol_list_free(r->list);
    source_lookup_free(r->source);
    modules_free(r->modules);
    free(r->module_names);
    r->module_names = NULL;
    r->rank = NULL;
    r->list = NULL;
    r->source = NULL;
    r->modules = NULL;
    r->module = SIZE_MAX;
    r->seen = 0;
    free(r->spec);
    r->spec = NULL;
}

void symbol_rows_free(struct symbol_rows *r)
{
    if (!r)
        return;
    drop(r);
    free(r->query);
    free(r);
}

static void name_modules(struct symbol_rows *r)
{
    size_t n = modules_count(r->modules);
    const char **paths = xcalloc(n + 1, sizeof *paths);
    for (size_t i = 0; i < n; i++)
        paths[i] = modules_at(r->modules, i)->path;
    r->module_names = xcalloc(n + 1, sizeof *r->module_names);
    path_ends(paths, n, r->module_names);
    free(paths);
}

const char *symbol_rows_module_name(const struct symbol_rows *r, size_t module)
{
    return r->module_names[module];
}

int symbol_rows_load(struct symbol_rows *r, const char *proc_root, pid_t pid, struct err *err)
{
    drop(r);
    if (pid == 0)
        return 0;
    int rc = modules_of_pid(proc_root, pid, &r->modules, err);
    if (rc < 0)
        return rc;
    name_modules(r);
    r->list = symbol_list_start(r->modules, 0, NULL, NULL);
    r->source = source_lookup_new(r->modules);
    r->rank = rank_new(symbol_list_chunk, r->list);
    return symbol_rows_query(r, r->mode, r->query, SIZE_MAX, err);
}

bool symbol_rows_loaded(const struct symbol_rows *r)
{
    return r->list != NULL;
}

struct modules *symbol_rows_modules(struct symbol_rows *r)
{
    return r->modules;
}

struct source_lookup *symbol_rows_source(struct symbol_rows *r)
{
    return r->source;
}

void symbol_rows_progress(const struct symbol_rows *r, struct symbol_progress *out)
{
    *out = (struct symbol_progress){.done = true};
    if (r->list)
        symbol_list_progress(r->list, out);
}

void symbol_rows_wait(struct symbol_rows *r)
{
    if (!r->list)
        return;
    symbol_list_wait(r->list);
    symbol_rows_work(r, UINT64_MAX);
    source_lookup_wait(r->source);
    source_lookup_poll(r->source);
}

/* ---- The query ---- */

static void range_of(const struct symbol_rows *r, size_t module, size_t *from, size_t *to)
{
    *from = 0;
    *to = symbol_list_count(r->list);
    if (module != SIZE_MAX)
        symbol_list_module_range(r->list, module, from, to);
}

/* The names of the program itself stand first in the list. */
static size_t own_names(const struct symbol_rows *r)
{
    size_t from = 0, to = 0;
    for (size_t i = 0; i < modules_count(r->modules) && to == 0; i++)
        if (modules_at(r->modules, i)->is_main)
            symbol_list_module_range(r->list, i, &from, &to);
    return to;
}

int symbol_rows_query(struct symbol_rows *r, enum match_mode mode, const char *query, size_t module,
                      struct err *err)
{
    if (r->rank) {
        size_t from, to;
        range_of(r, module, &from, &to);
        rank_favour(r->rank, own_names(r));
        int rc = rank_set(r->rank, mode, query, from, to, err);
        if (rc < 0)
            return rc;
        r->seen = to;
        r->module = module;
    }
    char *copy = xstrdup(query);
    free(r->query);
    r->query = copy;
    r->mode = mode;
    return 0;
}

size_t symbol_rows_module(const struct symbol_rows *r)
{
    return r->module;
}

size_t symbol_rows_next_module(const struct symbol_rows *r)
{
    size_t n = r->modules ? modules_count(r->modules) : 0;
    for (size_t i = r->module == SIZE_MAX ? 0 : r->module + 1; i < n; i++) {
        size_t from, to;
        range_of(r, i, &from, &to);
        if (from < to)
            return i;
    }
    return SIZE_MAX;
}

size_t symbol_rows_find_module(const struct symbol_rows *r, const char *name)
{
    size_t n = r->modules ? modules_count(r->modules) : 0;
    for (size_t i = 0; i < n; i++)
        if (strncmp(modules_at(r->modules, i)->name, name, strlen(name)) == 0 ||
            strncmp(r->module_names[i], name, strlen(name)) == 0)
            return i;
    return SIZE_MAX;
}

bool symbol_rows_work(struct symbol_rows *r, uint64_t deadline_ns)
{
    if (!r->rank)
        return false;
    struct symbol_progress p;
    symbol_list_progress(r->list, &p);
    size_t from, to;
    range_of(r, r->module, &from, &to);
    if (to != r->seen && r->seen <= from) { /* the module's first names: where they begin is known now */
        symbol_rows_query(r, r->mode, r->query, r->module, NULL);
    } else if (to > r->seen) {
        rank_favour(r->rank, own_names(r));
        rank_grow(r->rank, to);
        r->seen = to;
    }
    bool matched = rank_run(r->rank, deadline_ns);
    return !matched || !p.done;
}

size_t symbol_rows_count(const struct symbol_rows *r)
{
    return r->rank ? rank_count(r->rank) : 0;
}

size_t symbol_rows_total(const struct symbol_rows *r)
{
    size_t from = 0, to = 0;
    if (r->list)
        range_of(r, r->module, &from, &to);
    return to - from;
}

bool symbol_rows_get(struct symbol_rows *r, size_t row, struct symbol_item *out)
{
    if (row >= symbol_rows_count(r))
        return false;
    symbol_list_get(r->list, rank_at(r->rank, row), out);
    return true;
}

/* ---- Triggers ---- */

static bool name_is_elsewhere(const struct symbol_rows *r, const struct symbol_item *item)
{
    for (size_t i = 0, n = symbol_list_count(r->list); i < n; i++) {
        const struct rank_item *it = &symbol_list_chunk(r->list, i / RANK_CHUNK)->items[i % RANK_CHUNK];
        struct symbol_item other;
        if (strcmp(it->text, item->name) != 0)
            continue;
        symbol_list_get(r->list, i, &other);
        if (other.module != item->module)
            return true;
    }
    return false;
}

static void make_spec(struct symbol_rows *r, const struct symbol_item *item)
{
    if (r->spec && r->spec_raw == item->raw && r->spec_module == item->module)
        return;
    const struct module *m = modules_at(r->modules, item->module);
    char *full = demangle(item->raw, DEMANGLE_FULL);
    const char *name = full ? full : item->name;
    free(r->spec);
    r->spec = m->is_main ? xstrdup(name) : xasprintf("%s:%s", r->module_names[item->module], name);
    r->spec_raw = item->raw;
    r->spec_module = item->module;
    free(full);
}

static char *qualified(const struct symbol_rows *r, const struct symbol_item *item)
{
    const struct module *m = modules_at(r->modules, item->module);
    return m->is_main ? xasprintf("%s:%s", r->module_names[item->module], r->spec) : xstrdup(r->spec);
}

char *symbol_rows_spec(struct symbol_rows *r, const struct symbol_item *item)
{
    make_spec(r, item);
    return modules_at(r->modules, item->module)->is_main && name_is_elsewhere(r, item)
               ? qualified(r, item)
               : xstrdup(r->spec);
}

static enum symbol_choice choice_of(const struct model *m, const char *spec)
{
    if (model_has_trigger(m, spec))
        return SYMBOL_AT_ENTRY;
    char *at_return = xasprintf("%s@return", spec);
    bool chosen = model_has_trigger(m, at_return);
    free(at_return);
    return chosen ? SYMBOL_AT_RETURN : SYMBOL_NOT_CHOSEN;
}

enum symbol_choice symbol_rows_choice(struct symbol_rows *r, const struct symbol_item *item)
{
    if (r->m->triggers.len == 0)
        return SYMBOL_NOT_CHOSEN;
    make_spec(r, item);
    enum symbol_choice c = choice_of(r->m, r->spec);
    if (c == SYMBOL_NOT_CHOSEN && modules_at(r->modules, item->module)->is_main) {
        char *with_module = qualified(r, item);
        c = choice_of(r->m, with_module);
        free(with_module);
    }
    return c;
}

/* ---- Cells ---- */

void symbol_rows_set_width(struct symbol_rows *r, int name_cols)
{
    r->name_cols = name_cols;
}

static size_t count_rows(void *arg)
{
    return symbol_rows_count(arg);
}

/* A name's place in the list never changes. */
static uint64_t identity(void *arg, size_t row)
{
    struct symbol_rows *r = arg;
    return row < symbol_rows_count(r) ? rank_at(r->rank, row) + 1 : 0;
}

/* Only near the top: looking farther would order a million names. */
static size_t find(void *arg, uint64_t id)
{
    struct symbol_rows *r = arg;
    size_t n = symbol_rows_count(r);
    for (size_t i = 0; i < n && i < RANK_FIRST; i++)
        if (rank_at(r->rank, i) + 1 == id)
            return i;
    return SIZE_MAX;
}

static char *shown_name(const struct symbol_rows *r, const struct symbol_item *item)
{
    const char *how = settings_text(r->m->settings, SET_DEMANGLE);
    if (strcmp(how, "raw") == 0)
        return xstrdup(item->raw);
    if (strcmp(how, "full") == 0)
        return demangle_or_copy(item->raw, DEMANGLE_FULL);
    return xstrdup(item->name);
}

/* Marks the matched characters of text[skip…]; bit n is character n of what is shown. */
static uint64_t matched_bits(struct symbol_rows *r, const char *text, size_t skip, size_t lead)
{
    struct match_range range[RANGES_MAX];
    size_t len = strlen(text), n = match_ranges(rank_matcher(r->rank), text, len, range, RANGES_MAX);
    uint64_t bits = 0;
    size_t k = 0;
    for (size_t at = skip, c = lead; at < len && c < 64; c++) {
        uint32_t cp;
        while (k < n && range[k].to <= at)
            k++;
        if (k < n && at >= range[k].from)
            bits |= 1ull << c;
        at += utf8_decode(text + at, len - at, &cp);
    }
    return bits;
}

/* How many bytes to leave out at the front so that the end of the match is seen. */
static size_t bytes_to_skip(struct symbol_rows *r, const char *text)
{
    struct match_range range[RANGES_MAX];
    size_t len = strlen(text), cols = r->name_cols > 4 ? (size_t)r->name_cols : 0;
    if (!cols || utf8_cols(text, len) <= cols)
        return 0;
    size_t n = match_ranges(rank_matcher(r->rank), text, len, range, RANGES_MAX);
    if (n == 0 || utf8_cols(text, range[n - 1].to) < cols)
        return 0;
    /* The last matched character stands two columns from the right end, but the first stays if it can. */
    size_t skip_cols = utf8_cols(text, range[n - 1].to) + 3 - cols;
    return utf8_cut(text, len, skip_cols, NULL);
}

static void name_cell(struct symbol_rows *r, const struct symbol_item *item, struct list_cell *cell)
{
    char *name = shown_name(r, item);
    size_t skip = bytes_to_skip(r, name), lead = 0;
    if (skip) {
        lead = utf8_encode(glyph(r->m->glyphs, GLYPH_ELLIPSIS), cell->text);
        snprintf(cell->text + lead, sizeof cell->text - lead, "%s", name + skip);
    } else {
        snprintf(cell->text, sizeof cell->text, "%s", name);
    }
    cell->matched = matched_bits(r, name, skip, skip ? 1 : 0);
    free(name);
}

static void source_cell(struct symbol_rows *r, const struct symbol_item *item, struct list_cell *cell)
{
    struct source_place p = source_lookup_place(r->source, item->module, item->vaddr);
    const char *slash = p.file ? strrchr(p.file, '/') : NULL;
    if (p.file)
        snprintf(cell->text, sizeof cell->text, "%s:%d", slash ? slash + 1 : p.file, p.line);
    else
        snprintf(cell->text, sizeof cell->text, "%s", p.waiting ? "" : "-");
    cell->style.ink = ROLE_DIM;
}

static void cell(void *arg, size_t row, size_t column, struct list_cell *c)
{
    struct symbol_rows *r = arg;
    struct symbol_item item;
    char count[FMT_MAX];
    if (!symbol_rows_get(r, row, &item))
        return;
    const struct module *m = modules_at(r->modules, item.module);
    switch ((enum symbol_column)column) {
    case SYMBOL_CHOSEN: {
        static const char *const boxes[] = {"[ ]", "[x]", "[r]"};
        enum symbol_choice choice = symbol_rows_choice(r, &item);
        snprintf(c->text, sizeof c->text, "%s", boxes[choice]);
        c->style.ink = choice == SYMBOL_NOT_CHOSEN ? ROLE_DIM : ROLE_MARKED;
        break;
    }
    case SYMBOL_NAME:
        name_cell(r, &item, c);
        break;
    case SYMBOL_MODULE:
        snprintf(c->text, sizeof c->text, "%s", r->module_names[item.module]);
        break;
    case SYMBOL_ADDRESS:
        snprintf(c->text, sizeof c->text, "0x%" PRIx64, item.vaddr + m->bias);
        c->style.ink = ROLE_DIM;
        break;
    case SYMBOL_SIZE:
        snprintf(c->text, sizeof c->text, "%s", fmt_count_short(count, item.size));
        break;
    case SYMBOL_SOURCE:
        source_cell(r, &item, c);
        break;
    case SYMBOL_COLUMNS:
        break;
    }
}

struct list_rows symbol_rows_callbacks(void)
{
    return (struct list_rows){.count = count_rows, .identity = identity, .cell = cell, .find = find};
}

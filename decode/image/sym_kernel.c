#include "decode/image/sym_kernel.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/image/sym_file.h"

#define KALLSYMS_MAX (256u << 20)
#define LAST_SYMBOL_MAX 4096 /* bytes that the last one is taken to be long */

struct raw_symbol {
    struct kernel_symbol s;
    char type;
};

struct sym_kernel {
    char *text;
    VEC(struct raw_symbol) symbols; /* by address, one each */
    uint64_t start;
};

/* "ADDRESS TYPE NAME" with tab and "[MODULE]" behind module symbols; ends strings inside the line. */
static bool parse_line(char *line, struct raw_symbol *out)
{
    char *end, *name;
    out->s.address = strtoull(line, &end, 16);
    if (end == line || end[0] != ' ' || end[1] == '\0' || end[2] != ' ')
        return false;
    out->type = end[1];
    name = end + 3;
    char *tab = strchr(name, '\t');
    out->s.module = tab ? tab + 1 : NULL;
    if (tab)
        *tab = '\0';
    out->s.name = name;
    return *name != '\0';
}

static bool is_wanted(const struct raw_symbol *r)
{
    /* code, and the data that ends it; `$x` and `.L…` are marks of the assembler's */
    return strchr("tTwWdDbB", r->type) && r->s.name[0] != '$' && strncmp(r->s.name, ".L", 2) != 0;
}

static int by_address(const void *a, const void *b)
{
    const struct raw_symbol *x = a, *y = b;
    if (x->s.address != y->s.address)
        return x->s.address < y->s.address ? -1 : 1;
    return x->s.name < y->s.name ? -1 : x->s.name > y->s.name; /* place in the file */
}

static void keep_last(struct sym_kernel *k)
{
    size_t kept = 0;
    qsort(k->symbols.data, k->symbols.len, sizeof *k->symbols.data, by_address);
    for (size_t i = 0; i < k->symbols.len; i++)
        if (i + 1 == k->symbols.len || k->symbols.data[i + 1].s.address != k->symbols.data[i].s.address)
            k->symbols.data[kept++] = k->symbols.data[i];
    k->symbols.len = kept;
}

static bool parse(struct sym_kernel *k, bool *all_zero)
{
    char *save = NULL;
    uint64_t stext = 0;
    *all_zero = true;
    for (char *line = strtok_r(k->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct raw_symbol raw;
        if (!parse_line(line, &raw))
            continue;
        if (raw.s.address)
            *all_zero = false;
        if (strcmp(raw.s.name, "_text") == 0 && !raw.s.module)
            k->start = raw.s.address;
        if (strcmp(raw.s.name, "_stext") == 0 && !raw.s.module)
            stext = raw.s.address;
        if (is_wanted(&raw) && !vec_try_push(&k->symbols, raw))
            return false;
    }
    if (!k->start)
        k->start = stext;
    return true;
}

int sym_kernel_load(struct sym_kernel **out, const char *kallsyms, struct err *err)
{
    size_t len;
    char *text;
    int e = sym_file_read(kallsyms, KALLSYMS_MAX, false, &text, &len, err);
    if (e < 0)
        return e;
    struct sym_kernel *k = xcalloc(1, sizeof *k);
    bool all_zero;
    k->text = text;
    if (!parse(k, &all_zero))
        e = err_set(err, MTUI_E_NOMEM, "not enough memory for the symbols of the kernel");
    else if (all_zero)
        e = err_set(err, MTUI_E_PERM, "the kernel hides the addresses of its functions from you "
                    "(sysctl kernel.kptr_restrict=0, or run as root, shows them)");
    if (e < 0) {
        sym_kernel_free(k);
        return e;
    }
    if (k->symbols.len)
        keep_last(k);
    *out = k;
    return 0;
}

void sym_kernel_free(struct sym_kernel *k)
{
    if (!k)
        return;
    vec_free(&k->symbols);
    free(k->text);
    free(k);
}

const struct kernel_symbol *sym_kernel_find(const struct sym_kernel *k, uint64_t address)
{
    size_t lo = 0, hi = k->symbols.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (k->symbols.data[mid].s.address <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == 0)
        return NULL;
    const struct kernel_symbol *s = &k->symbols.data[lo - 1].s;
    return lo < k->symbols.len || address - s->address < LAST_SYMBOL_MAX ? s : NULL;
}

uint64_t sym_kernel_text(const struct sym_kernel *k)
{
    return k->start;
}

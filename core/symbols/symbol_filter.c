#include "core/symbols/symbol_filter.h"

#include <elf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "core/symbols/symtab.h"

/* perf's rule (elf_sec__filter): the section's name contains "text". */
void symbol_filter_read(struct symbol_filter *f, struct Elf *elf)
{
    size_t names;
    f->n = 0;
    f->is_text = NULL;
    if (elf_getshdrnum(elf, &f->n) != 0 || elf_getshdrstrndx(elf, &names) != 0 || f->n == 0) {
        f->n = 0;
        return;
    }
    f->is_text = calloc(f->n, 1);
    if (!f->is_text) {
        f->n = 0;
        return;
    }
    Elf_Scn *scn = NULL;
    while ((scn = elf_nextscn(elf, scn))) {
        GElf_Shdr sh;
        size_t i = elf_ndxscn(scn);
        if (i >= f->n || !gelf_getshdr(scn, &sh))
            continue;
        const char *name = elf_strptr(elf, names, sh.sh_name);
        f->is_text[i] = name && strstr(name, "text") != NULL;
    }
}

int symbol_filter_flags(const struct symbol_filter *f, const GElf_Sym *sym)
{
    if (sym->st_name == 0 || sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS)
        return -1;
    int flags = 0;
    switch (GELF_ST_TYPE(sym->st_info)) {
    case STT_FUNC:
        break;
    case STT_GNU_IFUNC:
        flags |= SYMBOL_IFUNC;
        break;
    case STT_NOTYPE: {
        int v = GELF_ST_VISIBILITY(sym->st_other);
        if (v == STV_HIDDEN || v == STV_INTERNAL || sym->st_shndx >= f->n ||
            !f->is_text[sym->st_shndx])
            return -1;
        flags |= SYMBOL_LABEL;
        break;
    }
    default:
        return -1;
    }
    switch (GELF_ST_BIND(sym->st_info)) {
    case STB_LOCAL:
        return flags | SYMBOL_LOCAL;
    case STB_WEAK:
        return flags | SYMBOL_WEAK;
    default:
        return flags;
    }
}

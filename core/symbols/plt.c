#include "core/symbols/plt.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"

#define SECTION_MAX ((size_t)64 << 20)
#define SLOTS_MAX ((size_t)1 << 22)

struct slot {
    uint64_t addr;      /* of the GOT entry */
    const char *target; /* in libelf's string table, or NULL */
    uint64_t resolver;
};

struct plt {
    const struct elf_file *file;
    VEC(struct slot) slots;     /* sorted by addr */
    VEC(const char *) lazy;     /* names in the order of .rela.plt: what a lazy stub pushes */
    size_t names;               /* index of .shstrtab */
};

static int slot_order(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Relocations of one SHT_RELA section, into slots. */
static void take_relocations(struct plt *p, Elf_Scn *scn, const GElf_Shdr *sh, bool is_plt)
{
    Elf *elf = elf_file_handle(p->file);
    Elf_Data *data = elf_getdata(scn, NULL);
    Elf_Scn *sym_scn = elf_getscn(elf, sh->sh_link);
    GElf_Shdr sym_sh;
    Elf_Data *syms = NULL;
    if (sym_scn && gelf_getshdr(sym_scn, &sym_sh) && sym_sh.sh_type == SHT_DYNSYM)
        syms = elf_getdata(sym_scn, NULL);
    if (!data || sh->sh_entsize == 0)
        return;
    size_t n = (size_t)(sh->sh_size / sh->sh_entsize);
    for (size_t i = 0; i < n && i < SLOTS_MAX && p->slots.len < SLOTS_MAX; i++) {
        GElf_Rela rela;
        GElf_Sym sym;
        if (!gelf_getrela(data, (int)i, &rela))
            return;
        unsigned type = (unsigned)GELF_R_TYPE(rela.r_info);
        struct slot s = {.addr = rela.r_offset};
        if (type == R_X86_64_IRELATIVE)
            s.resolver = (uint64_t)rela.r_addend;
        else if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) && syms &&
                 gelf_getsym(syms, (int)GELF_R_SYM(rela.r_info), &sym))
            s.target = elf_strptr(elf, sym_sh.sh_link, sym.st_name);
        if (is_plt && !vec_try_push(&p->lazy, s.target))
            return;
        if ((s.target && *s.target) || s.resolver)
            if (!vec_try_push(&p->slots, s))
                return;
    }
}

static const struct slot *slot_at(const struct plt *p, uint64_t addr)
{
    struct slot key = {.addr = addr};
    if (p->slots.len == 0)
        return NULL;
    return bsearch(&key, p->slots.data, p->slots.len, sizeof key, slot_order);
}

/* Reads one stub of len bytes at code. */
static bool stub_decode(const struct plt *p, const uint8_t *code, size_t len, uint64_t vaddr,
                        struct plt_stub *stub)
{
    size_t at = 0;
    if (len >= 4 && memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0) /* endbr64 */
        at = 4;
    if (at < len && code[at] == 0xf2) /* bnd */
        at++;
    if (len - at < 6)
        return false;
    int32_t disp;
    memcpy(&disp, code + at + 2, 4);
    if (code[at] == 0xff && code[at + 1] == 0x25) { /* jmp *disp(%rip) */
        const struct slot *s = slot_at(p, vaddr + at + 6 + (uint64_t)(int64_t)disp);
        if (!s)
            return false;
        stub->target = s->target;
        stub->resolver = s->resolver;
        return true;
    }
    memcpy(&disp, code + at + 1, 4);
    if (code[at] == 0x68 && disp >= 0 && (size_t)disp < p->lazy.len) { /* push n; jmp .plt */
        stub->target = p->lazy.data[disp];
        return stub->target && *stub->target;
    }
    return code[at] == 0xff && code[at + 1] == 0x35; /* push GOT+8(%rip): the head of .plt */
}

static void take_stubs(const struct plt *p, const GElf_Shdr *sh,
                       void (*fn)(void *arg, const struct plt_stub *stub), void *arg)
{
    size_t size = (size_t)sh->sh_size, step = sh->sh_entsize == 8 ? 8 : 16;
    if (sh->sh_size > SECTION_MAX || !(sh->sh_flags & SHF_EXECINSTR))
        return;
    uint8_t *code = malloc(size ? size : 1);
    if (!code)
        return;
    size = elf_file_read_at(p->file, sh->sh_offset, code, size);
    for (size_t at = 0; at < size; at += step) {
        size_t len = size - at < step ? size - at : step;
        struct plt_stub stub = {.vaddr = sh->sh_addr + at, .size = (uint32_t)len};
        if (stub_decode(p, code + at, len, stub.vaddr, &stub))
            fn(arg, &stub);
    }
    free(code);
}

static const char *section_name(const struct plt *p, const GElf_Shdr *sh)
{
    const char *name = elf_strptr(elf_file_handle(p->file), p->names, sh->sh_name);
    return name ? name : "";
}

void plt_each(const struct elf_file *f, void (*fn)(void *arg, const struct plt_stub *stub), void *arg)
{
    static const char *const sections[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
    Elf *elf = elf_file_handle(f);
    struct plt p = {.file = f};
    if (elf_file_machine(f) != EM_X86_64 || elf_getshdrstrndx(elf, &p.names) != 0)
        return;
    GElf_Shdr sh;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));)
        if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_RELA)
            take_relocations(&p, scn, &sh, strcmp(section_name(&p, &sh), ".rela.plt") == 0);
    if (p.slots.len)
        qsort(p.slots.data, p.slots.len, sizeof *p.slots.data, slot_order);
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS)
            continue;
        for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
            if (strcmp(section_name(&p, &sh), sections[i]) == 0)
                take_stubs(&p, &sh, fn, arg);
    }
    vec_free(&p.slots);
    vec_free(&p.lazy);
}

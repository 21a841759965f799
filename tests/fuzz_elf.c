/* Fuzz target: an ELF file from outside, through everything that reads one: headers, build-id, segments,
 * symbols, PLT stubs, .gnu_debuglink and .gnu_debugdata, DWARF lines and functions, exception tables. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/symbols/debug_file.h"
#include "core/symbols/demangle.h"
#include "core/symbols/dwarf_line.h"
#include "core/symbols/elf_file.h"
#include "core/symbols/lsda.h"
#include "core/symbols/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_lines(const struct elf_file *f, const struct symtab *t)
{
    struct dwarf_lines *d;
    if (dwarf_lines_open(f, NULL, &d, NULL) < 0)
        return;
    for (size_t i = 0; i < symtab_count(t) && i < 64; i++) {
        struct symbol s;
        struct source_pos pos;
        struct source_frame frames[8];
        symtab_get(t, i, &s);
        dwarf_lines_at(d, s.vaddr, &pos);
        dwarf_lines_frames(d, s.vaddr + s.size / 2, frames, 8);
    }
    struct source_addr *addrs;
    size_t n;
    if (dwarf_lines_find(d, "p.c", 3, &addrs, &n, NULL) == 0)
        free(addrs);
    dwarf_lines_free(d);
}

/* Takes f over. */
static void look_at_exceptions(struct elf_file *f)
{
    struct lsda *l;
    size_t n;
    const struct elf_segment *s = elf_file_segments(f, &n);
    uint64_t from = n ? s[0].vaddr : 0, pad;
    if (lsda_new(f, &l, NULL) < 0)
        return;
    for (uint64_t i = 0; i < 4096; i++)
        lsda_landing_pad(l, from + i * 4, &pad);
    lsda_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elf_file *f, *packed;
    struct symtab *t;
    void *image = malloc(size ? size : 1);
    if (!image)
        return 0;
    if (size)
        memcpy(image, data, size);
    if (elf_file_open_memory(image, size, "input", &f, NULL) < 0)
        return 0;
    uint8_t code[16];
    uint64_t offset;
    elf_file_read(f, elf_file_entry(f), code, sizeof code);
    elf_file_vaddr_to_offset(f, elf_file_entry(f), &offset);
    struct debug_search nowhere = {.root = "/nonexistent", .path = "/nonexistent/p"};
    if (symtab_load(f, &nowhere, &t, NULL) == 0) {
        for (size_t i = 0; i < symtab_count(t); i++) {
            struct symbol s;
            symtab_get(t, i, &s);
            free(demangle(s.name, DEMANGLE_SHORT));
            symtab_find(t, s.vaddr + s.size / 2);
        }
        look_at_lines(f, t);
        symtab_free(t);
    }
    if (debug_data_open(f, &packed, NULL) == 0)
        elf_file_free(packed);
    look_at_exceptions(f);
    return 0;
}

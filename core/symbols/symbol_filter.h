/* Which symbols of an ELF file are functions, by perf's rules (core/symbols/symtab.h). */
#ifndef MTUI_CORE_SYMBOL_FILTER_H
#define MTUI_CORE_SYMBOL_FILTER_H

#include <gelf.h>
#include <stddef.h>
#include <stdint.h>

struct symbol_filter {
    uint8_t *is_text; /* by section index: untyped labels there count as code; from malloc */
    size_t n;
};

void symbol_filter_read(struct symbol_filter *f, struct Elf *elf);
/* The flags (enum symbol_flag) that a symbol begins with; −1: it is no function. */
int symbol_filter_flags(const struct symbol_filter *f, const GElf_Sym *sym);

#endif

/* The function symbols of one ELF file, sorted by address.
 *
 * Sources, merged: .symtab, .dynsym, the separate debug file, .gnu_debugdata (core/symbols/debug_file.h), and
 * one symbol for each PLT stub (`name@plt`; x86-64 .plt, .plt.sec, .plt.got, by their relocations).
 * What counts as a function, which alias wins, and how zero sizes are mended follows perf
 * (tools/perf/util/symbol-elf.c, symbol.c), so that names equal those of `perf script`:
 *   - STT_FUNC and STT_GNU_IFUNC, and untyped labels in a section whose name contains "text";
 *   - of several symbols at one address: one with a size before one without, not weak before weak,
 *     global before local, fewer leading underscores, the longer name (both of the demangled name), the
 *     first in the file;
 *   - a symbol without a size reaches to the next one, the last to the end of its segment.
 * Every alias stays findable by name (symtab_find_name).
 *
 * Of a stripped file (neither .symtab nor a debug file nor .gnu_debugdata has names), code that no symbol
 * covers is divided into functions by its unwind entries (core/symbols/eh_frame.h), named by the file's name
 * and their address in it: "gzip+0x3500". They are found by address, and are not among the symbols that are
 * listed and searched by name.
 *
 * Memory: 24 bytes a symbol plus the string tables as they are in the file. Immutable once loaded:
 * any thread may read it, and it does not need the elf_file any more. */
#ifndef MTUI_CORE_SYMTAB_H
#define MTUI_CORE_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/symbols/elf_file.h"
#include "core/base/err.h"

enum symbol_flag {
    SYMBOL_LOCAL = 1 << 0,
    SYMBOL_WEAK = 1 << 1,
    SYMBOL_IFUNC = 1 << 2,
    SYMBOL_LABEL = 1 << 3,   /* STT_NOTYPE, hand-written assembly */
    SYMBOL_PLT = 1 << 4,     /* a stub: name is "f@plt" */
    SYMBOL_NO_SIZE = 1 << 5, /* size is a guess: up to the next symbol */
    SYMBOL_ALIAS = 1 << 6,   /* another symbol at this address was preferred */
    SYMBOL_UNNAMED = 1 << 7, /* no symbol: the name is the file's and the address */
    SYMBOL_PART = 1 << 8     /* SYMBOL_UNNAMED, and no function by itself: its f.cold */
};

enum symbol_source { SYMBOL_FROM_SYMTAB, SYMBOL_FROM_DYNSYM, SYMBOL_FROM_DEBUG, SYMBOL_FROM_DEBUGDATA,
                     SYMBOL_FROM_PLT, SYMBOL_FROM_UNWIND };

struct symbol {
    const char *name; /* raw (mangled) bytes; lives as long as the symtab */
    uint64_t vaddr, size;
    uint16_t flags; /* enum symbol_flag */
    uint8_t source; /* enum symbol_source */
};

struct symtab;
struct debug_search;

/* search says where separate debug files may lie (core/symbols/debug_file.h); NULL: none is looked for. Its
 * path, else that of f, is the one whose last part names functions without a symbol.
 * A file without any symbol gives an empty table and 0. */
int symtab_load(const struct elf_file *f, const struct debug_search *search, struct symtab **out,
                struct err *err);
void symtab_free(struct symtab *t);

/* Preferred symbols only, ascending by vaddr, and behind them the functions without a symbol, ascending
 * too; i < symtab_count. */
size_t symtab_count(const struct symtab *t);
void symtab_get(const struct symtab *t, size_t i, struct symbol *out);

/* The symbol whose [vaddr, vaddr + size) holds the address; of nested ones the innermost. Returns its
 * index or −1. O(log n). */
ssize_t symtab_find(const struct symtab *t, uint64_t vaddr);

/* Every symbol, aliases included, in ascending order of address (i < symtab_all_count); functions without
 * one are not among them. */
size_t symtab_all_count(const struct symtab *t);
void symtab_all_get(const struct symtab *t, size_t i, struct symbol *out);

/* Calls fn for every symbol of that raw name, aliases included. O(n). */
void symtab_find_name(const struct symtab *t, const char *raw,
                      void (*fn)(void *arg, const struct symbol *s), void *arg);

/* Symbols per source, before merging. */
size_t symtab_source_count(const struct symtab *t, enum symbol_source source);
/* Bytes of memory held. */
size_t symtab_memory(const struct symtab *t);
/* The separate debug file that was used, or NULL. */
const char *symtab_debug_path(const struct symtab *t);
/* What is known about missing symbols: "stripped, only 3 exported functions, 120 more known by their unwind
 * entries and named by address; tried …", or NULL when .symtab or a debug file was there. Names every path
 * tried. */
const char *symtab_note(const struct symtab *t);

#endif

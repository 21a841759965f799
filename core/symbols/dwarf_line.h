/* Source positions from DWARF, through libdw: looked up when asked, never per address up front.
 *
 * Damaged or unknown DWARF costs line numbers only: every question then answers "not known". Walks are
 * bounded in depth and number of entries. Strings returned live as long as the dwarf_lines. One
 * dwarf_lines belongs to one thread at a time. Addresses are vaddrs of the module. */
#ifndef MTUI_CORE_DWARF_LINE_H
#define MTUI_CORE_DWARF_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/symbols/debug_file.h"
#include "core/symbols/elf_file.h"
#include "core/base/err.h"

struct dwarf_lines;

/* Uses .debug_info of f, else of its separate debug file (search NULL: none). Keeps handles of its own;
 * f may go. MTUI_E_NOENT when there is no DWARF, with the paths tried. */
int dwarf_lines_open(const struct elf_file *f, const struct debug_search *search,
                     struct dwarf_lines **out, struct err *err);
void dwarf_lines_free(struct dwarf_lines *d);

struct source_pos {
    const char *file; /* as the compiler wrote it, made absolute by its directory where possible */
    int line;         /* ≥ 1 */
};

/* The line of the instruction at vaddr. */
bool dwarf_lines_at(struct dwarf_lines *d, uint64_t vaddr, struct source_pos *out);

struct source_frame {
    const char *name;          /* linkage name where there is one (mangled), else the plain name */
    struct source_pos decl;    /* where the function is declared; line 0 unknown */
    struct source_pos call;    /* inlined frames: the line of the call in the next outer frame; else 0 */
    uint64_t vaddr;            /* its lowest address */
    bool inlined;
};

/* The functions around vaddr, innermost first: inlined ones, then the real one. Returns the number
 * stored (at most max), 0 when not known. */
size_t dwarf_lines_frames(struct dwarf_lines *d, uint64_t vaddr, struct source_frame *out, size_t max);

struct source_addr {
    uint64_t vaddr;
    const char *file;
    int line;           /* the line asked for, or the next one of the same function with code */
    const char *function; /* linkage or plain name of the function that holds it; NULL unknown */
};

/* Addresses where the code of FILE:LINE begins: one for each function, and each inlined copy, that has
 * code for the line. file matches whole trailing components of a source path ("http.c",
 * "src/http.c"). A line without code takes the next line that has some, if the function around that one
 * began at or before the line asked for. *out from malloc, sorted by vaddr. MTUI_E_NOENT with a sentence:
 * unknown file, or no code for the line (the next line with code is named). */
int dwarf_lines_find(struct dwarf_lines *d, const char *file, int line, struct source_addr **out,
                     size_t *n, struct err *err);

/* True when path ends in the components of file. */
bool source_path_matches(const char *path, const char *file);

#endif

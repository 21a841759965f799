/* The executable modules of a process (or of a program that does not run yet), and names to addresses.
 *
 * A module is an ELF file mapped executable, with one bias: runtime address = vaddr + bias. The same
 * file mapped twice with different biases is two modules. Files are opened through /proc
 * (core/machine/maps.h: map_open), so deleted, replaced and containerised programs give their own symbols, not
 * those of a namesake. Symbols are loaded at the first question about a module.
 *
 * Thread-safe: a lock inside covers lazy loading; struct module and symtabs are stable until
 * modules_free. */
#ifndef MTUI_CORE_MODULES_H
#define MTUI_CORE_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/symbols/eh_cfa.h"
#include "core/symbols/elf_file.h"
#include "core/base/err.h"
#include "core/symbols/symtab.h"

struct module {
    const char *path;      /* as the process sees it; "[vdso]"; bytes from outside */
    const char *name;      /* last component of path */
    const char *open_path; /* opens the same inode from here, also in the kernel's uprobe PMU:
                              /proc/PID/map_files/…, /proc/PID/exe, /proc/PID/root/…; NULL when the
                              module has no file ([vdso]) or could not be opened */
    uint64_t bias;         /* runtime = vaddr + bias; 0 for a file that does not run */
    uint64_t start, end;   /* executable range in the process, [start, end) hull; 0 when not running */
    uint8_t build_id[ELF_BUILD_ID_MAX];
    size_t build_id_len;
    enum elf_kind kind;
    int bits;        /* 64 or 32; 0 when not readable */
    bool is_main;    /* the program itself */
    bool is_vdso;
    bool deleted;    /* the file was unlinked or replaced since it was mapped */
    bool mapped;     /* false after modules_refresh found it gone */
    const char *why; /* why it cannot be read at all (a sentence), or NULL */
};

struct modules;
struct dwarf_lines;

/* The modules of a running process; proc_root NULL is "/proc". A module that cannot be read is listed
 * with its `why`; only unreadable maps are an error. */
int modules_of_pid(const char *proc_root, pid_t pid, struct modules **out, struct err *err);

/* The one module of a program file (and, of its needed libraries, nothing: they are not mapped yet). */
int modules_of_file(const char *path, struct modules **out, struct err *err);

/* Reads the mappings again: new modules are appended, vanished ones get mapped = false, indices stay.
 * Returns 1 when anything changed, else 0. Not while another thread uses m. */
int modules_refresh(struct modules *m, struct err *err);
void modules_free(struct modules *m);

pid_t modules_pid(const struct modules *m); /* 0: of a file */
/* What stands before the process's own paths to reach them from here: "" or "/proc/PID/root". */
const char *modules_root(const struct modules *m);
size_t modules_count(const struct modules *m);
const struct module *modules_at(const struct modules *m, size_t i);

/* Whether two are mappings of the same file (by device and inode). */
bool modules_same_file(const struct modules *m, size_t a, size_t b);

/* The module whose executable mapping holds a runtime address, or −1. */
ssize_t modules_find_addr(const struct modules *m, uint64_t addr);

/* The symbols of a module, loaded when first asked for; NULL with a sentence when it cannot be read.
 * Stays the modules'. */
const struct symtab *modules_symtab(struct modules *m, size_t i, struct err *err);
/* Why a module has no function symbols, every path that was tried included, as one sentence from
 * malloc; NULL when it has them. */
char *modules_why_no_symbols(struct modules *m, size_t i);

/* Code bytes of the file (never the probe's 0xCC) at a vaddr; returns the bytes read. */
size_t modules_read_code(struct modules *m, size_t i, uint64_t vaddr, void *buf, size_t len);

/* How deep the stack is before the instruction at a vaddr. */
enum eh_stack modules_stack_at(struct modules *m, size_t i, uint64_t vaddr);

/* Where a vaddr stands in the module's file: what a uprobe takes. False outside the file's code. */
bool modules_file_offset(struct modules *m, size_t i, uint64_t vaddr, uint64_t *offset);

/* Source lines of a module (core/symbols/dwarf_line.h), opened when first asked for; NULL with a sentence. The
 * handle is the modules' and not thread-safe: one thread asks, and calls modules_resolve for FILE:LINE. */
struct dwarf_lines *modules_dwarf(struct modules *m, size_t i, struct err *err);

/* The function at a runtime address: out->name raw (valid until modules_free), out->vaddr its start as
 * runtime address. False when there is none. */
bool modules_symbolize(struct modules *m, uint64_t addr, struct symbol *out, size_t *module);

/* ---- Names to addresses ---- */

struct module_addr {
    size_t module;   /* index */
    uint64_t vaddr;  /* as linked */
    uint64_t offset; /* in the file: what a uprobe takes */
    uint64_t addr;   /* in the process; 0 when not running */
    uint64_t size;   /* of the function; 0 unknown */
    const char *raw; /* symbol as in the file; NULL for an address or line outside any symbol */
    const char *name;/* demangled with arguments */
    const char *file;/* FILE:LINE only: the source path; else NULL */
    int line;        /* FILE:LINE only: the line that has code; else 0 */
    uint16_t flags;  /* enum symbol_flag */
};

struct module_addrs { /* strings and array are its own; sorted by module, vaddr; each address once */
    struct module_addr *data;
    size_t len;
};

/* Whether a module goes by that name, as it stands before the colon of a SPEC. */
bool modules_named(const struct modules *m, const char *name);

void module_addrs_free(struct module_addrs *a);

/* Resolves SPEC to every address it names:
 *   name          equal to a raw name, a demangled name, or a demangled name without its arguments
 *                 (with or without template arguments); also the copies that a compiler has made of it
 *                 (f.constprop.0: symbol_name_base)
 *   file+0xADDR   a function without a symbol by the name it goes by (core/symbols/symtab.h)
 *   module:name   the same in modules whose path ends in the components of module; "libc:malloc" and
 *                 "libc.so:malloc" find libc.so.6
 *   /regex/       PCRE2, unanchored, over demangled names with arguments (PLT stubs and
 *                 the cold parts of functions left out)
 *   FILE:LINE     lines of DWARF line tables; a line without code takes the next that has some within
 *                 its function; FILE matches whole trailing path components
 *   0xADDR        a runtime address (of a running process) or a vaddr (of a file), inside executable
 *                 code
 * PLT stubs match only when the name ends in "@plt". Kernel symbols and names that match nothing are
 * MTUI_E_NOENT; the sentence offers the nearest names, which takes long: with err NULL only the symbols of
 * all modules are read. */
int modules_resolve(struct modules *m, const char *spec, struct module_addrs *out, struct err *err);

/* True when modules_resolve would treat spec as FILE:LINE / regex / address / plain name. */
enum module_spec { MODULE_SPEC_NAME, MODULE_SPEC_REGEX, MODULE_SPEC_LINE, MODULE_SPEC_ADDR };
enum module_spec modules_spec_kind(const char *spec);

/* The best n (≤ 8) names nearest to a misspelt one, from malloc in out[]; returns their number. */
size_t modules_suggest(struct modules *m, const char *name, char **out, size_t n);

#endif

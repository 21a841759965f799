/* Addresses become functions: (process, address, user or kernel) at the present point of the record
 * stream, through the address spaces (decode/image/addrspace.h) and the symbols of the files mapped there.
 *
 * Where the code of a module is looked for, in this order; with a build-id known, a file with another one
 * is not used, nor, without a build-id, one whose size or time of change is not what mtui's log has (of a
 * copy and below symfs only the size counts); the module's account says so:
 *   the copy that mtui kept at recording time; below symfs, if given, and then nowhere else but in the
 *   build-id cache; the recorded path; the build-id cache (~/.debug/.build-id/NN/REST/elf).
 * [vdso] comes from mtui's log, else from our own process when the build-id, or, where none was recorded,
 * the kernel release is the same. Code without a file gets its names from the process's perf map
 * (/tmp/perf-PID.map, tools/perf/Documentation/jit-interface.txt): later entries win over earlier ones,
 * and only files of ours or root's are believed. Kernel code gets its names from /proc/kallsyms, moved
 * if the kernel was loaded elsewhere then, when the running kernel is the recorded one and shows its
 * addresses; and from KSYMBOL records.
 *
 * Names are demangled without arguments, as `perf script` prints them. Not thread-safe. */
#ifndef MTUI_DECODE_SYMBOLIZE_H
#define MTUI_DECODE_SYMBOLIZE_H

#include "core/session/maps_log.h"
#include "decode/image/addrspace.h"
#include "decode/trace/functions.h"

struct symbolizer_options {
    const struct maps_log *log;   /* NULL: none */
    const char *symfs;            /* NULL: files are where they were recorded */
    const char *build_id_dir;     /* NULL: $HOME/.debug */
    const char *tmp;              /* where perf maps lie; NULL: "/tmp" */
    const char *proc;             /* where kallsyms lies; NULL: "/proc" */
    const char *os_release;       /* of the recording machine; NULL: not known */
};

struct symbolizer;

/* functions and as must outlive it; strings of the options are copied. */
struct symbolizer *symbolizer_new(struct functions *functions, const struct addrspaces *as,
                                  const struct symbolizer_options *options);
void symbolizer_free(struct symbolizer *s);

/* The function that holds ip. Never FN_NONE: unknown code gives "[unknown]" of its module (kind
 * FN_UNKNOWN), and where nothing was mapped "[unknown]" of the module "[unknown]"; unknown kernel code
 * is in module "[kernel]", so the two sides stay apart. The kernel's copies of instructions that uprobes sit on are
 * "[uprobe]" of "[kernel]". For a return address give ip − 1. */
fn_id symbolizer_find(struct symbolizer *s, pid_t pid, uint64_t ip, enum perf_cpumode mode);

/* The same for user code in a mapping that is at hand (also one of another time: map->module and owner
 * count, not what is mapped now). */
fn_id symbolizer_find_mapped(struct symbolizer *s, const struct addrspace_map *map, uint64_t ip);

/* True for what a mapping without a file is called (perf's "//anon", heaps, shared memory). */
bool symbolizer_is_anonymous(const char *path);

/* The file that is used for a mapping (decode/image/sym_module.h), or NULL; lives as long as s. */
struct sym_module;
const struct sym_module *symbolizer_module(struct symbolizer *s, const struct addrspace_map *map);

/* Why no file is used for a mapping, a sentence that lives as long as s; NULL: one is, or it has none. */
const char *symbolizer_why_missing(struct symbolizer *s, const struct addrspace_map *map);

/* How the names of one module came out. */
struct symbolizer_account {
    const char *module;         /* as in struct function */
    uint64_t lookups, resolved; /* addresses asked for; those that got a name */
    const char *source;         /* path of the file whose symbols are used, NULL: none */
    const char *reason;         /* a sentence why not all were resolved, NULL when all were */
};

/* Modules in the order in which they were met. The strings live as long as the symbolizer. */
size_t symbolizer_account_count(const struct symbolizer *s);
struct symbolizer_account symbolizer_account(const struct symbolizer *s, size_t i);

#endif

/* What is mapped where in every process, and what every thread is called, at the present point of a
 * stream of records in the order of time.
 *
 * MMAP records say what was mapped; unmapping is not recorded, so a new mapping takes away whatever it
 * overlaps. FORK of a process copies its parent's mappings (shared until one of them changes), FORK of a
 * thread does not; COMM with the exec flag empties them (what was replaced stays findable until the first
 * sample in user space, since the thread still stands in the old program's call of exec); a pid that is used again begins with what its
 * new parent has. What an ended process had stays known until then.
 *
 * mtui's own log of mappings (core/session/maps_log.h) comes in as events of the same stream: from the time of a
 * capture on it replaces all that was known of that process, since in overwrite mode perf's records tell
 * only the end state, or nothing of a process that is dead by then.
 *
 * Paths and names are bytes from outside. Not thread-safe. */
#ifndef MTUI_DECODE_ADDRSPACE_H
#define MTUI_DECODE_ADDRSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/session/maps_log.h"
#include "decode/perf/perf_file.h"

struct addrspace_map {
    uint64_t start, end; /* [start, end) */
    uint64_t pgoff;      /* offset in the file at start */
    uint32_t module;     /* for addrspaces_module */
    uint32_t prot;       /* PROT_* */
    pid_t owner;         /* the process that mapped it; after a fork, an ancestor */
};

/* A file (or "[vdso]", "//anon", "[kernel.kallsyms]_text") that was mapped. */
struct addrspace_module {
    const char *path;
    const uint8_t *build_id; /* as recorded, by the mapping itself, mtui's log or the header's list */
    size_t build_id_len;     /* 0: not known */
};

struct addrspaces;

/* log may be NULL; it must outlive the address spaces. */
struct addrspaces *addrspaces_new(const struct maps_log *log);
void addrspaces_free(struct addrspaces *as);

/* Moves the present to this record: records of every kind may be given, those of no use are ignored.
 * MTUI_E_NOMEM is the only error. */
int addrspaces_apply(struct addrspaces *as, const struct perf_record *rec, struct err *err);

/* The mapping that holds ip in a process (PERF_MODE_USER) or in the kernel (pid is ignored), or NULL.
 * Good until the next apply. */
const struct addrspace_map *addrspaces_find(const struct addrspaces *as, pid_t pid, uint64_t ip,
                                            enum perf_cpumode mode);

/* All mappings of a process, by address, disjoint. */
const struct addrspace_map *addrspaces_maps(const struct addrspaces *as, pid_t pid, size_t *n);

/* The name of code that the kernel announced by KSYMBOL (BPF programs, trampolines), or NULL. */
const char *addrspaces_ksymbol(const struct addrspaces *as, uint64_t ip, uint64_t *start);

/* A number for the present contents of a process's address space: equal numbers, equal contents, over
 * all processes and times; 0 when nothing is known of it. The kernel's is that of pid −1. */
uint64_t addrspaces_generation(const struct addrspaces *as, pid_t pid);

size_t addrspaces_module_count(const struct addrspaces *as);
struct addrspace_module addrspaces_module(const struct addrspaces *as, uint32_t module);

/* The present name of a thread, NULL when none is known; the process it belongs to, −1 unknown. */
const char *addrspaces_comm(const struct addrspaces *as, pid_t tid);
pid_t addrspaces_pid(const struct addrspaces *as, pid_t tid);

#endif

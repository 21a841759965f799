/* The mappings of a process, from /proc/PID/maps (proc(5)), and the files behind them.
 *
 * Paths are bytes from outside: escape before display. The kernel writes a newline in a path as \012
 * and nothing else is escaped there (fs/proc/task_mmu.c, seq_path with esc "\n"); it appends
 * " (deleted)" to the path of an unlinked file. Both are undone here. */
#ifndef MTUI_CORE_MAPS_H
#define MTUI_CORE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

enum maps_prot { MAPS_R = 1, MAPS_W = 2, MAPS_X = 4, MAPS_SHARED = 8 };

struct map {
    uint64_t start, end; /* [start, end) in the process */
    uint64_t offset;     /* of start in the file, bytes */
    uint64_t inode;      /* 0: no file behind it */
    uint32_t dev_major, dev_minor;
    unsigned prot;    /* enum maps_prot */
    bool deleted;     /* the path ended in " (deleted)", which is cut off */
    const char *path; /* "" anonymous; "[vdso]", "[heap]", "/usr/bin/x"; never NULL */
};

struct maps;

/* proc_root NULL means "/proc". A process that is gone, or has no memory any more, gives MTUI_E_GONE, one that may not be
 * looked into MTUI_E_PERM with the reason. Where the main thread has ended others are asked (proc_living_thread); so
 * does map_open. */
int maps_read(const char *proc_root, pid_t pid, struct maps **out, struct err *err);
/* Whether they may be read; MTUI_E_PERM with the reason. */
int maps_check(const char *proc_root, pid_t pid, struct err *err);
/* Parses text in the format of /proc/PID/maps; lines that do not parse are left out and counted. */
int maps_parse(const char *text, size_t len, struct maps **out, struct err *err);
void maps_free(struct maps *m);

/* In ascending order of address, as the kernel gives them. */
size_t maps_count(const struct maps *m);
const struct map *maps_at(const struct maps *m, size_t i);
size_t maps_bad_lines(const struct maps *m);

/* The mapping that holds addr, or NULL. */
const struct map *maps_find(const struct maps *m, uint64_t addr);

/* True when a file stands behind it (not anonymous memory, [heap], [vdso], memfd-less devices). */
bool map_has_file(const struct map *m);

/* Opens, for reading, the file behind a mapping of process pid: first
 * ROOT/PID/map_files/START-END (right even for deleted and replaced files and in other mount
 * namespaces, but needs privileges), then, for a mapping of the main program, ROOT/PID/exe, then
 * ROOT/PID/root/PATH when it is not evidently another file (same device, other inode), at last, as all of these
 * may be refused, PATH as this process sees it when device and inode are those of the mapping.
 * Returns the descriptor (close-on-exec, the caller's) and stores into path (size bytes) the path
 * that opened, which the kernel can open again (uprobe events need one). The sentence of a failure
 * names each open that was tried and its errno. */
int map_open(const char *proc_root, pid_t pid, const struct map *m, char *path, size_t size,
             struct err *err);

#endif

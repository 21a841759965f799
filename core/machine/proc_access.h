/* Whether a process can be traced, and what its program file offers: asked, not guessed. */
#ifndef MTUI_CORE_PROC_ACCESS_H
#define MTUI_CORE_PROC_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/machine/proc.h"

/* What the program file of a process is; kept by the caller so that an unchanged file is looked at
 * once. Zero-initialise before the first call. */
struct proc_exe {
    dev_t dev;
    ino_t ino;
    bool is_32bit;
    enum proc_syms syms;
};

/* Looks at ROOT/PID/exe (opened through /proc, so that deleted files and other mount namespaces
 * work). An unreadable one is PROC_SYMS_UNKNOWN. */
void proc_exe_look(const char *root, const struct proc_stat *st, struct proc_exe *exe);

/* Whether the numbers of /proc are those of our pid namespace. */
bool proc_access_is_own(void);

/* live: the process exists on this machine; then the kernel is asked with a perf_event_open of a
 * dummy event, which is what a recording will need. */
enum proc_trace proc_access_check(bool live, const struct proc_stat *st,
                                  const struct proc_exe *exe);

#endif

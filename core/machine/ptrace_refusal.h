/* Why the kernel does not let us look into a process (its mappings and memory) or trace it by ptrace, as far as
 * /proc tells: proc(5), ptrace(2) "Ptrace access mode checking", Documentation/admin-guide/LSM/Yama.rst. */
#ifndef MTUI_CORE_PTRACE_REFUSAL_H
#define MTUI_CORE_PTRACE_REFUSAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/err.h"

/* "WHAT: refused (Permission denied): it belongs to user 33: run as root …": MTUI_E_PERM. attach: it was about
 * ptrace, else about looking. proc_root NULL: /proc. */
int ptrace_refusal_explain(struct err *err, int errno_value, const char *proc_root, pid_t pid, bool attach,
                           const char *what);

#endif

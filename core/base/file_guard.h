/* Mapped files that are cut while they are read: by POSIX the process ends with SIGBUS at the first page
 * behind the new end (mmap(2)). With the guard installed such a page reads as zeros instead, in every
 * thread and in mappings of libraries as well; whoever mapped the file compares its size afterwards. */
#ifndef MTUI_CORE_FILE_GUARD_H
#define MTUI_CORE_FILE_GUARD_H

#include <signal.h>
#include <stdbool.h>

/* To be called before a file is read through a mapping, by the thread that does it (others that it starts
 * inherit what is needed). A SIGBUS of another kind does what it would have done without the guard. */
void file_guard_install(void);

/* For handlers of SIGBUS that are installed later: true when the fault was one of these and is mended, so
 * the handler just returns. Async-signal-safe. */
bool file_guard_mend(int number, const siginfo_t *info);

#endif

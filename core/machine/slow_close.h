/* Closes descriptors whose close takes long, without waiting.
 *
 * The kernel waits for a grace period (10–100 ms, under a global lock) when the last reference to a
 * uprobe event goes. A detached child inherits the descriptors and closes them in its own time,
 * also when this process ends meanwhile. */
#ifndef MTUI_CORE_SLOW_CLOSE_H
#define MTUI_CORE_SLOW_CLOSE_H

#include <stdbool.h>
#include <stddef.h>

/* Closes fds[0..n) here at once, and then for good in a process of its own that holds nothing else
 * and never lets go of one first. When no process can be made, they are closed here and that takes
 * its time. */
void slow_close(const int *fds, size_t n);

/* What to tell of n uprobes that the kernel takes out one by one, of a program that runs on: how long that takes, also
 * when we have ended. False: not long enough for a word. */
bool slow_close_text(char *text, size_t size, size_t n);

#endif

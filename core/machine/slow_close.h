/* Closes descriptors whose close takes long, without waiting.
 *
 * The kernel waits for a grace period (10–100 ms, under a global lock) when the last reference to a
 * uprobe event goes. A detached child inherits the descriptors and closes them in its own time,
 * also when this process ends meanwhile. */
#ifndef MTUI_CORE_SLOW_CLOSE_H
#define MTUI_CORE_SLOW_CLOSE_H

#include <stddef.h>

/* Closes fds[0..n) here at once, and then for good in a process of its own that holds nothing else
 * and never lets go of one first. When no process can be made, they are closed here and that takes
 * its time. */
void slow_close(const int *fds, size_t n);

#endif

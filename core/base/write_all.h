/* write(2) to its end. */
#ifndef MTUI_CORE_WRITE_ALL_H
#define MTUI_CORE_WRITE_ALL_H

#include <stddef.h>

/* All n bytes: in one write where the kernel takes them so; interrupted and short ones go on. 0, or -1 with errno:
 * what a short write stands for (a full disk, a limit on the size of files) is told by the one after it. */
int write_all(int fd, const void *bytes, size_t n);

#endif

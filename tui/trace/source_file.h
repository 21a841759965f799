/* Source files: read whole, if they are regular files of a sane size. */
#ifndef MTUI_TUI_SOURCE_FILE_H
#define MTUI_TUI_SOURCE_FILE_H

#include <stddef.h>
#include <time.h>

/* The text from malloc, NUL-terminated, or NULL; below root ("" for ours, "/proc/PID/root" for a
 * container's) if it is there, else where we see it. *mtime (NULL: not wanted) gets its last change. */
char *source_file_read(const char *root, const char *path, size_t *len, time_t *mtime);

#endif

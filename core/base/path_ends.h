/* What is enough of paths to tell them apart: their last components, as few as it takes. */
#ifndef MTUI_CORE_PATH_ENDS_H
#define MTUI_CORE_PATH_ENDS_H

#include <stdbool.h>
#include <stddef.h>

/* ends[i] becomes the shortest run of last components of paths[i] that no other of the paths ends in, a pointer into
 * paths[i]: "libz.so"; "lib/libz.so" and "opt/libz.so" of two that have one file name. Where there is none, all of it;
 * paths that are equal count as one. O(n log n). */
void path_ends(const char *const *paths, size_t n, const char **ends);

/* Whether a path ends in those components. */
bool path_ends_in(const char *path, const char *components);

#endif

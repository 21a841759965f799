/* Reading whole small files of unknown quality: only regular ones (no device, no FIFO), bounded. */
#ifndef MTUI_DECODE_SYM_FILE_H
#define MTUI_DECODE_SYM_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"

/* The bytes from malloc, NUL-terminated. own_only: must belong to us or to root. Files of /proc, whose
 * size is not told, are read to their end. */
int sym_file_read(const char *path, size_t max, bool own_only, char **out, size_t *len,
                  struct err *err);

#endif

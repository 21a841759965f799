/* Separate debug files: where distributions and packagers put the symbols that `strip` took away.
 *
 * Looked for, in this order, all below `root`:
 *   build-id   ROOT/usr/lib/debug/.build-id/NN/REST.debug            (accepted when its build-id is equal)
 *   debuglink  DIR/LINK, DIR/.debug/LINK, ROOT/usr/lib/debug/DIR/LINK  for .gnu_debuglink
 *              (accepted when the CRC-32 stored beside the name is that of the file, and, where both
 *              files have one, the build-id is equal)
 * and, when root is a container's, by build-id below our own root too;
 * as in the GDB manual, "Debugging Information in Separate Files". .gnu_debugdata ("MiniDebugInfo", the
 * same chapter) is an xz-compressed ELF file inside the file itself. Nothing ever goes to the network. */
#ifndef MTUI_CORE_DEBUG_FILE_H
#define MTUI_CORE_DEBUG_FILE_H

#include <stddef.h>

#include "core/symbols/elf_file.h"
#include "core/base/err.h"

#define DEBUG_DATA_MAX (256u << 20) /* bytes that .gnu_debugdata may unpack to */
#define DEBUG_LINK_MAX (4ull << 30) /* bytes of a debuglink candidate that are read for its CRC */

struct debug_search {
    const char *root;     /* "" for ours; "/proc/PID/root" for a container's */
    const char *path;     /* the module's path as seen below root: gives DIR; NULL: no debuglink */
    const char *dir;      /* the debug directory below root; NULL is "/usr/lib/debug" */
};

/* Looks for the separate debug file of f. Returns 0 and the opened file, or MTUI_E_NOENT with a
 * sentence that lists every path tried and what was wrong with it. tried (NULL allowed) gets the same
 * list, "path: reason" joined by "; ", from malloc, on success and on failure. */
int debug_file_find(const struct elf_file *f, const struct debug_search *search,
                    struct elf_file **out, char **tried, struct err *err);

/* Unpacks .gnu_debugdata. MTUI_E_NOENT when there is none, MTUI_E_FORMAT when it is damaged,
 * MTUI_E_LIMIT when it would be larger than DEBUG_DATA_MAX. */
int debug_data_open(const struct elf_file *f, struct elf_file **out, struct err *err);

#endif

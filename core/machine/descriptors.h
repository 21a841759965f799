/* Room for file descriptors, of which probes take many. */
#ifndef MTUI_CORE_DESCRIPTORS_H
#define MTUI_CORE_DESCRIPTORS_H

#include <stddef.h>

#include "core/base/err.h"

/* Makes sure that `needed` more can be opened and some are left for files, pipes and perf: raises
 * the soft limit (RLIMIT_NOFILE) to the hard one when it must. MTUI_E_LIMIT with the figures. */
int descriptors_make_room(size_t needed, struct err *err);

#endif

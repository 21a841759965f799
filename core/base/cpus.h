/* How many workers make sense here. */
#ifndef MTUI_CORE_CPUS_H
#define MTUI_CORE_CPUS_H

#include <unistd.h>

/* CPUs that are online; at least 1. */
static inline unsigned cpus_online(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 1 ? (unsigned)n : 1;
}

#endif

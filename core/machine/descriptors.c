#include "core/machine/descriptors.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <sys/resource.h>

#define SPARE 64

static size_t count_open(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

int descriptors_make_room(size_t needed, struct err *err)
{
    struct rlimit limit;
    size_t open_now = count_open();
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= open_now + needed + SPARE)
        return 0;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= open_now + needed + SPARE)
        return 0;
    return err_set(err, MTUI_E_LIMIT,
                   "this needs %zu file descriptors and only %zu are free (ulimit -Hn is %" PRIu64
                   "); raise the limit or choose fewer triggers",
                   needed,
                   (size_t)limit.rlim_cur > open_now ? (size_t)limit.rlim_cur - open_now : 0,
                   (uint64_t)limit.rlim_max);
}

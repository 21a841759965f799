#include "core/base/write_all.h"

#include <errno.h>
#include <unistd.h>

int write_all(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        if (done == 0) {
            errno = ENOSPC;
            return -1;
        }
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

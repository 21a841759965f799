#include "core/step/step_orphan.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/err.h"
#include "core/machine/proc_stat.h"

bool step_orphan_are_we(pid_t parent, int ctl_fd)
{
    struct pollfd ctl = {.fd = ctl_fd};
    struct proc_stat stat;
    if (getppid() != parent || (poll(&ctl, 1, 0) == 1 && ctl.revents & POLLHUP))
        return true;
    int rc = proc_stat_read("/proc", parent, 0, &stat, NULL);
    return rc == MTUI_E_GONE || (rc == 0 && (stat.state == 'Z' || stat.state == 'X'));
}

static unsigned last_snapshot(const char *dir)
{
    unsigned last = 0;
    DIR *d = opendir(dir);
    if (!d)
        return 0;
    for (struct dirent *f; (f = readdir(d));) {
        unsigned n = 0;
        int end = 0;
        if (sscanf(f->d_name, "snap-%9u%n", &n, &end) == 1 && !f->d_name[end] && n > last)
            last = n;
    }
    closedir(d);
    return last;
}

static void keep(const char *dir, const char *path)
{
    if (access(path, F_OK) != 0)
        return;
    char *snap = xasprintf("%s/snap-%u", dir, last_snapshot(dir) + 1);
    char *to = xasprintf("%s/perf.data", snap);
    if (mkdir(snap, 0700) == 0 && rename(path, to) != 0)
        rmdir(snap);
    free(to);
    free(snap);
}

void step_orphan_keep(const char *output, unsigned dumps)
{
    const char *slash = strrchr(output, '/');
    char *dir = slash ? xasprintf("%.*s", (int)(slash - output), output) : xstrdup(".");
    keep(dir, output);
    for (unsigned i = 1; i <= dumps; i++) {
        char *path = xasprintf("%s.%u", output, i);
        keep(dir, path);
        free(path);
    }
    free(dir);
}

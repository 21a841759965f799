#include "core/step/step_orphan.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/err.h"
#include "core/machine/proc_stat.h"

#define HIT_ROW_MAX 16384 /* a name of a trigger is shorter by far */

bool step_orphan_are_we(pid_t parent, int ctl_fd)
{
    struct pollfd ctl = {.fd = ctl_fd};
    struct proc_stat stat;
    if (getppid() != parent || (poll(&ctl, 1, 0) == 1 && ctl.revents & POLLHUP))
        return true;
    int rc = proc_stat_read("/proc", parent, parent, &stat, NULL); /* the first thread's own */
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

/* *kept gets the number of the snapshot that it has become. */
static void keep(const char *dir, const char *path, unsigned *kept)
{
    if (access(path, F_OK) != 0)
        return;
    unsigned n = last_snapshot(dir) + 1;
    char *snap = xasprintf("%s/snap-%u", dir, n);
    char *to = xasprintf("%s/perf.data", snap);
    if (mkdir(snap, 0700) == 0) {
        if (rename(path, to) == 0)
            *kept = n;
        else
            rmdir(snap);
    }
    free(to);
    free(snap);
}

static void keep_hit(const char *dir, unsigned snapshot)
{
    char *from = xasprintf("%s/" STEP_ORPHAN_HIT, dir), *to = xasprintf("%s/" STEP_ORPHAN_HITS, dir);
    char row[HIT_ROW_MAX];
    FILE *in = fopen(from, "re");
    size_t n = in ? fread(row, 1, sizeof row, in) : 0;
    int fd = n && n < sizeof row ? open(to, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (in)
        fclose(in);
    if (fd >= 0) {
        const char *number = memchr(row, '\n', n);
        size_t before = number ? (size_t)(number - row) : n, behind = number ? n - before - 1 : 0;
        char *line = xasprintf("%.*s%u%.*s\n", (int)before, row, snapshot, (int)behind, number ? number + 1 : "");
        if (write(fd, line, strlen(line)) == (ssize_t)strlen(line))
            unlink(from);
        free(line);
        close(fd);
    }
    free(to);
    free(from);
}

void step_orphan_keep(const char *output, unsigned dumps)
{
    const char *slash = strrchr(output, '/');
    unsigned kept = 0;
    char *dir = slash ? xasprintf("%.*s", (int)(slash - output), output) : xstrdup(".");
    keep(dir, output, &kept);
    for (unsigned i = 1; i <= dumps; i++) {
        char *path = xasprintf("%s.%u", output, i);
        keep(dir, path, &kept);
        free(path);
    }
    keep_hit(dir, kept);
    free(dir);
}

#include "core/session/snapshot_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/vec.h"
#include "core/base/write_all.h"

#define MAX_SAME_NAME 1000 /* recordings of one process that start in the same second */
#define MAX_DEPTH     16   /* of directories below a snapshot */

struct snapshot_dir {
    char *path;
    bool made; /* by us: may be removed when nothing came of it */
};

int snapshot_dir_root(char **out, const char *xdg_state_home, const char *home, struct err *err)
{
    /* The XDG base directory specification has relative values ignored. */
    if (xdg_state_home && xdg_state_home[0] == '/')
        *out = xasprintf("%s/mtui", xdg_state_home);
    else if (home && home[0] == '/')
        *out = xasprintf("%s/.local/state/mtui", home);
    else
        return err_set(err, MTUI_E_INVAL,
                       "no place for recordings: neither XDG_STATE_HOME nor HOME is set; "
                       "name a directory with -o DIR");
    return 0;
}

void snapshot_dir_comm(char out[65], const char *comm)
{
    size_t n = 0;
    for (const char *p = comm; *p && n < 64; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || *p == '_' || *p == '-' || (*p == '.' && n > 0);
        if (plain)
            out[n++] = *p;
    }
    if (n == 0) {
        memcpy(out, "process", 7);
        n = 7;
    }
    out[n] = '\0';
}

static int make_parents(const char *path, struct err *err)
{
    char *copy = xstrdup(path);
    int rc = 0;
    for (char *p = copy + 1; *p && rc == 0; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(copy, 0700) < 0 && errno != EEXIST)
            rc = err_errno(err, errno, "cannot make the directory %s", copy);
        *p = '/';
    }
    free(copy);
    return rc;
}

static struct snapshot_dir *new_dir(const char *path, bool made)
{
    struct snapshot_dir *d = xcalloc(1, sizeof *d);
    char *real = realpath(path, NULL);
    d->path = xstrdup(real ? real : path);
    d->made = made;
    free(real);
    return d;
}

int snapshot_dir_create(struct snapshot_dir **out, const char *root, const char *comm, pid_t pid,
                        int64_t now_unix_s, struct err *err)
{
    char name[65], stamp[32];
    snapshot_dir_comm(name, comm);
    time_t now = (time_t)now_unix_s;
    struct tm tm;
    if (!localtime_r(&now, &tm) || !strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm))
        return err_set(err, MTUI_E_INVAL, "the present time cannot be written as a date");
    char *base = xasprintf("%s/%s-%ld-%s", root, name, (long)pid, stamp);
    int rc = make_parents(base, err);
    for (unsigned i = 1; rc == 0; i++) {
        char *path = i == 1 ? xstrdup(base) : xasprintf("%s-%u", base, i);
        if (mkdir(path, 0700) == 0) {
            *out = new_dir(path, true);
            free(path);
            break;
        }
        if (errno != EEXIST || i == MAX_SAME_NAME)
            rc = err_errno(err, errno, "cannot make the directory %s", path);
        free(path);
    }
    free(base);
    return rc;
}

/* The N of "snap-N", or 0. */
static unsigned snap_number(const char *name)
{
    if (strncmp(name, "snap-", 5) != 0 || name[5] < '1' || name[5] > '9')
        return 0;
    uint64_t n;
    return fmt_parse_u64(name + 5, 1, UINT_MAX - 1, &n, NULL) == 0 ? (unsigned)n : 0;
}

int snapshot_dir_create_unnamed(struct snapshot_dir **out, const char *root, struct err *err)
{
    char *path = xasprintf("%s/.new-XXXXXX", root);
    int rc = make_parents(path, err);
    if (rc == 0 && !mkdtemp(path))
        rc = err_errno(err, errno, "cannot make a directory in %s", root);
    if (rc == 0)
        *out = new_dir(path, true);
    free(path);
    return rc;
}

int snapshot_dir_name(struct snapshot_dir *d, const char *root, const char *comm, pid_t pid,
                      int64_t now_unix_s, struct err *err)
{
    struct snapshot_dir *named;
    int rc = snapshot_dir_create(&named, root, comm, pid, now_unix_s, err);
    if (rc < 0)
        return rc;
    /* rename(2) puts a directory into the place of an empty one: the name stays ours throughout. */
    if (rename(d->path, named->path) < 0) {
        rc = err_errno(err, errno, "cannot rename %s", d->path);
        rmdir(named->path);
    } else {
        free(d->path);
        d->path = xstrdup(named->path);
    }
    snapshot_dir_close(named);
    return rc;
}

static char *snap_path(const char *dir, unsigned number)
{
    return number ? xasprintf("%s/snap-%u", dir, number) : xasprintf("%s/snap-end", dir);
}

static bool is_part_of_recording(const char *name)
{
    return snap_number(name) || !strcmp(name, "snap-end") || !strcmp(name, "session.ini") ||
           !strcmp(name, "hits.tsv");
}

static int look_into(const char *path, bool *recording, struct err *err)
{
    DIR *dir = opendir(path);
    if (!dir)
        return err_errno(err, errno, "cannot read the directory %s", path);
    *recording = false;
    for (struct dirent *e; (e = readdir(dir));)
        *recording |= is_part_of_recording(e->d_name);
    closedir(dir);
    return 0;
}

int snapshot_dir_create_at(struct snapshot_dir **out, const char *path, struct err *err)
{
    if (!*path)
        return err_set(err, MTUI_E_INVAL, "the name of the output directory is empty");
    if (strpbrk(path, "\n\r")) /* recorders name their files in lines */
        return err_set(err, MTUI_E_INVAL, "the name of the output directory has a line break in it: choose another");
    int rc = make_parents(path, err);
    if (rc < 0)
        return rc;
    bool made = mkdir(path, 0700) == 0;
    if (!made && errno != EEXIST)
        return err_errno(err, errno, "cannot make the directory %s", path);
    bool recording;
    rc = look_into(path, &recording, err);
    if (rc < 0)
        return rc;
    if (recording)
        return err_set(err, MTUI_E_STATE,
                       "%s holds a recording already, and mtui overwrites none: name another "
                       "directory, or delete that one",
                       path);
    /* What perf left where it was not told otherwise; it would be moved into snap-1. */
    char *data = xasprintf("%s/perf.data", path);
    if (access(data, F_OK) == 0)
        rc = err_set(err, MTUI_E_STATE, "%s exists already, and mtui overwrites no recording", data);
    else
        *out = new_dir(path, made);
    free(data);
    return rc;
}

int snapshot_dir_open(struct snapshot_dir **out, const char *path, struct err *err)
{
    bool recording;
    int rc = look_into(path, &recording, err);
    if (rc < 0)
        return rc;
    if (!recording)
        return err_set(err, MTUI_E_NOENT,
                       "%s holds no recording: it has neither session.ini nor snap-1", path);
    *out = new_dir(path, false);
    return 0;
}

bool snapshot_dir_is(const char *path)
{
    bool recording;
    return look_into(path, &recording, NULL) == 0 && recording;
}

void snapshot_dir_close(struct snapshot_dir *d)
{
    if (!d)
        return;
    free(d->path);
    free(d);
}

const char *snapshot_dir_path(const struct snapshot_dir *d)
{
    return d->path;
}

static int write_error(struct err *err, const char *what, const char *path)
{
    if (errno == EFBIG)
        return err_set(err, MTUI_E_IO, "%s %s: the limit on the size of files (ulimit -f) is too low", what, path);
    return err_errno(err, errno, "%s %s", what, path);
}

/* A file system that accepts names but has no block left fails only at a write. */
static int try_write(const struct snapshot_dir *d, struct err *err)
{
    char *path = xasprintf("%s/.write-test-%ld", d->path, (long)getpid());
    static const char bytes[4096];
    int rc = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        rc = err_errno(err, errno, "cannot write into %s", d->path);
    } else {
        if (write_all(fd, bytes, sizeof bytes) < 0)
            rc = write_error(err, "cannot write into", d->path);
        if (close(fd) < 0 && rc == 0)
            rc = err_errno(err, errno, "cannot write into %s", d->path);
        unlink(path);
    }
    free(path);
    return rc;
}

int snapshot_dir_check(const struct snapshot_dir *d, uint64_t need_bytes, uint64_t *free_bytes,
                       struct err *err)
{
    struct statvfs fs;
    if (statvfs(d->path, &fs) < 0)
        return err_errno(err, errno, "cannot tell the free space of %s", d->path);
    uint64_t avail = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (avail < need_bytes) {
        char need[FMT_MAX], have[FMT_MAX];
        return err_set(err, MTUI_E_LIMIT,
                       "the recording needs up to %s and %s has %s left: choose a smaller buffer or "
                       "another directory (-o DIR)",
                       fmt_size(need, need_bytes), d->path, fmt_size(have, avail));
    }
    int rc = try_write(d, err);
    if (rc == 0 && free_bytes)
        *free_bytes = avail;
    return rc;
}

/* Empties the directory open at fd (which it closes), never following a link. */
static int empty_dir(int fd, int depth)
{
    DIR *dir = depth < MAX_DEPTH ? fdopendir(fd) : NULL;
    if (!dir) {
        close(fd);
        return -1;
    }
    int rc = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        int sub = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub >= 0)
            rc |= empty_dir(sub, depth + 1);
        rc |= unlinkat(fd, e->d_name, sub >= 0 ? AT_REMOVEDIR : 0);
    }
    closedir(dir);
    return rc;
}

static int remove_tree(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int rc = empty_dir(fd, 0);
    return rmdir(path) | rc;
}

int snapshot_dir_delete(struct snapshot_dir *d, unsigned number, struct err *err)
{
    char *path = snap_path(d->path, number);
    int rc = 0;
    errno = 0;
    if (remove_tree(path) < 0)
        rc = err_errno(err, errno ? errno : EIO, "cannot delete %s", path);
    free(path);
    return rc;
}

bool snapshot_dir_discard_empty(struct snapshot_dir *d)
{
    struct snapshot_entry *list;
    size_t n;
    struct stat st;
    if (!d->made || snapshot_dir_list(d, &list, &n, NULL) < 0)
        return false;
    snapshot_dir_free_list(list, n);
    char *output = xasprintf("%s/output", d->path);
    bool printed = stat(output, &st) == 0 && st.st_size > 0;
    free(output);
    return n == 0 && !printed && remove_tree(d->path) == 0;
}

/* Bytes of all files below the directory open at fd, which it closes. */
static uint64_t dir_bytes(int fd, int depth)
{
    DIR *dir = depth < MAX_DEPTH ? fdopendir(fd) : NULL;
    if (!dir) {
        close(fd);
        return 0;
    }
    uint64_t sum = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
            fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_size;
        else if (S_ISDIR(st.st_mode)) {
            int sub = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (sub >= 0)
                sum += dir_bytes(sub, depth + 1);
        }
    }
    closedir(dir);
    return sum;
}

/* False when snap-N holds no perf.data. */
static bool read_entry(const char *dir, unsigned number, struct snapshot_entry *entry)
{
    struct snapshot_entry e = {.number = number, .path = snap_path(dir, number)};
    e.data = xasprintf("%s/perf.data", e.path);
    struct stat st;
    int fd = open(e.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || stat(e.data, &st) < 0) {
        if (fd >= 0)
            close(fd);
        free(e.path);
        free(e.data);
        return false;
    }
    e.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    e.bytes = dir_bytes(fd, 0);
    *entry = e;
    return true;
}

static int by_number(const void *a, const void *b)
{
    unsigned x = ((const struct snapshot_entry *)a)->number;
    unsigned y = ((const struct snapshot_entry *)b)->number;
    return (x - 1 > y - 1) - (x - 1 < y - 1); /* 0, snap-end, is last */
}

int snapshot_dir_list(const struct snapshot_dir *d, struct snapshot_entry **out, size_t *n,
                      struct err *err)
{
    DIR *dir = opendir(d->path);
    if (!dir)
        return err_errno(err, errno, "cannot read the directory %s", d->path);
    VEC(struct snapshot_entry) list = {0};
    for (struct dirent *e; (e = readdir(dir));) {
        unsigned number = snap_number(e->d_name);
        struct snapshot_entry entry;
        if ((number || !strcmp(e->d_name, "snap-end")) && read_entry(d->path, number, &entry))
            vec_push(&list, entry);
    }
    closedir(dir);
    if (list.len)
        qsort(list.data, list.len, sizeof *list.data, by_number);
    *out = list.data;
    *n = list.len;
    return 0;
}

struct leftover {
    char *path;
    struct timespec written;
};

static int by_age(const void *a, const void *b)
{
    const struct leftover *x = a, *y = b;
    int order = (x->written.tv_sec > y->written.tv_sec) - (x->written.tv_sec < y->written.tv_sec);
    if (!order)
        order = (x->written.tv_nsec > y->written.tv_nsec) - (x->written.tv_nsec < y->written.tv_nsec);
    return order ? order : strcmp(x->path, y->path);
}

int snapshot_dir_leftovers(const struct snapshot_dir *d, char ***out, size_t *n, struct err *err)
{
    static const char data[] = "perf.data";
    DIR *dir = opendir(d->path);
    if (!dir)
        return err_errno(err, errno, "cannot read the directory %s", d->path);
    VEC(struct leftover) list = {0};
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        size_t len = strlen(data);
        if (strncmp(e->d_name, data, len) || (e->d_name[len] && e->d_name[len] != '.') ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            st.st_size == 0)
            continue;
        vec_push(&list, ((struct leftover){xasprintf("%s/%s", d->path, e->d_name), st.st_mtim}));
    }
    closedir(dir);
    if (list.len)
        qsort(list.data, list.len, sizeof *list.data, by_age);
    *out = xcalloc(list.len + 1, sizeof **out);
    *n = list.len;
    for (size_t i = 0; i < list.len; i++)
        (*out)[i] = list.data[i].path;
    vec_free(&list);
    return 0;
}

void snapshot_dir_free_list(struct snapshot_entry *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].path);
        free(list[i].data);
    }
    free(list);
}

#include "core/machine/proc_stat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"

/* include/linux/sched.h */
#define PF_EXITING 0x00000004u
#define PF_KTHREAD 0x00200000u

char *proc_read_file(const char *path, size_t max, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    size_t cap = 1024, n = 0;
    char *buf = xmalloc(cap + 1);
    int failed = 0;
    for (;;) {
        if (n == cap) {
            if (cap >= max) {
                errno = EFBIG;
                failed = 1;
                break;
            }
            cap = cap * 4 < max ? cap * 4 : max;
            buf = xrealloc(buf, cap + 1);
        }
        ssize_t got = read(fd, buf + n, cap - n);
        if (got < 0 && errno == EINTR)
            continue;
        failed = got < 0;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    int saved = errno;
    close(fd);
    if (failed) {
        free(buf);
        errno = saved;
        return NULL;
    }
    buf[n] = '\0';
    if (len)
        *len = n;
    return buf;
}

/* The fields behind the name, numbered as in proc_pid_stat(5): the state is 3, the last used 39. */
#define FIRST_FIELD 3
#define LAST_FIELD  39

static bool split_fields(const char *s, char *state, uint64_t field[LAST_FIELD + 1])
{
    int at = FIRST_FIELD + 1;
    while (*s == ' ')
        s++;
    *state = *s;
    if (!*s)
        return false;
    for (s++; at <= LAST_FIELD; at++) {
        char *end;
        long long v;
        errno = 0;
        v = strtoll(s, &end, 10);
        if (end == s)
            break;
        /* start time and the like may exceed what fits a signed number on odd kernels */
        field[at] = errno == ERANGE ? strtoull(s, &end, 10) : (uint64_t)v;
        s = end;
    }
    return at > 24;
}

int proc_stat_parse(const char *text, size_t len, struct proc_stat *out, struct err *err)
{
    const char *open = memchr(text, '(', len);
    const char *close = memrchr(text, ')', len);
    uint64_t field[LAST_FIELD + 1] = {0};
    char state;
    field[LAST_FIELD] = UINT64_MAX;
    char *end = NULL;
    long pid = strtol(text, &end, 10);
    if (!open || !close || close < open || end == text || pid < 0 || pid > INT_MAX ||
        !split_fields(close + 1, &state, field))
        return err_set(err, MTUI_E_FORMAT, "a stat file of /proc has an unknown form");
    struct proc_stat s = {.pid = (pid_t)pid, .state = state};
    size_t n = (size_t)(close - open - 1);
    if (n >= sizeof s.comm)
        n = sizeof s.comm - 1;
    memcpy(s.comm, open + 1, n);
    s.ppid = (pid_t)field[4];
    s.exiting = (field[9] & PF_EXITING) != 0;
    s.kernel_thread = (field[9] & PF_KTHREAD) != 0;
    s.cpu_ticks = field[14] + field[15];
    s.threads = (unsigned)field[20];
    s.start_ticks = field[22];
    s.rss_pages = (int64_t)field[24] > 0 ? field[24] : 0;
    s.cpu = field[39] <= INT_MAX ? (int)field[39] : -1;
    *out = s;
    return 0;
}

static int read_stat(const char *root, pid_t pid, pid_t tid, struct proc_stat *out, struct err *err)
{
    char path[PATH_MAX];
    if (tid)
        snprintf(path, sizeof path, "%s/%d/task/%d/stat", root, (int)pid, (int)tid);
    else
        snprintf(path, sizeof path, "%s/%d/stat", root, (int)pid);
    size_t len;
    char *text = proc_read_file(path, 1 << 16, &len);
    if (!text) {
        if (errno == ENOENT || errno == ESRCH)
            return err_set(err, MTUI_E_GONE, "process %d has ended", (int)(tid ? tid : pid));
        return err_errno(err, errno, "cannot read %s", path);
    }
    int rc = proc_stat_parse(text, len, out, err);
    free(text);
    return rc;
}

static bool has_ended(const struct proc_stat *st)
{
    return st->state == 'Z' || st->state == 'X';
}

/* Some thread of the process that has not ended. */
static bool find_living(const char *root, pid_t pid, struct proc_stat *out)
{
    char path[PATH_MAX];
    struct proc_stat st;
    bool found = false;
    snprintf(path, sizeof path, "%s/%d/task", root, (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *d; dir && !found && (d = readdir(dir));) {
        pid_t tid = (pid_t)strtol(d->d_name, NULL, 10);
        found = tid > 0 && read_stat(root, pid, tid, &st, NULL) == 0 && !has_ended(&st);
    }
    if (dir)
        closedir(dir);
    if (found)
        *out = st;
    return found;
}

int proc_stat_read(const char *root, pid_t pid, pid_t tid, struct proc_stat *out, struct err *err)
{
    struct proc_stat living;
    int rc = read_stat(root, pid, tid, out, err);
    if (rc < 0 || tid || !has_ended(out) || out->threads < 2 || !find_living(root, pid, &living))
        return rc;
    out->state = living.state;
    out->rss_pages = living.rss_pages;
    return rc;
}

pid_t proc_living_thread(const char *root, pid_t pid)
{
    struct proc_stat st;
    bool elsewhere = read_stat(root, pid, 0, &st, NULL) == 0 && has_ended(&st) && find_living(root, pid, &st);
    return elsewhere ? st.pid : pid;
}

bool proc_status_value(const char *root, pid_t pid, const char *key, char *out, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%d/status", root, (int)pid);
    char *text = proc_read_file(path, 1 << 16, NULL);
    bool found = false;
    size_t keylen = strlen(key);
    /* The name stands in the first line with its newlines escaped, so lines are lines. */
    for (char *line = text; line && *line && !found;) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (strncmp(line, key, keylen) == 0 && line[keylen] == ':') {
            const char *v = line + keylen + 1;
            while (*v == ' ' || *v == '\t')
                v++;
            snprintf(out, size, "%s", v);
            found = true;
        }
        line = next;
    }
    free(text);
    return found;
}

char *proc_command(const char *root, pid_t pid, const char *comm, size_t max)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%d/cmdline", root, (int)proc_living_thread(root, pid));
    char *line = xmalloc(max + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, line, max) : -1;
    if (fd >= 0)
        close(fd);
    while (n > 0 && line[n - 1] == '\0')
        n--;
    if (n <= 0) {
        free(line);
        return xasprintf("[%s]", comm);
    }
    for (ssize_t i = 0; i < n; i++)
        if (line[i] == '\0')
            line[i] = ' ';
    line[n] = '\0';
    return line;
}

uint64_t proc_wait_ns(const char *root, pid_t pid)
{
    char path[PATH_MAX];
    uint64_t sum = 0;
    (void)snprintf(path, sizeof path, "%s/%d/task", root, (int)pid);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%d/task/%s/schedstat", root, (int)pid, e->d_name);
        char *text = proc_read_file(path, 256, NULL), *second = text ? strchr(text, ' ') : NULL;
        sum += second ? strtoull(second, NULL, 10) : 0;
        free(text);
    }
    if (d)
        (void)closedir(d);
    return sum;
}

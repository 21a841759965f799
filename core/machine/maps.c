#include "core/machine/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/vec.h"
#include "core/machine/proc_stat.h"
#include "core/machine/ptrace_refusal.h"

#define TEXT_MAX ((size_t)64 << 20) /* 65530 mappings of 4 KiB lines would be four times as much */

struct maps {
    VEC(struct map) list;
    char *text; /* paths point into it, unescaped in place */
    size_t bad;
};

static const char deleted_suffix[] = " (deleted)";

/* Undoes \012 in place; path ends at end, where a NUL is put. */
static void path_unescape(char *path, char *end)
{
    char *out = path;
    for (char *in = path; in < end;) {
        if (end - in >= 4 && memcmp(in, "\\012", 4) == 0) {
            *out++ = '\n';
            in += 4;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
}

static bool take_hex(const char **p, const char *end, char stop, uint64_t *value)
{
    const char *s = *p;
    uint64_t v = 0;
    int digits = 0;
    for (; s < end && digits <= 16; s++, digits++) {
        int c = *s;
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v << 4 | (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    if (digits == 0 || digits > 16 || s == end || *s != stop)
        return false;
    *p = s + 1;
    *value = v;
    return true;
}

static bool take_inode(const char **p, const char *end, uint64_t *value)
{
    const char *s = *p;
    uint64_t v = 0;
    for (; s < end && *s >= '0' && *s <= '9'; s++) {
        if (v > (UINT64_MAX - 9) / 10)
            return false;
        v = v * 10 + (uint64_t)(*s - '0');
    }
    if (s == *p || (s < end && *s != ' '))
        return false;
    *p = s;
    *value = v;
    return true;
}

static bool parse_line(char *line, char *end, struct map *m)
{
    const char *p = line;
    uint64_t major, minor;
    memset(m, 0, sizeof *m);
    if (!take_hex(&p, end, '-', &m->start) || !take_hex(&p, end, ' ', &m->end) || m->end <= m->start)
        return false;
    if (end - p < 5 || p[4] != ' ')
        return false;
    m->prot = (p[0] == 'r' ? MAPS_R : 0u) | (p[1] == 'w' ? MAPS_W : 0u) |
              (p[2] == 'x' ? MAPS_X : 0u) | (p[3] == 's' ? MAPS_SHARED : 0u);
    p += 5;
    if (!take_hex(&p, end, ' ', &m->offset) || !take_hex(&p, end, ':', &major) ||
        !take_hex(&p, end, ' ', &minor) || !take_inode(&p, end, &m->inode))
        return false;
    m->dev_major = (uint32_t)major;
    m->dev_minor = (uint32_t)minor;
    while (p < end && *p == ' ')
        p++;
    char *path = line + (p - line);
    path_unescape(path, end);
    size_t len = strlen(path), cut = sizeof deleted_suffix - 1;
    if (path[0] == '/' && len > cut && strcmp(path + len - cut, deleted_suffix) == 0) {
        path[len - cut] = '\0';
        m->deleted = true;
    }
    m->path = path;
    return true;
}

/* Takes text (len bytes and one to spare) over. */
static int parse(char *text, size_t len, struct maps **out, struct err *err)
{
    struct maps *m = calloc(1, sizeof *m);
    if (!m) {
        free(text);
        return err_set(err, MTUI_E_NOMEM, "no memory for the list of mappings");
    }
    m->text = text;
    text[len] = '\n';
    for (char *line = text; line < text + len;) {
        char *end = memchr(line, '\n', (size_t)(text + len + 1 - line));
        struct map map;
        if (end == line || !parse_line(line, end, &map)) {
            m->bad++;
        } else if (!vec_try_push(&m->list, map)) {
            maps_free(m);
            return err_set(err, MTUI_E_NOMEM, "no memory for the list of mappings");
        }
        line = end + 1;
    }
    *out = m;
    return 0;
}

int maps_parse(const char *text, size_t len, struct maps **out, struct err *err)
{
    char *copy = malloc(len + 1);
    if (!copy)
        return err_set(err, MTUI_E_NOMEM, "no memory for the list of mappings");
    memcpy(copy, text, len);
    return parse(copy, len, out, err);
}

static int open_maps(const char *proc_root, pid_t pid, struct err *err)
{
    char path[4096], what[4200];
    const char *root = proc_root ? proc_root : "/proc";
    snprintf(path, sizeof path, "%s/%d/maps", root, (int)proc_living_thread(root, pid));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    if (errno == ENOENT || errno == ESRCH)
        return err_set(err, MTUI_E_GONE, "process %d has ended (no %s)", (int)pid, path);
    snprintf(what, sizeof what, "open %s", path);
    if (errno == EACCES || errno == EPERM)
        return ptrace_refusal_explain(err, errno, proc_root, pid, false, what);
    return err_errno(err, errno, "%s", what);
}

int maps_check(const char *proc_root, pid_t pid, struct err *err)
{
    int fd = open_maps(proc_root, pid, err);
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

int maps_read(const char *proc_root, pid_t pid, struct maps **out, struct err *err)
{
    int fd = open_maps(proc_root, pid, err);
    if (fd < 0)
        return fd;
    size_t len = 0, cap = 1 << 16;
    char *text = malloc(cap);
    for (;;) {
        if (text && len + 1 == cap && cap < TEXT_MAX) {
            char *more = realloc(text, cap *= 2);
            if (!more)
                free(text);
            text = more;
        }
        if (!text || len + 1 == cap) {
            close(fd);
            free(text);
            return err_set(err, text ? MTUI_E_LIMIT : MTUI_E_NOMEM, "the mappings of process %d are too many", (int)pid);
        }
        ssize_t n = read(fd, text + len, cap - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int e = errno;
            close(fd);
            free(text);
            return err_errno(err, e, "read the mappings of process %d", (int)pid);
        }
        if (n == 0)
            break;
        len += (size_t)n;
    }
    close(fd);
    if (len == 0) {
        free(text);
        return err_set(err, MTUI_E_GONE, "process %d has ended: it has no memory any more", (int)pid);
    }
    return parse(text, len, out, err);
}

void maps_free(struct maps *m)
{
    if (!m)
        return;
    vec_free(&m->list);
    free(m->text);
    free(m);
}

size_t maps_count(const struct maps *m)
{
    return m->list.len;
}

const struct map *maps_at(const struct maps *m, size_t i)
{
    return &m->list.data[i];
}

size_t maps_bad_lines(const struct maps *m)
{
    return m->bad;
}

const struct map *maps_find(const struct maps *m, uint64_t addr)
{
    size_t lo = 0, hi = m->list.len; /* the first mapping that ends after addr */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (m->list.data[mid].end <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < m->list.len && m->list.data[lo].start <= addr ? &m->list.data[lo] : NULL;
}

bool map_has_file(const struct map *m)
{
    return m->inode != 0 && m->path[0] == '/';
}

/* ---- Opening the file behind a mapping ---- */

enum verdict { SAME, OTHER, UNSURE };

/* Overlay and btrfs report a device in maps that fstat does not: then only the build-id can tell. */
static enum verdict same_file(int fd, const struct map *m, bool *is_regular)
{
    struct stat st;
    *is_regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (!*is_regular)
        return OTHER;
    if (major(st.st_dev) != m->dev_major || minor(st.st_dev) != m->dev_minor)
        return UNSURE;
    return st.st_ino == m->inode ? SAME : OTHER;
}

struct attempt {
    const struct map *map;
    const char *path;
    char why[400];
};

static void attempt_note(struct attempt *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void attempt_note(struct attempt *a, const char *fmt, ...)
{
    size_t used = strlen(a->why);
    if (used && used + 2 < sizeof a->why) {
        memcpy(a->why + used, "; ", 3);
        used += 2;
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->why + used, sizeof a->why - used, fmt, ap);
    va_end(ap);
}

/* required: what same_file must say at least. O_NONBLOCK: a container may put a FIFO there. */
static int attempt_open(struct attempt *a, enum verdict required)
{
    int fd = open(a->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        attempt_note(a, "%s: %s", a->path, strerror(errno));
        return -1;
    }
    bool regular;
    enum verdict v = same_file(fd, a->map, &regular);
    if (v == SAME || (v == UNSURE && required == UNSURE))
        return fd;
    if (!regular)
        attempt_note(a, "%s: not a regular file", a->path);
    else
        attempt_note(a, "%s: another file than the one that is mapped", a->path);
    close(fd);
    return -1;
}

/* target: what the link /proc/PID/exe says. */
static bool is_path_of(const struct map *m, const char *target)
{
    size_t len = strlen(m->path);
    return strncmp(target, m->path, len) == 0 &&
           (target[len] == '\0' || strcmp(target + len, deleted_suffix) == 0);
}

int map_open(const char *proc_root, pid_t pid, const struct map *m, char *path, size_t size,
             struct err *err)
{
    const char *root = proc_root ? proc_root : "/proc";
    int living = (int)proc_living_thread(root, pid);
    char buf[8192];
    struct attempt a = {.map = m, .path = buf};
    if (!map_has_file(m))
        return err_set(err, MTUI_E_NOENT, "no file behind the mapping at 0x%" PRIx64, m->start);
    snprintf(buf, sizeof buf, "%s/%d/map_files/%" PRIx64 "-%" PRIx64, root, living, m->start,
             m->end);
    int fd = attempt_open(&a, UNSURE);
    if (fd < 0) {
        snprintf(buf, sizeof buf, "%s/%d/exe", root, living);
        char target[4096 + sizeof deleted_suffix];
        ssize_t n = readlink(buf, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = '\0';
        if (n < 0)
            attempt_note(&a, "%s: %s", buf, strerror(errno));
        else if (is_path_of(m, target))
            fd = attempt_open(&a, UNSURE);
    }
    if (fd < 0) {
        int len = snprintf(buf, sizeof buf, "%s/%d/root%s", root, living, m->path);
        if (len < (int)sizeof buf)
            fd = attempt_open(&a, m->deleted ? SAME : UNSURE);
    }
    if (fd < 0) {
        snprintf(buf, sizeof buf, "%s", m->path);
        fd = attempt_open(&a, SAME);
    }
    if (fd < 0)
        return err_set(err, strstr(a.why, strerror(EACCES)) || strstr(a.why, strerror(EPERM))
                                ? MTUI_E_PERM
                                : MTUI_E_NOENT,
                       "cannot open the file of %s: %s", m->path, a.why);
    if (strlen(buf) >= size) {
        close(fd);
        return err_set(err, MTUI_E_LIMIT, "the path of %s is too long", m->path);
    }
    memcpy(path, buf, strlen(buf) + 1);
    return fd;
}

/* Reading side of the log of mappings; core/session/maps_writer.c writes it. */
#include "core/session/maps_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"
#include "core/session/code_versions.h"

#define MAX_FIELDS 10

struct perf_map {
    pid_t pid;
    const char *path;
};

struct maps_log {
    char *dir;  /* …/maps */
    char *text; /* the log, cut into strings */
    VEC(struct maps_capture) captures;
    VEC(struct maps_mapping) mappings;
    VEC(struct maps_file) files;
    VEC(struct maps_code) codes;
    struct code_versions stepped;
    int stepped_fd; /* of code-step; −1: there is none */
    VEC(struct maps_thread) threads;
    VEC(struct perf_map) perf_maps;
    VEC(char *) paths; /* made up from dir and a name; owned here */
    char *partial;
};

/* While reading: mappings move as their array grows, so places are kept as indices. */
struct reader {
    struct maps_log *log;
    struct maps_capture open; /* the capture whose M lines are being read */
    size_t open_from;
    bool is_open;
    VEC(size_t) from;    /* per capture: index of its first mapping */
    VEC(size_t) file_of; /* per mapping: number of its file */
    size_t bad, line;
};

static bool number(const char *s, int base, uint64_t max, uint64_t *out)
{
    if (!*s || strspn(s, base == 16 ? "0123456789abcdef" : "0123456789") != strlen(s))
        return false;
    errno = 0;
    unsigned long long v = strtoull(s, NULL, base);
    if (errno || v > max)
        return false;
    *out = v;
    return true;
}

static bool pid_number(const char *s, pid_t *out)
{
    uint64_t v;
    if (!number(s, 10, INT32_MAX, &v))
        return false;
    *out = (pid_t)v;
    return true;
}

/* Path of a file in maps/; NULL for a name that could lead out of it. */
static const char *inner_path(struct maps_log *log, const char *name)
{
    if (!*name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(name) ||
        name[0] == '.')
        return NULL;
    char *path = xasprintf("%s/%s", log->dir, name);
    vec_push(&log->paths, path);
    return path;
}

static unsigned parse_prot(const char *s)
{
    return (strchr(s, 'r') ? PROT_READ : 0u) | (strchr(s, 'w') ? PROT_WRITE : 0u) |
           (strchr(s, 'x') ? PROT_EXEC : 0u);
}

static bool read_begin(struct reader *r, char **f)
{
    struct maps_capture c = {.reason = f[3]};
    if (!number(f[1], 10, UINT64_MAX, &c.time_ns) || !pid_number(f[2], &c.pid))
        return false;
    r->open = c;
    r->open_from = r->log->mappings.len;
    r->is_open = true;
    return true;
}

/* Drops a capture whose end never came. */
static void drop_open(struct reader *r)
{
    if (!r->is_open)
        return;
    r->log->mappings.len = r->file_of.len = r->open_from;
    r->is_open = false;
    r->bad++;
}

static bool read_mapping(struct reader *r, char **f)
{
    struct maps_mapping m = {.prot = parse_prot(f[4]), .path = f[8]};
    uint64_t dev, inode, file;
    size_t n = r->log->mappings.len;
    if (!r->is_open || !number(f[1], 16, UINT64_MAX, &m.start) ||
        !number(f[2], 16, UINT64_MAX, &m.end) || !number(f[3], 16, UINT64_MAX, &m.pgoff) ||
        !number(f[5], 16, UINT64_MAX, &dev) || !number(f[6], 10, UINT64_MAX, &inode) ||
        !number(f[7], 10, r->log->files.len, &file) || m.start >= m.end ||
        (n > r->open_from && r->log->mappings.data[n - 1].end > m.start))
        return false;
    utf8_unescape(f[8]);
    if (!vec_try_push(&r->log->mappings, m))
        return false;
    if (!vec_try_push(&r->file_of, (size_t)file)) {
        r->log->mappings.len--;
        return false;
    }
    return true;
}

static bool read_end(struct reader *r, char **f)
{
    uint64_t count;
    size_t have = r->log->mappings.len - r->open_from;
    if (!r->is_open || !number(f[1], 10, UINT64_MAX, &count) || count != have)
        return false;
    r->open.n = have;
    if (!vec_try_push(&r->log->captures, r->open) || !vec_try_push(&r->from, r->open_from))
        return false;
    r->is_open = false;
    return true;
}

static bool read_build_id(const char *hex, struct maps_file *file)
{
    size_t len = strlen(hex);
    if (!strcmp(hex, "-"))
        return true;
    if (len % 2 || strspn(hex, "0123456789abcdef") != len)
        return false;
    for (size_t i = 0; i + 1 < len && i / 2 < sizeof file->build_id; i += 2) {
        char pair[3] = {hex[i], hex[i + 1], '\0'};
        file->build_id[i / 2] = (uint8_t)strtoul(pair, NULL, 16);
        file->build_id_len = (uint8_t)(i / 2 + 1);
    }
    return true;
}

static bool read_file(struct reader *r, char **f)
{
    struct maps_file file = {.deleted = !strcmp(f[7], "deleted"), .path = f[9]};
    uint64_t n, mtime;
    if (!number(f[1], 10, UINT64_MAX, &n) || n != r->log->files.len + 1 ||
        !number(f[2], 16, UINT64_MAX, &file.dev) || !number(f[3], 10, UINT64_MAX, &file.inode) ||
        !number(f[4], 10, UINT64_MAX, &file.size) || !number(f[5], 10, INT64_MAX, &mtime) ||
        !read_build_id(f[6], &file))
        return false;
    file.mtime_ns = (int64_t)mtime;
    utf8_unescape(f[9]);
    if (f[8][0] != '-')
        file.copy = inner_path(r->log, f[8]);
    return vec_try_push(&r->log->files, file);
}

static bool read_thread(struct reader *r, char **f)
{
    struct maps_thread t = {.comm = f[4]};
    if (!number(f[1], 10, UINT64_MAX, &t.time_ns) || !pid_number(f[2], &t.pid) ||
        !pid_number(f[3], &t.tid))
        return false;
    utf8_unescape(f[4]);
    return vec_try_push(&r->log->threads, t);
}

static bool read_code(struct reader *r, char **f)
{
    struct maps_code c = {.name = f[6]};
    if (!number(f[1], 10, UINT64_MAX, &c.time_ns) || !pid_number(f[2], &c.pid) ||
        !number(f[3], 16, UINT64_MAX, &c.start) || !number(f[4], 16, UINT64_MAX, &c.end) ||
        c.start >= c.end)
        return false;
    c.path = inner_path(r->log, f[5]);
    utf8_unescape(f[6]);
    return c.path && vec_try_push(&r->log->codes, c);
}

static bool read_stepped(struct reader *r, char **f)
{
    struct code_version v = {.offset = CODE_VERSION_LOST};
    return number(f[1], 10, UINT64_MAX, &v.time_ns) && pid_number(f[2], &v.pid) &&
           number(f[3], 16, UINT64_MAX, &v.start) &&
           (!strcmp(f[4], "-") || number(f[4], 10, INT64_MAX, &v.offset)) &&
           code_versions_add(&r->log->stepped, v);
}

static bool read_perf_map(struct reader *r, char **f)
{
    struct perf_map m;
    uint64_t time;
    if (!number(f[1], 10, UINT64_MAX, &time) || !pid_number(f[2], &m.pid))
        return false;
    m.path = inner_path(r->log, f[3]);
    return m.path && vec_try_push(&r->log->perf_maps, m);
}

static bool read_note(struct reader *r, char **f)
{
    (void)r;
    (void)f;
    return true;
}

static const struct {
    char kind;
    size_t fields;
    bool (*read)(struct reader *r, char **fields);
} records[] = {
    {'P', 4, read_begin},  {'M', 9, read_mapping}, {'E', 2, read_end},      {'F', 10, read_file},
    {'T', 5, read_thread}, {'X', 7, read_code},    {'J', 4, read_perf_map}, {'N', 2, read_note},
    {'C', 5, read_stepped},
};

static bool read_line(struct reader *r, char *line)
{
    char *fields[MAX_FIELDS + 1];
    size_t n = 0;
    while (line && n <= MAX_FIELDS)
        fields[n++] = strsep(&line, "\t");
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        if (fields[0][0] != records[i].kind || fields[0][1])
            continue;
        if (n != records[i].fields)
            return false;
        if (records[i].kind == 'P')
            drop_open(r);
        return records[i].read(r, fields);
    }
    return true; /* a kind that a later version writes */
}

static void read_lines(struct reader *r, char *text, size_t len)
{
    char *end = text + len;
    while (text < end) {
        char *eol = memchr(text, '\n', (size_t)(end - text));
        r->line++;
        if (!eol) {
            r->bad++;
            break;
        }
        *eol = '\0';
        if (strlen(text) != (size_t)(eol - text) || !read_line(r, text))
            r->bad++;
        text = eol + 1;
    }
    drop_open(r);
}

static int capture_order(const void *a, const void *b)
{
    const struct maps_capture *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->mappings < y->mappings ? -1 : x->mappings > y->mappings; /* as written */
}

static int code_order(const void *a, const void *b)
{
    const struct maps_code *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static int thread_order(const void *a, const void *b)
{
    const struct maps_thread *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->comm < y->comm ? -1 : x->comm > y->comm;
}

/* Indices become pointers, now that nothing moves any more. */
static void settle(struct reader *r)
{
    struct maps_log *log = r->log;
    for (size_t i = 0; i < log->mappings.len; i++)
        if (r->file_of.data[i])
            log->mappings.data[i].file = &log->files.data[r->file_of.data[i] - 1];
    for (size_t i = 0; i < log->captures.len; i++)
        log->captures.data[i].mappings = log->mappings.data + r->from.data[i];
    if (log->captures.len)
        qsort(log->captures.data, log->captures.len, sizeof *log->captures.data, capture_order);
    if (log->codes.len)
        qsort(log->codes.data, log->codes.len, sizeof *log->codes.data, code_order);
    code_versions_sort(&log->stepped);
    if (log->threads.len)
        qsort(log->threads.data, log->threads.len, sizeof *log->threads.data, thread_order);
    if (r->bad)
        log->partial =
            xasprintf("%s/log: %zu of %zu lines could not be used", log->dir, r->bad, r->line);
}

static int slurp(const char *path, char **out, size_t *len, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        int rc = err_errno(err, errno, "cannot read %s", path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    size_t size = (size_t)st.st_size, have = 0;
    char *text = S_ISREG(st.st_mode) ? malloc(size + 1) : NULL;
    int rc = 0;
    if (!text)
        rc = err_set(err, MTUI_E_NOMEM, "%s is too big for the memory at hand, or no file", path);
    while (text && have < size) {
        ssize_t n = read(fd, text + have, size - have);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        have += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (rc == 0) {
        text[have] = '\0';
        *out = text;
        *len = have;
    }
    return rc;
}

int maps_log_open(struct maps_log **out, const char *dir, struct err *err)
{
    static const char magic[] = "mtui-maps 1\n";
    struct maps_log *log = xcalloc(1, sizeof *log);
    log->dir = xasprintf("%s/maps", dir);
    log->stepped_fd = -1;
    char *path = xasprintf("%s/log", log->dir);
    size_t len = 0;
    int rc = slurp(path, &log->text, &len, err);
    if (rc == 0 && (len < sizeof magic - 1 || memcmp(log->text, magic, sizeof magic - 1) != 0))
        rc = err_set(err, MTUI_E_FORMAT, "%s is not a log of mappings of version 1", path);
    free(path);
    if (rc < 0) {
        maps_log_close(log);
        return rc;
    }
    struct reader r = {.log = log, .line = 1};
    read_lines(&r, log->text + sizeof magic - 1, len - (sizeof magic - 1));
    settle(&r);
    const char *stepped = log->stepped.len ? inner_path(log, "code-step") : NULL;
    if (stepped)
        log->stepped_fd = open(stepped, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    vec_free(&r.from);
    vec_free(&r.file_of);
    *out = log;
    return 0;
}

void maps_log_close(struct maps_log *log)
{
    if (!log)
        return;
    for (size_t i = 0; i < log->paths.len; i++)
        free(log->paths.data[i]);
    vec_free(&log->paths);
    vec_free(&log->captures);
    vec_free(&log->mappings);
    vec_free(&log->files);
    vec_free(&log->codes);
    code_versions_free(&log->stepped);
    if (log->stepped_fd >= 0)
        close(log->stepped_fd);
    vec_free(&log->threads);
    vec_free(&log->perf_maps);
    free(log->partial);
    free(log->text);
    free(log->dir);
    free(log);
}

const char *maps_log_partial(const struct maps_log *log)
{
    return log->partial;
}

size_t maps_log_capture_count(const struct maps_log *log)
{
    return log->captures.len;
}

const struct maps_capture *maps_log_capture(const struct maps_log *log, size_t i)
{
    return &log->captures.data[i];
}

const struct maps_capture *maps_log_at(const struct maps_log *log, pid_t pid, uint64_t time_ns)
{
    const struct maps_capture *found = NULL;
    for (size_t i = 0; i < log->captures.len; i++) {
        const struct maps_capture *c = &log->captures.data[i];
        if (c->pid == pid && (!found || c->time_ns <= time_ns))
            found = c;
    }
    return found;
}

const struct maps_mapping *maps_capture_find(const struct maps_capture *c, uint64_t address)
{
    size_t lo = 0, hi = c->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->mappings[mid].end <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < c->n && c->mappings[lo].start <= address ? &c->mappings[lo] : NULL;
}

const struct maps_file *maps_log_file(const struct maps_log *log, const char *path)
{
    for (size_t i = log->files.len; i-- > 0;)
        if (!strcmp(log->files.data[i].path, path))
            return &log->files.data[i];
    return NULL;
}

size_t maps_log_code_count(const struct maps_log *log)
{
    return log->codes.len;
}

const struct maps_code *maps_log_code(const struct maps_log *log, size_t i)
{
    return &log->codes.data[i];
}

size_t maps_log_code_read(const struct maps_log *log, pid_t pid, uint64_t time_ns, uint64_t address,
                          void *buf, size_t len)
{
    const struct maps_code *found = NULL;
    for (size_t i = 0; i < log->codes.len; i++) {
        const struct maps_code *c = &log->codes.data[i];
        if (c->pid == pid && c->start <= address && address < c->end &&
            (!found || c->time_ns <= time_ns))
            found = c;
    }
    int fd = found ? open(found->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd < 0)
        return 0;
    uint64_t left = found->end - address;
    ssize_t n = pread(fd, buf, left < len ? (size_t)left : len, (off_t)(address - found->start));
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

ssize_t maps_log_code_stepped(const struct maps_log *log, pid_t pid, uint64_t time_ns, uint64_t address,
                              void *buf, size_t len)
{
    const struct code_version *v = code_versions_find(&log->stepped, pid, time_ns, address);
    if (!v)
        return -1;
    uint64_t at = address - v->start, left = CODE_VERSION_PAGE - at;
    if (v->offset == CODE_VERSION_LOST || log->stepped_fd < 0)
        return 0;
    ssize_t n = pread(log->stepped_fd, buf, left < len ? (size_t)left : len, (off_t)(v->offset + at));
    return n > 0 ? n : 0;
}

bool maps_log_has_stepped(const struct maps_log *log, pid_t pid, uint64_t time_ns, uint64_t start,
                          uint64_t end)
{
    return code_versions_within(&log->stepped, pid, time_ns, start, end);
}

size_t maps_log_thread_count(const struct maps_log *log)
{
    return log->threads.len;
}

const struct maps_thread *maps_log_thread(const struct maps_log *log, size_t i)
{
    return &log->threads.data[i];
}

const char *maps_log_comm(const struct maps_log *log, pid_t tid, uint64_t time_ns)
{
    const char *comm = NULL;
    for (size_t i = 0; i < log->threads.len; i++) {
        const struct maps_thread *t = &log->threads.data[i];
        if (t->tid == tid && (!comm || t->time_ns <= time_ns))
            comm = t->comm;
    }
    return comm;
}

const char *maps_log_perf_map(const struct maps_log *log, pid_t pid)
{
    const char *path = NULL;
    for (size_t i = 0; i < log->perf_maps.len; i++)
        if (log->perf_maps.data[i].pid == pid)
            path = log->perf_maps.data[i].path;
    return path;
}

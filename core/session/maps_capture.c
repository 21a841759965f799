#include "core/session/maps_capture.h"

#include <dirent.h>
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

#include "core/base/alloc.h"
#include "core/symbols/elf_file.h"
#include "core/base/fmt.h"
#include "core/machine/maps.h"
#include "core/machine/proc_stat.h"
#include "core/session/maps_log.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"

struct known_file {
    uint64_t dev, inode;
    char *path;
};

struct known_thread {
    pid_t tid;
    char comm[64];
};

struct known_code {
    uint64_t start, end, hash; /* hash 0: could not be kept, and that was said */
};

struct process {
    pid_t pid;
    bool seen; /* maps_hash is of a capture */
    uint64_t maps_hash;
    VEC(struct known_thread) threads;
    VEC(struct known_code) codes;
    uint64_t code_bytes;
    off_t perf_map_size;
    struct timespec perf_map_mtime;
};

struct maps_capturer {
    char *dir, *proc_root;
    int log_fd;
    VEC(struct known_file) files; /* number − 1 is the index */
    VEC(struct process) processes;
    unsigned copies; /* names of code-N and perf-N.map */
    char *text;      /* records not written yet */
    size_t len, cap;
    struct capture_result *result;
};

struct maps_capturer *maps_capturer_new(const char *dir, const char *proc_root, int log_fd)
{
    struct maps_capturer *c = xcalloc(1, sizeof *c);
    c->dir = xstrdup(dir);
    c->proc_root = xstrdup(proc_root);
    c->log_fd = log_fd;
    return c;
}

void maps_capturer_free(struct maps_capturer *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->files.len; i++)
        free(c->files.data[i].path);
    for (size_t i = 0; i < c->processes.len; i++) {
        vec_free(&c->processes.data[i].threads);
        vec_free(&c->processes.data[i].codes);
    }
    vec_free(&c->files);
    vec_free(&c->processes);
    free(c->text);
    free(c->proc_root);
    free(c->dir);
    free(c);
}

/* ---- Records ---- */

__attribute__((format(printf, 2, 3))) static void put(struct maps_capturer *c, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    while (c->len + len > c->cap)
        c->text = vec_grow_(c->text, &c->cap, 1);
    memcpy(c->text + c->len, line, len);
    c->len += len;
}

static void put_name(struct maps_capturer *c, const char *name)
{
    size_t room = strlen(name) * 4 + 1;
    while (c->len + room > c->cap)
        c->text = vec_grow_(c->text, &c->cap, 1);
    c->len += utf8_escape(c->text + c->len, room, name, strlen(name));
}

__attribute__((format(printf, 2, 3))) static void leave_out(struct maps_capturer *c,
                                                            const char *fmt, ...)
{
    char raw[sizeof c->result->note];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    utf8_escape(c->result->note, sizeof c->result->note, raw, strlen(raw));
    c->result->left_out++;
    put(c, "N\t%s\n", c->result->note);
}

/* All records of a capture go out in one write, so that a reader sees whole lines. */
static void write_out(struct maps_capturer *c)
{
    size_t done = 0;
    while (done < c->len) {
        ssize_t n = write(c->log_fd, c->text + done, c->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            snprintf(c->result->note, sizeof c->result->note,
                     "the log of mappings cannot be written: %s", strerror(n < 0 ? errno : ENOSPC));
            c->result->left_out++;
            break;
        }
        done += (size_t)n;
    }
    c->result->changed |= c->len > 0;
    c->len = 0;
}

static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t len) /* FNV-1a */
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

#define HASH_START 0xcbf29ce484222325u

/* ---- Copies ---- */

/* Copies fd whole into dir/name; returns its bytes or −1. */
static int64_t copy_into(struct maps_capturer *c, int fd, const char *name)
{
    char *path = xasprintf("%s/%s", c->dir, name);
    int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    char *buf = xmalloc(1u << 18);
    int64_t sum = 0;
    while (out >= 0 && sum >= 0) {
        ssize_t n = read(fd, buf, 1u << 18);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            break;
        if (n < 0 || sum + n > (int64_t)MAPS_LOG_MAX_FILE || write(out, buf, (size_t)n) != n)
            sum = -1;
        else
            sum += n;
    }
    free(buf);
    if (out < 0 || close(out) < 0)
        sum = -1;
    if (sum < 0 && out >= 0)
        unlink(path);
    free(path);
    if (sum > 0)
        c->result->bytes += (uint64_t)sum;
    return sum;
}

/* Whether path, opened from here and now, gives the file that st describes. An overlay file system
 * reports another inode for the same file, so equal size and time will do. */
static bool reachable_by(const char *path, const struct stat *st)
{
    struct stat here;
    if (stat(path, &here) < 0)
        return false;
    if (here.st_dev == st->st_dev && here.st_ino == st->st_ino)
        return true;
    return here.st_size == st->st_size && here.st_mtim.tv_sec == st->st_mtim.tv_sec &&
           here.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

/* Copies the file when it could not be found later; name stays empty when it is not copied. */
static void copy_file(struct maps_capturer *c, int fd, const struct map *m, const struct stat *st,
                      size_t number, char name[32])
{
    if (!m->deleted && reachable_by(m->path, st))
        return;
    char size[FMT_MAX];
    if (st->st_size > (off_t)MAPS_LOG_MAX_FILE) {
        leave_out(c, "%s will not be reachable later and is too big to keep (%s)", m->path,
                  fmt_size(size, (uint64_t)st->st_size));
        return;
    }
    snprintf(name, 32, "file-%zu", number);
    if (lseek(fd, 0, SEEK_SET) < 0 || copy_into(c, fd, name) < 0) {
        leave_out(c, "%s will not be reachable later and could not be copied", m->path);
        name[0] = '\0';
    }
}

/* The number of the file behind a mapping; writes its record at first sight. */
static size_t file_number(struct maps_capturer *c, pid_t pid, const struct map *m)
{
    uint64_t dev = makedev(m->dev_major, m->dev_minor);
    for (size_t i = 0; i < c->files.len; i++) {
        const struct known_file *f = &c->files.data[i];
        if (f->dev == dev && f->inode == m->inode && !strcmp(f->path, m->path))
            return i + 1;
    }
    size_t number = c->files.len + 1;
    struct known_file known = {.dev = dev, .inode = m->inode, .path = xstrdup(m->path)};
    vec_push(&c->files, known);

    char opened[4200], hex[2 * ELF_BUILD_ID_MAX + 1] = "", copy[32] = "";
    uint8_t id[ELF_BUILD_ID_MAX];
    struct stat st = {0};
    struct err err;
    int fd = map_open(c->proc_root, pid, m, opened, sizeof opened, &err);
    if (fd < 0) {
        leave_out(c, "%s", err.text);
    } else if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        elf_build_id_hex(id, elf_build_id_of(fd, m->path, id), hex);
        copy_file(c, fd, m, &st, number, copy);
    }
    if (fd >= 0)
        close(fd);
    int64_t mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    put(c, "F\t%zu\t%" PRIx64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRId64 "\t%s\t%s\t%s\t", number, dev,
        m->inode, (uint64_t)st.st_size, mtime_ns < 0 ? 0 : mtime_ns, hex[0] ? hex : "-",
        m->deleted ? "deleted" : "present", copy[0] ? copy : "-");
    put_name(c, m->path);
    put(c, "\n");
    return number;
}

/* ---- Mappings ---- */

static uint64_t hash_maps(const struct maps *maps)
{
    uint64_t h = HASH_START;
    for (size_t i = 0; i < maps_count(maps); i++) {
        const struct map *m = maps_at(maps, i);
        /* Heap and stack grow all the time; without code that is no change worth a record. */
        if (!(m->prot & MAPS_X))
            continue;
        uint64_t key[] = {m->start, m->end, m->offset, m->inode, m->prot, m->deleted};
        h = hash_bytes(h, key, sizeof key);
        h = hash_bytes(h, m->path, strlen(m->path) + 1);
    }
    return h;
}

static void capture_maps(struct maps_capturer *c, pid_t pid, const struct maps *maps,
                         uint64_t time_ns, const char *reason)
{
    VEC(size_t) numbers = {0};
    for (size_t i = 0; i < maps_count(maps); i++) {
        const struct map *m = maps_at(maps, i);
        bool wanted = map_has_file(m) && (m->prot & MAPS_X);
        vec_push(&numbers, wanted ? file_number(c, pid, m) : 0);
    }
    put(c, "P\t%" PRIu64 "\t%ld\t%s\n", time_ns, (long)pid, reason);
    for (size_t i = 0; i < maps_count(maps); i++) {
        const struct map *m = maps_at(maps, i);
        put(c,
            "M\t%" PRIx64 "\t%" PRIx64 "\t%" PRIx64 "\t%c%c%c%c\t%" PRIx64 "\t%" PRIu64 "\t%zu\t",
            m->start, m->end, m->offset, m->prot & MAPS_R ? 'r' : '-', m->prot & MAPS_W ? 'w' : '-',
            m->prot & MAPS_X ? 'x' : '-', m->prot & MAPS_SHARED ? 's' : 'p',
            (uint64_t)makedev(m->dev_major, m->dev_minor), m->inode, numbers.data[i]);
        put_name(c, m->path);
        put(c, "\n");
    }
    put(c, "E\t%zu\n", maps_count(maps));
    vec_free(&numbers);
}

/* ---- Code without a file ---- */

static bool wants_dump(const struct map *m)
{
    /* [vsyscall] is no memory of the process; [uprobes] holds the kernel's copies of probed
     * instructions, which no trace should show. */
    return (m->prot & MAPS_X) && !map_has_file(m) && strcmp(m->path, "[vsyscall]") != 0 &&
           strcmp(m->path, "[uprobes]") != 0;
}

static struct known_code *find_code(struct process *p, uint64_t start)
{
    for (size_t i = 0; i < p->codes.len; i++)
        if (p->codes.data[i].start == start)
            return &p->codes.data[i];
    vec_push(&p->codes, (struct known_code){.start = start});
    return &p->codes.data[p->codes.len - 1];
}

static bool write_dump(struct maps_capturer *c, const char *name, const void *bytes, size_t len)
{
    char *path = xasprintf("%s/%s", c->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, bytes, len) == (ssize_t)len;
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    free(path);
    return ok;
}

/* Keeps the bytes of one mapping when they are not those kept last; what cannot be kept is said
 * once. */
static void dump_one(struct maps_capturer *c, struct process *p, int mem, const struct map *m,
                     uint64_t time_ns)
{
    size_t want = (size_t)(m->end - m->start);
    struct known_code *known = find_code(p, m->start);
    bool said = known->end == m->end && known->hash == 0;
    char size[FMT_MAX], name[32];
    if (said)
        return;
    char *bytes = want <= MAPS_LOG_MAX_CODE ? malloc(want) : NULL;
    ssize_t n = bytes ? pread(mem, bytes, want, (off_t)m->start) : -1;
    uint64_t hash = n > 0 ? hash_bytes(HASH_START, bytes, (size_t)n) : 0;
    uint64_t end = n > 0 ? m->start + (uint64_t)n : m->end;
    if (n > 0 && known->end == end && known->hash == hash) {
        free(bytes);
        return;
    }
    snprintf(name, sizeof name, "code-%u", ++c->copies);
    if (n > 0 && p->code_bytes + (uint64_t)n <= MAPS_LOG_MAX_CODE &&
        write_dump(c, name, bytes, (size_t)n)) {
        put(c, "X\t%" PRIu64 "\t%ld\t%" PRIx64 "\t%" PRIx64 "\t%s\t", time_ns, (long)p->pid,
            m->start, end, name);
        put_name(c, m->path);
        put(c, "\n");
        c->result->bytes += (uint64_t)n;
        p->code_bytes += (uint64_t)n;
    } else {
        leave_out(c, "%s of code without a file at %" PRIx64 " of process %ld is not kept: %s",
                  fmt_size(size, want), m->start, (long)p->pid,
                  n > 0 || !bytes ? "too much, or no space" : "it cannot be read");
        end = m->end;
        hash = 0;
    }
    known->end = end;
    known->hash = hash;
    free(bytes);
}

static void capture_code(struct maps_capturer *c, struct process *p, const struct maps *maps,
                         uint64_t time_ns)
{
    char *path = xasprintf("%s/%d/mem", c->proc_root, (int)proc_living_thread(c->proc_root, p->pid));
    int mem = open(path, O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; mem >= 0 && i < maps_count(maps); i++)
        if (wants_dump(maps_at(maps, i)))
            dump_one(c, p, mem, maps_at(maps, i), time_ns);
    if (mem >= 0)
        close(mem);
    free(path);
}

/* ---- Names ---- */

static bool read_comm(struct maps_capturer *c, pid_t pid, const char *tid, char out[64])
{
    char *path = xasprintf("%s/%ld/task/%s/comm", c->proc_root, (long)pid, tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, out, 63);
    close(fd);
    if (n <= 0)
        return false;
    if (out[n - 1] == '\n')
        n--;
    out[n] = '\0';
    return true;
}

static void capture_threads(struct maps_capturer *c, struct process *p, uint64_t time_ns)
{
    char *path = xasprintf("%s/%ld/task", c->proc_root, (long)p->pid);
    DIR *dir = opendir(path);
    free(path);
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));) {
        struct known_thread now = {0};
        uint64_t tid;
        if (fmt_parse_u64(e->d_name, 1, INT32_MAX, &tid, NULL) < 0 ||
            !read_comm(c, p->pid, e->d_name, now.comm))
            continue;
        now.tid = (pid_t)tid;
        struct known_thread *known = NULL;
        for (size_t i = 0; i < p->threads.len; i++)
            if (p->threads.data[i].tid == now.tid)
                known = &p->threads.data[i];
        if (known && !strcmp(known->comm, now.comm))
            continue;
        if (known)
            *known = now;
        else
            vec_push(&p->threads, now);
        put(c, "T\t%" PRIu64 "\t%ld\t%ld\t", time_ns, (long)p->pid, (long)now.tid);
        put_name(c, now.comm);
        put(c, "\n");
    }
    closedir(dir);
}

/* The number that the process has in its own pid namespace, which is what JIT compilers name their
 * map by: the last number of the line NSpid of /proc/PID/status (proc(5)). */
static pid_t inner_pid(struct maps_capturer *c, pid_t pid)
{
    char *path = xasprintf("%s/%ld/status", c->proc_root, (long)pid);
    FILE *f = fopen(path, "re");
    free(path);
    char line[256];
    long inner = pid;
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        char *last = line + 6;
        for (char *p = last; *p; p++)
            if (*p == '\t')
                last = p + 1;
        long v = strtol(last, NULL, 10);
        inner = v > 0 && v <= INT32_MAX ? v : pid;
        break;
    }
    if (f)
        fclose(f);
    return (pid_t)inner;
}

static void capture_perf_map(struct maps_capturer *c, struct process *p, uint64_t time_ns)
{
    char *own = xasprintf("%s/%d", c->proc_root, (int)proc_living_thread(c->proc_root, p->pid));
    char *path = xasprintf("%s/root/tmp/perf-%ld.map", own, (long)inner_pid(c, p->pid));
    struct stat st, owner;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && stat(own, &owner) == 0 &&
        (st.st_size != p->perf_map_size || st.st_mtim.tv_sec != p->perf_map_mtime.tv_sec ||
         st.st_mtim.tv_nsec != p->perf_map_mtime.tv_nsec)) {
        p->perf_map_size = st.st_size;
        p->perf_map_mtime = st.st_mtim;
        char name[32];
        snprintf(name, sizeof name, "perf-%u.map", ++c->copies);
        /* /tmp is open to all: only the process's own user or root may name its code. */
        if (st.st_uid != owner.st_uid && st.st_uid != 0)
            leave_out(c, "%s belongs to another user and is not used", path);
        else if (copy_into(c, fd, name) < 0)
            leave_out(c, "%s could not be copied", path);
        else
            put(c, "J\t%" PRIu64 "\t%ld\t%s\n", time_ns, (long)p->pid, name);
    }
    if (fd >= 0)
        close(fd);
    free(path);
    free(own);
}

static struct process *find_process(struct maps_capturer *c, pid_t pid)
{
    for (size_t i = 0; i < c->processes.len; i++)
        if (c->processes.data[i].pid == pid)
            return &c->processes.data[i];
    vec_push(&c->processes, (struct process){.pid = pid});
    return &c->processes.data[c->processes.len - 1];
}

void maps_capturer_run(struct maps_capturer *c, pid_t pid, uint64_t time_ns, const char *reason,
                       struct capture_result *out)
{
    struct maps *maps;
    struct err err;
    c->result = out;
    int rc = maps_read(c->proc_root, pid, &maps, &err);
    if (rc < 0 && rc != MTUI_E_GONE) {
        leave_out(c, "%s", err.text);
        write_out(c);
    }
    if (rc < 0)
        return; /* a process that has ended has no mappings any more: what was known of it stays */
    struct process *p = find_process(c, pid);
    uint64_t h = hash_maps(maps);
    if (!p->seen || p->maps_hash != h)
        capture_maps(c, pid, maps, time_ns, reason);
    p->seen = true;
    p->maps_hash = h;
    capture_code(c, p, maps, time_ns);
    capture_perf_map(c, p, time_ns);
    capture_threads(c, p, time_ns);
    maps_free(maps);
    write_out(c);
}

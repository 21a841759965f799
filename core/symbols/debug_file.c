#include "core/symbols/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <lzma.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/alloc.h"

#define LINK_SECTION_MAX 4096
#define TRIED_MAX 4096

struct tried {
    char text[TRIED_MAX]; /* "path: reason", joined by "; " */
    size_t len;
};

static void tried_add(struct tried *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void tried_add(struct tried *t, const char *fmt, ...)
{
    if (t->len && t->len + 3 < sizeof t->text) {
        memcpy(t->text + t->len, "; ", 3);
        t->len += 2;
    }
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->text + t->len, sizeof t->text - t->len, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->len += (size_t)n < sizeof t->text - t->len ? (size_t)n : sizeof t->text - t->len - 1;
}

/* Opens path below root; a symbolic link inside a container stays inside it. */
static int open_below(const char *root, const char *path)
{
    if (!*root)
        return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    int e = errno;
    close(dir);
    if (fd < 0 && e == ENOSYS) { /* kernel before 5.6 */
        char full[8192];
        if (snprintf(full, sizeof full, "%s%s", root, path) < (int)sizeof full)
            return open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    errno = e;
    return fd;
}

static bool build_ids_differ(const struct elf_file *a, const struct elf_file *b)
{
    size_t al, bl;
    const uint8_t *ai = elf_file_build_id(a, &al), *bi = elf_file_build_id(b, &bl);
    return al && bl && (al != bl || memcmp(ai, bi, al) != 0);
}

static bool crc_of_file(int fd, uint32_t *crc)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > DEBUG_LINK_MAX)
        return false;
    size_t size = 1 << 18;
    unsigned char *buf = malloc(size);
    if (!buf)
        return false;
    uLong c = crc32(0, NULL, 0);
    off_t at = 0;
    ssize_t n;
    while ((n = pread(fd, buf, size, at)) > 0) {
        c = crc32(c, buf, (uInt)n);
        at += n;
    }
    free(buf);
    *crc = (uint32_t)c;
    return n == 0;
}

/* One candidate; crc NULL means "the build-id must be equal". Returns true when it was taken. */
static bool try_path(const struct elf_file *f, const struct debug_search *s, const char *path,
                     const uint32_t *crc, struct tried *tried, struct elf_file **out)
{
    const char *root = s->root ? s->root : "";
    int fd = open_below(root, path);
    if (fd < 0) {
        tried_add(tried, "%s%s: %s", root, path, strerror(errno));
        return false;
    }
    uint32_t got = 0;
    if (crc && (!crc_of_file(fd, &got) || got != *crc)) {
        tried_add(tried, "%s%s: its CRC is %08x, the program names %08x", root, path, got, *crc);
        close(fd);
        return false;
    }
    char *full = xasprintf("%s%s", root, path);
    struct elf_file *d;
    struct err e;
    int rc = elf_file_open(fd, full, &d, &e);
    free(full);
    if (rc < 0) {
        tried_add(tried, "%s", e.text);
        return false;
    }
    size_t len;
    elf_file_build_id(d, &len);
    if (build_ids_differ(f, d) || (!crc && len == 0)) {
        tried_add(tried, "%s%s: its build-id is another one", root, path);
        elf_file_free(d);
        return false;
    }
    tried_add(tried, "%s%s: used", root, path);
    *out = d;
    return true;
}

static bool by_build_id(const struct elf_file *f, const struct debug_search *s, const char *dir,
                        struct tried *tried, struct elf_file **out)
{
    size_t len;
    const uint8_t *id = elf_file_build_id(f, &len);
    if (len < 2) {
        tried_add(tried, "no build-id in %s", elf_file_name(f));
        return false;
    }
    char hex[2 * ELF_BUILD_ID_MAX + 1];
    elf_build_id_hex(id, len, hex);
    char *path = xasprintf("%s/.build-id/%.2s/%s.debug", dir, hex, hex + 2);
    bool found = try_path(f, s, path, NULL, tried, out);
    free(path);
    return found;
}

/* Name and CRC of .gnu_debuglink: a string, padded to four bytes, and the CRC. */
static bool read_link(const struct elf_file *f, char **name, uint32_t *crc)
{
    void *data;
    size_t size;
    if (elf_file_read_section(f, ".gnu_debuglink", LINK_SECTION_MAX, &data, &size, NULL) < 0)
        return false;
    size_t len = strnlen(data, size), at = (len + 4) & ~(size_t)3;
    bool ok = len > 0 && len < size && at + 4 <= size && !memchr(data, '/', len);
    if (ok) {
        memcpy(crc, (char *)data + at, 4);
        *name = xstrndup(data, len);
    }
    free(data);
    return ok;
}

static bool by_link(const struct elf_file *f, const struct debug_search *s, const char *dir,
                    struct tried *tried, struct elf_file **out)
{
    char *link;
    uint32_t crc;
    if (!read_link(f, &link, &crc)) {
        tried_add(tried, "no .gnu_debuglink in %s", elf_file_name(f));
        return false;
    }
    const char *slash = s->path ? strrchr(s->path, '/') : NULL;
    bool found = false;
    if (slash) {
        int n = (int)(slash - s->path);
        char *paths[3] = {
            xasprintf("%.*s/%s", n, s->path, link),
            xasprintf("%.*s/.debug/%s", n, s->path, link),
            xasprintf("%s%.*s/%s", dir, n, s->path, link),
        };
        for (int i = 0; i < 3; i++) {
            if (!found && strcmp(paths[i], s->path) != 0)
                found = try_path(f, s, paths[i], &crc, tried, out);
            free(paths[i]);
        }
    }
    free(link);
    return found;
}

int debug_file_find(const struct elf_file *f, const struct debug_search *search,
                    struct elf_file **out, char **tried, struct err *err)
{
    struct tried *t = xcalloc(1, sizeof *t);
    const char *dir = search->dir ? search->dir : "/usr/lib/debug";
    bool found = by_build_id(f, search, dir, t, out) || by_link(f, search, dir, t, out);
    if (!found && search->root && *search->root) {
        struct debug_search ours = {.root = "", .dir = dir};
        found = by_build_id(f, &ours, dir, t, out);
    }
    if (tried)
        *tried = xstrdup(t->text);
    int rc = found ? 0
                   : err_set(err, MTUI_E_NOENT, "no separate debug file for %s: %s",
                             elf_file_name(f), t->text);
    free(t);
    return rc;
}

/* ---- .gnu_debugdata ---- */

static int unpack_xz(const void *in, size_t in_size, void **out, size_t *out_size, const char *name,
                     struct err *err)
{
    lzma_stream lz = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&lz, DEBUG_DATA_MAX, 0) != LZMA_OK)
        return err_set(err, MTUI_E_NOMEM, "%s: no memory to unpack .gnu_debugdata", name);
    size_t cap = in_size < 65536 ? 65536 : in_size * 4;
    unsigned char *buf = malloc(cap);
    lz.next_in = in;
    lz.avail_in = in_size;
    lz.next_out = buf;
    lz.avail_out = buf ? cap : 0;
    lzma_ret rc = LZMA_MEM_ERROR;
    while (buf && (rc = lzma_code(&lz, LZMA_FINISH)) == LZMA_OK) {
        size_t used = (size_t)(lz.next_out - buf);
        if (lz.avail_out > 0) /* neither done nor short of room: the stream is cut off */
            break;
        if (cap >= DEBUG_DATA_MAX) {
            rc = LZMA_MEMLIMIT_ERROR;
            break;
        }
        cap = cap < DEBUG_DATA_MAX / 2 ? cap * 2 : DEBUG_DATA_MAX;
        unsigned char *more = realloc(buf, cap);
        if (!more) {
            rc = LZMA_MEM_ERROR;
            break;
        }
        buf = more;
        lz.next_out = buf + used;
        lz.avail_out = cap - used;
    }
    size_t used = buf ? (size_t)(lz.next_out - buf) : 0;
    lzma_end(&lz);
    if (rc == LZMA_STREAM_END) {
        *out = buf;
        *out_size = used;
        return 0;
    }
    free(buf);
    if (rc == LZMA_MEM_ERROR)
        return err_set(err, MTUI_E_NOMEM, "%s: no memory to unpack .gnu_debugdata", name);
    if (rc == LZMA_MEMLIMIT_ERROR)
        return err_set(err, MTUI_E_LIMIT, "%s: .gnu_debugdata unpacks to more than %u MiB", name,
                       DEBUG_DATA_MAX >> 20);
    return err_set(err, MTUI_E_FORMAT, "%s: .gnu_debugdata is damaged (xz code %d)", name, (int)rc);
}

int debug_data_open(const struct elf_file *f, struct elf_file **out, struct err *err)
{
    void *packed, *image = NULL;
    size_t packed_size, size = 0;
    int rc =
        elf_file_read_section(f, ".gnu_debugdata", DEBUG_DATA_MAX, &packed, &packed_size, err);
    if (rc < 0)
        return rc;
    rc = unpack_xz(packed, packed_size, &image, &size, elf_file_name(f), err);
    free(packed);
    if (rc < 0)
        return rc;
    char *name = xasprintf("%s(.gnu_debugdata)", elf_file_name(f));
    rc = elf_file_open_memory(image, size, name, out, err);
    free(name);
    return rc;
}

#include "core/record/aux_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/base/write_all.h"

#define MAGIC               "PERFILE2"
#define HEADER_BYTES        104
#define AT_HEADER_SIZE      8
#define AT_DATA_OFFSET      40
#define AT_DATA_SIZE        48
#define AT_FEATURES         72
#define FEATURE_BYTES       32
#define FEATURE_AUXTRACE    18
#define MAX_HEAD_BYTES      (16u << 20) /* attrs and ids: a few hundred bytes an event */
#define RECORD_HEADER_BYTES 8
#define RECORD_AUXTRACE     71
#define AUXTRACE_BYTES      48

struct range {
    uint64_t at, bytes;
};

struct aux_file {
    uint64_t data_offset;  /* 0: not read yet */
    uint64_t scanned;      /* the first record not read yet */
    VEC(struct range) aux; /* records with their data, in file order */
};

struct aux_file *aux_file_new(void)
{
    return xcalloc(1, sizeof(struct aux_file));
}

void aux_file_free(struct aux_file *f)
{
    if (!f)
        return;
    vec_free(&f->aux);
    free(f);
}

static uint64_t get_u64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static bool read_at(int fd, void *buf, size_t len, uint64_t at)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static int read_head(struct aux_file *f, int fd, const char *src, struct err *err)
{
    unsigned char head[HEADER_BYTES];
    if (!read_at(fd, head, sizeof head, 0) || memcmp(head, MAGIC, 8) ||
        get_u64(head + AT_HEADER_SIZE) != HEADER_BYTES)
        return err_set(err, MTUI_E_FORMAT, "\"%s\" has no perf.data header", src);
    uint64_t offset = get_u64(head + AT_DATA_OFFSET);
    if (offset < HEADER_BYTES || offset > MAX_HEAD_BYTES)
        return err_set(err, MTUI_E_FORMAT, "\"%s\" has a header that makes no sense", src);
    if (!f->data_offset)
        f->data_offset = f->scanned = offset;
    else if (offset != f->data_offset)
        return err_set(err, MTUI_E_FORMAT, "\"%s\" is not the file it was", src);
    return 0;
}

/* Reads record headers up to the first record that is not whole. Returns the number of AUXTRACE
 * records found, or an error. */
static int scan(struct aux_file *f, int fd, uint64_t file_bytes, struct aux_snapshot *got,
                const char *src, struct err *err)
{
    unsigned char buf[1 << 16];
    uint64_t buf_at = 0;
    size_t buf_len = 0;
    int found = 0;
    for (;;) {
        uint64_t at = f->scanned;
        if (at + RECORD_HEADER_BYTES > file_bytes)
            return found;
        if (at < buf_at || at + AUXTRACE_BYTES > buf_at + buf_len) {
            uint64_t left = file_bytes - at;
            buf_len = left < sizeof buf ? (size_t)left : sizeof buf;
            buf_at = at;
            if (!read_at(fd, buf, buf_len, at))
                return err_errno(err, errno, "\"%s\" cannot be read", src);
        }
        const unsigned char *rec = buf + (at - buf_at);
        uint32_t type;
        uint16_t size;
        memcpy(&type, rec, sizeof type);
        memcpy(&size, rec + 6, sizeof size);
        if (size < RECORD_HEADER_BYTES || (type == RECORD_AUXTRACE && size < 16))
            return err_set(err, MTUI_E_FORMAT, "\"%s\" is damaged at byte %" PRIu64, src, at);
        uint64_t bytes = size;
        if (type == RECORD_AUXTRACE) {
            if (at + 16 > file_bytes)
                return found;
            uint64_t data = get_u64(rec + 8);
            if (data > file_bytes || at + size + data > file_bytes)
                return found;
            bytes += data;
        }
        if (at + bytes > file_bytes)
            return found;
        if (type == RECORD_AUXTRACE) {
            struct range r = {at, bytes};
            if (!vec_try_push(&f->aux, r))
                return err_set(err, MTUI_E_NOMEM, "no memory for the list of AUX buffers");
            got->aux_bytes += bytes - size;
            got->buffers++;
            found++;
        }
        f->scanned = at + bytes;
    }
}

static bool copy_range(int in, int out, uint64_t at, uint64_t bytes)
{
    char buf[1 << 16];
    bool by_kernel = true;
    while (bytes) {
        off_t from = (off_t)at;
        size_t want = bytes < (64u << 20) ? (size_t)bytes : 64u << 20;
        ssize_t n = -1;
        if (by_kernel) {
            n = copy_file_range(in, &from, out, NULL, want, 0);
            if (n <= 0 && errno != EINTR)
                by_kernel = false;
        } else {
            if (want > sizeof buf)
                want = sizeof buf;
            if (!read_at(in, buf, want, at))
                return false;
            n = write(out, buf, want);
            if (n < 0 && errno != EINTR)
                return false;
        }
        if (n > 0) {
            at += (uint64_t)n;
            bytes -= (uint64_t)n;
        }
    }
    return true;
}

/* The header says: so many bytes of records, and one feature, AUXTRACE, with an empty index (perf
 * wants the feature to be there; without an index it finds the data by reading). */
static bool write_file(const struct aux_file *f, size_t old_aux, int in, int out, uint64_t *total)
{
    unsigned char *head = malloc((size_t)f->data_offset);
    if (!head)
        return false;
    uint64_t skipped = 0;
    for (size_t i = 0; i < old_aux; i++)
        skipped += f->aux.data[i].bytes;
    uint64_t data_bytes = f->scanned - f->data_offset - skipped;
    bool ok = read_at(in, head, (size_t)f->data_offset, 0);
    if (ok) {
        memcpy(head + AT_DATA_SIZE, &data_bytes, sizeof data_bytes);
        memset(head + AT_FEATURES, 0, FEATURE_BYTES);
        head[AT_FEATURES + FEATURE_AUXTRACE / 8] = 1 << FEATURE_AUXTRACE % 8;
        ok = write_all(out, head, (size_t)f->data_offset) == 0;
    }
    free(head);
    uint64_t at = f->data_offset;
    for (size_t i = 0; ok && i < old_aux; i++) {
        ok = copy_range(in, out, at, f->aux.data[i].at - at);
        at = f->aux.data[i].at + f->aux.data[i].bytes;
    }
    ok = ok && copy_range(in, out, at, f->scanned - at);
    uint64_t end = f->data_offset + data_bytes;
    uint64_t feature[3] = {end + 16, 8,
                           0}; /* section {offset, size}, then its content: u64 nr = 0 */
    *total = end + sizeof feature;
    return ok && write_all(out, feature, sizeof feature) == 0;
}

static int write_dst(const struct aux_file *f, size_t old_aux, int in, const char *dst,
                     uint64_t *total, struct err *err)
{
    char *part = xasprintf("%s.part", dst);
    int rc = 0;
    int out = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0) {
        rc = err_errno(err, errno, "\"%s\" cannot be written", part);
    } else {
        bool ok = write_file(f, old_aux, in, out, total);
        int e = errno;
        if (close(out) < 0 && ok) {
            ok = false;
            e = errno;
        }
        if (ok && rename(part, dst) < 0) {
            ok = false;
            e = errno;
        }
        if (!ok) {
            unlink(part);
            rc = err_errno(err, e, "\"%s\" cannot be written", dst);
        }
    }
    free(part);
    return rc;
}

int aux_file_carve(struct aux_file *f, const char *src, const char *dst, struct aux_snapshot *out,
                   struct err *err)
{
    int in = open(src, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return err_errno(err, errno, "\"%s\" cannot be read", src);
    struct stat st;
    struct aux_snapshot got = {0};
    size_t old_aux = f->aux.len;
    uint64_t old_scanned = f->scanned;
    int rc = fstat(in, &st) < 0 ? err_errno(err, errno, "\"%s\" cannot be read", src) : 0;
    if (rc == 0)
        rc = read_head(f, in, src, err);
    if (rc == 0)
        rc = scan(f, in, (uint64_t)st.st_size, &got, src, err);
    if (rc >= 0 && got.buffers)
        rc = write_dst(f, old_aux, in, dst, &got.file_bytes, err);
    close(in);
    if (rc < 0) {
        f->aux.len = old_aux; /* what was not written is still new */
        f->scanned = old_scanned ? old_scanned : f->data_offset;
        return rc;
    }
    *out = got;
    return 0;
}

int perf_data_check(const char *path, uint64_t *bytes, struct err *err)
{
    char inner[PATH_MAX];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        snprintf(inner, sizeof inner, "%s/data", path);
        fd = open(inner, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        int e = errno;
        if (fd >= 0)
            close(fd);
        return err_errno(err, e, "\"%s\" cannot be read", path);
    }
    unsigned char head[HEADER_BYTES];
    bool whole = read_at(fd, head, sizeof head, 0);
    close(fd);
    if (bytes)
        *bytes = (uint64_t)st.st_size;
    if (!st.st_size)
        return PERF_DATA_EMPTY;
    if (!whole || memcmp(head, MAGIC, 8))
        return PERF_DATA_FOREIGN;
    uint64_t offset = get_u64(head + AT_DATA_OFFSET), size = get_u64(head + AT_DATA_SIZE);
    if (!size)
        return (uint64_t)st.st_size <= offset ? PERF_DATA_EMPTY : PERF_DATA_UNFINISHED;
    return offset + size < offset || offset + size > (uint64_t)st.st_size ? PERF_DATA_TRUNCATED
                                                                          : PERF_DATA_OK;
}

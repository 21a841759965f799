#include "decode/export/export_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"

#define BUFFER ((size_t)256 << 10)

struct export_out {
    FILE *file;
    bool gzip, no_memory;
    int errno_value; /* of the first failed write */
    unsigned char *buffer, *packed;
    size_t len;
    z_stream z;
    char *text; /* of export_out_text */
    size_t text_cap;
};

struct export_out *export_out_new(FILE *file, bool gzip)
{
    struct export_out *o = xcalloc(1, sizeof *o);
    o->file = file;
    o->gzip = gzip;
    o->buffer = xmalloc(BUFFER);
    if (gzip) {
        o->packed = xmalloc(BUFFER);
        /* 15 bits of window, 16: with a gzip header (zlib.h) */
        if (deflateInit2(&o->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                         Z_DEFAULT_STRATEGY) != Z_OK)
            o->no_memory = true;
    }
    return o;
}

bool export_out_failed(const struct export_out *o)
{
    return o->errno_value || o->no_memory;
}

void export_out_no_memory(struct export_out *o)
{
    o->no_memory = true;
}

static void write_file(struct export_out *o, const void *bytes, size_t len)
{
    if (export_out_failed(o) || len == 0)
        return;
    errno = 0;
    if (fwrite(bytes, 1, len, o->file) != len)
        o->errno_value = errno ? errno : EIO;
}

static void write_packed(struct export_out *o, int flush)
{
    o->z.next_in = o->buffer;
    o->z.avail_in = (uInt)o->len;
    int rc = Z_OK;
    do {
        o->z.next_out = o->packed;
        o->z.avail_out = (uInt)BUFFER;
        rc = deflate(&o->z, flush);
        write_file(o, o->packed, BUFFER - o->z.avail_out);
    } while (!export_out_failed(o) && rc != Z_STREAM_ERROR &&
             (o->z.avail_out == 0 || (flush == Z_FINISH && rc != Z_STREAM_END)));
}

static void drain(struct export_out *o, bool last)
{
    if (!export_out_failed(o)) {
        if (o->gzip)
            write_packed(o, last ? Z_FINISH : Z_NO_FLUSH);
        else
            write_file(o, o->buffer, o->len);
    }
    o->len = 0;
}

int export_out_end(struct export_out *o, struct err *err)
{
    drain(o, true);
    errno = 0;
    if (!export_out_failed(o) && fflush(o->file) != 0)
        o->errno_value = errno ? errno : EIO;
    int e = o->errno_value;
    bool no_memory = o->no_memory;
    if (o->gzip)
        deflateEnd(&o->z);
    free(o->buffer);
    free(o->packed);
    free(o->text);
    free(o);
    if (no_memory)
        return err_set(err, MTUI_E_NOMEM, "not enough memory for this export: choose a range");
    if (e == EPIPE)
        return err_set(err, MTUI_E_PIPE, "the reader of the export has gone away");
    if (e == ENOSPC)
        return err_set(err, MTUI_E_IO, "the disk is full: the export is incomplete");
    return e ? err_errno(err, e, "writing the export") : 0;
}

void export_out_bytes(struct export_out *o, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    while (len) {
        size_t n = BUFFER - o->len < len ? BUFFER - o->len : len;
        memcpy(o->buffer + o->len, p, n);
        o->len += n;
        p += n;
        len -= n;
        if (o->len == BUFFER)
            drain(o, false);
    }
}

void export_out_str(struct export_out *o, const char *s)
{
    export_out_bytes(o, s, strlen(s));
}

void export_out_char(struct export_out *o, char c)
{
    export_out_bytes(o, &c, 1);
}

void export_out_u64(struct export_out *o, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    export_out_bytes(o, digits + at, sizeof digits - at);
}

void export_out_i64(struct export_out *o, int64_t v)
{
    if (v < 0)
        export_out_char(o, '-');
    export_out_u64(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

const char *export_out_text(struct export_out *o, export_text *write, const char *s, size_t *len)
{
    size_t n = strlen(s), need = n * 6 + 1; /* \uHHHH for every byte */
    if (need > o->text_cap) {
        free(o->text);
        o->text = xmalloc(need * 2);
        o->text_cap = need * 2;
    }
    *len = write(o->text, o->text_cap, s, n);
    return o->text;
}

void export_out_escaped(struct export_out *o, const char *s)
{
    size_t n = 0;
    const char *text = export_out_text(o, utf8_escape, s, &n);
    export_out_bytes(o, text, n);
}

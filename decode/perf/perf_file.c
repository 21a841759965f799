#include "decode/perf/perf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/file_guard.h"
#include "decode/perf/perf_format.h"
#include "decode/perf/perf_priv.h"

void perf_file_set_partial(struct perf_file *f, const char *fmt, ...)
{
    if (f->partial) /* the first thing that went wrong explains the rest */
        return;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&f->partial, fmt, ap) < 0)
        f->partial = NULL;
    va_end(ap);
}

char *perf_file_keep(struct perf_file *f, const char *s, size_t len)
{
    vec_push(&f->strings, xstrndup(s, len));
    return f->strings.data[f->strings.len - 1];
}

uint64_t perf_file_offset(const struct perf_file *f, const uint8_t *p)
{
    for (size_t i = 0; i < f->segments.len; i++) {
        const struct perf_segment *seg = &f->segments.data[i];
        if (p >= seg->data && p < seg->data + seg->size)
            return seg->base + (uint64_t)(p - seg->data);
    }
    return perf_zstd_block_offset(f, p);
}

/* ---- Bringing files into memory ---- */

static int read_stream(int fd, const char *name, struct perf_segment *seg, struct err *err)
{
    size_t cap = 1 << 20, len = 0;
    uint8_t *data = malloc(cap);
    while (data) {
        if (len == cap) {
            uint8_t *more = cap <= SIZE_MAX / 2 ? realloc(data, cap * 2) : NULL;
            if (!more)
                break;
            data = more;
            cap *= 2;
        }
        ssize_t n = read(fd, data + len, cap - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int saved = errno;
            free(data);
            return err_errno(err, saved, "cannot read %s", name);
        }
        if (n == 0) {
            *seg = (struct perf_segment){.data = data, .size = len, .fd = -1};
            return 0;
        }
        len += (size_t)n;
    }
    free(data);
    return err_set(err, MTUI_E_NOMEM, "not enough memory to read %s (%zu bytes so far)", name, len);
}

static int load(int fd, const char *name, struct perf_segment *seg, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_errno(err, errno, "cannot read %s", name);
    if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
        return read_stream(fd, name, seg, err);
    if (!S_ISREG(st.st_mode))
        return err_set(err, MTUI_E_INVAL, "%s is neither a file nor a pipe", name);
    *seg = (struct perf_segment){
        .size = (size_t)st.st_size, .mapped = true, .fd = -1, .changed = st.st_mtim};
    if (st.st_size == 0)
        return 0;
    file_guard_install();
    void *map = mmap(NULL, seg->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return err_errno(err, errno, "cannot map %s", name);
    seg->data = map;
    seg->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* without it, a change stays unsaid */
    return 0;
}

void perf_file_check(struct perf_file *f)
{
    for (size_t i = 0; i < f->segments.len; i++) {
        const struct perf_segment *seg = &f->segments.data[i];
        struct stat st;
        if (seg->fd < 0 || fstat(seg->fd, &st) < 0)
            continue;
        if ((uint64_t)st.st_size < seg->size)
            perf_file_set_partial(f, "the file was cut while it was read: its last %llu bytes are missing",
                                  (unsigned long long)(seg->size - (uint64_t)st.st_size));
        else if (st.st_mtim.tv_sec != seg->changed.tv_sec || st.st_mtim.tv_nsec != seg->changed.tv_nsec)
            perf_file_set_partial(f, "the file was written to while it was read: what is shown may be a "
                                     "mixture");
    }
}

static void add_segment(struct perf_file *f, struct perf_segment seg)
{
    seg.base = f->info.size_bytes;
    f->info.size_bytes += seg.size;
    vec_push(&f->segments, seg);
}

/* ---- Records ---- */

int perf_file_index_add(struct perf_file *f, uint64_t time_ns, const uint8_t *rec)
{
    struct perf_index_entry entry = {time_ns, rec};
    return vec_try_push(&f->index, entry) ? 0 : MTUI_E_NOMEM;
}

/* Records that describe the recording itself. */
static void note_record(struct perf_file *f, const struct perf_record *rec, struct perf_cursor body)
{
    switch (rec->type) {
    case PERF_FMT_HEADER_ATTR: {
        struct perf_cursor c = body;
        perf_cursor_u32(&c);
        uint32_t size = perf_cursor_u32(&c); /* attr.size */
        if (c.bad || size > perf_cursor_left(&body) ||
            !perf_header_add_attr(f, body.p, size, body.p + size, perf_cursor_left(&body) - size))
            f->info.skipped_records++;
        break;
    }
    case PERF_FMT_HEADER_FEATURE: {
        uint64_t feature = perf_cursor_u64(&body);
        if (!body.bad)
            perf_header_read_feature(f, feature, body.p, perf_cursor_left(&body));
        break;
    }
    case PERF_FMT_EVENT_UPDATE:
        perf_header_update_event(f, body);
        break;
    case PERF_FMT_AUXTRACE_INFO:
        f->info.has_auxtrace = true;
        if (rec->u.auxtrace_info.type == PERF_AUXTRACE_INTEL_PT && rec->u.auxtrace_info.npriv > 0)
            f->pt_type = (uint32_t)rec->u.auxtrace_info.priv[0];
        break;
    default:
        break;
    }
}

static int index_record(struct perf_file *f, const uint8_t *p, struct perf_cursor body)
{
    struct perf_record rec;
    bool carries_time = false;
    if (!perf_record_parse(f, p, &rec, &carries_time)) {
        f->info.skipped_records++;
        return 0;
    }
    note_record(f, &rec, body);
    if (carries_time && rec.time_ns > f->latest_ns)
        f->latest_ns = rec.time_ns;
    return perf_file_index_add(f, carries_time ? rec.time_ns : f->latest_ns, p);
}

/* The bytes that follow a record and belong to it. */
static uint64_t trailing_bytes(uint32_t type, struct perf_cursor body)
{
    if (type == PERF_FMT_AUXTRACE)
        return perf_cursor_u64(&body);
    if (type == PERF_FMT_TRACING_DATA)
        return perf_cursor_u32(&body);
    return 0;
}

static int inflate(struct perf_file *f, struct perf_segment *seg, const uint8_t *p,
                   struct perf_cursor body, uint32_t type, bool in_block)
{
    if (type == PERF_FMT_COMPRESSED2) {
        uint64_t size = perf_cursor_u64(&body);
        if (!body.bad && size <= perf_cursor_left(&body))
            body.end = body.p + size;
        else
            body.bad = true;
    }
    if (in_block || body.bad) {
        f->info.skipped_records++;
        return 0;
    }
    return perf_zstd_inflate(f, seg, perf_file_offset(f, p), body);
}

#define CLAIM_MOST ((uint64_t)1 << 48) /* records that are said to be larger are not cut, but damaged */

/* From byte `from` on nothing more is read of a file, of which there should be `bytes` more. */
static void give_up(struct perf_segment *seg, uint64_t from, uint64_t bytes)
{
    uint64_t to = bytes < CLAIM_MOST ? from + bytes : from;
    if (seg->end) /* the header knows */
        to = seg->end > from ? seg->end : from;
    if (!seg->unread_to || from < seg->unread_from)
        seg->unread_from = from;
    if (to > seg->unread_to)
        seg->unread_to = to;
}

int perf_file_index(struct perf_file *f, struct perf_segment *seg, const uint8_t *p,
                    const uint8_t *end, bool in_block, const uint8_t **stopped)
{
    while ((size_t)(end - p) >= sizeof(struct perf_event_header)) {
        struct perf_event_header h;
        memcpy(&h, p, sizeof h);
        if (h.size < sizeof h) {
            perf_file_set_partial(
                f, "the recording is damaged at byte %llu; the %llu bytes from there were not read",
                (unsigned long long)perf_file_offset(f, p), (unsigned long long)(end - p));
            if (!in_block)
                give_up(seg, (uint64_t)(p - seg->data), (uint64_t)(end - p));
            *stopped = end;
            return 1;
        }
        if (h.size > end - p)
            break;
        struct perf_cursor body = perf_cursor_make(p + sizeof h, h.size - sizeof h);
        int e = h.type == PERF_FMT_COMPRESSED || h.type == PERF_FMT_COMPRESSED2
                    ? inflate(f, seg, p, body, h.type, in_block)
                    : index_record(f, p, body);
        if (e < 0)
            return e;
        uint64_t trailing = trailing_bytes(h.type, body);
        if (trailing > (uint64_t)(end - p) - h.size) {
            perf_file_set_partial(f, "the file ends inside the trace data at byte %llu: %llu of %llu "
                                  "bytes are there",
                                  (unsigned long long)perf_file_offset(f, p),
                                  (unsigned long long)((uint64_t)(end - p) - h.size),
                                  (unsigned long long)trailing);
            if (!in_block)
                give_up(seg, (uint64_t)(end - seg->data), trailing - ((uint64_t)(end - p) - h.size));
            *stopped = end;
            return 1;
        }
        if (h.type == PERF_FMT_TRACING_DATA && !in_block)
            f->tracing_data = (struct perf_range){p + h.size, p + h.size + trailing};
        p += h.size + trailing;
    }
    *stopped = p;
    return 0;
}

static int index_segment(struct perf_file *f, size_t i, uint64_t from, uint64_t to, struct err *err)
{
    const uint8_t *stopped = NULL;
    struct perf_segment *seg = &f->segments.data[i];
    const uint8_t *end = seg->data + to;
    if (from == to)
        return 0;
    if (perf_file_index(f, seg, seg->data + from, end, false, &stopped) < 0)
        return err_set(err, MTUI_E_NOMEM, "not enough memory for the index of %zu records",
                       f->index.len);
    if (stopped != end) {
        struct perf_event_header h = {0};
        size_t left = (size_t)(end - stopped);
        if (left >= sizeof h)
            memcpy(&h, stopped, sizeof h);
        give_up(seg, (uint64_t)(stopped - seg->data), h.size > left ? h.size : left);
        perf_file_set_partial(f, "the file ends inside a record: its last %zu bytes were not read", left);
    }
    return 0;
}

/* ---- Layouts ---- */

static int open_file_layout(struct perf_file *f, const struct perf_format_header *h, size_t header_len,
                            const char *name, struct err *err)
{
    struct perf_segment *seg = &f->segments.data[0];
    if (h->attrs.offset > seg->size || h->attrs.size > seg->size - h->attrs.offset)
        return err_set(err, MTUI_E_FORMAT,
                       "%s ends inside its list of events: nothing in it can be read", name);
    int e = perf_header_read_attrs(f, seg->data + h->attrs.offset, h->attrs.size, h->attr_size, err);
    if (e < 0)
        return e;
    uint64_t from = h->data.offset, to = seg->size;
    if (from < CLAIM_MOST && h->data.size && h->data.size < CLAIM_MOST)
        seg->end = from + h->data.size;
    if (from > seg->size) {
        give_up(seg, seg->size, 0);
        perf_file_set_partial(f, "the file ends before its first record");
        return 0;
    }
    if (h->data.size == 0) {
        perf_file_set_partial(f, "the recording was not finished properly (perf was killed or the "
                                 "disk was full): read to the end of the file");
    } else if (h->data.size > seg->size - from) {
        give_up(seg, seg->size, 0);
        perf_file_set_partial(f, "the file is cut: %llu bytes of records are missing at its end",
                              (unsigned long long)(h->data.size - (seg->size - from)));
    } else {
        to = from + h->data.size;
        if (header_len >= sizeof *h)
            perf_header_read_features(f, to, h->features);
    }
    return index_segment(f, 0, from, to, err);
}

static int open_layout(struct perf_file *f, const char *name, struct err *err)
{
    const struct perf_segment *seg = &f->segments.data[0];
    struct perf_format_header h = {0};
    if (seg->size >= sizeof h.magic)
        memcpy(&h.magic, seg->data, sizeof h.magic);
    if (h.magic == PERF_MAGIC2_SWAP)
        return err_set(err, MTUI_E_NOTSUP, "%s was recorded on a machine of the other byte order, "
                       "which cannot be read here", name);
    if (h.magic == PERF_MAGIC1)
        return err_set(err, MTUI_E_NOTSUP, "%s was recorded by a perf older than Linux 3.2, whose "
                       "format cannot be read", name);
    if (h.magic != PERF_MAGIC2)
        return err_set(err, MTUI_E_FORMAT, "%s is not a perf.data file", name);
    if (seg->size < PERF_PIPE_HEADER_SIZE)
        return err_set(err, MTUI_E_FORMAT, "%s ends inside its header", name);
    memcpy(&h, seg->data, seg->size < sizeof h ? seg->size : sizeof h);
    if (h.size == PERF_PIPE_HEADER_SIZE) {
        f->info.pipe_layout = true;
        return index_segment(f, 0, PERF_PIPE_HEADER_SIZE, seg->size, err);
    }
    if (h.size < PERF_HEADER_MIN_SIZE || h.size > 4096)
        return err_set(err, MTUI_E_FORMAT, "%s has a header of %llu bytes, which no perf writes", name,
                       (unsigned long long)h.size);
    if (seg->size < h.size)
        return err_set(err, MTUI_E_FORMAT, "%s ends inside its header", name);
    return open_file_layout(f, &h, (size_t)h.size, name, err);
}

static struct perf_file *file_new(void)
{
    return xcalloc(1, sizeof(struct perf_file));
}

static int finish_open(struct perf_file *f, const char *name, struct err *err)
{
    perf_header_finish(f);
    for (size_t i = 0; i < f->segments.len; i++) {
        const struct perf_segment *seg = &f->segments.data[i];
        if (seg->unread_from && !f->info.unread_offset)
            f->info.unread_offset = seg->base + seg->unread_from;
        f->info.unread_bytes += seg->unread_to - seg->unread_from;
    }
    if (!perf_order_sort(f))
        return err_set(err, MTUI_E_NOMEM, "not enough memory to sort the %zu records of %s",
                       f->index.len, name);
    return 0;
}

int perf_file_open_fd(struct perf_file **out, int fd, const char *name, struct err *err)
{
    struct perf_segment seg;
    int e = load(fd, name, &seg, err);
    if (e < 0)
        return e;
    struct perf_file *f = file_new();
    add_segment(f, seg);
    e = open_layout(f, name, err);
    if (e == 0)
        e = finish_open(f, name, err);
    if (e < 0) {
        perf_file_close(f);
        return e;
    }
    *out = f;
    return 0;
}

/* `perf record --threads`: the header's file is "data", the records of each writer in "data.N". */
static int open_directory(struct perf_file *f, int dir, const char *path, struct err *err)
{
    for (unsigned n = 0;; n++) {
        char name[32] = "data";
        if (n > 0)
            snprintf(name, sizeof name, "data.%u", n - 1);
        int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) {
            if (errno == ENOENT && n == 1) /* numbered by CPU: the first may be missing */
                continue;
            if (errno == ENOENT && n > 1)
                return 0;
            return err_errno(err, errno, "cannot open %s/%s", path, name);
        }
        struct perf_segment seg;
        int e = load(fd, name, &seg, err);
        close(fd);
        if (e < 0)
            return err_prefix(err, "%s", path);
        add_segment(f, seg);
        e = n == 0 ? open_layout(f, path, err)
                   : index_segment(f, f->segments.len - 1, 0, seg.size, err);
        if (e < 0)
            return e;
    }
}

int perf_file_open(struct perf_file **out, const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "cannot open %s", path);
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode)) {
        int e = perf_file_open_fd(out, fd, path, err);
        close(fd);
        return e;
    }
    struct perf_file *f = file_new();
    f->info.directory = true;
    int e = open_directory(f, fd, path, err);
    close(fd);
    if (e == 0)
        e = finish_open(f, path, err);
    if (e < 0) {
        perf_file_close(f);
        return e;
    }
    *out = f;
    return 0;
}

void perf_file_close(struct perf_file *f)
{
    if (!f)
        return;
    perf_zstd_free(f);
    for (size_t i = 0; i < f->segments.len; i++) {
        struct perf_segment *seg = &f->segments.data[i];
        void *data = (void *)(uintptr_t)seg->data;
        if (!seg->mapped)
            free(data);
        else if (data)
            munmap(data, seg->size);
        if (seg->fd >= 0)
            close(seg->fd);
    }
    for (size_t i = 0; i < f->strings.len; i++)
        free(f->strings.data[i]);
    vec_free(&f->segments);
    vec_free(&f->strings);
    vec_free(&f->events);
    vec_free(&f->index);
    hash64_free(&f->ids);
    hash64_free(&f->pmu_names);
    free(f->partial);
    free(f);
}

/* ---- Reading ---- */

const struct perf_file_info *perf_file_info(const struct perf_file *f)
{
    return &f->info;
}

size_t perf_file_event_count(const struct perf_file *f)
{
    return f->events.len;
}

const struct perf_event_info *perf_file_event(const struct perf_file *f, size_t i)
{
    return &f->events.data[i].info;
}

const char *perf_file_partial(const struct perf_file *f)
{
    return f->partial;
}

/* Its length was checked when it was indexed, but a file that is written to may say another one now. */
static bool still_inside(const struct perf_file *f, const uint8_t *p)
{
    struct perf_event_header h;
    memcpy(&h, p, sizeof h);
    for (size_t i = 0; i < f->segments.len; i++) {
        const struct perf_segment *seg = &f->segments.data[i];
        if (p >= seg->data && p < seg->data + seg->size)
            return h.size >= sizeof h && h.size <= (size_t)(seg->data + seg->size - p);
    }
    return true; /* in memory of our own */
}

int perf_file_next(struct perf_file *f, struct perf_record *rec, struct err *err)
{
    (void)err;
    while (f->next < f->index.len) {
        const struct perf_index_entry *entry = &f->index.data[f->next++];
        bool carries_time;
        if (!still_inside(f, entry->rec) || !perf_record_parse(f, entry->rec, rec, &carries_time))
            continue; /* it parsed when it was indexed: the file changed since */
        rec->has_time = carries_time && rec->time_ns != 0;
        rec->time_ns = entry->time_ns;
        rec->offset = perf_file_offset(f, entry->rec);
        return 1;
    }
    return 0;
}

void perf_file_rewind(struct perf_file *f)
{
    f->next = 0;
}

const uint8_t *perf_file_aux_data(const struct perf_file *f, const struct perf_record *rec, size_t *len)
{
    if (rec->kind != PERF_REC_AUXTRACE)
        return NULL;
    for (size_t i = 0; i < f->segments.len; i++) {
        const struct perf_segment *seg = &f->segments.data[i];
        uint64_t at = rec->u.auxtrace.data_offset - seg->base;
        if (rec->u.auxtrace.data_offset < seg->base || at >= seg->size)
            continue;
        uint64_t left = seg->size - at;
        *len = (size_t)(rec->u.auxtrace.size < left ? rec->u.auxtrace.size : left);
        return seg->data + at;
    }
    return NULL;
}

const uint8_t *perf_file_tracing_data(const struct perf_file *f, size_t *len)
{
    *len = (size_t)(f->tracing_data.end - f->tracing_data.p);
    return f->tracing_data.p;
}

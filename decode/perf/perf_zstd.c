/* COMPRESSED and COMPRESSED2 records: each is a piece of one zstd stream of records, and a record may
 * begin in one piece and end in the next. What comes out is kept in blocks in which no record is split,
 * so pointers to records stay good. */
#include "decode/perf/perf_priv.h"

#include <stdlib.h>

/* A block lies at a multiple of its size, so any pointer into it finds its head. */
#define BLOCK_SIZE ((size_t)1 << 20)

/* A recording rarely shrinks to less than a fortieth; what inflates further than this is an attack. */
#define INFLATE_RATIO 100
#define INFLATE_FLOOR ((uint64_t)16 << 20)

struct perf_block {
    uint64_t origin;   /* where in the file its first bytes came from */
    size_t len, read;  /* bytes filled; bytes whose records are indexed */
    size_t segment;
    uint64_t data[(BLOCK_SIZE - 4 * sizeof(uint64_t)) / sizeof(uint64_t)];
};

static uint8_t *block_bytes(struct perf_block *b)
{
    return (uint8_t *)b->data;
}

static size_t segment_number(const struct perf_file *f, const struct perf_segment *seg)
{
    return (size_t)(seg - f->segments.data);
}

/* The block being filled for this segment: a new one when the last has less than a record's room. */
static struct perf_block *writable_block(struct perf_file *f, struct perf_segment *seg,
                                         uint64_t offset)
{
    struct perf_block *last = f->blocks.len ? f->blocks.data[f->blocks.len - 1] : NULL;
    if (last && last->segment != segment_number(f, seg))
        last = NULL;
    if (last && last->len < sizeof last->data)
        return last;
    struct perf_block *b = aligned_alloc(BLOCK_SIZE, BLOCK_SIZE);
    if (!b)
        return NULL;
    b->origin = offset;
    b->len = b->read = 0;
    b->segment = segment_number(f, seg);
    if (last) { /* the record that is still incomplete moves over */
        b->len = last->len - last->read;
        memcpy(b->data, block_bytes(last) + last->read, b->len);
        last->len = last->read;
    }
    vec_push(&f->blocks, b);
    return b;
}

static int index_block(struct perf_file *f, struct perf_segment *seg, struct perf_block *b)
{
    const uint8_t *stopped = NULL;
    uint8_t *bytes = block_bytes(b);
    int e = perf_file_index(f, seg, bytes + b->read, bytes + b->len, true, &stopped);
    if (e < 0)
        return e;
    b->read = (size_t)(stopped - bytes);
    if (e > 0) /* damaged: where the next record begins is not known */
        seg->zstd_failed = true;
    return 0;
}

static bool stream_begin(struct perf_file *f, struct perf_segment *seg)
{
    if (seg->zstd)
        return true;
    seg->zstd = ZSTD_createDStream();
    if (!f->inflated_max)
        f->inflated_max = INFLATE_FLOOR + INFLATE_RATIO * f->info.size_bytes;
    return seg->zstd && !ZSTD_isError(ZSTD_initDStream(seg->zstd));
}

static void stream_fail(struct perf_file *f, struct perf_segment *seg, uint64_t offset,
                        const char *why)
{
    seg->zstd_failed = true;
    perf_file_set_partial(f, "the compressed records from byte %llu on cannot be read: %s",
                          (unsigned long long)offset, why);
}

int perf_zstd_inflate(struct perf_file *f, struct perf_segment *seg, uint64_t offset,
                      struct perf_cursor payload)
{
    if (seg->zstd_failed) {
        f->info.skipped_records++;
        return 0;
    }
    if (!stream_begin(f, seg))
        return MTUI_E_NOMEM;
    ZSTD_inBuffer in = {payload.p, perf_cursor_left(&payload), 0};
    bool full = false; /* the output was full: more may be waiting inside zstd */
    while (in.pos < in.size || full) {
        struct perf_block *b = writable_block(f, seg, offset);
        if (!b)
            return MTUI_E_NOMEM;
        ZSTD_outBuffer out = {block_bytes(b), sizeof b->data, b->len};
        size_t in_before = in.pos;
        size_t result = ZSTD_decompressStream(seg->zstd, &out, &in);
        size_t got = out.pos - b->len;
        f->inflated_bytes += got;
        b->len = out.pos;
        if (ZSTD_isError(result))
            stream_fail(f, seg, offset, ZSTD_getErrorName(result));
        else if (f->inflated_bytes > f->inflated_max)
            stream_fail(f, seg, offset, "they would grow out of all proportion");
        int e = index_block(f, seg, b);
        if (e < 0 || seg->zstd_failed)
            return e;
        full = out.pos == out.size;
        if (!full && got == 0 && in.pos == in_before)
            break; /* no progress: the frame has ended and nothing begins a new one */
    }
    return 0;
}

uint64_t perf_zstd_block_offset(const struct perf_file *f, const uint8_t *p)
{
    if (!f->blocks.len)
        return 0;
    const struct perf_block *b = (const void *)(p - (uintptr_t)p % BLOCK_SIZE);
    return b->origin;
}

void perf_zstd_free(struct perf_file *f)
{
    for (size_t i = 0; i < f->segments.len; i++)
        ZSTD_freeDStream(f->segments.data[i].zstd);
    for (size_t i = 0; i < f->blocks.len; i++)
        free(f->blocks.data[i]);
    vec_free(&f->blocks);
}

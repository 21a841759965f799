/* core/record/aux_file: AUX snapshots out of a growing perf.data, whole, cut and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/record/aux_file.h"

#define HEADER 104

struct image {
    unsigned char bytes[8192];
    size_t len;
};

struct place {
    char dir[64], src[96], dst[96];
};

static void put(struct image *f, const void *data, size_t len)
{
    assert_true(f->len + len <= sizeof f->bytes);
    memcpy(f->bytes + f->len, data, len);
    f->len += len;
}

static void put_u64(struct image *f, size_t at, uint64_t v)
{
    memcpy(f->bytes + at, &v, sizeof v);
}

static void put_header(struct image *f)
{
    *f = (struct image){.bytes = "PERFILE2", .len = HEADER};
    put_u64(f, 8, HEADER);
    put_u64(f, 40, HEADER); /* data offset; data size 0, as while perf records */
    put_u64(f, 72, ~0ull);  /* features that are not there yet */
}

/* A record with `len` bytes of the byte `fill` behind its header. */
static void put_record(struct image *f, uint32_t type, size_t len, unsigned char fill)
{
    unsigned char body[256];
    struct {
        uint32_t type;
        uint16_t misc, size;
    } h = {type, 0, (uint16_t)(8 + len)};
    memset(body, fill, len);
    put(f, &h, sizeof h);
    put(f, body, len);
}

static void put_aux(struct image *f, size_t len, unsigned char fill)
{
    unsigned char data[1024];
    size_t at = f->len;
    put_record(f, 71, 40, 0);
    put_u64(f, at + 8, len);
    memset(data, fill, len);
    put(f, data, len);
}

static void place_make(struct place *p)
{
    strcpy(p->dir, "/tmp/t_aux.XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->src, sizeof p->src, "%s/src", p->dir);
    snprintf(p->dst, sizeof p->dst, "%s/dst", p->dir);
}

static void place_remove(struct place *p)
{
    unlink(p->src);
    unlink(p->dst);
    assert_int_equal(rmdir(p->dir), 0); /* nothing else was left in it */
}

static void store(const char *path, const struct image *f, size_t len)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(f->bytes, 1, len, out), len);
    fclose(out);
}

static void load(const char *path, struct image *f)
{
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    f->len = fread(f->bytes, 1, sizeof f->bytes, in);
    fclose(in);
}

static uint64_t u64_at(const struct image *f, size_t at)
{
    uint64_t v;
    memcpy(&v, f->bytes + at, sizeof v);
    return v;
}

/* What the second snapshot must be, put together by hand: the first one's buffers are not in it. */
static void two_snapshots(void **state)
{
    (void)state;
    struct place p;
    struct image src, want, got;
    struct aux_snapshot snap;
    struct err err;
    struct aux_file *f = aux_file_new();
    place_make(&p);
    put_header(&src);
    put_record(&src, 3, 16, 'a');
    store(p.src, &src, src.len);
    assert_int_equal(aux_file_carve(f, p.src, p.dst, &snap, &err), 0);
    assert_int_equal(snap.buffers, 0);
    assert_int_equal(access(p.dst, F_OK), -1);

    put_aux(&src, 100, 1);
    put_aux(&src, 60, 2);
    put_record(&src, 3, 24, 'b');
    store(p.src, &src, src.len);
    assert_int_equal(aux_file_carve(f, p.src, p.dst, &snap, &err), 0);
    assert_int_equal(snap.buffers, 2);
    assert_int_equal(snap.aux_bytes, 160);
    load(p.dst, &got);
    assert_int_equal(got.len, snap.file_bytes);
    assert_int_equal(got.len, src.len + 24);
    assert_int_equal(u64_at(&got, 48), src.len - HEADER);
    assert_memory_equal(got.bytes + HEADER, src.bytes + HEADER, src.len - HEADER);
    /* One feature, AUXTRACE: its section right behind the data, eight bytes, no entry. */
    assert_int_equal(u64_at(&got, 72), 1u << 18);
    assert_int_equal(u64_at(&got, src.len), src.len + 16);
    assert_int_equal(u64_at(&got, src.len + 8), 8);
    assert_int_equal(u64_at(&got, src.len + 16), 0);
    assert_int_equal(perf_data_check(p.dst, NULL, &err), PERF_DATA_OK);
    assert_int_equal(aux_file_carve(f, p.src, p.dst, &snap, &err), 0);
    assert_int_equal(snap.buffers, 0); /* nothing new */

    put_aux(&src, 40, 3);
    store(p.src, &src, src.len);
    unlink(p.dst);
    assert_int_equal(aux_file_carve(f, p.src, p.dst, &snap, &err), 0);
    assert_int_equal(snap.buffers, 1);
    put_header(&want);
    put_record(&want, 3, 16, 'a');
    put_record(&want, 3, 24, 'b');
    put_aux(&want, 40, 3);
    load(p.dst, &got);
    assert_int_equal(got.len, want.len + 24);
    assert_memory_equal(got.bytes + HEADER, want.bytes + HEADER, want.len - HEADER);
    assert_int_equal(u64_at(&got, 48), want.len - HEADER);
    aux_file_free(f);
    place_remove(&p);
}

/* A record or a buffer that perf is still writing waits for the next time. */
static void half_written(void **state)
{
    (void)state;
    struct place p;
    struct image src, got;
    struct aux_snapshot snap;
    struct err err;
    place_make(&p);
    put_header(&src);
    put_aux(&src, 64, 1);
    size_t one = src.len;
    put_aux(&src, 64, 2);
    for (size_t cut = 0; cut <= src.len; cut++) {
        struct aux_file *f = aux_file_new();
        store(p.src, &src, cut);
        int rc = aux_file_carve(f, p.src, p.dst, &snap, &err);
        if (cut < HEADER)
            assert_int_equal(rc, MTUI_E_FORMAT);
        else
            assert_int_equal(rc, 0);
        if (rc == 0)
            assert_int_equal(snap.buffers, cut == src.len ? 2 : cut >= one ? 1 : 0);
        if (rc == 0 && cut >= one) {
            load(p.dst, &got);
            assert_int_equal(got.len, (cut == src.len ? src.len : one) + 24);
            unlink(p.dst);
        }
        store(p.src, &src, src.len); /* the rest has come */
        rc = aux_file_carve(f, p.src, p.dst, &snap, &err);
        assert_int_equal(rc, 0);
        assert_int_equal(snap.buffers, cut == src.len ? 0 : cut >= one ? 1 : 2);
        unlink(p.dst);
        aux_file_free(f);
    }
    place_remove(&p);
}

/* Where the snapshot cannot be written, its data counts as new the next time. */
static void unwritable(void **state)
{
    (void)state;
    struct place p;
    struct image src;
    struct aux_snapshot snap;
    struct err err;
    struct aux_file *f = aux_file_new();
    place_make(&p);
    put_header(&src);
    put_aux(&src, 64, 1);
    store(p.src, &src, src.len);
    assert_int_equal(aux_file_carve(f, p.src, "/nonexistent/dst", &snap, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "/nonexistent/dst"));
    assert_int_equal(aux_file_carve(f, p.src, "/dev/full/dst", &snap, &err), MTUI_E_IO);
    assert_int_equal(aux_file_carve(f, p.src, p.dst, &snap, &err), 0);
    assert_int_equal(snap.buffers, 1);
    aux_file_free(f);
    place_remove(&p);
}

/* Any bytes: an error or a file that is whole, never a crash, never more than was there. */
static void damage(void **state)
{
    (void)state;
    struct place p;
    struct image src, bad, got;
    struct aux_snapshot snap;
    uint32_t seed = 1;
    place_make(&p);
    put_header(&src);
    put_record(&src, 3, 16, 'a');
    for (unsigned char i = 0; i < 4; i++)
        put_aux(&src, 100, i);
    for (int round = 0; round < 3000; round++) {
        bad = src;
        for (int k = 0; k < 1 + round % 4; k++) {
            seed = seed * 1664525u + 1013904223u;
            size_t at = (seed >> 8) % src.len;
            seed = seed * 1664525u + 1013904223u;
            bad.bytes[at] = seed & 1u << 30 ? 0xff : (unsigned char)(seed >> 16);
        }
        struct aux_file *f = aux_file_new();
        store(p.src, &bad, bad.len);
        if (aux_file_carve(f, p.src, p.dst, &snap, NULL) == 0 && snap.buffers) {
            load(p.dst, &got);
            assert_int_equal(got.len, snap.file_bytes);
            assert_true(got.len <= bad.len + 24);
            assert_int_equal(perf_data_check(p.dst, NULL, NULL), PERF_DATA_OK);
            unlink(p.dst);
        }
        aux_file_free(f);
    }
    place_remove(&p);
}

static void health(void **state)
{
    (void)state;
    struct place p;
    struct image f;
    struct err err;
    uint64_t bytes;
    char inner[128];
    place_make(&p);
    assert_int_equal(perf_data_check(p.src, &bytes, &err), MTUI_E_NOENT);
    put_header(&f);
    put_record(&f, 3, 16, 'a');
    store(p.src, &f, f.len);
    assert_int_equal(perf_data_check(p.src, &bytes, &err), PERF_DATA_UNFINISHED);
    assert_int_equal(bytes, HEADER + 24);
    put_u64(&f, 48, 24);
    store(p.src, &f, f.len);
    assert_int_equal(perf_data_check(p.src, NULL, NULL), PERF_DATA_OK);
    store(p.src, &f, f.len - 1);
    assert_int_equal(perf_data_check(p.src, NULL, NULL), PERF_DATA_TRUNCATED);
    put_u64(&f, 48, UINT64_MAX);
    store(p.src, &f, f.len);
    assert_int_equal(perf_data_check(p.src, NULL, NULL), PERF_DATA_TRUNCATED);
    store(p.src, &f, 0);
    assert_int_equal(perf_data_check(p.src, NULL, NULL), PERF_DATA_EMPTY);
    store(p.src, &f, 50);
    assert_int_equal(perf_data_check(p.src, NULL, NULL), PERF_DATA_FOREIGN);
    unlink(p.src);
    assert_int_equal(mkdir(p.src, 0700), 0); /* as --kcore makes it */
    snprintf(inner, sizeof inner, "%s/data", p.src);
    put_u64(&f, 48, 24);
    store(inner, &f, f.len);
    assert_int_equal(perf_data_check(p.src, &bytes, NULL), PERF_DATA_OK);
    assert_int_equal(bytes, HEADER + 24);
    unlink(inner);
    rmdir(p.src);
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_snapshots), cmocka_unit_test(half_written),
        cmocka_unit_test(unwritable),    cmocka_unit_test(damage),
        cmocka_unit_test(health),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Trace data as it stands in files: parts that go on, overlap, wrap, begin anew; what the kernel says about
 * them; clocks that are told in one place, in another, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/export/export.h"
#include "decode/open/open.h"
#include "decode/pt/pt_streams.h"
#include "lib_rewrite.h"
#include "lib_step.h"
#include "lib_step_programs.h"
#include "lib_statistics.h"

/* ---- parts put together ---- */

/* One AUXTRACE record of a queue: bytes [from, from + len) of what it wrote in all; its place is that modulo the
 * ring, if there is one. pad: zeros behind it that belong to no packet. */
struct part {
    pid_t tid;
    int cpu;
    uint64_t from, len, pad;
};

struct builder {
    uint8_t bytes[16384];
    size_t len;
};

static void put(struct builder *b, const void *bytes, size_t len)
{
    assert_true(b->len + len <= sizeof b->bytes);
    memcpy(b->bytes + b->len, bytes, len);
    b->len += len;
}

/* Each 64 bytes a PSB, a TSC that counts them, PSBEND, and outcomes. */
static uint8_t byte_at(uint64_t i)
{
    uint64_t n = i / 64, k = i % 64;
    if (k < 16)
        return k % 2 ? 0x82 : 0x02;
    if (k < 24)
        return (uint8_t)(k == 16 ? 0x19 : n >> 8 * (k - 17) & 0xff);
    if (k < 26)
        return k == 24 ? 0x02 : 0x23;
    return (uint8_t)(2 * k + 4);
}

static void put_info(struct builder *b)
{
    struct {
        struct perf_event_header h;
        uint32_t type, reserved;
        uint64_t priv[9];
    } r = {{70, 0, sizeof r}, 1, 0, {[8] = 1}}; /* snapshot mode */
    put(b, &r, sizeof r);
}

static struct builder pipe_of(const struct part *parts, size_t n, uint64_t ring)
{
    struct builder b = {.len = 0};
    uint64_t sixteen = 16;
    put(&b, "PERFILE2", 8);
    put(&b, &sixteen, 8);
    if (ring)
        put_info(&b);
    for (size_t i = 0; i < n; i++) {
        const struct part *p = &parts[i];
        struct {
            struct perf_event_header h;
            uint64_t size, offset, reference;
            uint32_t idx, tid, cpu, reserved;
        } r = {{71, 0, sizeof r}, p->len + p->pad, ring ? p->from % ring : p->from, 1, 0, (uint32_t)p->tid,
               (uint32_t)p->cpu, 0};
        put(&b, &r, sizeof r);
        for (uint64_t k = 0; k < p->len + p->pad; k++) {
            uint8_t byte = k < p->len ? byte_at(p->from + k) : 0;
            put(&b, &byte, 1);
        }
    }
    return b;
}

/* Where in the queue a stream's bytes are, from the TSC behind its first PSB. */
static uint64_t first_of(const struct pt_stream *st)
{
    uint64_t psb = 0, n = 0;
    while (psb + 24 <= st->len && (st->data[psb] != 2 || st->data[psb + 15] != 0x82 || st->data[psb + 16] != 0x19))
        psb++;
    if (psb + 24 > st->len)
        return 0;
    memcpy(&n, st->data + psb + 17, 7);
    return n * 64 - psb;
}

/* "tid/cpu:from+len" of each stream in order; and what was there twice, or was padding. */
static void expect(const struct part *parts, size_t n, uint64_t ring, const char *want, uint64_t want_twice)
{
    struct builder b = pipe_of(parts, n, ring);
    struct perf_file *f;
    struct perf_record rec;
    struct err err = {0};
    char got[400];
    size_t at = 0;
    uint64_t twice, all = 0, sum = 0;
    FILE *file = tmpfile();
    assert_int_equal(fwrite(b.bytes, 1, b.len, file), b.len);
    fflush(file);
    if (perf_file_open_fd(&f, fileno(file), "parts", &err) < 0)
        fail_msg("%s", err.text);
    struct pt_streams *s = pt_streams_new();
    while (perf_file_next(f, &rec, &err) > 0)
        assert_int_equal(pt_streams_add(s, f, &rec, &err), 0);
    assert_int_equal(pt_streams_finish(s, &err), 0);
    got[0] = '\0';
    for (size_t i = 0; i < pt_streams_count(s); i++) {
        const struct pt_stream *st = pt_streams_at(s, i);
        uint64_t from = first_of(st);
        for (size_t k = 0; k < st->len; k++) /* nothing is missing or doubled inside */
            if (st->data[k] != byte_at(from + k))
                fail_msg("%s: byte %zu of stream %zu", want, k, i);
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%d/%d:%u+%zu", i ? " " : "", (int)st->tid, st->cpu,
                               (unsigned)from, st->len);
        sum += st->len;
    }
    assert_string_equal(got, want);
    for (size_t i = 0; i < n; i++)
        all += parts[i].len + parts[i].pad;
    assert_int_equal(pt_streams_bytes(s, &twice), all);
    assert_int_equal(twice, want_twice);
    assert_int_equal(sum + twice, all);
    pt_streams_free(s);
    perf_file_close(f);
    fclose(file);
}

#define EXPECT(ring, want, twice, ...)                                                             \
    do {                                                                                           \
        static const struct part parts[] = {__VA_ARGS__};                                          \
        expect(parts, sizeof parts / sizeof *parts, ring, want, twice);                            \
    } while (0)

static void parts_of_queues(void **state)
{
    (void)state;
    EXPECT(0, "7/-1:0+96", 0, {7, -1, 0, 32, 0}, {7, -1, 32, 64, 0});
    /* queues do not mix, and stand in the order of the file */
    EXPECT(0, "9/-1:0+64 7/-1:0+96 -1/3:0+32", 0, {9, -1, 0, 32, 0}, {7, -1, 0, 64, 0}, {-1, 3, 0, 32, 0},
           {9, -1, 32, 32, 0}, {7, -1, 64, 32, 0});
    EXPECT(0, "7/-1:0+0", 0, {7, -1, 0, 0, 0});
    /* perf pads each, and the next goes on where the bytes end */
    EXPECT(0, "7/-1:0+133", 4, {7, -1, 0, 61, 3}, {7, -1, 61, 71, 1}, {7, -1, 132, 1, 0});
}

/* Snapshots of a ring: what the one before had is not told again; where the ring has gone round in between,
 * something is missing, and a stream of its own begins, whatever the places are. */
static void snapshots_of_a_ring(void **state)
{
    (void)state;
    EXPECT(256, "7/-1:0+484", 284, {7, -1, 0, 256, 0}, {7, -1, 60, 256, 0}, {7, -1, 228, 256, 0});
    EXPECT(256, "7/-1:0+256", 256, {7, -1, 0, 256, 0}, {7, -1, 0, 256, 0});                 /* nothing new */
    EXPECT(256, "7/-1:10+366", 186, {7, -1, 10, 256, 0}, {7, -1, 80, 256, 0}, {7, -1, 336, 40, 0}); /* went on */
    EXPECT(256, "7/-1:0+256 7/-1:300+256", 0, {7, -1, 0, 256, 0}, {7, -1, 300, 256, 0});    /* 44 in the ring */
    EXPECT(256, "7/-1:0+256 7/-1:513+256", 0, {7, -1, 0, 256, 0}, {7, -1, 513, 256, 0});
    EXPECT(256, "7/-1:0+256 7/-1:600+320", 192, {7, -1, 0, 256, 0}, {7, -1, 600, 256, 0}, {7, -1, 664, 256, 0});
    /* a ring not full yet is padded; its bytes come again once it is */
    EXPECT(256, "7/-1:0+300", 105, {7, -1, 0, 141, 3}, {7, -1, 141, 4, 4}, {7, -1, 47, 253, 0});
    /* the ring's last bytes are a PSB alone, which is like every other */
    EXPECT(256, "7/-1:80+256 7/-1:380+256", 0, {7, -1, 80, 256, 0}, {7, -1, 380, 256, 0});
}

/* Places that begin again (another session of perf), go back, or make no sense. */
static void offsets_of_all_kinds(void **state)
{
    (void)state;
    EXPECT(0, "7/-1:0+64 7/-1:0+64", 0, {7, -1, 0, 64, 0}, {7, -1, 0, 64, 0});
    EXPECT(0, "7/-1:128+64 7/-1:0+32", 0, {7, -1, 128, 64, 0}, {7, -1, 0, 32, 0});
    EXPECT(0, "7/-1:0+0 7/-1:0+32", 0, {7, -1, UINT64_MAX - 7, 0, 0}, {7, -1, 0, 32, 0});
}

/* ---- what the kernel says, and clocks ---- */

struct scene {
    struct step_rec rec;
    char data[300], out[300];
};

static int record(void **state)
{
    static struct scene s;
    step_rec_program(&s.rec, &step_programs[0], 1);
    snprintf(s.data, sizeof s.data, "%s/streams.data", s.rec.dir);
    snprintf(s.out, sizeof s.out, "%s/streams.out", s.rec.dir);
    step_rec_encode(&s.rec, &step_encodings[0], s.data);
    *state = &s;
    return 0;
}

static int forget(void **state)
{
    step_rec_free(&((struct scene *)*state)->rec);
    return 0;
}

static struct recording *open_it(const char *path)
{
    struct open_options o = {.threads = 1};
    struct recording *r;
    struct err err;
    if (open_recording(&r, path, &o, &err) < 0)
        fail_msg("%s", err.text);
    if (trace_check(r->trace, &err) < 0)
        fail_msg("%s", err.text);
    statistics_check(path, &o, r->trace);
    return r;
}

static char *spans(const struct recording *r)
{
    struct export_options e = {.format = EXPORT_SPANS, .workers = 1};
    char *out = NULL;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    assert_int_equal(export_write(f, r->trace, NULL, &e, NULL), 0);
    fclose(f);
    return out;
}

static bool has_note(const struct recording *r, const char *words)
{
    for (size_t i = 0; i < r->nnotes; i++)
        if (strstr(r->notes[i], words))
            return true;
    return false;
}

struct aux_record {
    struct perf_event_header h;
    uint64_t offset, size, flags;
    uint8_t id[32];
};

/* Behind ITRACE_START, whose sample id it takes: AUX records with each of the flags. */
static bool add_aux(struct rewrite *r, const uint8_t *rec, size_t len, const uint8_t *data, size_t data_len)
{
    struct perf_event_header h;
    (void)data, (void)data_len;
    memcpy(&h, rec, sizeof h);
    if (h.type != PERF_RECORD_ITRACE_START)
        return true;
    rewrite_put(r, rec, len);
    for (const uint64_t *flags = r->arg; *flags; flags++) {
        struct aux_record a = {.h = {PERF_RECORD_AUX, 0, sizeof a}, .size = 64, .flags = *flags};
        memcpy(a.id, rec + len - sizeof a.id, sizeof a.id);
        rewrite_put(r, &a, sizeof a);
    }
    return false;
}

/* Truncated, partial, collision are gaps of that thread; a ring being overwritten is what it is for. */
static void flags_of_the_kernel(void **state)
{
    struct scene *s = *state;
    uint64_t flags[] = {PERF_AUX_FLAG_TRUNCATED, PERF_AUX_FLAG_OVERWRITE, PERF_AUX_FLAG_PARTIAL,
                        PERF_AUX_FLAG_COLLISION, PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_TRUNCATED, 0};
    struct rewrite w = {.record = add_aux, .arg = flags};
    rewrite_pipe(&w, s->data, s->out);
    struct recording *plain = open_it(s->data), *r = open_it(s->out);
    size_t n, full = 0, holes = 0, collisions = 0;
    const struct gap *g = trace_gaps(r->trace, &n);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(g[i].cause, GAP_LOST);
        assert_int_equal(g[i].tid, s->rec.branches[0].tid);
        full += strstr(g[i].detail, "buffer was full") != NULL;
        holes += strstr(g[i].detail, "hypervisor") != NULL;
        collisions += strstr(g[i].detail, "snapshot fell into another") != NULL;
    }
    assert_int_equal(full, 2);
    assert_int_equal(holes, 1);
    assert_int_equal(collisions, 1);
    assert_true(has_note(r, "the kernel reports 4 times"));
    char *want = spans(plain), *got = spans(r);
    assert_string_equal(got, want);
    free(want);
    free(got);
    recording_free(plain);
    recording_free(r);
}

struct clocks {
    bool info, record; /* who tells */
};

/* AUXTRACE_INFO loses its numbers; a TIME_CONV record may follow. */
static bool tell_clock(struct rewrite *r, const uint8_t *rec, size_t len, const uint8_t *data, size_t data_len)
{
    const struct clocks *c = r->arg;
    struct perf_event_header h;
    (void)data, (void)data_len;
    memcpy(&h, rec, sizeof h);
    if (h.type != 70)
        return true;
    uint8_t info[512];
    uint64_t priv[5];
    assert_true(len <= sizeof info);
    memcpy(info, rec, len);
    memcpy(priv, info + 16, sizeof priv); /* PMU type, shift, mult, zero, cap */
    if (!c->info)
        priv[1] = priv[2] = priv[3] = priv[4] = 0;
    memcpy(info + 16, priv, sizeof priv);
    rewrite_put(r, info, len);
    if (c->record) {
        struct {
            struct perf_event_header h;
            uint64_t shift, mult, zero;
        } conv = {{79, 0, sizeof conv}, 1, 2, 0};
        rewrite_put(r, &conv, sizeof conv);
    }
    return false;
}

static void clocks(void **state)
{
    struct scene *s = *state;
    struct recording *plain = open_it(s->data), *r;
    char *want = spans(plain), *got;
    struct clocks c = {.info = false, .record = true};
    struct rewrite w = {.record = tell_clock, .arg = &c};
    rewrite_pipe(&w, s->data, s->out);
    r = open_it(s->out);
    got = spans(r); /* ticks × 2 >> 1: the same times, now from the record */
    assert_string_equal(got, want);
    assert_false(has_note(r, "count instructions"));
    recording_free(r);
    free(got);
    c.record = false;
    rewrite_pipe(&w, s->data, s->out);
    r = open_it(s->out);
    got = spans(r);
    assert_true(has_note(r, "how the timestamps of the trace relate to perf's clock"));
    assert_true(has_note(r, "times count instructions"));
    unsigned lines[2] = {0};
    for (const char *p = want; (p = strchr(p, '\n')); p++)
        lines[0]++;
    for (const char *p = got; (p = strchr(p, '\n')); p++)
        lines[1]++;
    assert_true(lines[1] > lines[0] / 2); /* spans all the same; those of the kernel have no length */
    recording_free(r);
    free(got);
    free(want);
    recording_free(plain);
}

/* Two threads on a CPU, and no time that is also theirs: nothing to tell them apart by. */
static void threads_without_a_clock(void **state)
{
    struct scene *s = *state;
    struct step_encoding e = step_encodings[0];
    struct clocks c = {false, false};
    struct rewrite w = {.record = tell_clock, .arg = &c};
    struct open_options o = {.threads = 1};
    struct recording *r;
    struct err err;
    char cpus[300];
    snprintf(cpus, sizeof cpus, "%s/cpus.data", s->rec.dir);
    e.per_cpu = true;
    step_rec_encode(&s->rec, &e, cpus);
    rewrite_pipe(&w, cpus, s->out);
    assert_true(open_recording(&r, s->out, &o, &err) < 0);
    assert_non_null(strstr(err.text, "several threads ran on CPU"));
}

int main(void)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(parts_of_queues),
        cmocka_unit_test(snapshots_of_a_ring),
        cmocka_unit_test(offsets_of_all_kinds),
    };
    const struct CMUnitTest recorded[] = {
        cmocka_unit_test(flags_of_the_kernel),
        cmocka_unit_test(clocks),
        cmocka_unit_test(threads_without_a_clock),
    };
    int bad = cmocka_run_group_tests(alone, NULL, NULL);
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_streams: recordings need root or CAP_PERFMON\n");
        return bad;
    }
    return bad + cmocka_run_group_tests(recorded, record, forget);
}

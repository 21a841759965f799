#include "lib_step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/step/perf_writer.h"
#include "core/step/step_insn.h"
#include "core/base/vec.h"
#include "decode/pt/pt_packet.h"

const struct step_encoding step_encodings[] = {
    {.name = "cyc", .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true, .ret_compression = true}},
    {.name = "mtc", .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .ret_compression = true}},
    {.name = "tsc", .packets = {.tsc = true, .ret_compression = true}},
    {.name = "no-retcomp", .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true}},
    {.name = "long-tnt", .packets = {.tsc = true, .cyc = true, .mtc = true, .mtc_period = 3,
                                     .ret_compression = true, .long_tnt = true}},
    {.name = "small-psb", .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true,
                                      .ret_compression = true, .psb_period = 256}},
    {.name = "per-cpu", .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true,
                                    .ret_compression = true}, .per_cpu = true},
    {.name = "chunked", .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true,
                                    .ret_compression = true}, .chunk = 1000},
    {.name = "snapshots", .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true,
                                      .ret_compression = true, .psb_period = 256}, .ring = 2048, .fill = 40},
    {.name = "late-snapshots", .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true,
                                           .ret_compression = true, .psb_period = 256}, .ring = 2048, .fill = 140},
    {.name = "cut-head", .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true,
                                     .ret_compression = true, .psb_period = 256}, .cut_head = 400},
    {.name = "overflow", .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true,
                                     .ret_compression = true}, .overflow_every = 13},
    {.name = NULL},
};

struct stream {
    pid_t tid;
    VEC(uint8_t) bytes;
    VEC(size_t) ends; /* of packets */
    uint64_t end;     /* on the clock */
};

static void append(void *arg, const uint8_t *bytes, size_t len, bool sync)
{
    struct stream *s = arg;
    (void)sync;
    for (size_t i = 0; i < len; i++)
        vec_push(&s->bytes, bytes[i]);
    vec_push(&s->ends, s->bytes.len);
}

static void free_stream(struct stream *s)
{
    vec_free(&s->bytes);
    vec_free(&s->ends);
}

/* Instructions that were decoded already: long recordings repeat few of them. */
struct insn_cache {
    struct {
        const struct step_code_map *map;
        uint64_t ip;
        struct step_insn insn;
    } slots[1 << 14];
};

static struct step_insn insn_at(struct insn_cache *c, const struct step_rec *r, uint64_t ip, uint64_t clock)
{
    const struct step_code_map *m = step_rec_map(r, ip, clock);
    size_t i = (size_t)(ip ^ ip >> 14) % (sizeof c->slots / sizeof *c->slots);
    if (!m)
        return (struct step_insn){.kind = STEP_BAD};
    if (c->slots[i].map != m || c->slots[i].ip != ip) {
        c->slots[i].map = m;
        c->slots[i].ip = ip;
        c->slots[i].insn = step_insn_decode(m->bytes + (ip - m->start), (size_t)(m->start + m->len - ip), ip);
    }
    return c->slots[i].insn;
}

/* Where the flow stands while it is told to an encoder. */
struct teller {
    const struct step_rec *rec;
    const struct step_encoding *how;
    struct insn_cache *cache;
    pt_encode *enc;
    uint64_t ip, clock, shift; /* shift: of the clock, for repetitions */
    unsigned conditionals;
};

static void conditional(struct teller *t, bool taken, uint64_t to)
{
    pt_encode_conditional(t->enc, taken, t->clock);
    if (t->how->overflow_every && ++t->conditionals % t->how->overflow_every == 0)
        pt_encode_overflow(t->enc, to, t->clock);
}

/* Along the code to the branch b; conditionals on the way were not taken. */
static void go_to(struct teller *t, const struct step_branch *b)
{
    uint64_t until = b->clock + t->shift;
    for (unsigned i = 0; t->ip != b->from; i++) {
        struct step_insn insn = insn_at(t->cache, t->rec, t->ip, b->clock);
        if (i > 100000 || (insn.kind != STEP_PLAIN && insn.kind != STEP_CONDITIONAL))
            fail_msg("the truth does not go from %" PRIx64 " to %" PRIx64, t->ip, b->from);
        pt_encode_tick(t->enc, t->ip, t->clock);
        if (t->clock + 1 < until)
            t->clock++;
        t->ip += insn.len;
        if (insn.kind == STEP_CONDITIONAL)
            conditional(t, false, t->ip);
    }
    pt_encode_tick(t->enc, t->ip, t->clock);
    t->clock = until;
}

static void tell(struct teller *t, const struct step_branch *b)
{
    if (strcmp(b->kind, "begin") == 0) {
        t->clock = b->clock + t->shift;
        pt_encode_begin(t->enc, b->to, t->clock);
        t->ip = b->to;
        return;
    }
    go_to(t, b);
    struct step_insn insn = insn_at(t->cache, t->rec, b->from, b->clock);
    if (strcmp(b->kind, "async") == 0)
        pt_encode_end_at(t->enc, b->from, t->clock);
    else if (step_branch_enters_kernel(b))
        pt_encode_end(t->enc, t->clock);
    else if (insn.kind == STEP_CONDITIONAL)
        conditional(t, true, b->to);
    else if (insn.kind == STEP_CALL)
        pt_encode_direct_call(t->enc, b->from + insn.len, b->to, t->clock);
    else if (insn.kind == STEP_CALL_INDIRECT)
        pt_encode_indirect_call(t->enc, b->from + insn.len, b->to, t->clock);
    else if (insn.kind == STEP_JUMP_INDIRECT)
        pt_encode_indirect_jump(t->enc, b->to, t->clock);
    else if (insn.kind == STEP_RETURN)
        pt_encode_return(t->enc, b->to, t->clock);
    t->ip = b->to;
}

/* Not where the first PSB that is left has 02 82 in front of it, the end of other packets. perf 6.1 takes it to
 * begin there, finds that what follows is no packet, goes on behind that error before it has had a first state
 * (intel_pt_setup_queue()), and looks at the state that is not there (intel_pt_walk_next_insn()): SIGSEGV. */
static void cut_head(struct stream *s, size_t bytes)
{
    if (!bytes)
        return;
    assert_true(s->bytes.len > bytes);
    const uint8_t *cut = s->bytes.data + bytes, *psb = pt_packet_find_psb(cut, s->bytes.data + s->bytes.len);
    if (psb && psb - cut >= 2 && psb[-2] == 0x02 && psb[-1] == 0x82)
        bytes = (size_t)(psb - s->bytes.data);
    s->bytes.len -= bytes;
    memmove(s->bytes.data, s->bytes.data + bytes, s->bytes.len);
    s->ends.len = 0; /* it begins in the middle of a packet */
}

static void keep(struct stream *s, size_t bytes)
{
    while (bytes && s->ends.len && s->ends.data[s->ends.len - 1] > bytes)
        s->ends.len--;
    if (bytes)
        s->bytes.len = s->ends.len ? s->ends.data[s->ends.len - 1] : 0;
}

static uint64_t length(const struct step_rec *r)
{
    return r->branches[r->n_branches - 1].clock - r->branches[0].clock + 100;
}

static void encode_thread(const struct step_rec *r, const struct step_encoding *how, struct stream *s)
{
    struct teller t = {.rec = r, .how = how, .cache = xcalloc(1, sizeof *t.cache)};
    t.enc = pt_encode_new(&how->packets, append, s);
    for (unsigned k = 0; k < (how->repeat ? how->repeat : 1); k++) {
        t.shift = k * length(r);
        for (size_t i = 0; i < r->n_branches; i++)
            if (r->branches[i].tid == s->tid)
                tell(&t, &r->branches[i]);
    }
    pt_encode_flush(t.enc, t.clock);
    assert_int_equal(pt_encode_status(t.enc, NULL), 0);
    pt_encode_free(t.enc);
    free(t.cache);
    s->end = t.clock;
    keep(s, how->keep);
    cut_head(s, how->cut_head);
}

static void write_sideband(const struct step_rec *r, struct perf_writer *w, struct perf_writer_id id)
{
    perf_writer_comm(w, id, "t", false);
    for (size_t i = 0; i < r->n_maps; i++) {
        const struct step_code_map *m = &r->maps[i];
        struct perf_writer_mapping map = {.start = m->start, .len = m->len, .pgoff = m->pgoff,
                                          .ino = m->ino, .major = m->major, .minor = m->minor,
                                          .prot = 5, .flags = 2, .path = m->path};
        if (m->clock > id.time_ns)
            id.time_ns = m->clock;
        perf_writer_mmap(w, id, &map);
    }
}

/* No packet lies in two records: perf writes none so, and cannot read one. */
static size_t chunk_end(const struct stream *s, size_t at, size_t chunk)
{
    size_t end = s->bytes.len;
    for (size_t i = s->ends.len; chunk && i-- > 0;)
        if (s->ends.data[i] > at && (end - at > chunk))
            end = s->ends.data[i];
    return end;
}

static void write_stream(struct perf_writer *w, struct perf_writer_id id, uint32_t idx,
                         const struct stream *s, size_t chunk)
{
    for (size_t at = 0, end; at < s->bytes.len; at = end) {
        end = chunk_end(s, at, chunk);
        perf_writer_auxtrace(w, id, idx, at, s->bytes.data + at, end - at);
    }
}

/* What perf writes when it is told to take snapshots of a ring (intel_pt_find_snapshot(), auxtrace_mmap__read()
 * of Linux): once the ring has wrapped, all of it from the oldest byte on, which may lie inside a packet; places
 * count from the ring's beginning. The first comes when the ring is half full (for what perf makes of a first buffer
 * that begins somewhere, see above), every third sooner than the others. */
static void write_snapshots(struct perf_writer *w, struct perf_writer_id id, uint32_t idx, const struct stream *s,
                            const struct step_encoding *e)
{
    size_t ring = e->ring, step = ring * e->fill / 100, last = 0;
    unsigned n = 0;
    for (size_t i = 0; i < s->ends.len; i++) {
        size_t head = s->ends.data[i], len = head < ring ? head : ring;
        size_t due = n == 0 ? ring / 2 : n % 3 == 2 ? step / 2 : step;
        if (i + 1 < s->ends.len && head - last < due)
            continue;
        perf_writer_auxtrace(w, id, idx, (head - len) % ring, s->bytes.data + head - len, len);
        id.time_ns++;
        last = head;
        n++;
    }
}

static void write_threads(const struct step_rec *r, const struct step_encoding *e, struct perf_writer *w,
                          struct perf_writer_id id)
{
    VEC(struct stream) streams = {0};
    for (size_t i = 0; i < r->n_branches; i++) {
        size_t k = 0;
        while (k < streams.len && streams.data[k].tid != r->branches[i].tid)
            k++;
        if (k == streams.len)
            vec_push(&streams, ((struct stream){.tid = r->branches[i].tid}));
    }
    for (size_t i = 0; i < streams.len; i++) {
        struct stream *s = &streams.data[i];
        encode_thread(r, e, s);
        id.tid = s->tid;
        id.cpu = -1;
        perf_writer_itrace_start(w, id);
        if (e->ring)
            write_snapshots(w, id, (uint32_t)i, s, e);
        else
            write_stream(w, id, (uint32_t)i, s, e->chunk);
        perf_writer_aux(w, (struct perf_writer_id){.pid = id.pid, .tid = id.tid, .cpu = -1, .time_ns = s->end}, 0,
                        s->bytes.len);
        free_stream(s);
    }
    vec_free(&streams);
}

/* Two threads on two CPUs: the recorded one, and later another with the same flow. Where tracing begins
 * anew the thread comes up on the other CPU. */
static void write_cpus(const struct step_rec *r, const struct step_encoding *e, struct perf_writer *w,
                       struct perf_writer_id id)
{
    struct stream streams[2] = {{0}};
    struct insn_cache *cache = xcalloc(1, sizeof *cache);
    struct teller tellers[2] = {{.rec = r, .how = e}, {.rec = r, .how = e}};
    pid_t tid = r->branches[0].tid;
    uint64_t moving = 0; /* time that the moves have taken */
    for (int k = 0; k < 2; k++) {
        tellers[k].cache = cache;
        tellers[k].enc = pt_encode_new(&e->packets, append, &streams[k]);
    }
    unsigned repeat = e->repeat ? e->repeat : 1;
    unsigned cpu = 0;
    for (unsigned round = 0; round < 2 * repeat; round++) {
        id.tid = tid + (round >= repeat);
        for (size_t i = 0; i < r->n_branches; i++) {
            const struct step_branch *b = &r->branches[i];
            if (b->tid != tid)
                continue;
            moving += strcmp(b->kind, "begin") == 0 ? 50 : 0;
            uint64_t shift = round * length(r) + moving;
            if (strcmp(b->kind, "begin") == 0) {
                cpu ^= i > 0;
                id.cpu = (int)cpu;
                id.time_ns = b->clock + shift;
                perf_writer_switch(w, id, false);
            }
            tellers[cpu].shift = shift;
            tell(&tellers[cpu], b);
            if (step_branch_ends(b)) {
                id.time_ns = b->clock + shift;
                perf_writer_switch(w, id, true);
            }
        }
    }
    for (int k = 0; k < 2; k++) {
        pt_encode_flush(tellers[k].enc, tellers[k].clock);
        assert_int_equal(pt_encode_status(tellers[k].enc, NULL), 0);
        pt_encode_free(tellers[k].enc);
        id.cpu = k;
        keep(&streams[k], e->keep);
        cut_head(&streams[k], e->cut_head);
        write_stream(w, id, (uint32_t)k, &streams[k], e->chunk);
        free_stream(&streams[k]);
    }
    free(cache);
}

void step_rec_encode(const struct step_rec *r, const struct step_encoding *e, const char *path)
{
    struct perf_writer *w;
    struct perf_writer_options o = {.encoding = e->packets, .per_cpu = e->per_cpu, .whole = e->chunk > 0};
    struct perf_writer_id id = {.pid = r->pid, .tid = r->pid, .cpu = 0, .time_ns = r->branches[0].clock - 10};
    unlink(path);
    assert_int_equal(perf_writer_open(&w, path, &o, NULL), 0);
    write_sideband(r, w, id);
    if (e->per_cpu) {
        struct perf_writer_id other = id;
        other.tid++;
        perf_writer_fork(w, other, r->pid, r->pid);
        write_cpus(r, e, w, id);
    } else {
        write_threads(r, e, w, id);
    }
    assert_int_equal(perf_writer_close(w, NULL), 0);
}

uint8_t *step_rec_packets(const struct step_rec *r, const struct step_encoding *e, size_t *len)
{
    struct stream s = {.tid = r->branches[0].tid};
    encode_thread(r, e, &s);
    *len = s.bytes.len;
    vec_free(&s.ends);
    return s.bytes.data;
}

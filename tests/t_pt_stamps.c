/* Damaged timestamps: those that cannot be right are found, wherever they stand; they cost no call its time but
 * for what lies between the timestamps around them; and they are said. What is right is known from the undamaged
 * recording, and where the timestamps are from libipt's packet decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/vec.h"
#include "decode/pt/pt_stamps.h"
#include "lib_open.h"
#include "lib_packets.h"
#include "lib_step.h"
#include "lib_step_programs.h"

/* ---- which ones are wrong ---- */

/* A digit for each TSC, told at a PSB, or behind the last PSB when it stands behind a '+'; want: x where it is wrong.
 * from, to: digits between which the recording was made. */
static void expect_within(const char *digits, unsigned from, unsigned to, const char *want)
{
    const struct pt_clock clock = {.tsc = true, .time_mult = 1, .time_shift = 20, .time_zero = UINT64_MAX - 1};
    const struct pt_stamp_limits limits = {&clock, from - 2, to - 2};
    struct packets p = {0};
    struct pt_stamps s = {0};
    char got[40] = "";
    size_t n = 0;
    bool tail = false;
    for (const char *d = digits; *d; d++) {
        if (*d == '+')
            tail = true;
        else if (tail)
            packets_tsc(&p, (uint64_t)(*d - '0') << 20);
        else
            packets_psb(&p, 0x1000, (uint64_t)(*d - '0') << 20);
    }
    assert_int_equal(pt_stamps_find(&s, p.bytes, p.len, to ? &limits : NULL), 0);
    for (size_t i = 0; i < s.len; i++, n++)
        got[n] = s.data[i].wrong ? 'x' : '.';
    got[n] = '\0';
    assert_string_equal(got, want);
    pt_stamps_free(&s);
}

static void expect(const char *digits, const char *want)
{
    expect_within(digits, 0, 0, want);
}

static void outliers(void **state)
{
    (void)state;
    expect("", "");
    expect("5", ".");
    expect("1234", "....");
    expect("1223", "....");
    expect("1294", "..x.");   /* ahead */
    expect("9123", "x...");
    expect("4506", "..x.");   /* back */
    expect("4560", "...x");
    expect("5167", ".x..");   /* rather than far ahead with the first */
    expect("192834", ".x.x.."); /* two alone */
    expect("1299456", "..xx..."); /* two side by side */
    expect("12+9345", "..x..."); /* behind the last PSB: all of them count */
    expect("19+2345", ".x....");
    expect("12+", "..");
}

/* In order, but of another time than the recording. */
static void outside(void **state)
{
    (void)state;
    expect_within("345", 3, 5, "...");
    expect_within("2345", 3, 5, "x...");
    expect_within("3459", 3, 5, "...x");
    expect_within("34+59", 3, 5, "...x");
    expect_within("234569", 3, 5, "x...xx");
    expect_within("9345636", 3, 6, "x....x."); /* another one leaps back */
    expect_within("59", 3, 5, ".x");
    expect_within("9", 3, 5, ".");           /* without another one to go by */
    expect_within("67898", 3, 6, "...x.");   /* limits that are those of something else */
}

/* ---- recordings ---- */

struct sample {
    struct step_rec rec;
};

static int record_calls(void **state)
{
    static struct sample s;
    step_rec_program(&s.rec, &step_programs[0], 1);
    *state = &s;
    return 0;
}

static int forget(void **state)
{
    step_rec_free(&((struct sample *)*state)->rec);
    return 0;
}

struct stamp {
    size_t at; /* in the stream; its payload is the seven bytes behind the next */
    uint64_t tsc;
};

struct stamps {
    struct stamp *data;
    size_t len, cap;
};

static struct stamps stamps_of(const uint8_t *data, size_t len)
{
    struct stamps s = {0};
    struct pt_config c;
    struct pt_packet p;
    uint64_t at;
    pt_config_init(&c);
    c.begin = (uint8_t *)(uintptr_t)data;
    c.end = c.begin + len;
    struct pt_packet_decoder *d = pt_pkt_alloc_decoder(&c);
    assert_true(d && pt_pkt_sync_forward(d) >= 0);
    while (pt_pkt_get_offset(d, &at) >= 0 && pt_pkt_next(d, &p, sizeof p) > 0)
        if (p.type == ppt_tsc)
            vec_push(&s, ((struct stamp){(size_t)at, p.payload.tsc.tsc}));
    pt_pkt_free_decoder(d);
    return s;
}

/* A perf.data in memory, and where in it the packets of the stream are. */
struct file {
    char path[300];
    uint8_t *bytes;
    size_t len, stream;
};

static struct file encode(const struct step_rec *r, const struct step_encoding *e, const uint8_t *packets, size_t n)
{
    struct file f;
    snprintf(f.path, sizeof f.path, "%s/stamps.data", r->dir);
    step_rec_encode(r, e, f.path);
    FILE *in = fopen(f.path, "re");
    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    f.len = (size_t)ftell(in);
    rewind(in);
    f.bytes = malloc(f.len);
    assert_int_equal(fread(f.bytes, 1, f.len, in), f.len);
    fclose(in);
    const uint8_t *found = memmem(f.bytes, f.len, packets, n);
    assert_non_null(found);
    f.stream = (size_t)(found - f.bytes);
    return f;
}

static struct recording *open_damaged(struct file *f, size_t at, unsigned bit, const struct open_options *o)
{
    uint8_t *byte = &f->bytes[f->stream + at + 1 + bit / 8];
    *byte ^= (uint8_t)(1u << bit % 8);
    FILE *out = fopen(f->path, "we");
    assert_true(out && fwrite(f->bytes, 1, f->len, out) == f->len && fclose(out) == 0);
    *byte ^= (uint8_t)(1u << bit % 8);
    return open_or_fail(f->path, o);
}

struct calls {
    struct span *data;
    size_t len, cap;
};

/* Of a row, the calls alone: a pause that takes no time is not there. */
static struct calls calls_of(const struct trace *t, size_t depth)
{
    struct calls c = {0};
    size_t n;
    const struct span *row = trace_row(t, 0, depth, &n);
    for (size_t i = 0; i < n; i++)
        if (*functions_get(trace_functions(t), row[i].fn)->name != '[')
            vec_push(&c, row[i]);
    return c;
}

/* The same calls; at the same times, but between from and to, where they are within these. */
static void compare(const struct trace *got, const struct trace *want, uint64_t from_ns, uint64_t to_ns,
                    const char *what)
{
    size_t depths = trace_thread(want, 0)->depths, n = 0;
    assert_int_equal(trace_thread_count(got), trace_thread_count(want));
    for (size_t depth = 0; depth < depths; depth++) {
        struct calls x = calls_of(got, depth), y = calls_of(want, depth);
        if (x.len != y.len)
            fail_msg("%s: %zu calls at depth %zu, not %zu", what, x.len, depth, y.len);
        for (size_t i = 0; i < x.len; i++) {
            const struct span *g = &x.data[i], *w = &y.data[i];
            if (strcmp(functions_get(trace_functions(got), g->fn)->name,
                       functions_get(trace_functions(want), w->fn)->name) != 0)
                fail_msg("%s: another function at depth %zu, call %zu", what, depth, i);
            const uint64_t gs[] = {g->start_ns, g->end_ns}, ws[] = {w->start_ns, w->end_ns};
            for (size_t k = 0; k < 2; k++)
                if (gs[k] != ws[k] && (ws[k] < from_ns || ws[k] > to_ns || gs[k] < from_ns || gs[k] > to_ns))
                    fail_msg("%s: depth %zu, call %zu is at %" PRIu64 ", not %" PRIu64 " (doubtful: %" PRIu64
                             "–%" PRIu64 ")", what, depth, i, gs[k], ws[k], from_ns, to_ns);
        }
        n += x.len;
        vec_free(&x);
        vec_free(&y);
    }
    assert_true(n > 1000);
}

static void check_gap(const struct trace *t, const struct stamp *s, uint64_t from_ns, uint64_t to_ns, const char *what)
{
    size_t n, told = 0;
    const struct gap *g = trace_gaps(t, &n);
    for (size_t i = 0; i < n; i++)
        if (strstr(g[i].detail, "timestamp")) {
            told++;
            assert_int_equal(g[i].cause, GAP_ERROR);
            if (g[i].end_byte != s->at + 8 || g[i].bytes != 8 || g[i].start_ns < from_ns || g[i].end_ns > to_ns)
                fail_msg("%s: a gap up to byte %" PRIu64 " (%" PRIu64 " bytes), %" PRIu64 "–%" PRIu64, what,
                         g[i].end_byte, g[i].bytes, g[i].start_ns, g[i].end_ns);
        }
    if (told != 1)
        fail_msg("%s: %zu gaps", what, told);
    const struct trace_info *info = trace_info(t);
    uint64_t lost = 0;
    for (size_t i = 0; i < n; i++)
        lost += g[i].bytes;
    assert_int_equal(info->decoded_bytes + lost, info->trace_bytes);
}

/* One bit of one timestamp. exact: counts of cycles tell the times as well. */
static void damage_one(struct file *f, const struct trace *want, const struct stamps *s, size_t i, unsigned bit,
                       bool exact, const char *encoding)
{
    const struct trace_info *all = trace_info(want);
    uint64_t from_ns = i ? s->data[i - 1].tsc : all->first_ns;
    uint64_t to_ns = i + 1 < s->len ? s->data[i + 1].tsc : all->last_ns;
    char what[100];
    static const unsigned threads[] = {1, 2, 7};
    for (size_t k = 0; k < 3; k++) {
        struct open_options o = {.threads = threads[k]};
        snprintf(what, sizeof what, "%s, timestamp %zu of %zu, bit %u, %u threads", encoding, i, s->len, bit, o.threads);
        struct recording *r = open_damaged(f, s->data[i].at, bit, &o);
        if (exact && i)
            compare(r->trace, want, UINT64_MAX, 0, what);
        else
            compare(r->trace, want, from_ns, to_ns, what);
        check_gap(r->trace, &s->data[i], from_ns, to_ns, what);
        recording_free(r);
    }
    struct open_options libipt = {.threads = 1, .libipt = true};
    struct recording *r = open_damaged(f, s->data[i].at, bit, &libipt);
    const struct trace_info *info = trace_info(r->trace);
    if (info->last_ns > all->last_ns + 1000)
        fail_msg("%s: libipt's decoder ends at %" PRIu64 ", not %" PRIu64, what, info->last_ns, all->last_ns);
    recording_free(r);
}

/* The highest bit that is set: without it, time leaps back by more than a half. */
static unsigned top_bit(uint64_t tsc)
{
    return 63u - (unsigned)__builtin_clzll(tsc);
}

/* The first timestamp at which a stream of so many bytes is cut for decoding in pieces. */
static size_t at_cut(const struct stamps *s)
{
    size_t i = 1;
    while (i + 2 < s->len && s->data[i].at < 32u << 10)
        i++;
    return i;
}

static void damage_some(const struct step_rec *r, const struct step_encoding *e)
{
    size_t len;
    uint8_t *packets = step_rec_packets(r, e, &len);
    struct stamps s = stamps_of(packets, len);
    struct file f = encode(r, e, packets, len);
    struct recording *want = open_or_fail(f.path, &(struct open_options){.threads = 1});
    size_t gaps, last = s.len - 1;
    trace_gaps(want->trace, &gaps);
    assert_int_equal(gaps, 0);
    if (len < 100u << 10 || s.len < 8) /* more than two pieces */
        fail_msg("%s: %zu bytes, %zu timestamps", e->name, len, s.len);
    const size_t places[] = {1, s.len / 2, at_cut(&s), last - 1};
    damage_one(&f, want->trace, &s, 0, 50, e->packets.cyc, e->name);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        damage_one(&f, want->trace, &s, places[i], 50, e->packets.cyc, e->name);
        damage_one(&f, want->trace, &s, places[i], top_bit(s.data[places[i]].tsc), e->packets.cyc, e->name);
    }
    damage_one(&f, want->trace, &s, last, top_bit(s.data[last].tsc), e->packets.cyc, e->name);
    damage_one(&f, want->trace, &s, last, 50, e->packets.cyc, e->name);
    damage_one(&f, want->trace, &s, 0, top_bit(s.data[0].tsc), e->packets.cyc, e->name);
    recording_free(want);
    vec_free(&s);
    free(f.bytes);
    free(packets);
    unlink(f.path);
}

static void one_bit_costs_its_neighbourhood(void **state)
{
    const struct sample *s = *state;
    static const struct step_encoding encodings[] = {
        {.name = "tsc", .packets = {.tsc = true, .ret_compression = true, .psb_period = 2048}, .repeat = 160},
        {.name = "mtc",
         .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .ret_compression = true, .psb_period = 2048},
         .repeat = 160},
        {.name = "cyc",
         .packets = {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true, .ret_compression = true, .psb_period = 2048},
         .repeat = 160},
    };
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++)
        damage_some(&s->rec, &encodings[i]);
}

int main(void)
{
    const struct CMUnitTest stamps[] = {
        cmocka_unit_test(outliers),
        cmocka_unit_test(outside),
    };
    const struct CMUnitTest recordings[] = {
        cmocka_unit_test(one_bit_costs_its_neighbourhood),
    };
    int failed = cmocka_run_group_tests(stamps, NULL, NULL);
    if (getuid() != 0) {
        print_message("[  SKIPPED ] recordings of t_pt_stamps: uprobes need root or CAP_PERFMON\n");
        return failed;
    }
    return failed + cmocka_run_group_tests(recordings, record_calls, forget);
}

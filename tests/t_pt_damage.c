/* Damaged packets: cut at every byte, bits flipped, bytes lost, doubled and exchanged. Something may be lost,
 * but every byte is either decoded or part of a gap, traces are sound, and decoding ends. And pieces: where a
 * stream is cut at its PSBs, its pieces give what the whole gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/vec.h"
#include "decode/pt/pt_packet.h"
#include "decode/pt/pt_stack.h"
#include "decode/pt/pt_walk.h"
#include "lib_packets.h"
#include "lib_step.h"
#include "lib_step_programs.h"

static const struct pt_clock ns_clock = {
    .time_mult = 1, .tsc = true, .mtc_period = 3, .tsc_ctc_n = 32, .tsc_ctc_d = 1, .max_nonturbo_ratio = 10};

struct bench {
    const struct step_rec *rec;
    struct functions *functions;
    struct trace_builder *b;
    struct pt_stack *stack;
    uint64_t lost, events;
    uint64_t sum; /* of all events, in order */
    uint64_t len, lost_to; /* bytes of the stream; where the last loss ended */
    const char *why;       /* of the last loss */
};

static size_t read_code(void *arg, uint64_t ip, uint8_t *out, size_t n)
{
    return step_rec_code(((struct bench *)arg)->rec, ip, out, n);
}

/* Functions are 64 bytes long here. */
static fn_id function_at(void *arg, uint64_t ip, uint64_t *offset)
{
    struct bench *x = arg;
    char name[32];
    snprintf(name, sizeof name, "f%llx", (unsigned long long)(ip >> 6));
    *offset = ip & 63;
    return functions_intern(x->functions, "m", name, name, ip >> 6 << 6, FN_USER);
}

static void on_events(void *arg, const struct flow_event *e, size_t n)
{
    struct bench *x = arg;
    x->events += n;
    for (size_t i = 0; i < n; i++) {
        x->sum = x->sum * 1099511628211u + (e[i].time ^ e[i].addr << 3 ^ e[i].fn ^ (uint64_t)e[i].kind << 60);
        x->sum += e[i].at_start;
    }
    assert_int_equal(pt_stack_events(x->stack, e, n), 0);
}

static void on_loss(void *arg, const struct pt_loss *loss)
{
    struct bench *x = arg;
    x->lost += loss->bytes;
    x->why = loss->why;
    /* Each stands behind the one before, and in the stream. */
    assert_true(loss->first_byte >= x->lost_to);
    x->lost_to = loss->first_byte + loss->bytes;
    assert_true(x->lost_to <= x->len);
}

/* Decodes it in pieces of about so many bytes; fails when something does not add up. */
static struct bench decode(const struct step_rec *r, const uint8_t *data, size_t len, size_t piece)
{
    struct bench x = {.rec = r, .functions = functions_new(), .len = len};
    struct pt_code code = {read_code, function_at, &x};
    struct pt_walk_sinks sinks = {.events = on_events, .loss = on_loss, .arg = &x};
    struct pt_nodes *nodes = pt_nodes_new(&code);
    struct pt_walk *w = pt_walk_new(nodes, &ns_clock, &sinks);
    struct trace *t;
    struct err err;
    uint64_t decoded = 0;
    struct pt_stamps stamps = {0};
    assert_int_equal(pt_stamps_find(&stamps, data, len, NULL), 0);
    pt_walk_stamps(w, &stamps);
    x.b = trace_builder_new(x.functions);
    x.stack = pt_stack_new(x.b, trace_builder_thread(x.b, 1, 1), x.functions);
    for (size_t from = 0; from < len;) {
        const uint8_t *psb = len - from > piece ? pt_packet_find_psb(data + from + piece, data + len) : NULL;
        size_t stop = psb ? (size_t)(psb - data) : len;
        pt_walk_run(w, data, from, stop, len, from > 0);
        decoded += pt_walk_bytes(w);
        from = stop;
    }
    assert_int_equal(decoded + x.lost, len);
    pt_stack_free(x.stack);
    if (trace_builder_finish(x.b, &t, &err) < 0 || trace_check(t, &err) < 0)
        fail_msg("%s", err.text);
    trace_free(t);
    trace_builder_free(x.b);
    pt_walk_free(w);
    pt_nodes_free(nodes);
    pt_stamps_free(&stamps);
    return x;
}

struct sample {
    struct step_rec rec;
    uint8_t *data;
    size_t len;
};

static int record_calls(void **state)
{
    static struct sample s;
    struct step_encoding e = step_encodings[0];
    e.packets.psb_period = 512;
    step_rec_program(&s.rec, &step_programs[0], 1);
    s.data = step_rec_packets(&s.rec, &e, &s.len);
    *state = &s;
    return 0;
}

static int forget(void **state)
{
    struct sample *s = *state;
    free(s->data);
    step_rec_free(&s->rec);
    return 0;
}

static void pieces_are_the_whole(void **state)
{
    struct sample *s = *state;
    struct bench whole = decode(&s->rec, s->data, s->len, SIZE_MAX);
    assert_true(whole.events > 1000);
    assert_int_equal(whole.lost, 0);
    for (size_t piece = 1; piece < s->len; piece = piece * 2 + 100) {
        struct bench cut = decode(&s->rec, s->data, s->len, piece);
        assert_int_equal(cut.lost, 0);
        assert_int_equal(cut.events, whole.events);
        assert_int_equal(cut.sum, whole.sum);
    }
}

/* Without a synchronisation point there is nothing to decode, and that is said. */
static void field_C3_too_short_is_said(void **state)
{
    struct sample *s = *state;
    struct bench x = decode(&s->rec, s->data + 16, 100, 600); /* behind the PSB that it begins with */
    assert_int_equal(x.lost, 100);
    assert_int_equal(x.events, 0);
    assert_non_null(strstr(x.why, "too short: no synchronisation point"));
}

static void field_C4_a_stream_may_end_anywhere(void **state)
{
    struct sample *s = *state;
    for (size_t n = 0; n < s->len; n++) {
        uint8_t *copy = malloc(n ? n : 1); /* of its own size, so that a read behind it shows */
        memcpy(copy, s->data, n);
        decode(&s->rec, copy, n, 600);
        memcpy(copy, s->data + (s->len - n), n);
        decode(&s->rec, copy, n, 600);
        free(copy);
        n += n > 1200 ? 16 : 0;
    }
}

static uint32_t seed = 4711;

static uint32_t dice(size_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((seed >> 8) % n);
}

static size_t damage(uint8_t *d, size_t len)
{
    size_t a = dice(len), b = dice(len), n = 1 + dice(40);
    switch (dice(6)) {
    case 0:
        d[a] ^= (uint8_t)(1u << dice(8));
        return len;
    case 1:
        d[a] = (uint8_t)dice(256);
        return len;
    case 2: /* bytes are lost */
        n = n < len - a ? n : len - a;
        memmove(d + a, d + a + n, len - a - n);
        return len - n;
    case 3: /* exchanged, doubled */
        n = n < len - (a > b ? a : b) ? n : len - (a > b ? a : b);
        memmove(d + a, d + b, n);
        return len;
    case 4:
        for (size_t i = a; i < len && i < a + n; i++)
            d[i] = (uint8_t)dice(256);
        return len;
    default: /* an overflow packet in the middle of things */
        if (a + 1 < len) {
            d[a] = 0x02;
            d[a + 1] = 0xf3;
        }
        return len;
    }
}

static void field_C2_thousands_of_corruptions(void **state)
{
    struct sample *s = *state;
    uint64_t lost = 0;
    for (unsigned i = 0; i < 3000; i++) {
        uint8_t *copy = malloc(s->len);
        size_t len = s->len;
        memcpy(copy, s->data, len);
        for (unsigned k = 0; k <= i % 8; k++)
            len = damage(copy, len);
        lost += decode(&s->rec, copy, len, 600).lost;
        free(copy);
    }
    assert_true(lost > 0);
}

/* Code that calls itself for ever, and one that jumps in a circle: nothing of it is invented. */
static size_t read_circle(void *arg, uint64_t ip, uint8_t *out, size_t n)
{
    static const uint8_t circle[] = {0xe8, 0xfb, 0xff, 0xff, 0xff, 0xeb, 0xfe}; /* call 1000; jmp 1005 */
    (void)arg;
    if (ip < 0x1000 || ip - 0x1000 >= sizeof circle)
        return 0;
    n = n < sizeof circle - (ip - 0x1000) ? n : (size_t)(sizeof circle - (ip - 0x1000));
    memcpy(out, circle + (ip - 0x1000), n);
    return n;
}

static void circles_of_direct_branches(void **state)
{
    struct packets p = {0};
    (void)state;
    packets_psb(&p, 0x1000, 1000);
    for (unsigned i = 0; i < 100; i++) {
        packets_tnt(&p, "T");
        packets_ip(&p, PACKET_TIP, 0x1000 + 5 * (i & 1));
        packets_ip(&p, PACKET_FUP, 0x2000);
        packets_ip(&p, PACKET_TIP, 0x1005);
    }
    struct bench x = {.functions = functions_new(), .len = p.len};
    struct pt_code code = {read_circle, function_at, &x};
    struct pt_walk_sinks sinks = {.events = on_events, .loss = on_loss, .arg = &x};
    struct pt_nodes *nodes = pt_nodes_new(&code);
    struct pt_walk *w = pt_walk_new(nodes, &ns_clock, &sinks);
    x.b = trace_builder_new(x.functions);
    x.stack = pt_stack_new(x.b, trace_builder_thread(x.b, 1, 1), x.functions);
    pt_walk_run(w, p.bytes, 0, p.len, p.len, false);
    assert_int_equal(pt_walk_bytes(w) + x.lost, p.len);
    assert_true(x.events < 5000); /* a call or two a packet, not thousands */
    pt_stack_free(x.stack);
    trace_builder_free(x.b);
    pt_walk_free(w);
    pt_nodes_free(nodes);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_damage: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_the_whole),
        cmocka_unit_test(field_C3_too_short_is_said),
        cmocka_unit_test(field_C4_a_stream_may_end_anywhere),
        cmocka_unit_test(field_C2_thousands_of_corruptions),
        cmocka_unit_test(circles_of_direct_branches),
    };
    return cmocka_run_group_tests(tests, record_calls, forget);
}

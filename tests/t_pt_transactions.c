/* Transactions (TSX): what is aborted leaves no spans, what is committed stays; on code that the assembler
 * made and packets written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"
#include "decode/pt/pt_stack.h"
#include "decode/pt/pt_walk.h"
#include "lib_packets.h"

/* elide() begins the transaction for its caller, as lock elision does; commit() ends it. */
__asm__(".pushsection .text\n"
        "tx_main: call tx_before\n"
        "tx_m1: call tx_elide\n"
        "tx_m2: call tx_inside\n"
        "tx_m3: call tx_commit\n"
        "tx_m4: call tx_after\n"
        "tx_m5: hlt\n"
        "tx_before: ret\n"
        "tx_elide: xbegin tx_fallback\n"
        "tx_started: test %eax, %eax\n"
        "  ret\n"
        "tx_fallback: call tx_lock\n"
        "tx_f1: ret\n"
        "tx_lock: ret\n"
        "tx_inside: call tx_leaf\n"
        "  call tx_leaf\n"
        "tx_i3: ret\n"
        "tx_leaf: ret\n"
        "tx_commit: nop\n"
        "tx_xend: xend\n"
        "  ret\n"
        "tx_after: ret\n"
        "tx_end: nop\n"
        ".popsection");
#define LABEL(name) extern const uint8_t name[]
LABEL(tx_main); LABEL(tx_m1); LABEL(tx_m2); LABEL(tx_m3); LABEL(tx_m4); LABEL(tx_m5); LABEL(tx_before);
LABEL(tx_elide); LABEL(tx_started); LABEL(tx_fallback); LABEL(tx_f1); LABEL(tx_lock); LABEL(tx_inside);
LABEL(tx_i3); LABEL(tx_leaf); LABEL(tx_commit); LABEL(tx_xend); LABEL(tx_after);
LABEL(tx_end);

static const struct {
    const uint8_t *at;
    const char *name;
} functions[] = {{tx_main, "main"},     {tx_before, "before"}, {tx_elide, "elide"},   {tx_lock, "lock"},
                 {tx_inside, "inside"}, {tx_leaf, "leaf"},     {tx_commit, "commit"}, {tx_after, "after"},
                 {tx_end, NULL}};

static uint64_t ip(const uint8_t *label)
{
    return (uint64_t)(uintptr_t)label;
}

static size_t read_code(void *arg, uint64_t at, uint8_t *out, size_t n)
{
    (void)arg;
    if (at < ip(tx_main) || at >= ip(tx_end))
        return 0;
    n = n < ip(tx_end) - at ? n : (size_t)(ip(tx_end) - at);
    memcpy(out, (const void *)(uintptr_t)at, n);
    return n;
}

static fn_id function_at(void *arg, uint64_t at, uint64_t *offset)
{
    for (size_t i = 0; functions[i].name; i++)
        if (at >= ip(functions[i].at) && at < ip(functions[i + 1].at)) {
            *offset = at - ip(functions[i].at);
            return functions_intern(arg, "m", functions[i].name, functions[i].name, 0, FN_USER);
        }
    *offset = UINT64_MAX;
    return functions_intern(arg, "m", "?", "?", 0, FN_UNKNOWN);
}

struct walked {
    struct pt_stack *stack;
    uint64_t lost;
    unsigned aborts;
};

static void on_events(void *arg, const struct flow_event *e, size_t n)
{
    assert_int_equal(pt_stack_events(((struct walked *)arg)->stack, e, n), 0);
}

static void on_branch(void *arg, const struct pt_branch *b)
{
    ((struct walked *)arg)->aborts += b->kind == PT_BRANCH_ABORT;
}

static void on_loss(void *arg, const struct pt_loss *loss)
{
    ((struct walked *)arg)->lost += loss->bytes;
}

/* "main(before elide(lock))": the spans of all depths, nested, in order. */
static void print_nested(FILE *f, const struct trace *t, size_t depth, uint64_t from, uint64_t to)
{
    size_t n;
    if (depth == trace_thread(t, 0)->depths)
        return;
    const struct span *s = trace_row(t, 0, depth, &n);
    const char *before = "";
    for (size_t i = 0; i < n; i++) {
        if (s[i].start_ns < from || s[i].end_ns > to)
            continue;
        fprintf(f, "%s%s(", before, functions_get(trace_functions(t), s[i].fn)->raw);
        print_nested(f, t, depth + 1, s[i].start_ns, s[i].end_ns);
        fprintf(f, ")");
        before = " ";
    }
}

static void expect(const struct packets *p, bool branches, uint64_t lost, unsigned aborts, const char *want)
{
    static const struct pt_clock clock = {.time_mult = 1, .tsc = true};
    struct walked x = {0};
    struct functions *names = functions_new();
    struct trace_builder *b = trace_builder_new(names);
    struct pt_code code = {read_code, function_at, names};
    struct pt_walk_sinks sinks = {
        .events = on_events, .branch = branches ? on_branch : NULL, .loss = on_loss, .arg = &x};
    struct pt_nodes *nodes = pt_nodes_new(&code);
    struct pt_walk *w = pt_walk_new(nodes, &clock, &sinks);
    struct trace *t;
    struct err err;
    char *got = NULL;
    size_t len;
    x.stack = pt_stack_new(b, trace_builder_thread(b, 1, 1), names);
    pt_walk_run(w, p->bytes, 0, p->len, p->len, false);
    assert_int_equal(pt_walk_bytes(w) + x.lost, p->len);
    assert_int_equal(x.lost, lost);
    pt_stack_free(x.stack);
    assert_int_equal(trace_builder_clamped(b), 0);
    if (trace_builder_finish(b, &t, &err) < 0 || trace_check(t, &err) < 0)
        fail_msg("%s", err.text);
    FILE *f = open_memstream(&got, &len);
    print_nested(f, t, 0, 0, UINT64_MAX);
    fclose(f);
    assert_string_equal(got, want);
    if (branches)
        assert_int_equal(x.aborts, aborts);
    free(got);
    trace_free(t);
    trace_builder_free(b);
    pt_walk_free(w);
    pt_nodes_free(nodes);
}

static void check(const struct packets *p, uint64_t lost, unsigned aborts, const char *want)
{
    expect(p, false, lost, aborts, want);
    expect(p, true, lost, aborts, want);
}

static uint64_t clock_ns;

static void tick(struct packets *p)
{
    packets_tsc(p, clock_ns += 1000);
}

/* main, before(), and into elide() up to xbegin. */
static void up_to_xbegin(struct packets *p)
{
    clock_ns = 1000;
    packets_psb(p, 0, clock_ns);
    packets_ip(p, PACKET_PGE, ip(tx_main));
    tick(p);
    packets_tnt(p, "T"); /* before() returns */
    tick(p);
    packets_tsx(p, PACKET_TX_IN);
    packets_ip(p, PACKET_FUP, ip(tx_started));
    tick(p);
}

/* elide() returns in the transaction, inside() calls leaf() twice. */
static void inside(struct packets *p)
{
    packets_tnt(p, "TTT");
    tick(p);
}

static void abort_at(struct packets *p, const uint8_t *at)
{
    packets_tsx(p, PACKET_TX_ABORT);
    packets_ip(p, PACKET_FUP, ip(at));
    packets_ip(p, PACKET_TIP, ip(tx_fallback));
    tick(p);
}

static void commit(struct packets *p)
{
    packets_tsx(p, 0);
    packets_ip(p, PACKET_FUP, ip(tx_xend));
    tick(p);
    packets_tnt(p, "TT"); /* commit(), after() */
    tick(p);
    packets_ip(p, PACKET_FUP, ip(tx_m5));
    packets_ip(p, PACKET_PGD, 0);
}

static void committed(void **state)
{
    struct packets p = {0};
    (void)state;
    up_to_xbegin(&p);
    inside(&p);
    packets_tnt(&p, "T"); /* inside() */
    commit(&p);
    check(&p, 0, 0, "main(before() elide() inside(leaf() leaf()) commit() after())");
}

static void aborted(void **state)
{
    struct packets p = {0};
    (void)state;
    up_to_xbegin(&p);
    inside(&p);
    abort_at(&p, tx_i3);
    packets_tnt(&p, "T"); /* lock() */
    tick(&p);
    packets_ip(&p, PACKET_TIP, ip(tx_m2)); /* elide() */
    tick(&p);
    packets_tnt(&p, "TTTTT"); /* leaf, leaf, inside, commit, after */
    tick(&p);
    packets_ip(&p, PACKET_FUP, ip(tx_m5));
    packets_ip(&p, PACKET_PGD, 0);
    check(&p, 0, 1, "main(before() elide(lock()) inside(leaf() leaf()) commit() after())");
}

/* Aborted twice, committed at the third attempt. */
static void attempts(void **state)
{
    struct packets p = {0};
    (void)state;
    up_to_xbegin(&p);
    for (int i = 0; i < 2; i++) {
        inside(&p);
        abort_at(&p, tx_i3);
        packets_tnt(&p, "T");
        tick(&p);
        packets_ip(&p, PACKET_TIP, ip(tx_m1)); /* not what it would do, but what a retry looks like */
        tick(&p);
        packets_tsx(&p, PACKET_TX_IN);
        packets_ip(&p, PACKET_FUP, ip(tx_started));
        tick(&p);
    }
    packets_ip(&p, PACKET_TIP, ip(tx_m2));
    tick(&p);
    packets_tnt(&p, "TTT");
    commit(&p);
    check(&p, 0, 2, "main(before() elide(lock()) elide(lock()) elide() inside(leaf() leaf()) commit() after())");
}

/* An interrupt aborts the transaction, and then tracing is off for the kernel's time. */
static void aborted_by_an_interrupt(void **state)
{
    struct packets p = {0};
    (void)state;
    up_to_xbegin(&p);
    inside(&p);
    abort_at(&p, tx_i3);
    packets_ip(&p, PACKET_FUP, ip(tx_fallback));
    packets_ip(&p, PACKET_PGD, 0);
    tick(&p);
    packets_ip(&p, PACKET_PGE, ip(tx_fallback));
    tick(&p);
    packets_tnt(&p, "T");
    tick(&p);
    packets_ip(&p, PACKET_FUP, ip(tx_f1));
    packets_ip(&p, PACKET_PGD, 0);
    check(&p, 0, 1, "main(before() elide([untraced]() lock()))");
}

/* The outcome is lost: what was seen is kept, and nothing waits behind the loss. */
static void lost_inside(void **state)
{
    struct packets p = {0};
    (void)state;
    up_to_xbegin(&p);
    inside(&p);
    size_t before = p.len;
    packets_raw(&p, "\x02\xf3", 2); /* overflow */
    tick(&p);
    uint64_t lost = p.len - before;
    packets_ip(&p, PACKET_FUP, ip(tx_m4));
    tick(&p);
    packets_tnt(&p, "T");
    tick(&p);
    packets_ip(&p, PACKET_FUP, ip(tx_m5));
    packets_ip(&p, PACKET_PGD, 0);
    check(&p, lost, 0, "main(before() elide() inside(leaf() leaf())) main(after())");
}

/* The recording ends in the middle of it. */
static void open_at_the_end(void **state)
{
    struct packets p = {0};
    (void)state;
    up_to_xbegin(&p);
    inside(&p);
    check(&p, 0, 0, "main(before() elide() inside(leaf() leaf()))");
}

/* A PSB+ tells whether a transaction is open, on every processor that knows them; a FUP behind it is none of
 * that packet's, and what was held stays held. */
static void told_by_psb(void **state)
{
    struct packets p = {0};
    (void)state;
    up_to_xbegin(&p);
    packets_tnt(&p, "T"); /* elide() */
    tick(&p);
    for (int i = 0; i < 8; i++)
        packets_raw(&p, "\x02\x82", 2);
    packets_tsc(&p, clock_ns);
    packets_raw(&p, "\x99\x01", 2);
    packets_tsx(&p, PACKET_TX_IN);
    packets_ip(&p, PACKET_FUP, ip(tx_m2));
    packets_raw(&p, "\x02\x23", 2);
    tick(&p);
    packets_ip(&p, PACKET_FUP, ip(tx_leaf)); /* in leaf(): an interrupt */
    packets_ip(&p, PACKET_PGD, 0);
    tick(&p);
    packets_ip(&p, PACKET_PGE, ip(tx_leaf));
    tick(&p);
    packets_tnt(&p, "TTT"); /* leaf, leaf, inside */
    commit(&p);
    check(&p, 0, 0, "main(before() elide() inside(leaf([untraced]()) leaf()) commit() after())");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed),
        cmocka_unit_test(aborted),
        cmocka_unit_test(attempts),
        cmocka_unit_test(aborted_by_an_interrupt),
        cmocka_unit_test(lost_inside),
        cmocka_unit_test(open_at_the_end),
        cmocka_unit_test(told_by_psb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Fuzz target: code and packets from outside. The first two bytes say how long the code is, which stands at
 * 0x1000; the rest is a packet stream, walked whole and in pieces. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/pt_packet.h"
#include "decode/pt/pt_stack.h"
#include "decode/pt/pt_walk.h"
#include "lib_seeds.h"

#define BASE 0x1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct input {
    const uint8_t *code;
    size_t len;
    struct pt_stack *stack;
    fn_id functions[16];
    uint64_t lost;
};

static size_t read_code(void *arg, uint64_t ip, uint8_t *out, size_t n)
{
    const struct input *in = arg;
    if (ip < BASE || ip - BASE >= in->len)
        return 0;
    if (n > in->len - (ip - BASE))
        n = (size_t)(in->len - (ip - BASE));
    memcpy(out, in->code + (ip - BASE), n);
    return n;
}

static fn_id function_at(void *arg, uint64_t ip, uint64_t *offset)
{
    const struct input *in = arg;
    *offset = ip & 31;
    return in->functions[ip >> 5 & 15];
}

static void on_events(void *arg, const struct flow_event *events, size_t n)
{
    if (pt_stack_events(((struct input *)arg)->stack, events, n) < 0)
        abort();
}

static void on_loss(void *arg, const struct pt_loss *loss)
{
    ((struct input *)arg)->lost += loss->bytes;
}

static void walk(struct input *in, const uint8_t *data, size_t len, size_t piece)
{
    static const struct pt_clock clock = {
        .time_mult = 3, .time_shift = 2, .tsc = true, .mtc_period = 3, .tsc_ctc_n = 7, .tsc_ctc_d = 3, .max_nonturbo_ratio = 20};
    struct functions *functions = functions_new();
    for (int i = 0; i < 16; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        in->functions[i] = functions_intern(functions, "m", name, name, 0, i == 15 ? FN_UNKNOWN : FN_USER);
    }
    struct trace_builder *b = trace_builder_new(functions);
    in->stack = pt_stack_new(b, trace_builder_thread(b, 1, 1), functions);
    in->lost = 0;
    struct pt_code code = {read_code, function_at, in};
    struct pt_walk_sinks sinks = {.events = on_events, .loss = on_loss, .arg = in};
    struct pt_nodes *nodes = pt_nodes_new(&code);
    struct pt_walk *w = pt_walk_new(nodes, &clock, &sinks);
    uint64_t decoded = 0;
    struct pt_stamps stamps = {0};
    if (pt_stamps_find(&stamps, data, len, NULL) < 0)
        abort();
    pt_walk_stamps(w, &stamps);
    for (size_t from = 0; from < len;) {
        const uint8_t *psb = len - from > piece ? pt_packet_find_psb(data + from + piece, data + len) : NULL;
        size_t stop = psb ? (size_t)(psb - data) : len;
        pt_walk_run(w, data, from, stop, len, from > 0);
        decoded += pt_walk_bytes(w);
        from = stop;
    }
    struct trace *t;
    pt_stack_free(in->stack);
    if (decoded + in->lost != len || trace_builder_finish(b, &t, NULL) < 0 || trace_check(t, NULL) < 0)
        abort();
    trace_free(t);
    trace_builder_free(b);
    pt_walk_free(w);
    pt_nodes_free(nodes);
    pt_stamps_free(&stamps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct input in = {.code = data + 2, .len = (size_t)(data[0] | data[1] << 8)};
    if (in.len > size - 2)
        in.len = size - 2;
    const uint8_t *packets = data + 2 + in.len;
    size_t len = size - 2 - in.len;
    walk(&in, packets, len, SIZE_MAX);
    walk(&in, packets, len, 16);
    return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    seeds_write(seeds_pt);
    return 0;
}

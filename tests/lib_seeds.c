#include "lib_seeds.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/step/pt_encode.h"
#include "lib_packets.h"
#include "lib_perfwriter.h"

/* ---- code and packets ---- */

#define BASE 0x1000 /* where fuzz_pt.c puts the code; its functions are 32 bytes long */

static const uint8_t code[] = {
    /* 1000 */ 0xe8, 0x1b, 0, 0, 0,    /* call 1020 */
    /* 1005 */ 0x75, 0xf9,             /* jne 1000 */
    /* 1007 */ 0xff, 0xd0,             /* call *%rax */
    /* 1009 */ 0x74, 0x02,             /* je 100d */
    /* 100b */ 0xff, 0xe0,             /* jmp *%rax */
    /* 100d */ 0x0f, 0x05,             /* syscall */
    /* 100f */ 0xc7, 0xf8, 0x0b, 0, 0, 0, /* xbegin 1020 */
    /* 1015 */ 0x0f, 0x01, 0xd5,       /* xend */
    /* 1018 */ 0xeb, 0xe6,             /* jmp 1000 */
    /* 101a */ 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
    /* 1020 */ 0x90, 0x74, 0x01, 0xc3, /* nop; je 1024; ret */
    /* 1024 */ 0xe8, 0, 0, 0, 0,       /* call 1029 */
    /* 1029 */ 0x58, 0xc3,             /* pop %rax; ret */
    /* 102b */ 0xe9, 0xd0, 0xff, 0xff, 0xff, /* jmp 1000 */
};

struct stream {
    uint8_t bytes[1 << 16];
    size_t len;
};

static void append(void *arg, const uint8_t *bytes, size_t len, bool sync)
{
    struct stream *s = arg;
    (void)sync;
    if (len > sizeof s->bytes - s->len)
        abort();
    memcpy(s->bytes + s->len, bytes, len);
    s->len += len;
}

/* One round through the code. */
static uint64_t tell_round(pt_encode *e, uint64_t now, unsigned i)
{
    for (unsigned k = 0; k <= i % 5; k++) {
        pt_encode_direct_call(e, 0x1005, 0x1020, now++);
        pt_encode_conditional(e, k & 1, now++);
        pt_encode_return(e, 0x1005, now += 7);
        pt_encode_conditional(e, k < i % 5, now++);
        pt_encode_tick(e, k < i % 5 ? 0x1000 : 0x1007, now);
    }
    pt_encode_indirect_call(e, 0x1009, 0x1020, now++);
    pt_encode_conditional(e, false, now++);
    pt_encode_return(e, 0x1009, now++);
    pt_encode_conditional(e, i & 1, now++);
    if (i & 1) {
        pt_encode_end(e, now += 20);
        pt_encode_begin(e, 0x1000, now += 100);
    } else {
        pt_encode_indirect_jump(e, 0x102b, now++);
    }
    if (i % 7 == 6)
        pt_encode_overflow(e, 0x1000, now += 50);
    if (i % 11 == 10) {
        pt_encode_end_at(e, 0x1000, now += 3);
        pt_encode_begin(e, 0x1000, now += 30);
    }
    return now;
}

static void encode(struct stream *s, const struct pt_encode_options *o, unsigned rounds)
{
    pt_encode *e = pt_encode_new(o, append, s);
    uint64_t now = 1000;
    pt_encode_begin(e, 0x1000, now);
    for (unsigned i = 0; i < rounds; i++)
        now = tell_round(e, now, i);
    pt_encode_flush(e, now);
    if (pt_encode_status(e, NULL) < 0)
        abort();
    pt_encode_free(e);
}

static void give_pt(seed_fn *fn, void *arg, const char *name, const uint8_t *packets, size_t len)
{
    size_t size = 2 + sizeof code + len;
    uint8_t *input = malloc(size);
    if (!input)
        abort();
    input[0] = sizeof code & 0xff;
    input[1] = sizeof code >> 8;
    memcpy(input + 2, code, sizeof code);
    memcpy(input + 2 + sizeof code, packets, len);
    fn(arg, name, input, size);
    free(input);
}

/* What the encoder never writes. */
static struct packets odd_packets(void)
{
    struct packets p = {0};
    packets_psb(&p, 0x1000, 1000);
    packets_tnt(&p, "TT"); /* the return of 1020, jne */
    packets_ip(&p, PACKET_FUP, 0x1020);
    packets_ip(&p, PACKET_TIP, 0x1024); /* an interrupt into traced code */
    packets_ip(&p, PACKET_TIP, 0x100f);
    packets_tsx(&p, PACKET_TX_IN);
    packets_ip(&p, PACKET_FUP, 0x1015);
    packets_tsx(&p, PACKET_TX_ABORT);
    packets_ip(&p, PACKET_FUP, 0x1015);
    packets_ip(&p, PACKET_TIP, 0x1020);
    packets_raw(&p, "\x02\xf3", 2);                         /* OVF */
    packets_ip(&p, PACKET_FUP, 0x1000);
    packets_raw(&p, "\x02\x92\x11\x22\x33\x44", 6);         /* PTWRITE, IP follows */
    packets_ip(&p, PACKET_FUP, 0x1000);
    packets_raw(&p, "\x02\x03\x14\x00", 4);                 /* CBR */
    packets_raw(&p, "\x02\x73\x01\x02\x00\x03\x00", 7);     /* TMA */
    packets_raw(&p, "\x59\x07\x59\x09", 4);                 /* MTC */
    packets_raw(&p, "\x99\x02", 2);                         /* MODE.Exec: 32-bit */
    packets_tnt(&p, "TNTNTN");
    packets_psb(&p, 0, 2000);                               /* tracing is off */
    packets_ip(&p, PACKET_PGE, 0x1007);
    packets_ip(&p, PACKET_PGD, 0x1020);                     /* a filter */
    packets_ip(&p, PACKET_PGE, 0x1000);
    packets_ip(&p, PACKET_FUP, 0x1005);
    packets_ip(&p, PACKET_PGD, 0);
    packets_raw(&p, "\x02\x83", 2);                         /* TraceStop */
    return p;
}

void seeds_pt(seed_fn *fn, void *arg)
{
    static const struct {
        const char *name;
        struct pt_encode_options o;
        unsigned rounds;
    } streams[] = {
        {"cyc", {.tsc = true, .mtc = true, .mtc_period = 3, .cyc = true, .ret_compression = true}, 12},
        {"mtc", {.tsc = true, .mtc = true, .mtc_period = 3, .ret_compression = true}, 12},
        {"bare", {.ret_compression = true}, 6},
        {"no-retcomp", {.tsc = true}, 12},
        {"long-tnt", {.tsc = true, .ret_compression = true, .long_tnt = true}, 30},
        {"small-psb", {.tsc = true, .cyc = true, .mtc = true, .ret_compression = true, .psb_period = 64}, 30},
    };
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        struct stream s = {.len = 0};
        encode(&s, &streams[i].o, streams[i].rounds);
        give_pt(fn, arg, streams[i].name, s.bytes, s.len);
    }
    struct packets odd = odd_packets();
    give_pt(fn, arg, "odd", odd.bytes, odd.len);
}

/* ---- perf.data ---- */

static void give_file(seed_fn *fn, void *arg, const char *name, struct perf_writer w)
{
    fn(arg, name, w.data, w.len);
    pw_free(&w);
}

static void auxtrace(struct perf_writer *w, uint64_t offset, uint32_t tid, uint32_t cpu, const uint8_t *bytes,
                     size_t len)
{
    pw_begin(w, 71, 0);
    pw_u64(w, len);
    pw_u64(w, offset);
    pw_u64(w, 1);
    pw_u32(w, 0);
    pw_u32(w, tid);
    pw_u32(w, cpu);
    pw_u32(w, 0);
    pw_end(w);
    pw_bytes(w, bytes, len);
}

/* A trace of a thread in two parts that overlap, one of a CPU, context switches. */
static struct perf_writer traced_file(int pipe)
{
    const uint64_t type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    struct perf_writer w = pipe ? pw_pipe(type) : pw_file(type);
    struct pt_encode_options o = {.tsc = true, .cyc = true, .ret_compression = true, .psb_period = 128};
    struct stream s = {.len = 0};
    encode(&s, &o, 20);
    size_t len = s.len & ~(size_t)7;
    pw_begin(&w, 70, 0); /* AUXTRACE_INFO: as core/step/perf_writer.c fills it */
    pw_u32(&w, 1);
    pw_u32(&w, 0);
    static const uint64_t info[] = {8, 0, 1, 0, 1, 1 << 10, 1 << 11, 2, 1, 1, 1 << 9, 0xf << 14, 32, 1, 2, 10, 0};
    for (size_t i = 0; i < sizeof info / sizeof *info; i++)
        pw_u64(&w, info[i]);
    pw_end(&w);
    pw_comm(&w, 7, 7, "traced", 0, 10);
    pw_mmap2(&w, 7, BASE, 0x1000, 0, "/nowhere/traced", 11);
    for (unsigned i = 0; i < 4; i++) {
        pw_begin(&w, PERF_RECORD_SWITCH, i & 1 ? PERF_RECORD_MISC_SWITCH_OUT : 0);
        pw_end_id(&w, 7, 7 + i / 2, 20 + i * 500);
    }
    pw_mmap2(&w, 7, BASE, 0x1000, 0x1000, "/nowhere/other", 1500);
    auxtrace(&w, 0, 7, UINT32_MAX, s.bytes, len / 2 & ~(size_t)7);
    auxtrace(&w, len / 4 & ~(size_t)7, 7, UINT32_MAX, s.bytes + (len / 4 & ~(size_t)7), len - (len / 4 & ~(size_t)7));
    auxtrace(&w, 0, UINT32_MAX, 1, s.bytes, len);
    pw_finish(&w);
    return w;
}

void seeds_perfdata(seed_fn *fn, void *arg)
{
    give_file(fn, arg, "everything.file", pw_everything(0));
    give_file(fn, arg, "everything.pipe", pw_everything(1));
    give_file(fn, arg, "traced.file", traced_file(0));
    give_file(fn, arg, "traced.pipe", traced_file(1));
}

/* ---- text ---- */

void seeds_perftext(seed_fn *fn, void *arg)
{
    static const struct {
        const char *name, *text;
    } texts[] = {
        {"branches",
         " 4711/4711  12345.678901234:   tr strt                         0 [unknown] ([unknown]) =>     "
         "7f0000001000 main+0x10 (/bin/a b)\n"
         " 4711/4711  12345.678901240:   call                 7f0000001005 main+0x15 (/bin/a b) =>     "
         "7f0000001020 f(int, char => x)+0x0 (/bin/a b)\n"
         " 4711/4711  12345.678901250:   return               7f0000001030 f+0x10 (/bin/a b) =>     7f000000100a "
         "main+0x1a (/bin/a b)\n"
         " 4711/4711  12345.678901260:   jcc                  7f000000100c main+0x1c (/bin/a b) =>     "
         "7f0000001000 main+0x10 (/bin/a b)\n"
         " instruction trace error type 1 time 12345.678901270 cpu 1 pid 4711 tid 4711 ip 0x7f0000001000 code 6: "
         "Trace doesn't match instruction\n"
         " 4711/4711  12345.678901280:   syscall              7f0000001010 main+0x20 (/bin/a b) => "
         "ffffffff81a00000 entry_SYSCALL_64+0x0 ([kernel.kallsyms])\n"
         " 4711/4711  12345.678901290:   tr end  syscall      7f0000001010 main+0x20 (/bin/a b) =>                0 "
         "[unknown] ([unknown])\n"},
        {"packets",
         "p 1/2 [001] 0.000000100: 1 branches:uH:  call (x) 1010 a+0x10 (m) => 3000 c+0x0 (m)\n"
         "p 1/2 [001] 0.000000110: 1 branches:uH:  tx abrt 3004 c+0x4 (m) => 1030 a.cold+0x3 (m)\n"
         "p 1/2 [000] 0.000000120:  cbr:  cbr: 10 freq: 1000 MHz ( 50%) 0 [unknown] ([unknown])\n"
         "p 1/2 [001] 0.000000130:  ptwrite:  IP: 0 payload: 0xdeadbeef 1010 a+0x10 (m)\n"
         "p 1/2 [001] 0.000000140: 1 branches:uH:  hw int 1010 a+0x10 (m) => ffffffff81000000 e+0x0 ([kernel.kallsyms])\n"
         "p 1/2 [001] 0.000000150: 1 branches:uH:  iret ffffffff81000040 e+0x40 ([kernel.kallsyms]) => 1010 a+0x10 (m)\n"
         " instruction trace error type 1 time 0.000000160 cpu 1 pid -1 tid -1 ip 0 code 5: Failed\n"
         "p 1/2 [-01] 0.000000170: 1 branches:uH:  jcc/miss/ 1040 a+0x40 (m) => 2000 b\n"},
        {"chains",
         "my prog  100/101  [001]  5.000001:     250000 cycles:u: \n"
         "\t    55550000111f work+0x1f (/bin/prog)\n\t    555500001200 main+0x20 (/bin/prog)\n"
         "\t    7f0000029d0a __libc_start_main+0xea (/lib/libc.so.6)\n\n"
         "my prog  100/101  [001]  5.000251:     250000 cycles:u: \n"
         "\t    55550000113f [unknown] (inlined)\n\t    ffffffff8100 entry ([kernel.kallsyms])\n\n"},
        {"odd", "\t\n: : :\na/b 1.: => \n 1/1 1.000000000: int 0 => 0\n 1/1 18446744073709551616.0: call\n\n=>\n"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        fn(arg, texts[i].name, (const uint8_t *)texts[i].text, strlen(texts[i].text));
}

/* ---- what is done with them ---- */

static void write_seed(void *arg, const char *name, const uint8_t *bytes, size_t len)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/seed-%s", (const char *)arg, name);
    FILE *f = fopen(path, "w");
    if (!f || fwrite(bytes, 1, len, f) != len || fclose(f) != 0)
        abort();
}

void seeds_write(void (*seeds)(seed_fn *fn, void *arg))
{
    char *dir = getenv("MTUI_SEEDS");
    if (dir)
        seeds(write_seed, dir);
}

struct runner {
    int (*target)(const uint8_t *data, size_t size);
    size_t truncate_up_to, inputs;
    unsigned changes;
    uint32_t dice;
};

static uint32_t throw_dice(struct runner *r, size_t n)
{
    r->dice = r->dice * 1664525u + 1013904223u;
    return (uint32_t)((r->dice >> 8) % n);
}

/* In memory of just its own size, so that a read behind it shows. */
static void run_copy(struct runner *r, const uint8_t *bytes, size_t len, unsigned changes)
{
    uint8_t *copy = malloc(len ? len : 1);
    if (!copy)
        abort();
    memcpy(copy, bytes, len);
    for (unsigned i = 0; i < changes && len; i++) {
        size_t at = throw_dice(r, len);
        switch (throw_dice(r, 4)) {
        case 0:
            copy[at] ^= (uint8_t)(1u << throw_dice(r, 8));
            break;
        case 1:
            copy[at] = (uint8_t)throw_dice(r, 256);
            break;
        case 2: /* numbers at the edge */
            copy[at] = throw_dice(r, 2) ? 0xff : 0;
            break;
        default: { /* a piece of it somewhere else */
            size_t from = throw_dice(r, len), far = at > from ? at : from, n = 1 + throw_dice(r, 32);
            memmove(copy + at, copy + from, n < len - far ? n : len - far);
            break;
        }
        }
    }
    r->target(copy, len);
    r->inputs++;
    free(copy);
}

static void run_seed(void *arg, const char *name, const uint8_t *bytes, size_t len)
{
    struct runner *r = arg;
    (void)name;
    run_copy(r, bytes, len, 0);
    for (size_t n = 0; len <= r->truncate_up_to && n < len; n++)
        run_copy(r, bytes, n, 0);
    for (unsigned i = 0; i < r->changes; i++)
        run_copy(r, bytes, len, 1 + i % 8);
}

size_t seeds_run(void (*seeds)(seed_fn *fn, void *arg), int (*target)(const uint8_t *data, size_t size),
                 size_t truncate_up_to, unsigned changes)
{
    struct runner r = {.target = target, .truncate_up_to = truncate_up_to, .changes = changes, .dice = 4711};
    seeds(run_seed, &r);
    return r.inputs;
}

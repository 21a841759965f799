/* decode/pt/pt_packet against libipt's packet decoder, packet by packet: on streams that our encoder makes,
 * on every packet that libipt can write, and on damaged bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <intel-pt.h>
#include <stdlib.h>
#include <string.h>

#include "core/step/pt_encode.h"
#include "decode/pt/pt_packet.h"

struct bytes {
    uint8_t data[1 << 17];
    size_t len;
};

static void append(void *arg, const uint8_t *bytes, size_t len, bool sync)
{
    struct bytes *b = arg;
    (void)sync;
    assert_true(b->len + len <= sizeof b->data);
    memcpy(b->data + b->len, bytes, len);
    b->len += len;
}

static uint32_t seed = 12345;

static uint32_t dice(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* What the two must agree on, in one form. */
struct common {
    int kind;
    uint64_t value;
    unsigned count, ipc;
};

static struct common of_libipt(const struct pt_packet *p)
{
    struct common c = {-1, 0, 0, 0};
    switch (p->type) {
    case ppt_pad: c.kind = PT_PAD; break;
    case ppt_psb: c.kind = PT_PSB; break;
    case ppt_psbend: c.kind = PT_PSBEND; break;
    case ppt_ovf: c.kind = PT_OVF; break;
    case ppt_stop: c.kind = PT_STOP; break;
    case ppt_tnt_8:
    case ppt_tnt_64:
        c = (struct common){PT_TNT, p->payload.tnt.payload, p->payload.tnt.bit_size, 0};
        break;
    case ppt_tip: c.kind = PT_TIP; break;
    case ppt_tip_pge: c.kind = PT_TIP_PGE; break;
    case ppt_tip_pgd: c.kind = PT_TIP_PGD; break;
    case ppt_fup: c.kind = PT_FUP; break;
    case ppt_tsc: c = (struct common){PT_TSC, p->payload.tsc.tsc, 0, 0}; break;
    case ppt_mtc: c = (struct common){PT_MTC, p->payload.mtc.ctc, 0, 0}; break;
    case ppt_cyc: c = (struct common){PT_CYC, p->payload.cyc.value, 0, 0}; break;
    case ppt_cbr: c = (struct common){PT_CBR, p->payload.cbr.ratio, 0, 0}; break;
    case ppt_tma:
        c = (struct common){PT_TMA, p->payload.tma.ctc | (uint64_t)p->payload.tma.fc << 16, 0, 0};
        break;
    case ppt_pip: c = (struct common){PT_PIP, p->payload.pip.cr3 | p->payload.pip.nr, 0, 0}; break;
    case ppt_vmcs: c.kind = PT_VMCS; break;
    case ppt_mnt: c = (struct common){PT_MNT, p->payload.mnt.payload, 0, 0}; break;
    case ppt_exstop: c.kind = PT_EXSTOP; break;
    case ppt_mwait: c.kind = PT_MWAIT; break;
    case ppt_pwre: c.kind = PT_PWRE; break;
    case ppt_pwrx: c.kind = PT_PWRX; break;
    case ppt_ptw:
        c = (struct common){PT_PTW, p->payload.ptw.payload, p->payload.ptw.ip, 0};
        break;
    case ppt_mode:
        if (p->payload.mode.leaf == pt_mol_exec)
            c = (struct common){PT_MODE_EXEC,
                                p->payload.mode.bits.exec.csl |
                                    (uint64_t)p->payload.mode.bits.exec.csd << 1,
                                0, 0};
        else
            c = (struct common){PT_MODE_TSX,
                                p->payload.mode.bits.tsx.intx |
                                    (uint64_t)p->payload.mode.bits.tsx.abrt << 1,
                                0, 0};
        break;
    case ppt_unknown:
    case ppt_invalid:
    default: break;
    }
    if (c.kind == PT_TIP || c.kind == PT_TIP_PGE || c.kind == PT_TIP_PGD || c.kind == PT_FUP) {
        c.ipc = (unsigned)p->payload.ip.ipc;
        c.value = p->payload.ip.ip;
    }
    return c;
}

/* Reads both ways from one position; true when they agree on what stands there. libipt sees the bytes
 * from their beginning, since it looks for nothing but what follows. */
static bool agree(struct pt_packet_decoder *theirs, const struct bytes *b, size_t at, size_t *next)
{
    struct packet mine;
    int n = pt_packet_read(b->data + at, b->data + b->len, &mine);
    struct pt_packet p;
    memset(&p, 0, sizeof p);
    assert_int_equal(pt_pkt_sync_set(theirs, at), 0);
    int m = pt_pkt_next(theirs, &p, sizeof p);
    if (m < 0 || p.type == ppt_invalid || p.type == ppt_unknown) {
        *next = at + 1;
        /* libipt refuses what is cut and what is no packet; so must we, and say which */
        return m == -pte_eos ? n == PT_END : n < 0;
    }
    *next = at + (size_t)m;
    struct common want = of_libipt(&p);
    bool has_value = mine.kind != PT_VMCS && mine.kind != PT_MWAIT && mine.kind != PT_PWRE &&
                     mine.kind != PT_PWRX && mine.kind != PT_EXSTOP;
    return n == m && mine.kind == want.kind && (!has_value || mine.value == want.value) &&
           (mine.kind != PT_TNT || mine.count == want.count) &&
           (mine.kind != PT_PTW || mine.count == want.count) && mine.ipc == want.ipc;
}

static size_t compare_all(const struct bytes *b)
{
    struct pt_config config;
    pt_config_init(&config);
    config.begin = (uint8_t *)(uintptr_t)b->data;
    config.end = config.begin + b->len;
    struct pt_packet_decoder *theirs = pt_pkt_alloc_decoder(&config);
    assert_non_null(theirs);
    size_t packets = 0;
    for (size_t at = 0, next; at < b->len; at = next, packets++)
        if (!agree(theirs, b, at, &next))
            fail_msg("they disagree at byte %zu of %zu: %02x %02x %02x", at, b->len, b->data[at],
                     at + 1 < b->len ? b->data[at + 1] : 0, at + 2 < b->len ? b->data[at + 2] : 0);
    pt_pkt_free_decoder(theirs);
    return packets;
}

/* A walk over nothing in particular: all that matters is that many kinds of packets come out. */
static void make_stream(struct bytes *b, struct pt_encode_options o, size_t branches)
{
    uint64_t tsc = 1000000, ip = 0x401000;
    pt_encode *e = pt_encode_new(&o, append, b);
    pt_encode_begin(e, ip, tsc);
    for (size_t i = 0; i < branches; i++) {
        tsc += 1 + dice(300);
        uint64_t to = (dice(4) ? 0x401000u : 0x7f0000000000u) + dice(1u << (8 + dice(20)));
        switch (dice(8)) {
        case 0: pt_encode_indirect_jump(e, to, tsc); break;
        case 1: pt_encode_indirect_call(e, ip + 3, to, tsc); break;
        case 2: pt_encode_return(e, to, tsc); break;
        case 3: pt_encode_direct_call(e, to, ip, tsc); break;
        case 4:
            if (dice(20) == 0) {
                pt_encode_end_at(e, ip, tsc);
                pt_encode_begin(e, to, tsc + 5);
            } else if (dice(50) == 0) {
                pt_encode_overflow(e, to, tsc);
            }
            break;
        default: pt_encode_conditional(e, dice(2), tsc); break;
        }
        ip = to;
        pt_encode_tick(e, ip, tsc);
    }
    pt_encode_flush(e, tsc);
    assert_int_equal(pt_encode_status(e, NULL), 0);
    pt_encode_free(e);
}

static void streams_of_the_encoder(void **state)
{
    (void)state;
    struct pt_encode_options all[4];
    for (size_t i = 0; i < 4; i++)
        all[i] = pt_encode_options_default();
    all[1].cyc = all[1].mtc = false;
    all[2].long_tnt = true;
    all[3].psb_period = 64;
    all[3].ret_compression = false;
    for (size_t i = 0; i < 4; i++) {
        static struct bytes b;
        b.len = 0;
        make_stream(&b, all[i], 5000);
        assert_true(compare_all(&b) > 2000);
    }
}

/* Every two-byte beginning, with random bytes behind it. */
static void every_beginning(void **state)
{
    (void)state;
    static struct bytes b;
    for (unsigned first = 0; first < 256; first++)
        for (unsigned second = 0; second < 256; second++) {
            b.len = 24;
            b.data[0] = (uint8_t)first;
            b.data[1] = (uint8_t)second;
            for (size_t i = 2; i < b.len; i++)
                b.data[i] = (uint8_t)dice(256);
            struct pt_config config;
            pt_config_init(&config);
            config.begin = b.data;
            config.end = b.data + b.len;
            struct pt_packet_decoder *theirs = pt_pkt_alloc_decoder(&config);
            size_t next;
            if (!agree(theirs, &b, 0, &next))
                fail_msg("they disagree on %02x %02x %02x", first, second, b.data[2]);
            pt_pkt_free_decoder(theirs);
        }
}

static void damaged_and_cut(void **state)
{
    (void)state;
    static struct bytes b;
    for (int round = 0; round < 200; round++) {
        b.len = 0;
        make_stream(&b, pt_encode_options_default(), 100);
        for (int i = 0; i < 10; i++)
            b.data[dice((uint32_t)b.len)] = (uint8_t)dice(256);
        b.len -= dice((uint32_t)b.len / 2);
        compare_all(&b);
    }
}

static void synchronisation_points(void **state)
{
    (void)state;
    uint8_t b[64] = {0};
    assert_null(pt_packet_find_psb(b, b + sizeof b));
    for (int i = 0; i < 16; i += 2) {
        b[20 + i] = 2;
        b[21 + i] = 0x82;
    }
    assert_ptr_equal(pt_packet_find_psb(b, b + sizeof b), b + 20);
    assert_null(pt_packet_find_psb(b, b + 35)); /* one byte short */
    b[18] = 2; /* a payload that ends like a PSB begins */
    b[19] = 0x82;
    assert_ptr_equal(pt_packet_find_psb(b, b + sizeof b), b + 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_of_the_encoder),
        cmocka_unit_test(every_beginning),
        cmocka_unit_test(damaged_and_cut),
        cmocka_unit_test(synchronisation_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

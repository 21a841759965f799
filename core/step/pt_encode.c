#include "core/step/pt_encode.h"

#include <intel-pt.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

#define DEFAULT_PSB_PERIOD 4096
#define SHORT_TNT_BITS     6
#define LONG_TNT_BITS      47

struct pt_encoder_state {
    struct pt_encode_options opt;
    pt_encode_sink *sink;
    void *arg;
    struct pt_encoder *packets;
    uint8_t scratch[64];
    int failure; /* libipt's first error */

    bool enabled;
    bool stale_ip; /* the next address goes out in full */
    uint64_t last_ip;
    uint64_t tnt;
    unsigned tnt_bits;
    uint64_t tnt_tsc; /* of the last of them */
    uint64_t returns[PT_ENCODE_RETSTACK]; /* a ring: the oldest entry gives way */
    unsigned returns_top, returns_len;
    size_t since_psb;
    bool started; /* a PSB was written */
    uint64_t last_cyc_tsc, next_mtc; /* next_mtc in units of the period */
};

struct pt_encode_options pt_encode_options_default(void)
{
    return (struct pt_encode_options){
        .tsc = true, .mtc = true, .mtc_period = 3, .cyc = true, .ret_compression = true};
}

pt_encode *pt_encode_new(const struct pt_encode_options *options, pt_encode_sink *sink, void *arg)
{
    pt_encode *e = xcalloc(1, sizeof *e);
    e->opt = *options;
    if (!e->opt.psb_period)
        e->opt.psb_period = DEFAULT_PSB_PERIOD;
    e->sink = sink;
    e->arg = arg;
    struct pt_config config;
    pt_config_init(&config);
    config.begin = e->scratch;
    config.end = e->scratch + sizeof e->scratch;
    e->packets = pt_alloc_encoder(&config);
    if (!e->packets)
        e->failure = -pte_nomem;
    return e;
}

void pt_encode_free(pt_encode *e)
{
    if (!e)
        return;
    pt_free_encoder(e->packets);
    free(e);
}

int pt_encode_status(const pt_encode *e, struct err *err)
{
    if (!e->failure)
        return 0;
    return err_set(err, MTUI_E_IO, "an Intel PT packet could not be encoded: %s",
                   pt_errstr(pt_errcode(e->failure)));
}

static void put(pt_encode *e, const struct pt_packet *packet)
{
    if (e->failure)
        return;
    /* One packet at a time at the head of the scratch buffer: libipt wants a buffer, we a stream. */
    pt_enc_sync_set(e->packets, 0);
    int n = pt_enc_next(e->packets, packet);
    if (n < 0) {
        e->failure = n;
        return;
    }
    e->since_psb += (size_t)n;
    e->sink(e->arg, e->scratch, (size_t)n, packet->type == ppt_psb);
}

static void put_plain(pt_encode *e, enum pt_packet_type type)
{
    put(e, &(struct pt_packet){.type = type});
}

/* ---- time ---- */

static uint64_t ctc_of(uint64_t tsc)
{
    return tsc * PT_ENCODE_CTC_D / PT_ENCODE_CTC_N;
}

/* TNT, TIP and MTC packets are preceded by the cycles that passed since the last CYC. */
static void put_cyc(pt_encode *e, uint64_t tsc)
{
    if (!e->opt.cyc || tsc <= e->last_cyc_tsc)
        return;
    struct pt_packet p = {.type = ppt_cyc};
    p.payload.cyc.value = tsc - e->last_cyc_tsc;
    put(e, &p);
    e->last_cyc_tsc = tsc;
}

static uint64_t tsc_of_mtc(const pt_encode *e, uint64_t mtc)
{
    return (mtc << e->opt.mtc_period) * PT_ENCODE_CTC_N / PT_ENCODE_CTC_D;
}

static void put_mtcs(pt_encode *e, uint64_t tsc)
{
    if (!e->opt.mtc)
        return;
    uint64_t now = ctc_of(tsc) >> e->opt.mtc_period;
    for (; e->next_mtc <= now; e->next_mtc++) {
        put_cyc(e, tsc_of_mtc(e, e->next_mtc));
        struct pt_packet p = {.type = ppt_mtc};
        p.payload.mtc.ctc = (uint8_t)e->next_mtc;
        put(e, &p);
    }
}

/* What is due before a packet of this time. */
static void put_time(pt_encode *e, uint64_t tsc)
{
    put_mtcs(e, tsc);
    put_cyc(e, tsc);
}

/* ---- addresses and conditional branches ---- */

static void put_ip(pt_encode *e, enum pt_packet_type type, uint64_t ip)
{
    struct pt_packet p = {.type = type};
    if (e->stale_ip || ip >> 48 != e->last_ip >> 48)
        p.payload.ip.ipc = pt_ipc_sext_48;
    else if (ip >> 32 != e->last_ip >> 32)
        p.payload.ip.ipc = pt_ipc_update_48;
    else if (ip >> 16 != e->last_ip >> 16)
        p.payload.ip.ipc = pt_ipc_update_32;
    else
        p.payload.ip.ipc = pt_ipc_update_16;
    static const uint64_t masks[] = {[pt_ipc_update_16] = 0xffff,
                                     [pt_ipc_update_32] = 0xffffffff,
                                     [pt_ipc_update_48] = 0xffffffffffff,
                                     [pt_ipc_sext_48] = 0xffffffffffff};
    p.payload.ip.ip = ip & masks[p.payload.ip.ipc];
    e->last_ip = ip;
    e->stale_ip = false;
    put(e, &p);
}

static void flush_tnt(pt_encode *e, uint64_t tsc)
{
    if (!e->tnt_bits)
        return;
    put_time(e, tsc);
    struct pt_packet p = {.type = e->tnt_bits > SHORT_TNT_BITS ? ppt_tnt_64 : ppt_tnt_8};
    p.payload.tnt.bit_size = (uint8_t)e->tnt_bits;
    p.payload.tnt.payload = e->tnt;
    e->tnt = 0;
    e->tnt_bits = 0;
    put(e, &p);
}

static void put_tnt_bit(pt_encode *e, bool bit, uint64_t tsc)
{
    e->tnt = e->tnt << 1 | bit;
    e->tnt_tsc = tsc;
    if (++e->tnt_bits == (e->opt.long_tnt ? LONG_TNT_BITS : SHORT_TNT_BITS))
        flush_tnt(e, tsc);
}

static void put_tip(pt_encode *e, uint64_t ip, uint64_t tsc)
{
    flush_tnt(e, tsc);
    put_time(e, tsc);
    put_ip(e, ppt_tip, ip);
}

static void push_return(pt_encode *e, uint64_t next_ip, uint64_t target)
{
    /* A call to the next instruction only reads the program counter: the hardware does not count it. */
    if (target == next_ip)
        return;
    e->returns_top = (e->returns_top + 1) % PT_ENCODE_RETSTACK;
    e->returns[e->returns_top] = next_ip;
    if (e->returns_len < PT_ENCODE_RETSTACK)
        e->returns_len++;
}

static void clear_returns(pt_encode *e)
{
    e->returns_len = 0;
}

/* ---- PSB+ ---- */

static void put_timing_anchor(pt_encode *e, uint64_t tsc)
{
    struct pt_packet p = {.type = ppt_tsc};
    if (e->opt.tsc) {
        p.payload.tsc.tsc = tsc & 0xffffffffffffff;
        put(e, &p);
    }
    if (e->opt.tsc && e->opt.mtc) {
        p = (struct pt_packet){.type = ppt_tma};
        p.payload.tma.ctc = (uint16_t)ctc_of(tsc);
        p.payload.tma.fc = (uint16_t)(tsc % (PT_ENCODE_CTC_N / PT_ENCODE_CTC_D));
        put(e, &p);
        e->next_mtc = (ctc_of(tsc) >> e->opt.mtc_period) + 1;
    }
    if (e->opt.cyc || e->opt.mtc) {
        p = (struct pt_packet){.type = ppt_cbr};
        p.payload.cbr.ratio = PT_ENCODE_CBR;
        put(e, &p);
    }
    e->last_cyc_tsc = tsc;
}

static void put_psb(pt_encode *e, uint64_t ip, uint64_t tsc)
{
    flush_tnt(e, e->tnt_tsc);
    if (e->started)
        put_time(e, tsc); /* or the next CYC would count what is in this TSC already */
    e->since_psb = 0;
    put_plain(e, ppt_psb);
    put_timing_anchor(e, tsc);
    struct pt_packet mode = {.type = ppt_mode};
    mode.payload.mode.leaf = pt_mol_exec;
    mode.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
    put(e, &mode);
    e->stale_ip = true;
    if (e->enabled)
        put_ip(e, ppt_fup, ip);
    put_plain(e, ppt_psbend);
    clear_returns(e);
    e->started = true;
}

/* ---- what the caller reports ---- */

void pt_encode_begin(pt_encode *e, uint64_t ip, uint64_t tsc)
{
    if (e->enabled)
        return;
    if (!e->started || e->since_psb >= e->opt.psb_period)
        put_psb(e, ip, tsc);
    put_time(e, tsc);
    put_ip(e, ppt_tip_pge, ip);
    e->enabled = true;
}

static void put_pgd(pt_encode *e, uint64_t tsc)
{
    put_time(e, tsc);
    struct pt_packet p = {.type = ppt_tip_pgd};
    p.payload.ip.ipc = pt_ipc_suppressed;
    put(e, &p);
    e->enabled = false;
}

void pt_encode_end(pt_encode *e, uint64_t tsc)
{
    if (!e->enabled)
        return;
    flush_tnt(e, tsc);
    put_pgd(e, tsc);
}

void pt_encode_end_at(pt_encode *e, uint64_t ip, uint64_t tsc)
{
    if (!e->enabled)
        return;
    flush_tnt(e, tsc);
    put_time(e, tsc);
    put_ip(e, ppt_fup, ip);
    put_pgd(e, tsc);
}

void pt_encode_conditional(pt_encode *e, bool taken, uint64_t tsc)
{
    put_tnt_bit(e, taken, tsc);
}

void pt_encode_direct_call(pt_encode *e, uint64_t next_ip, uint64_t target, uint64_t tsc)
{
    (void)tsc;
    push_return(e, next_ip, target);
}

void pt_encode_indirect_jump(pt_encode *e, uint64_t target, uint64_t tsc)
{
    put_tip(e, target, tsc);
}

void pt_encode_indirect_call(pt_encode *e, uint64_t next_ip, uint64_t target, uint64_t tsc)
{
    push_return(e, next_ip, target);
    put_tip(e, target, tsc);
}

void pt_encode_return(pt_encode *e, uint64_t target, uint64_t tsc)
{
    if (e->opt.ret_compression && e->returns_len) {
        if (e->returns[e->returns_top] == target) {
            e->returns_top = (e->returns_top + PT_ENCODE_RETSTACK - 1) % PT_ENCODE_RETSTACK;
            e->returns_len--;
            put_tnt_bit(e, true, tsc);
            return;
        }
        /* perf pops its stack on such a return and libipt does not: forget it, so both agree. */
        clear_returns(e);
    }
    put_tip(e, target, tsc);
}

void pt_encode_tick(pt_encode *e, uint64_t ip, uint64_t tsc)
{
    if (!e->enabled)
        return;
    if (e->opt.mtc && (ctc_of(tsc) >> e->opt.mtc_period) >= e->next_mtc) {
        /* Behind the MTC, outcomes of before it would seem to have come after it. */
        flush_tnt(e, e->tnt_tsc);
        put_mtcs(e, tsc);
    }
    if (e->since_psb >= e->opt.psb_period)
        put_psb(e, ip, tsc);
}

void pt_encode_overflow(pt_encode *e, uint64_t ip, uint64_t tsc)
{
    e->tnt = 0; /* what was pending is what was lost */
    e->tnt_bits = 0;
    put_plain(e, ppt_ovf);
    clear_returns(e);
    e->stale_ip = true;
    put_timing_anchor(e, tsc);
    if (e->enabled)
        put_ip(e, ppt_fup, ip);
}

void pt_encode_flush(pt_encode *e, uint64_t tsc)
{
    /* No packet follows that would share a later time: the outcomes keep their own. */
    flush_tnt(e, e->tnt_bits ? e->tnt_tsc : tsc);
}

#include "decode/pt/pt_resume.h"

#include <string.h>

#include "decode/pt/pt_packet.h"

/* What the packets up to here have told. */
struct state {
    struct pt_time time;
    uint64_t last_ip;
    uint8_t mode, ratio; /* MODE.Exec; the last CBR, 0: none */
};

static void take_time(struct state *s, const struct packet *p, bool after_cyc)
{
    switch (p->kind) {
    case PT_TSC:
        pt_time_tsc(&s->time, p->value);
        break;
    case PT_TMA:
        pt_time_tma(&s->time, (unsigned)(p->value & 0xffff), (unsigned)(p->value >> 16));
        break;
    case PT_MTC:
        pt_time_mtc(&s->time, (unsigned)p->value, after_cyc);
        break;
    case PT_CYC:
        pt_time_cyc(&s->time, p->value);
        break;
    case PT_CBR:
        pt_time_cbr(&s->time, (unsigned)p->value);
        s->ratio = (uint8_t)p->value;
        break;
    default:
        break;
    }
}

static size_t put(uint8_t *out, size_t n, uint64_t value, size_t bytes)
{
    memcpy(out + n, &value, bytes);
    return n + bytes;
}

/* The time as of the last MTC, to which those to come count on. */
static size_t put_time(uint8_t *out, size_t n, const struct state *s)
{
    const struct pt_time *t = &s->time;
    const struct pt_clock *c = t->clock;
    uint64_t tsc = t->tsc;
    if (!t->have_tsc)
        return n;
    if (t->have_mtc)
        tsc = t->ctc_origin + (uint64_t)((pt_u128)t->ctc_ticks * c->tsc_ctc_n / c->tsc_ctc_d);
    n = put(out, n, 0x19, 1); /* TSC */
    n = put(out, n, tsc, 7);
    if (t->have_mtc) { /* TMA: CTC, reserved, fast counter */
        n = put(out, n, 0x7302, 2);
        n = put(out, n, ((uint64_t)t->last_mtc << c->mtc_period) & 0xffff, 5);
    }
    if (s->ratio) {
        n = put(out, n, 0x0302, 2); /* CBR */
        n = put(out, n, s->ratio, 2);
    }
    return n;
}

static bool write_psb(struct pt_resume *r, const struct state *s, uint8_t *data)
{
    uint8_t out[64];
    size_t n = 0;
    while (n < PT_PSB_BYTES)
        n = put(out, n, 0x8202, 2);
    n = put_time(out, n, s);
    n = put(out, n, 0x99 | (uint64_t)s->mode << 8, 2); /* MODE.Exec */
    n = put(out, n, 0xdd, 1);                          /* FUP with a full address */
    n = put(out, n, r->ip, 8);
    n = put(out, n, 0x2302, 2); /* PSBEND */
    if (n > r->end)
        return false;
    r->psb = r->end - n;
    memcpy(data + r->psb, out, n);
    return true;
}

bool pt_resume_before_psb(struct pt_resume *r, const struct pt_clock *clock, uint8_t *data, size_t len, size_t sync,
                          size_t lost)
{
    struct state s = {.mode = 1};
    struct packet p;
    bool after_cyc = false;
    int n;
    pt_time_init(&s.time, clock);
    for (size_t at = sync; (n = pt_packet_read(data + at, data + len, &p)) > 0; at += (size_t)n) {
        if (p.kind == PT_PSB && at > sync && at >= lost)
            return false;
        take_time(&s, &p, after_cyc);
        after_cyc = p.kind == PT_CYC;
        if (p.kind == PT_MODE_EXEC)
            s.mode = (uint8_t)(p.value & 3);
        bool told = (p.kind == PT_TIP || p.kind == PT_TIP_PGE || p.kind == PT_TIP_PGD || p.kind == PT_FUP) &&
                    pt_packet_ip(&p, &s.last_ip);
        if (!told || at < lost || (p.kind != PT_TIP && p.kind != PT_TIP_PGE))
            continue;
        *r = (struct pt_resume){.at = at, .end = at + (size_t)n, .ip = s.last_ip};
        return write_psb(r, &s, data);
    }
    return false;
}

#include "decode/pt/pt_packet.h"

#include <endian.h>
#include <string.h>

static uint64_t little_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static int plain(struct packet *out, enum pt_kind kind, const uint8_t *at, const uint8_t *end,
                 size_t head, size_t payload)
{
    if ((size_t)(end - at) < head + payload)
        return PT_END;
    *out = (struct packet){.kind = (uint8_t)kind, .len = (uint8_t)(head + payload)};
    if (payload && payload < 8 && (size_t)(end - at) >= head + 8) { /* the usual case: one load */
        uint64_t v;
        memcpy(&v, at + head, sizeof v);
        out->value = le64toh(v) & (((uint64_t)1 << 8 * payload) - 1);
    } else {
        out->value = payload <= 8 ? little_endian(at + head, payload) : 0;
    }
    return out->len;
}

/* Bytes of address by IPBytes; 5 and 7 are reserved. */
static const int8_t ip_bytes[8] = {0, 2, 4, 6, 6, -1, 8, -1};

static int address(struct packet *out, enum pt_kind kind, const uint8_t *at, const uint8_t *end)
{
    int n = ip_bytes[at[0] >> 5];
    if (n < 0)
        return PT_BAD;
    int len = plain(out, kind, at, end, 1, (size_t)n);
    if (len > 0)
        out->ipc = at[0] >> 5;
    return len;
}

static int tnt(struct packet *out, uint64_t bits, int len)
{
    /* The highest set bit only marks where the outcomes begin. */
    int top = 63 - __builtin_clzll(bits);
    if (top == 0)
        return PT_BAD; /* no outcome at all */
    *out = (struct packet){.kind = PT_TNT,
                              .len = (uint8_t)len,
                              .count = (uint8_t)top,
                              .value = bits & (((uint64_t)1 << top) - 1)};
    return len;
}

/* Cycles: five bits in the first byte, seven in each further one, lowest first; bit 2 of the first and
 * bit 0 of the others say that one more follows. */
static int cycles(struct packet *out, const uint8_t *at, const uint8_t *end)
{
    uint64_t v = at[0] >> 3;
    unsigned shift = 5;
    bool more = at[0] & 4;
    const uint8_t *p = at + 1;
    while (more) {
        if (p == end)
            return PT_END;
        uint64_t bits = *p >> 1;
        if (shift > 63 || bits << shift >> shift != bits)
            return PT_BAD;
        v |= bits << shift;
        shift += 7;
        more = *p++ & 1;
    }
    *out = (struct packet){.kind = PT_CYC, .len = (uint8_t)(p - at), .value = v};
    return out->len;
}

static int psb(struct packet *out, const uint8_t *at, const uint8_t *end)
{
    if (end - at < PT_PSB_BYTES)
        return PT_END;
    for (int i = 0; i < PT_PSB_BYTES; i += 2)
        if (at[i] != 0x02 || at[i + 1] != 0x82)
            return PT_BAD;
    *out = (struct packet){.kind = PT_PSB, .len = PT_PSB_BYTES};
    return PT_PSB_BYTES;
}

static int long_tnt(struct packet *out, const uint8_t *at, const uint8_t *end)
{
    if (end - at < 8)
        return PT_END;
    uint64_t bits = little_endian(at + 2, 6);
    return bits ? tnt(out, bits, 8) : PT_BAD;
}

static int maintenance(struct packet *out, const uint8_t *at, const uint8_t *end)
{
    if (end - at < 3)
        return PT_END;
    return at[2] == 0x88 ? plain(out, PT_MNT, at, end, 3, 8) : PT_BAD;
}

static int ptwrite(struct packet *out, const uint8_t *at, const uint8_t *end)
{
    unsigned size = at[1] >> 5 & 3;
    if (size > 1)
        return PT_BAD;
    int len = plain(out, PT_PTW, at, end, 2, size ? 8 : 4);
    if (len > 0)
        out->count = at[1] >> 7;
    return len;
}

/* PIP: CR3 bits 5–51 above the non-root flag. */
static int paging(struct packet *out, const uint8_t *at, const uint8_t *end)
{
    int len = plain(out, PT_PIP, at, end, 2, 6);
    if (len > 0)
        out->value = (out->value >> 1 << 5) | (out->value & 1);
    return len;
}

static int extended(struct packet *out, const uint8_t *at, const uint8_t *end)
{
    if (end - at < 2)
        return PT_END;
    switch (at[1]) {
    case 0x82:
        return psb(out, at, end);
    case 0x23:
        return plain(out, PT_PSBEND, at, end, 2, 0);
    case 0xf3:
        return plain(out, PT_OVF, at, end, 2, 0);
    case 0xa3:
        return long_tnt(out, at, end);
    case 0x43:
        return paging(out, at, end);
    case 0x03: {
        int len = plain(out, PT_CBR, at, end, 2, 2);
        if (len > 0)
            out->value &= 0xff;
        return len;
    }
    case 0x73: {
        int len = plain(out, PT_TMA, at, end, 2, 5);
        if (len < 0)
            return len;
        /* CTC in two bytes, a zero, the fast counter in nine bits, zeros */
        if (out->value >> 33 || (out->value & 0xff0000))
            return PT_BAD;
        out->value = (out->value & 0xffff) | (out->value >> 24) << 16;
        return len;
    }
    case 0xc8:
        return plain(out, PT_VMCS, at, end, 2, 5);
    case 0x83:
        return plain(out, PT_STOP, at, end, 2, 0);
    case 0xc3:
        return maintenance(out, at, end);
    case 0x62:
    case 0xe2:
        return plain(out, PT_EXSTOP, at, end, 2, 0);
    case 0xc2:
        return plain(out, PT_MWAIT, at, end, 2, 8);
    case 0x22:
        return plain(out, PT_PWRE, at, end, 2, 2);
    case 0xa2:
        return plain(out, PT_PWRX, at, end, 2, 5);
    default:
        return (at[1] & 0x1f) == 0x12 ? ptwrite(out, at, end) : PT_BAD;
    }
}

static int mode(struct packet *out, const uint8_t *at, const uint8_t *end)
{
    int len = plain(out, PT_MODE_EXEC, at, end, 1, 1);
    if (len < 0)
        return len;
    switch (at[1] >> 5) {
    case 0:
        out->value &= 3;
        return len;
    case 1:
        out->kind = PT_MODE_TSX;
        out->value &= 3;
        return len;
    default:
        return PT_BAD;
    }
}

int pt_packet_read(const uint8_t *at, const uint8_t *end, struct packet *out)
{
    if (at >= end)
        return PT_END;
    uint8_t op = at[0];
    if ((op & 1) == 0) {
        if (op == 0)
            return plain(out, PT_PAD, at, end, 1, 0);
        if (op == 2)
            return extended(out, at, end);
        return tnt(out, op >> 1, 1);
    }
    if ((op & 3) == 3)
        return cycles(out, at, end);
    switch (op & 0x1f) {
    case 0x0d:
        return address(out, PT_TIP, at, end);
    case 0x11:
        return address(out, PT_TIP_PGE, at, end);
    case 0x01:
        return address(out, PT_TIP_PGD, at, end);
    case 0x1d:
        return address(out, PT_FUP, at, end);
    default:
        break;
    }
    switch (op) {
    case 0x19:
        return plain(out, PT_TSC, at, end, 1, 7);
    case 0x59:
        return plain(out, PT_MTC, at, end, 1, 1);
    case 0x99:
        return mode(out, at, end);
    default:
        return PT_BAD;
    }
}

const uint8_t *pt_packet_find_psb(const uint8_t *at, const uint8_t *end)
{
    static const uint8_t pattern[PT_PSB_BYTES] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
                                                  2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
    const uint8_t *found = at < end ? memmem(at, (size_t)(end - at), pattern, PT_PSB_BYTES) : NULL;
    /* A payload that ends in 02 82 makes the run of pairs longer at its front. */
    while (found && end - found >= PT_PSB_BYTES + 2 && found[PT_PSB_BYTES] == 2 &&
           found[PT_PSB_BYTES + 1] == 0x82)
        found += 2;
    return found;
}

/* Intel PT packets, taken from a byte stream one at a time.
 *
 * Source: Intel SDM vol. 3, chapter "Intel Processor Trace", packet definitions. libipt's packet decoder
 * is the measure: a test holds this parser equal to it. It knows nothing of flow or time. The bytes are
 * hostile: nothing is read at or behind end. */
#ifndef MTUI_DECODE_PT_PACKET_H
#define MTUI_DECODE_PT_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pt_kind {
    PT_PAD,
    PT_TNT,     /* value: the outcomes, the oldest in bit count − 1 */
    PT_TIP,     /* value: the address (see ipc), bytes of it in count */
    PT_TIP_PGE,
    PT_TIP_PGD,
    PT_FUP,
    PT_PSB,
    PT_PSBEND,
    PT_OVF,
    PT_TSC,     /* value */
    PT_TMA,     /* value: CTC in bits 0–15, fast counter in bits 16–24 */
    PT_MTC,     /* value: 8 bits of the CTC */
    PT_CYC,     /* value: cycles */
    PT_CBR,     /* value: core to bus ratio */
    PT_MODE_EXEC, /* value: CS.L in bit 0, CS.D in bit 1 */
    PT_MODE_TSX,  /* value: in transaction in bit 0, aborted in bit 1 */
    PT_PIP,     /* value: CR3 with the non-root flag in bit 0 */
    PT_VMCS,
    PT_MNT,
    PT_STOP,
    PT_PTW,     /* value: the operand; count: 1 when a FUP follows */
    PT_EXSTOP,
    PT_MWAIT,
    PT_PWRE,
    PT_PWRX
};

/* How an address is compressed (the IPBytes field). */
enum pt_ipc {
    PT_IPC_NONE,      /* no address */
    PT_IPC_UPDATE_16, /* lower bytes replace those of the last address */
    PT_IPC_UPDATE_32,
    PT_IPC_SEXT_48,   /* whole: 48 bits, sign-extended */
    PT_IPC_UPDATE_48,
    PT_IPC_FULL = 6
};

struct packet {
    uint8_t kind;  /* enum pt_kind */
    uint8_t len;   /* bytes in the stream */
    uint8_t count; /* TNT: outcomes; PTW: see there */
    uint8_t ipc;   /* addresses: enum pt_ipc */
    uint64_t value;
};

#define PT_PSB_BYTES 16

/* Negative results. */
#define PT_END (-1) /* the packet goes on behind end (or there is none) */
#define PT_BAD (-2) /* no packet begins with these bytes */

/* Any packet. Returns its length, or PT_END, PT_BAD. */
int pt_packet_read(const uint8_t *at, const uint8_t *end, struct packet *out);

/* The next PSB at or behind at, or NULL. A payload that ends in 02 82 just before a PSB does not mislead
 * it: the PSB begins where sixteen bytes 02 82 … end. */
const uint8_t *pt_packet_find_psb(const uint8_t *at, const uint8_t *end);

/* What stands between a PSB and its PSBEND, these two themselves but for the latter. */
static inline bool pt_packet_is_status(unsigned kind)
{
    switch (kind) {
    case PT_PAD:
    case PT_PSB:
    case PT_TSC:
    case PT_TMA:
    case PT_CBR:
    case PT_FUP:
    case PT_MODE_EXEC:
    case PT_MODE_TSX:
    case PT_PIP:
    case PT_VMCS:
    case PT_MNT:
        return true;
    default:
        return false;
    }
}

/* Applies an address packet to the last address; false when it carries no (valid) address. */
static inline bool pt_packet_ip(const struct packet *p, uint64_t *last_ip)
{
    switch (p->ipc) {
    case PT_IPC_UPDATE_16:
        *last_ip = (*last_ip & ~(uint64_t)0xffff) | p->value;
        return true;
    case PT_IPC_UPDATE_32:
        *last_ip = (*last_ip & ~(uint64_t)0xffffffff) | p->value;
        return true;
    case PT_IPC_UPDATE_48:
        *last_ip = (*last_ip & ~(uint64_t)0xffffffffffff) | p->value;
        return true;
    case PT_IPC_SEXT_48:
        *last_ip = (p->value ^ (uint64_t)1 << 47) - ((uint64_t)1 << 47);
        return true;
    case PT_IPC_FULL:
        *last_ip = p->value;
        return true;
    default:
        return false;
    }
}

#endif

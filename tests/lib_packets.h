/* Packet streams by hand, for what the encoder does not write: transactions, interrupts of traced kernels,
 * broken sequences. Formats: Intel SDM vol. 3, "Packet Definitions". */
#ifndef MTUI_TESTS_LIB_PACKETS_H
#define MTUI_TESTS_LIB_PACKETS_H

#include <stddef.h>
#include <stdint.h>

struct packets {
    uint8_t bytes[4096];
    size_t len;
};

enum { PACKET_TIP = 0x0d, PACKET_PGE = 0x11, PACKET_PGD = 0x01, PACKET_FUP = 0x1d };
enum { PACKET_TX_IN = 1, PACKET_TX_ABORT = 2 };

/* PSB, TSC, MODE.Exec (64-bit), FUP when ip is not 0, PSBEND. */
void packets_psb(struct packets *p, uint64_t ip, uint64_t tsc);
/* One of the four above, with the whole address; ip 0: without one. */
void packets_ip(struct packets *p, unsigned kind, uint64_t ip);
/* Up to six outcomes, "T" and "N", the first one first. */
void packets_tnt(struct packets *p, const char *outcomes);
void packets_tsc(struct packets *p, uint64_t tsc);
/* MODE.TSX with these bits. */
void packets_tsx(struct packets *p, unsigned bits);
void packets_raw(struct packets *p, const void *bytes, size_t len);

#endif

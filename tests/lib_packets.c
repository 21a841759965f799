#include "lib_packets.h"

#include <stdlib.h>
#include <string.h>

void packets_raw(struct packets *p, const void *bytes, size_t len)
{
    if (len > sizeof p->bytes - p->len)
        abort();
    memcpy(p->bytes + p->len, bytes, len);
    p->len += len;
}

static void byte(struct packets *p, unsigned b)
{
    uint8_t one = (uint8_t)b;
    packets_raw(p, &one, 1);
}

void packets_ip(struct packets *p, unsigned kind, uint64_t ip)
{
    byte(p, kind | (ip ? 3u << 5 : 0)); /* 3: 48 bits, sign-extended */
    if (ip)
        packets_raw(p, &ip, 6);
}

void packets_tsc(struct packets *p, uint64_t tsc)
{
    byte(p, 0x19);
    packets_raw(p, &tsc, 7);
}

void packets_psb(struct packets *p, uint64_t ip, uint64_t tsc)
{
    for (int i = 0; i < 8; i++)
        packets_raw(p, "\x02\x82", 2);
    packets_tsc(p, tsc);
    packets_raw(p, "\x99\x01", 2);
    if (ip)
        packets_ip(p, PACKET_FUP, ip);
    packets_raw(p, "\x02\x23", 2);
}

void packets_tnt(struct packets *p, const char *outcomes)
{
    unsigned v = 1;
    for (; *outcomes; outcomes++)
        v = v << 1 | (*outcomes == 'T');
    byte(p, v << 1);
}

void packets_tsx(struct packets *p, unsigned bits)
{
    byte(p, 0x99);
    byte(p, 0x20 | bits);
}

#include "decode/trace/call_sites.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/hash64.h"

/* Intel SDM vol. 2, CALL, SYSCALL, INT n, with prefixes: from INT3 to an indirect call through memory with
 * a segment, a REX and a NOTRACK prefix. Compilers write most as E8 and 32 bits, linkers put one prefix
 * before some. */
#define LENGTH_MOST   10
#define LENGTH_USUAL  5
#define LENGTH_PADDED 6

struct call_sites {
    struct hash64 lengths;
};

struct call_sites *call_sites_new(void)
{
    return xcalloc(1, sizeof(struct call_sites));
}

void call_sites_free(struct call_sites *c)
{
    if (!c)
        return;
    hash64_free(&c->lengths);
    free(c);
}

bool call_sites_return(struct call_sites *c, uint64_t site, uint64_t addr)
{
    uint64_t length = addr - site; /* wraps to something large when addr lies before */
    if (length == 0 || length > LENGTH_MOST)
        return false;
    uint32_t known = hash64_get(&c->lengths, site);
    if (known == HASH64_NONE) /* short of memory, it is learned another time */
        (void)hash64_set(&c->lengths, site, (uint32_t)length);
    return known == HASH64_NONE || known == length;
}

bool call_sites_skip_to(const struct call_sites *c, uint64_t site, uint64_t addr)
{
    uint64_t length = addr - site;
    if (length == 0 || length > LENGTH_MOST)
        return false;
    uint32_t known = hash64_get(&c->lengths, site);
    if (known == HASH64_NONE)
        return length == LENGTH_USUAL || length == LENGTH_PADDED;
    return known == length;
}

bool call_sites_behind(const struct call_sites *c, uint64_t site, uint64_t *addr)
{
    uint32_t known = hash64_get(&c->lengths, site);
    if (known == HASH64_NONE)
        return false;
    *addr = site + known;
    return true;
}

#include "core/base/intern.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

#define FIRST_SLOTS 64
#define FREE_SLOT UINT32_MAX

struct interned {
    char *bytes;
    size_t len;
};

struct intern {
    VEC(struct interned) list;
    uint32_t *slots; /* open addressing */
    size_t mask;
};

static size_t hash(const void *bytes, size_t len)
{
    uint64_t h = 0xcbf29ce484222325ULL; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3ULL;
    return (size_t)(h ^ h >> 32);
}

static uint32_t *find(const struct intern *in, const void *bytes, size_t len)
{
    size_t i = hash(bytes, len) & in->mask;
    for (; in->slots[i] != FREE_SLOT; i = (i + 1) & in->mask) {
        const struct interned *s = &in->list.data[in->slots[i]];
        if (s->len == len && (len == 0 || memcmp(s->bytes, bytes, len) == 0))
            break;
    }
    return &in->slots[i];
}

static void resize(struct intern *in, size_t slots)
{
    free(in->slots);
    in->slots = xmalloc(slots * sizeof *in->slots);
    in->mask = slots - 1;
    for (size_t i = 0; i < slots; i++)
        in->slots[i] = FREE_SLOT;
    for (size_t i = 0; i < in->list.len; i++)
        *find(in, in->list.data[i].bytes, in->list.data[i].len) = (uint32_t)i;
}

struct intern *intern_new(void)
{
    struct intern *in = xcalloc(1, sizeof *in);
    resize(in, FIRST_SLOTS);
    return in;
}

void intern_free(struct intern *in)
{
    if (!in)
        return;
    for (size_t i = 0; i < in->list.len; i++)
        free(in->list.data[i].bytes);
    vec_free(&in->list);
    free(in->slots);
    free(in);
}

uint32_t intern_add(struct intern *in, const void *bytes, size_t len)
{
    uint32_t *slot = find(in, bytes, len);
    if (*slot != FREE_SLOT)
        return *slot;
    if (in->list.len >= in->mask / 3 * 2) {
        resize(in, (in->mask + 1) * 2);
        slot = find(in, bytes, len);
    }
    struct interned s = {xmalloc(len + 1), len};
    if (len)
        memcpy(s.bytes, bytes, len);
    s.bytes[len] = '\0';
    *slot = (uint32_t)in->list.len;
    vec_push(&in->list, s);
    return *slot;
}

const char *intern_get(const struct intern *in, uint32_t id)
{
    return in->list.data[id].bytes;
}

size_t intern_count(const struct intern *in)
{
    return in->list.len;
}

#include "core/base/hash64.h"

#include <stdlib.h>

#define FIRST_SLOTS 64

/* The finaliser of MurmurHash3: every bit of the key reaches every bit of the slot. */
static size_t hash(uint64_t k)
{
    k ^= k >> 33;
    k *= 0xff51afd7ed558ccdULL;
    k ^= k >> 33;
    k *= 0xc4ceb9fe1a85ec53ULL;
    k ^= k >> 33;
    return (size_t)k;
}

static struct hash64_slot *find(struct hash64_slot *slots, size_t mask, uint64_t key)
{
    size_t i = hash(key) & mask;
    while (slots[i].value != HASH64_NONE && slots[i].key != key)
        i = (i + 1) & mask;
    return &slots[i];
}

static bool grow(struct hash64 *h)
{
    size_t slots = h->slots ? (h->mask + 1) * 2 : FIRST_SLOTS;
    if (slots > SIZE_MAX / sizeof *h->slots)
        return false;
    struct hash64_slot *bigger = malloc(slots * sizeof *bigger);
    if (!bigger)
        return false;
    for (size_t i = 0; i < slots; i++)
        bigger[i] = (struct hash64_slot){0, HASH64_NONE};
    for (size_t i = 0; h->slots && i <= h->mask; i++)
        if (h->slots[i].value != HASH64_NONE)
            *find(bigger, slots - 1, h->slots[i].key) = h->slots[i];
    free(h->slots);
    h->slots = bigger;
    h->mask = slots - 1;
    return true;
}

uint32_t hash64_get(const struct hash64 *h, uint64_t key)
{
    return h->slots ? find(h->slots, h->mask, key)->value : HASH64_NONE;
}

bool hash64_set(struct hash64 *h, uint64_t key, uint32_t value)
{
    if ((!h->slots || h->count >= (h->mask + 1) / 3 * 2) && !grow(h))
        return false;
    struct hash64_slot *slot = find(h->slots, h->mask, key);
    if (slot->value == HASH64_NONE)
        h->count++;
    *slot = (struct hash64_slot){key, value};
    return true;
}

void hash64_clear(struct hash64 *h)
{
    for (size_t i = 0; h->slots && i <= h->mask; i++)
        h->slots[i].value = HASH64_NONE;
    h->count = 0;
}

void hash64_free(struct hash64 *h)
{
    free(h->slots);
    *h = (struct hash64){0};
}

/* A hash table from 64-bit keys to 32-bit numbers, for tables whose size comes from input: open
 * addressing, at most two thirds full. Zero-initialise; hash64_free frees. */
#ifndef MTUI_DECODE_HASH64_H
#define MTUI_DECODE_HASH64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH64_NONE UINT32_MAX

struct hash64_slot {
    uint64_t key;
    uint32_t value; /* HASH64_NONE: free */
};

struct hash64 {
    struct hash64_slot *slots;
    size_t count, mask;
};

/* The number of key, or HASH64_NONE. */
uint32_t hash64_get(const struct hash64 *h, uint64_t key);

/* Sets it (value < HASH64_NONE); false when memory is short. */
bool hash64_set(struct hash64 *h, uint64_t key, uint32_t value);

void hash64_clear(struct hash64 *h); /* empties, keeps the memory */
void hash64_free(struct hash64 *h);

#endif

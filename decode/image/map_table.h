/* A sorted table of disjoint mappings, shared between address spaces until one of them changes it. */
#ifndef MTUI_DECODE_MAP_TABLE_H
#define MTUI_DECODE_MAP_TABLE_H

#include "decode/image/addrspace.h"

struct map_table {
    struct addrspace_map *data;
    size_t len, cap;
    size_t users;        /* reference count */
    uint64_t generation; /* set by the owner at each change */
};

struct map_table *map_table_new(void);
struct map_table *map_table_share(struct map_table *t);
void map_table_drop(struct map_table *t); /* NULL allowed */

/* Makes *t the caller's alone. false when memory is short. */
bool map_table_own(struct map_table **t);

/* Takes [start, end) away from whatever holds it: what lies on either side stays. The table must be
 * the caller's alone. false when memory is short. */
bool map_table_cut(struct map_table *t, uint64_t start, uint64_t end);

/* Cuts and inserts. Empty mappings are ignored. */
bool map_table_insert(struct map_table *t, const struct addrspace_map *map);

const struct addrspace_map *map_table_find(const struct map_table *t, uint64_t ip);

#endif

#include "decode/image/map_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

struct map_table *map_table_new(void)
{
    struct map_table *t = xcalloc(1, sizeof *t);
    t->users = 1;
    return t;
}

struct map_table *map_table_share(struct map_table *t)
{
    t->users++;
    return t;
}

void map_table_drop(struct map_table *t)
{
    if (!t || --t->users > 0)
        return;
    free(t->data);
    free(t);
}

bool map_table_own(struct map_table **t)
{
    if ((*t)->users == 1)
        return true;
    struct map_table *copy = map_table_new();
    if ((*t)->len) {
        copy->data = malloc((*t)->len * sizeof *copy->data);
        if (!copy->data) {
            map_table_drop(copy);
            return false;
        }
        memcpy(copy->data, (*t)->data, (*t)->len * sizeof *copy->data);
        copy->len = copy->cap = (*t)->len;
    }
    map_table_drop(*t);
    *t = copy;
    return true;
}

/* The first mapping that ends after address. */
static size_t first_ending_after(const struct map_table *t, uint64_t address)
{
    size_t lo = 0, hi = t->len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->data[mid].end > address)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static bool insert_at(struct map_table *t, size_t i, const struct addrspace_map *map)
{
    struct addrspace_map m = *map;
    if (!vec_try_push(t, m))
        return false;
    memmove(t->data + i + 1, t->data + i, (t->len - 1 - i) * sizeof *t->data);
    t->data[i] = m;
    return true;
}

bool map_table_cut(struct map_table *t, uint64_t start, uint64_t end)
{
    size_t i = first_ending_after(t, start);
    if (i < t->len && t->data[i].start < start) {
        struct addrspace_map right = t->data[i];
        if (right.end > end) { /* a hole inside one mapping */
            right.pgoff += end - right.start;
            right.start = end;
            if (!insert_at(t, i + 1, &right))
                return false;
        }
        t->data[i++].end = start;
    }
    size_t gone = i;
    while (gone < t->len && t->data[gone].end <= end)
        gone++;
    if (gone < t->len && t->data[gone].start < end) {
        t->data[gone].pgoff += end - t->data[gone].start;
        t->data[gone].start = end;
    }
    if (gone > i) {
        memmove(t->data + i, t->data + gone, (t->len - gone) * sizeof *t->data);
        t->len -= gone - i;
    }
    return true;
}

bool map_table_insert(struct map_table *t, const struct addrspace_map *map)
{
    if (map->start >= map->end)
        return true;
    return map_table_cut(t, map->start, map->end) &&
           insert_at(t, first_ending_after(t, map->start), map);
}

const struct addrspace_map *map_table_find(const struct map_table *t, uint64_t ip)
{
    size_t i = first_ending_after(t, ip);
    return i < t->len && t->data[i].start <= ip ? &t->data[i] : NULL;
}
